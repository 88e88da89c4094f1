"""A key index as a new partition of the metadata table: file groups with base files, made visible in one step.

The files are those of `file_groups.new_groups`. `hoodie.table.metadata.partitions` in hoodie.properties is the switch:
no reader uses a partition that it lacks.
Source: HoodieBackedTableMetadataWriter.initializeFromFilesystem, initializeFileGroups of Apache Hudi.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..concurrency import at_once
from ..errors import ConflictError
from ..metadata.file_groups.new_groups import base_stat, complete_build, create_groups, initial_instants
from ..metadata.index_definitions import read_definitions, write_definitions
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.shard_base_file import WrittenBase
from ..storage import Storage
from ..table.log_naming import INITIALISATION


class LostWork(ConflictError):
    """The built files are gone, or no longer fit the metadata table: the build must start again."""


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
    return next(ts for ts in initial_instants(metadata.log_naming, metadata.data_timeline) if ts not in taken)


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
    metadata: MetadataTable, partition: str, file_ids: Iterable[str], instant: str, files: Mapping[str, Placed]
) -> None:
    """Create the file groups and move `files`, given by target path, into them; may be repeated.

    The caller holds the table's lock, and no write is pending: Hudi's writers build such a partition, too, before it is
    listed. Raises LostWork when one of the files is missing, or does not have the size that was written.
    """
    storage = metadata.storage
    found = at_once(lambda target: storage.head(files[target].source), files)
    arrived = {target for target, source in zip(files, found, strict=True) if source is None}
    require_there(storage, {target: files[target] for target in arrived})
    folder = metadata.path(partition, "").rstrip("/")
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


def publish_partition(
    metadata: MetadataTable,
    partition: str,
    definition: Mapping[str, Any] | None,
    instant: str,
    file_ids: Sequence[str],
    bases: Sequence[WrittenBase],
    times: Callable[[], str],
) -> None:
    """Complete the delta commit, then name the partition in hoodie.properties; under the lock, with no write pending.

    `definition`: what index.json says of it; None for nothing. A completed delta commit of a partition that the table
    does not name is harmless: after a kill in between, this may be called again.
    """
    stats = [base_stat(partition, file_ids[base.shard], instant, base.entries, base.size) for base in bases]
    complete_build(metadata.timeline, metadata.config.version.release, partition, instant, stats, times)
    changes: dict[str, str | None] = {}
    if definition is not None:
        path = metadata.table_config.index_defs_path
        metadata.forget_definitions()
        write_definitions(metadata.storage, path, {**read_definitions(metadata), partition: dict(definition)})
        changes["hoodie.table.index.defs.path"] = path
    ready = sorted({*metadata.table_config.metadata_partitions, partition})
    metadata.table_config.update(metadata.storage, changes | {"hoodie.table.metadata.partitions": ",".join(ready)})
