"""Writing one delta commit of the metadata table.

    <T>.deltacommit.requested    empty
    <T>.deltacommit.inflight     the file groups that will be written: a rollback of version 6 reads them here
    one log file per file group  HFile blocks: its records, sorted by key; and a delete block: the deleted keys
                                 (of key indexes, whose tasks write them: `record_index.log_writing`)
    <T>.deltacommit              what was written

Each file is created whole. A writer that dies in between leaves a pending delta commit, whose log files are not read.
Source: HoodieBackedTableMetadataWriter.commitInternal of Apache Hudi.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TypeAlias

from ..codecs.avro import load_schema
from ..codecs.hashing import file_group_index
from ..concurrency import at_once
from ..derived_indexes.secondary_index import placing_part
from ..errors import ConflictError
from ..hfile.hfile_writer import write_hfile
from ..log_files.block_contents import delete_block_content
from ..log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ..log_files.log_writer import encode_block
from ..metadata.file_groups.new_groups import begin_groups
from ..metadata.metadata_table import MOST_FILES, MetadataTable
from ..metadata.record_index.log_writing import IndexDelta
from ..metadata.records.codec import encode_record
from ..metadata.records.model import Record, StatsRecord
from ..metadata.statistics.indexed_columns import typed_among
from ..model import CommitMetadata, FileSlice, WriteStat
from ..paths import bare_name
from ..table.new_logs import NewLog
from ..table_config import METADATA_TABLE_FOLDER
from ..timeline.instant import Action, Instant, State

_OPERATION = "UPSERT_PREPPED"

Confirm: TypeAlias = Callable[[], MetadataTable]
"""Returns the metadata table after a delta commit; raises ConflictError when another writer has taken it back."""


@dataclass(frozen=True, slots=True)
class _GroupWrite:
    """The records and the deleted keys for one file group, and the log file that will hold them."""

    group: FileSlice
    log: NewLog
    records: Sequence[Record]
    deletes: Sequence[str]

    @property
    def updates(self) -> int:
        return len(self.records)


@dataclass(frozen=True, slots=True)
class _ShardWrite:
    """The keys for one shard of a key index, which a task writes."""

    group: FileSlice
    log: NewLog
    shard: int
    updates: int


def write_delta_commit(
    metadata: MetadataTable,
    instant: str,
    records: Mapping[str, Sequence[Record]],
    times: Callable[[], str],
    *,
    deletes: Mapping[str, Sequence[str]] | None = None,
    deltas: Sequence[IndexDelta] = (),
    extra: Mapping[str, str] | None = None,
    hands_on: bool = False,
) -> Confirm:
    """Write the records of each partition as the delta commit `instant`, which must not exist yet.

    The result is to be called before anything is built on the delta commit. With `hands_on` it gives the metadata table
    with the new log files (`MetadataTable.handed_on`), and does not list anything again.

    Records of one key are merged in their order: each is in a later block than the record before. `times` gives the
    completion time. `deletes` are keys to delete, by partition; none of them may have a record here, since the deletion
    would hide it. `deltas` are those of key indexes, none of which has records or deletes here; raises ConflictError
    when such an index was rebuilt meanwhile. `extra` are added to the commit's extra metadata.
    """
    gone = deletes or {}
    metadata.look_into(name for name in {*records, *gone} if records.get(name) or gone.get(name))
    writes = [
        write
        for partition in sorted({*records, *gone})
        for write in _group_writes(metadata, instant, partition, records.get(partition, ()), gone.get(partition, ()))
    ]
    of_indexes = [(one, _shard_writes(metadata, instant, one)) for one in deltas]
    shard_writes = [write for _, writes_of in of_indexes for write in writes_of]
    release = metadata.config.version.release
    timeline = metadata.timeline
    encode = timeline.layout.encode_commit
    timeline.publish(instant, Action.DELTA_COMMIT, State.REQUESTED)
    planned = encode(_forecast([*writes, *shard_writes]), release)
    timeline.publish(instant, Action.DELTA_COMMIT, State.INFLIGHT, planned, looks=False)
    ranges = [name for name, some in records.items() if any(isinstance(one, StatsRecord) for one in some)]
    typed = typed_among(metadata, ranges) if ranges else frozenset()
    # Read once, and not by each write.
    _ = metadata.writer_schema
    stats = at_once(lambda write: _write(metadata, instant, write, write.group.partition in typed), writes)
    for one, of_index in of_indexes:
        begin_groups(metadata.storage, one.index, sorted(one.shards.begun), instant)
        stats += _write_shards(metadata, instant, of_index, one)
    fields = {"schema": load_schema("HoodieMetadataRecord", release).text, **(extra or {})}
    done = CommitMetadata(_OPERATION, _by_partition(stats), fields)
    completed = timeline.publish(instant, Action.DELTA_COMMIT, State.COMPLETED, encode(done, release), times)
    return partial(_confirmed, metadata, completed, stats, hands_on)


def _confirmed(
    metadata: MetadataTable, completed: Instant, stats: Sequence[WriteStat], hands_on: bool
) -> MetadataTable:
    """The metadata table as it is now.

    Raises ConflictError when another writer has rolled the delta commit back while it was not completed: Hudi's writers
    do that to every incomplete delta commit when they open the metadata table, with or without a lock.
    """
    storage, timeline = metadata.storage, metadata.timeline
    names = [timeline.layout.file_name(completed.ts, Action.DELTA_COMMIT, state) for state in (State(0), State(1))]
    logs = {metadata.path(one.partition, bare_name(one.path)): one.file_size for one in stats}
    wanted: dict[str, int | None] = {**dict.fromkeys(map(timeline.path, names)), **logs}
    files = None if hands_on else storage.list_few(METADATA_TABLE_FOLDER, MOST_FILES)
    listed = files if files is not None else at_once(storage.head, wanted)
    found = {file.path: file for file in listed if file is not None}
    for path, size in wanted.items():
        if path not in found or size not in (None, found[path].size):
            raise ConflictError(
                f"{storage.full_path(path)} is not there as it was written: another writer has rolled the delta commit "
                f"{completed.ts} of the metadata table back",
                hint="run again; set hoodie.write.lock.provider here and in the writers, so that they wait",
            )
    if hands_on:
        return metadata.handed_on(found[path] for path in logs)
    return metadata.reload() if files is None else metadata.with_files(files)


def _group_writes(
    metadata: MetadataTable, instant: str, partition: str, records: Sequence[Record], deletes: Sequence[str]
) -> list[_GroupWrite]:
    if not records and not deletes:
        return []
    groups = metadata.file_groups(partition)
    names = metadata.log_names(partition, instant)
    part = placing_part(metadata, partition)
    spread: dict[int, list[Record]] = {}
    for record in sorted(records, key=lambda r: r.key.encode()):
        spread.setdefault(file_group_index(part(record.key), len(groups)), []).append(record)
    gone: dict[int, list[str]] = {}
    for key in sorted(set(deletes)):
        gone.setdefault(file_group_index(part(key), len(groups)), []).append(key)
    return [
        _GroupWrite(groups[i], names.next(groups[i]), spread.get(i, ()), gone.get(i, ()))
        for i in sorted(spread.keys() | gone.keys())
    ]


def _shard_writes(metadata: MetadataTable, instant: str, delta: IndexDelta) -> list[_ShardWrite]:
    index = delta.index
    groups = {group.file_id: group for group in metadata.file_groups(index)}
    if {*groups} != {*delta.shards.file_ids} - delta.shards.begun:
        raise ConflictError(
            f"{metadata.storage.root}: the metadata partition {index} was rebuilt meanwhile",
            hint="nothing was committed; run again",
        )
    groups |= {file_id: FileSlice(index, file_id, instant, None) for file_id in delta.shards.begun}
    names = metadata.log_names(index, instant)
    of_shards = [groups[file_id] for file_id in delta.shards.file_ids]
    counts = sorted(delta.counts().items())
    return [_ShardWrite(of_shards[shard], names.next(of_shards[shard]), shard, count) for shard, count in counts]


def _write_shards(
    metadata: MetadataTable, instant: str, writes: Sequence[_ShardWrite], delta: IndexDelta
) -> list[WriteStat]:
    storage, schema = metadata.storage, metadata.writer_schema.text
    tasks = [
        delta.task(storage, metadata.path(delta.index, write.log.name), instant, schema, write.shard)
        for write in writes
    ]
    return [write.log.written(size, write.updates) for write, size in zip(writes, delta.write(tasks), strict=True)]


def _write(metadata: MetadataTable, instant: str, write: _GroupWrite, typed: bool) -> WriteStat:
    data = b"".join(encode_block(block) for block in _blocks(metadata, instant, write, typed))
    metadata.storage.create(metadata.path(write.group.partition, write.log.name), data)
    return write.log.written(len(data), write.updates, deletes=len(write.deletes))


def _blocks(metadata: MetadataTable, instant: str, write: _GroupWrite, typed: bool) -> Iterator[LogBlock]:
    schema = metadata.writer_schema
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema.text}
    for records in _in_blocks(write.records):
        rows = [(record.key.encode(), encode_record(record, schema, typed=typed)) for record in records]
        yield LogBlock(BlockType.HFILE_DATA, header, write_hfile(rows, schema.text))
    if write.deletes:
        content = delete_block_content([*write.deletes], write.group.partition)
        yield LogBlock(BlockType.DELETE, header, content)


def _in_blocks(records: Sequence[Record]) -> list[list[Record]]:
    """Sorted records by block: the second record of a key is in the second block, and so on."""
    blocks: list[list[Record]] = []
    for _, versions in groupby(records, lambda record: record.key):
        for number, record in enumerate(versions):
            if number == len(blocks):
                blocks.append([])
            blocks[number].append(record)
    return blocks


def _forecast(writes: Sequence[_GroupWrite | _ShardWrite]) -> CommitMetadata:
    """The workload as Hudi writes it into an inflight file: one empty stat a partition, one for each file group."""
    stats = [WriteStat.forecast(partition, None) for partition in {w.group.partition: None for w in writes}]
    stats += [WriteStat.forecast(one.group.partition, one.group, updates=one.updates) for one in writes]
    return CommitMetadata(_OPERATION, _by_partition(stats))


def _by_partition(stats: Sequence[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    grouped: dict[str, tuple[WriteStat, ...]] = {}
    for stat in stats:
        grouped[stat.partition] = (*grouped.get(stat.partition, ()), stat)
    return grouped
