"""Writing one delta commit of the metadata table.

    <T>.deltacommit.requested    empty
    <T>.deltacommit.inflight     which file groups will be written: what a rollback of version 6 goes by
    one log file per file group  an HFile block: its records, sorted by key
    <T>.deltacommit              what was written

Each file is created whole. A writer that dies in between leaves a pending delta commit, whose log files nobody reads.
Source: HoodieBackedTableMetadataWriter.commitInternal of Apache Hudi.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..codecs.avro import load_schema
from ..codecs.hashing import file_group_index
from ..files.hfile_writer import write_hfile
from ..files.log_blocks import BlockType, HeaderKey, LogBlock
from ..files.log_writer import encode_block
from ..model import CommitMetadata, FileSlice, WriteStat
from ..timeline.instant import Action, State
from .log_files import LogNames, NewLog
from .records import Record, encode_record
from .table import MetadataTable

_OPERATION = "UPSERT_PREPPED"


@dataclass(frozen=True, slots=True)
class _GroupWrite:
    """The records for one file group, and the log file that will hold them."""

    group: FileSlice
    log: NewLog
    records: Sequence[Record]


def write_delta_commit(
    metadata: MetadataTable,
    instant: str,
    records: Mapping[str, Sequence[Record]],
    times: Callable[[], str],
    *,
    typed: bool,
) -> None:
    """Write the records of each partition, keys unique, as the delta commit `instant`, which must not exist yet.

    `times` gives the completion time; `typed` is the form of column statistics (see `records.encode_record`).
    """
    writes = [
        w for partition in sorted(records) for w in _group_writes(metadata, instant, partition, records[partition])
    ]
    release = metadata.config.version.release
    timeline = metadata.timeline
    encode = timeline.layout.encode_commit
    timeline.publish(instant, Action.DELTA_COMMIT, State.REQUESTED)
    timeline.publish(instant, Action.DELTA_COMMIT, State.INFLIGHT, encode(_forecast(writes), release))
    stats = [_write(metadata, instant, write, typed) for write in writes]
    extra = {"schema": load_schema("HoodieMetadataRecord", release).text}
    done = CommitMetadata(_OPERATION, _by_partition(stats), extra)
    timeline.publish(instant, Action.DELTA_COMMIT, State.COMPLETED, encode(done, release), times())


def _group_writes(
    metadata: MetadataTable, instant: str, partition: str, records: Sequence[Record]
) -> list[_GroupWrite]:
    if not records:
        return []
    groups = metadata.file_groups(partition)
    names = LogNames(metadata, partition, instant)
    spread: dict[int, list[Record]] = {}
    for record in sorted(records, key=lambda r: r.key.encode()):
        spread.setdefault(file_group_index(record.key, len(groups)), []).append(record)
    return [_GroupWrite(groups[i], names.next(groups[i]), spread[i]) for i in sorted(spread)]


def _write(metadata: MetadataTable, instant: str, write: _GroupWrite, typed: bool) -> WriteStat:
    schema = metadata.writer_schema
    rows = [(record.key.encode(), encode_record(record, schema, typed=typed)) for record in write.records]
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema.text}
    data = encode_block(LogBlock(BlockType.HFILE_DATA, header, write_hfile(rows, schema.text)))
    metadata.storage.create(metadata.path(write.group.partition, write.log.name), data)
    count = len(rows)
    return replace(
        write.log.stat, num_writes=count, num_update_writes=count, total_write_bytes=len(data), file_size=len(data)
    )


def _forecast(writes: Sequence[_GroupWrite]) -> CommitMetadata:
    """The workload as Hudi writes it into an inflight file: one empty stat a partition, one for each file group."""
    stats = [WriteStat(partition, file_id="", path="") for partition in {w.group.partition: None for w in writes}]
    for write in writes:
        planned = WriteStat(
            partition=write.group.partition,
            file_id=write.group.file_id,
            path="",
            prev_commit=write.group.base_instant,
            num_update_writes=len(write.records),
        )
        stats.append(planned)
    return CommitMetadata(_OPERATION, _by_partition(stats))


def _by_partition(stats: Sequence[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    grouped: dict[str, tuple[WriteStat, ...]] = {}
    for stat in stats:
        grouped[stat.partition] = (*grouped.get(stat.partition, ()), stat)
    return grouped
