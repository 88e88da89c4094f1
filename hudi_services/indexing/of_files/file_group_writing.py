"""The files of one file group of an index of files: its base file, and the log files that follow the table."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...base_files.key_sort import sort_keys
from ...codecs.avro import AvroSchema, parse_schema
from ...codecs.binary_layout import offsets_and_bytes
from ...errors import CheckFailed
from ...hfile.hfile_ranges import StoredRanges
from ...hfile.hfile_reader import HFileReader
from ...hfile.hfile_writer import HFileStream
from ...log_files.block_contents import delete_block_content
from ...log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ...log_files.log_writer import encode_block
from ...metadata.records.codec import encode_record
from ...metadata.records.model import StatsRecord
from ...parquet.file_schema import FileSchema, node
from ...parquet.footer import Physical
from ...rows.external_sort import ExternalSort
from ...rows.memory import TaskMemory
from ...rows.sort_order import SortColumn
from ...rows.sorting import RowSorter
from ...storage import Storage
from .record_runs import SCHEMA, RecordRun, each_once


@dataclass(frozen=True, slots=True)
class GroupTask:
    """The base file to write at `path`, of all records of `runs`, at least one, but for the keys `gone`.

    `memory`: bytes for the data of the task.
    """

    storage: Storage
    path: str
    schema: str
    typed: bool
    index: str
    group: int
    runs: tuple[RecordRun, ...]
    memory: int
    gone: frozenset[str] = frozenset()

    @property
    def bytes(self) -> int:
        return sum(run.size for run in self.runs)


@dataclass(frozen=True, slots=True)
class GroupFile:
    """A base file of `entries` records; none was written without any."""

    index: str
    group: int
    path: str
    size: int
    entries: int


def write_group(task: GroupTask, _token: str) -> GroupFile:
    """Sort the records of a file group, on local disk where they do not fit into memory, and write its base file.

    Raises CorruptFile, StorageError, and CheckFailed for a file that does not hold the records.
    """
    schema = parse_schema(task.schema, "the schema of the metadata table")
    expected, found = sum(run.records for run in task.runs), _Digest()
    output = None
    with ExternalSort(_sorter(), expected, TaskMemory(task.memory)) as sort:
        for run in task.runs:
            sort.add(_without(run.read(task.storage), task.gone))
        sort.complete()
        for keys, values in _unique(sort, schema, task.typed):
            if output is None:
                output = task.storage.open_output(task.path)
                hfile = HFileStream(output.write, schema.text)
            found.add(keys, values)
            hfile.add(keys, values)
    if output is None:
        return GroupFile(task.index, task.group, task.path, 0, 0)
    size = hfile.close()
    output.close()
    _check(task, size, found)
    return GroupFile(task.index, task.group, task.path, size, found.entries)


def log_content(
    storage: Storage,
    instant: str,
    schema: AvroSchema,
    typed: bool,
    index: str,
    runs: Sequence[RecordRun],
    gone: Sequence[str],
) -> bytes:
    """The bytes of a log file with the records of `runs`, and the deletion of the keys `gone`; not for many."""
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema.text}
    blocks = []
    if runs:
        table = pa.concat_tables([run.read(storage) for run in runs]).combine_chunks()
        order = sort_keys(table.column(0).combine_chunks())
        keys, values = (column.combine_chunks().take(order) for column in table.columns)
        keys, values = each_once(keys, values, schema, _encoding(schema, typed))
        content = bytearray()
        hfile = HFileStream(content.extend, schema.text)
        hfile.add(keys, values)
        hfile.close()
        blocks.append(LogBlock(BlockType.HFILE_DATA, header, bytes(content)))
    if gone:
        blocks.append(LogBlock(BlockType.DELETE, header, delete_block_content([*gone], index)))
    return b"".join(map(encode_block, blocks))


def _sorter() -> RowSorter:
    columns = [node(field.name, 0, Physical.BYTE_ARRAY) for field in SCHEMA]
    return RowSorter(FileSchema(node("record", 0, children=columns)), [SortColumn("key")])


def _encoding(schema: AvroSchema, typed: bool) -> Callable[[StatsRecord], bytes]:
    return lambda record: encode_record(record, schema, typed=typed)


def _without(records: pa.Table, gone: frozenset[str]) -> pa.Table:
    if not gone:
        return records
    return records.filter(pc.invert(pc.is_in(records.column("key"), pa.array(sorted(gone), pa.string()))))


def _unique(sort: ExternalSort, schema: AvroSchema, typed: bool) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The sorted records with every key once. The last key waits for the next section, which may repeat it."""
    left: pa.Table | None = None
    for section in sort.tables():
        table = section if left is None else pa.concat_tables([left, section])
        keys = table.column("key").combine_chunks()
        starts = np.flatnonzero(pc.not_equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False))
        end = int(starts[-1]) + 1 if len(starts) else 0
        left = table.slice(end)
        if end:
            yield each_once(*_plain(table.slice(0, end)), schema, _encoding(schema, typed))
    if left is not None and left.num_rows:
        yield each_once(*_plain(left), schema, _encoding(schema, typed))


def _plain(table: pa.Table) -> tuple[pa.Array, pa.Array]:
    keys, values = (column.combine_chunks() for column in table.columns)
    return keys.cast(pa.string()), values.cast(pa.binary())


@dataclass
class _Digest:
    """What a series of records holds, in whatever pieces it is added."""

    entries: int = 0
    sums: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    ordered: bool = True
    last: bytes = b""

    def add(self, keys: pa.Array, values: pa.Array) -> None:
        if not len(keys):
            return
        for at, column in enumerate((keys, values)):
            offsets, data = offsets_and_bytes(column)
            lengths: Any = np.diff(offsets).astype("<i8")
            self.sums[2 * at] = zlib.crc32(lengths.tobytes(), self.sums[2 * at])
            self.sums[2 * at + 1] = zlib.crc32(data[offsets[0] : offsets[-1]].data, self.sums[2 * at + 1])
        first = bytes(keys[0].as_buffer())
        rising = pc.all(pc.less(keys[:-1], keys[1:])).as_py() is not False
        self.ordered = self.ordered and rising and (not self.entries or first > self.last)
        self.entries, self.last = self.entries + len(keys), bytes(keys[-1].as_buffer())


def _check(task: GroupTask, size: int, written: _Digest) -> None:
    """Read what storage holds. Raises CheckFailed when it is not what was written, each key once and in order."""
    path, stored = task.storage.full_path(task.path), _Digest()
    for keys, values in HFileReader(StoredRanges(task.storage, task.path, size), path).scan_columns():
        stored.add(keys, values)
    if not stored.ordered or stored != written:
        raise CheckFailed(
            f"{path} holds {stored.entries} records, and not the {written.entries} that were written",
            hint="the table is unchanged; run again",
        )
