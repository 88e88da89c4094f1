"""The record index as a new partition of the metadata table: file groups with base files, made visible in one step.

    <partition>/.hoodie_partition_metadata
    <partition>/<file id>_<token>_<instant>.hfile              the base file of each file group that has records
    <partition>/.<file id>_<instant>.log.1_0-0-0               an empty delete block: so that every file group exists
    <instant>.deltacommit.requested, .inflight, completed      a bulk insert
    hoodie.properties, hoodie.table.metadata.partitions        the switch: no reader uses a partition that it lacks

Source: HoodieBackedTableMetadataWriter.initializeFromFilesystem, initializeFileGroups of Apache Hudi.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..codecs.avro import load_schema
from ..concurrency import at_once
from ..errors import AlreadyExists, ConflictError
from ..files.log_blocks import BlockType, HeaderKey, LogBlock
from ..files.log_writer import delete_block_content, encode_block
from ..files.names import PARTITION_METAFILE, base_file_name, log_file_name
from ..model import CommitMetadata, WriteStat
from ..table.log_naming import INITIALISATION
from ..table.partition_metafile import metafile
from ..timeline.instant import Action, State
from .record_index.base_files import WrittenBase
from .records.keys import RECORD_INDEX
from .statistics.indexed_columns import read_definitions
from .table import MetadataTable


class LostWork(ConflictError):
    """The built files are gone, or no longer fit the metadata table: the build must start again."""


_NO_TASK = "0-0-0"
_OPERATION = "BULK_INSERT_PREPPED"


def initial_instant(metadata: MetadataTable, times: Callable[[], str]) -> str:
    """The instant under which a partition would be built now; unused on the metadata table's timeline.

    Versions 8 and 9 count from zero, as Hudi does, unless the timeline already begins at a later instant: a new instant
    before it would move its start back, and base files of archived compactions would not count any more (Hudi 1.2.0
    finds no file group of an index that was not written to for long, and fails). Then the instant is one of `times`,
    which are greater than all on both timelines.
    """
    taken = {instant.ts for instant in metadata.timeline.instants}
    first = metadata.timeline.first_ts()
    if not metadata.log_naming.may_begin_anew(first):
        return times()
    completed = metadata.data_timeline.completed()
    candidates = metadata.log_naming.initial_instants(completed[-1].ts if completed else INITIALISATION)
    return next(ts for ts in candidates if ts not in taken)


def why_unfit(metadata: MetadataTable, instant: str) -> str:
    """The reason why a partition can no longer be published under `instant`; "" when it can be."""
    if metadata.timeline.find(instant) is not None or metadata.data_timeline.find(instant) is not None:
        return f"the metadata table has its instant {instant} by now"
    first = metadata.timeline.first_ts()
    if first is not None and instant < first and not first.startswith(INITIALISATION):
        return f"the timeline of the metadata table begins after its instant {instant} by now"
    return ""


def record_index_group(shard: int) -> str:
    """The file id of a shard of a global record index."""
    return f"record-index-{shard:04d}-0"


def base_path(metadata: MetadataTable, shard: int, instant: str) -> str:
    """The path of the base file of a shard."""
    return metadata.path(RECORD_INDEX, _base_name(shard, instant))


def log_path(metadata: MetadataTable, shard: int, instant: str, version: int) -> str:
    """The path of a log file of a shard, above its base file; the log file of version 1 makes the file group exist."""
    name = log_file_name(record_index_group(shard), instant, version, _NO_TASK)
    return metadata.path(RECORD_INDEX, name)


@dataclass(frozen=True, slots=True)
class Placed:
    """A file to move into the metadata table: the path where it was written, and its size in bytes."""

    source: str
    size: int


def place_groups(metadata: MetadataTable, shards: int, instant: str, files: Mapping[str, Placed]) -> None:
    """Create the file groups and move `files`, given by target path, into them; may be repeated.

    The caller holds the table's lock, and no write is pending: Hudi's writers build such a partition, too, before it is
    listed. Raises LostWork when one of the files is missing, or does not have the size that was written.
    """
    storage = metadata.storage
    found = at_once(lambda target: storage.head(files[target].source), files)
    arrived = {target for target, source in zip(files, found, strict=True) if source is None}
    _require_there(metadata, {target: files[target] for target in arrived})
    folder = metadata.path(RECORD_INDEX, "").rstrip("/")
    stray = [file.path for file in storage.list_tree(folder) if file.path not in arrived]
    storage.delete_all(stray, lambda _: None)
    _create_groups(metadata, shards, instant)
    at_once(lambda target: storage.move(files[target].source, target), sorted(files.keys() - arrived))
    _require_there(metadata, files)


def _require_there(metadata: MetadataTable, files: Mapping[str, Placed]) -> None:
    for target, info in zip(files, at_once(metadata.storage.head, files), strict=True):
        if info is None or info.size != files[target].size:
            raise LostWork(f"{metadata.storage.full_path(target)} is not there as it was written")


def _create_groups(metadata: MetadataTable, shards: int, instant: str) -> None:
    block = encode_block(LogBlock(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, delete_block_content([])))
    metadata.storage.put(metadata.path(RECORD_INDEX, PARTITION_METAFILE), metafile(instant, depth=1))
    at_once(lambda shard: metadata.storage.put(log_path(metadata, shard, instant, 1), block), range(shards))


def publish_record_index(
    metadata: MetadataTable, instant: str, bases: Sequence[WrittenBase], times: Callable[[], str]
) -> None:
    """Complete the delta commit, then name the index in hoodie.properties; under the lock, with no write pending.

    A completed delta commit of a partition that the table does not name is harmless: after a kill in between, this may
    be called again.
    """
    timeline, release = metadata.timeline, metadata.config.version.release
    for state in (State.REQUESTED, State.INFLIGHT):
        _publish_once(metadata, instant, state)
    stats = tuple(_stat(base, instant) for base in bases)
    extra = {"schema": load_schema("HoodieMetadataRecord", release).text}
    done = timeline.layout.encode_commit(CommitMetadata(_OPERATION, {RECORD_INDEX: stats}, extra), release)
    if not _is_completed(metadata, instant):
        timeline.publish(instant, Action.DELTA_COMMIT, State.COMPLETED, done, times())
    changes: dict[str, str | None] = {}
    if metadata.config.version.record_index_is_defined:
        changes |= _define(metadata)
    ready = sorted({*metadata.table_config.metadata_partitions, RECORD_INDEX})
    metadata.table_config.update(metadata.storage, changes | {"hoodie.table.metadata.partitions": ",".join(ready)})


def _base_name(shard: int, instant: str) -> str:
    return base_file_name(record_index_group(shard), _NO_TASK, instant, ".hfile")


def _publish_once(metadata: MetadataTable, instant: str, state: State) -> None:
    try:
        metadata.timeline.publish(instant, Action.DELTA_COMMIT, state)
    except AlreadyExists:
        return


def _is_completed(metadata: MetadataTable, instant: str) -> bool:
    found = metadata.timeline.find(instant, Action.DELTA_COMMIT)
    return found is not None and found.is_completed


def _stat(base: WrittenBase, instant: str) -> WriteStat:
    return WriteStat(
        partition=RECORD_INDEX,
        file_id=record_index_group(base.shard),
        path=f"{RECORD_INDEX}/{_base_name(base.shard, instant)}",
        num_writes=base.entries,
        num_inserts=base.entries,
        total_write_bytes=base.size,
        file_size=base.size,
    )


def _define(metadata: MetadataTable) -> dict[str, str | None]:
    """Add the index to the index definitions; returns the property with the path of their file."""
    path = metadata.table_config.index_defs_path
    definitions: dict[str, Any] = dict(read_definitions(metadata))
    definitions[RECORD_INDEX] = {
        "indexName": RECORD_INDEX,
        "indexType": RECORD_INDEX,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {"isPartitioned": "false"},
        "version": "V1",
    }
    metadata.storage.put(path, json.dumps({"indexDefinitions": definitions}).encode())
    return {"hoodie.table.index.defs.path": path}
