"""A key index as a new partition of the metadata table: file groups with base files, made visible in one step.

The files are those of `file_groups.new_groups`. `hoodie.table.metadata.partitions` in hoodie.properties is the switch:
no reader uses a partition that it lacks.
Source: HoodieBackedTableMetadataWriter.initializeFromFilesystem, initializeFileGroups of Apache Hudi.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..concurrency import at_once
from ..errors import ConflictError
from ..metadata.file_groups.new_groups import base_stat, complete_build, create_groups, initial_instants
from ..metadata.index_definitions import read_definitions, write_definitions
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.shard_base_file import WrittenBase
from ..model import WriteStat
from ..storage import Storage
from ..table.log_naming import INITIALISATION
from ..table_config import TableConfig
from ..timeline.active import Timeline


class LostWork(ConflictError):
    """The built files are gone, or no longer fit the metadata table: the build must start again."""


def initial_instant(metadata: MetadataTable, times: Callable[[], str]) -> str:
    """As `unused_instants`, for one partition."""
    return unused_instants(metadata, times, 1)[0]


def unused_instants(metadata: MetadataTable, times: Callable[[], str], count: int) -> list[str]:
    """The instants under which partitions would be built now, in their order; unused on the metadata table's timeline.

    Versions 8 and 9 count from zero, as Hudi does, unless the timeline already begins at a later instant: a new instant
    before it would move its start back, and base files of archived compactions would not count any more (Hudi 1.2.0
    finds no file group of an index that was not written to for long, and fails). Then the instant is one of `times`,
    which are greater than all on both timelines.
    """
    taken = {instant.ts for instant in metadata.timeline.instants}
    first = metadata.timeline.first_ts()
    if not metadata.log_naming.may_begin_anew(first):
        return [times() for _ in range(count)]
    free = (ts for ts in initial_instants(metadata.log_naming, metadata.data_timeline) if ts not in taken)
    return list(islice(free, count))


def why_unfit(metadata: MetadataTable, instant: str, *, begun: bool = False) -> str:
    """The reason why a partition can no longer be published under `instant`; "" when it can be.

    `begun`: whether a killed process may have completed its delta commit already.
    """
    is_known = metadata.timeline.find(instant) is not None or metadata.data_timeline.find(instant) is not None
    if is_known and not begun:
        return f"the metadata table has its instant {instant} by now"
    first = metadata.timeline.first_ts()
    if first is not None and instant < first and not first.startswith(INITIALISATION):
        return f"the timeline of the metadata table begins after its instant {instant} by now"
    return ""


@dataclass(frozen=True, slots=True)
class Placed:
    """A file to move into the metadata table: the path where it was written, and its size in bytes."""

    source: str
    size: int


def place_groups(
    storage: Storage, partition: str, file_ids: Iterable[str], instant: str, files: Mapping[str, Placed]
) -> None:
    """Create the file groups and move `files`, given by target path, into them; may be repeated.

    The caller holds the table's lock, and no write is pending: Hudi's writers build such a partition, too, before it is
    listed. Raises LostWork when one of the files is missing, or does not have the size that was written.
    """
    found = at_once(lambda target: storage.head(files[target].source), files)
    arrived = {target for target, source in zip(files, found, strict=True) if source is None}
    require_there(storage, {target: files[target] for target in arrived})
    folder = MetadataTable.path(partition, "").rstrip("/")
    stray = [file.path for file in storage.list_tree(folder) if file.path not in arrived]
    storage.delete_all(stray, lambda _: None)
    create_groups(storage, partition, file_ids, instant)
    at_once(lambda target: storage.move(files[target].source, target), sorted(files.keys() - arrived))
    require_there(storage, files)


def require_there(storage: Storage, files: Mapping[str, Placed]) -> None:
    """Raise LostWork unless each file, by its path, has the size that was written."""
    for path, info in zip(files, at_once(storage.head, files), strict=True):
        if info is None or info.size != files[path].size:
            raise LostWork(f"{storage.full_path(path)} is not there as it was written")


@dataclass(frozen=True, slots=True)
class BuiltPartition:
    """A partition whose files are built: its delta commit, its file groups, and what the commit says of their files.

    `files` are the files to move, by their paths in the metadata table. `definition`: what index.json says of it; None
    for nothing.
    """

    partition: str
    instant: str
    file_ids: Sequence[str]
    files: Mapping[str, Placed]
    stats: Sequence[WriteStat]
    definition: Mapping[str, Any] | None = None


def publish_partition(
    metadata: MetadataTable,
    partition: str,
    definition: Mapping[str, Any] | None,
    instant: str,
    file_ids: Sequence[str],
    bases: Sequence[WrittenBase],
    times: Callable[[], str],
) -> None:
    """As `publish_partitions`, for one partition, whose files were placed before."""
    stats = [base_stat(partition, file_ids[base.shard], instant, base.entries, base.size) for base in bases]
    publish_partitions(metadata, [BuiltPartition(partition, instant, file_ids, {}, stats, definition)], times)


def publish_partitions(metadata: MetadataTable, partitions: Sequence[BuiltPartition], times: Callable[[], str]) -> None:
    """Complete the delta commits, then name the partitions in hoodie.properties; under the lock, with no write pending.

    A completed delta commit of a partition that the table does not name is harmless: after a kill in between, this may
    be called again.
    """
    complete_builds(metadata.timeline, metadata.config.version.release, partitions, times)
    metadata.forget_definitions()
    config, storage = metadata.table_config, metadata.storage
    known = read_definitions(metadata) if any(one.definition is not None for one in partitions) else {}
    name_partitions(storage, config, partitions, known, config.metadata_partitions)


def complete_builds(
    timeline: Timeline, release: str, partitions: Sequence[BuiltPartition], times: Callable[[], str]
) -> None:
    """Complete the delta commits on the metadata table's timeline."""
    for one in partitions:
        complete_build(timeline, release, one.partition, one.instant, one.stats, times)


def name_partitions(
    storage: Storage,
    config: TableConfig,
    partitions: Sequence[BuiltPartition],
    definitions: Mapping[str, Mapping[str, Any]],
    beside: Collection[str],
) -> None:
    """Name the partitions in hoodie.properties, with those that are there `beside` them: from then on they are used.

    `definitions` are those of index.json that stay.
    """
    changes: dict[str, str | None] = {} if beside else {"hoodie.table.metadata.partitions.inflight": ""}
    new = {one.partition: dict(one.definition) for one in partitions if one.definition is not None}
    if new:
        write_definitions(storage, config.index_defs_path, {**definitions, **new})
        changes["hoodie.table.index.defs.path"] = config.index_defs_path
    elif not beside:
        # Definitions of indexes that went with an earlier metadata table.
        storage.delete(config.index_defs_path)
    ready = sorted({*beside, *(one.partition for one in partitions)})
    config.update(storage, changes | {"hoodie.table.metadata.partitions": ",".join(ready)})
