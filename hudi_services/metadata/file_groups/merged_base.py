"""The base file that a compaction makes of one file slice of the metadata table: the records that readers find in it.

As in Hudi, the result of the readers' merge is kept: keys that a delete block names are dropped, while entries of a
listing and records that are marked as deleted stay. Only in secondary indexes, where a record that is marked as deleted
means the same as no record, it is dropped, too. Without any record no file is written, and the slice stays: not every
release reads an HFile without entries.
Source: HoodieCompactor, HoodieSortedMergeHandle, FileGroupReaderBasedMergeHandle, HoodieMetadataPayload of Apache Hudi.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from ...codecs.avro import AvroSchema, parse_schema
from ...errors import CheckFailed
from ...hfile.hfile_entries import entry_columns
from ...hfile.hfile_ranges import StoredRanges
from ...hfile.hfile_reader import HFileReader
from ...hfile.hfile_writer import HFileStream
from ...model import FileSlice
from ...storage import Storage
from ...table_config import METADATA_TABLE_FOLDER
from ..record_index.shard_entries import LocationNumbers, ShardEntries, decode_secondary
from ..records.codec import encode_record
from ..records.keys import RECORD_INDEX, SECONDARY_INDEX_PREFIX
from ..records.model import SecondaryRecord
from .blocks import BlockFilter
from .committed_files import CommittedFiles
from .group_files import GroupFiles
from .reader import FileGroupReader

_PIECE = 4 << 20
"""Bytes of encoded records that are held at once."""
_Columns: TypeAlias = tuple[pa.Array, pa.Array]


@dataclass(frozen=True, slots=True)
class MergeTask:
    """The base file to write at `path`, from the blocks of `file_slice` that count; `typed` as for encode_record.

    `committed`: the contents that the log files must have.
    """

    storage: Storage
    path: str
    file_slice: FileSlice
    blocks: BlockFilter
    committed: CommittedFiles
    schema: str
    typed: bool


@dataclass(frozen=True, slots=True)
class MergedBase:
    """A merge's numbers: bytes written, 0 for no file; entries; entries of the base file before; log blocks and their
    records."""

    size: int
    entries: int
    entries_before: int
    blocks: int
    records: int


def write_merged_base(task: MergeTask, _token: str) -> MergedBase:
    """Write the file; a repeated task writes the same file.

    Raises CorruptFile, CheckFailed and StorageError.
    """
    schema = parse_schema(task.schema, task.path)
    group = FileGroupReader(
        GroupFiles(task.storage, METADATA_TABLE_FOLDER), task.file_slice, task.blocks, task.committed
    )
    entries, size = 0, 0
    pieces = _pieces(group, schema, task)
    first = next((piece for piece in pieces if len(piece[0])), None)
    if first is not None:
        output = task.storage.open_output(task.path)
        hfile = HFileStream(output.write, schema.text)
        hfile.add(*first)
        entries = len(first[0])
        for keys, values in pieces:
            hfile.add(keys, values)
            entries += len(keys)
        size = hfile.close()
        output.close()
        _check_stored(task, size, entries)
    before, blocks, records = group.counts
    return MergedBase(size, entries, before, blocks, records)


def _pieces(group: FileGroupReader, schema: AvroSchema, task: MergeTask) -> Iterator[_Columns]:
    if task.file_slice.partition == RECORD_INDEX:
        return _locations(group, schema)
    if task.file_slice.partition.startswith(SECONDARY_INDEX_PREFIX):
        return _secondary_keys(group, schema)
    return _records(group, schema, task)


def _locations(group: FileGroupReader, schema: AvroSchema) -> Iterator[_Columns]:
    """The entries of the record index; keys with the same location share its value."""
    numbers = LocationNumbers()
    for entries in ShardEntries(group, numbers).read():
        yield entries.keys, pa.DictionaryArray.from_arrays(pa.array(entries.places), numbers.values(schema))


def _secondary_keys(group: FileGroupReader, schema: AvroSchema) -> Iterator[_Columns]:
    """The entries of a secondary index, which all have one value; keys that are marked as deleted are dropped."""
    value = pa.array([encode_record(SecondaryRecord(""), schema, typed=False)], pa.binary())
    for entries in ShardEntries(group, decode_secondary).read():
        yield entries.keys, pa.DictionaryArray.from_arrays(pa.array(entries.places), value)


def _records(group: FileGroupReader, schema: AvroSchema, task: MergeTask) -> Iterator[_Columns]:
    """The records of any other partition, piece by piece."""
    rows: list[tuple[bytes, bytes]] = []
    held = 0
    for row in group.merged_values(schema, lambda record: encode_record(record, schema, typed=task.typed)):
        rows.append(row)
        held += len(row[1])
        if held >= _PIECE:
            yield entry_columns(rows)
            rows, held = [], 0
    yield entry_columns(rows)


def _check_stored(task: MergeTask, size: int, entries: int) -> None:
    """Raise CheckFailed unless the stored file has all entries: it replaces many files."""
    full_path = task.storage.full_path(task.path)
    stored = HFileReader(StoredRanges(task.storage, task.path, size), full_path).entry_count
    if stored != entries:
        raise CheckFailed(f"{full_path} holds {stored} entries, and {entries} were written")
