"""Opening a table: its configuration, timeline and file-system view, as one value."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from .base_files.slices import BaseFileSlices, SliceSource
from .clock import Clock
from .errors import Outdated, TableNotFound
from .file_names import PARTITION_METAFILE
from .metadata.table import MetadataLister, MetadataTable
from .paths import TABLE_FOLDER
from .storage import Storage
from .table.facts import COMPACTIONS, DatedFacts, compacted_file_groups, replaced_file_groups
from .table.log_naming import LogNaming, log_naming
from .table.partitions import Lister, StorageLister
from .table.view import FileGroupId, FileSystemView
from .table_config import TableConfig
from .timeline.active import Timeline
from .timeline.archived import ArchivedTimes
from .waiting import OnWait, unseen

_CHECK_PATH = "check the path of the table: it is the folder that holds the folder .hoodie"

_LOOKS = 3
"""Attempts to open a table whose timeline is archived meanwhile."""


def _hold_nothing() -> None:
    """Check nothing: a reader needs no lock."""


@dataclass(frozen=True)
class Snapshot:
    """A table at one moment. `metadata` is None when the table has no metadata table."""

    storage: Storage
    config: TableConfig
    timeline: Timeline
    metadata: MetadataTable | None
    view: FileSystemView
    slices: SliceSource
    """Opens the file slices of the table."""
    clock: Clock
    check_held: Callable[[], None] = _hold_nothing
    """To be called before each step that cannot be undone: raises ConflictError when the lease or the lock under
    which the table was opened was lost meanwhile."""
    on_wait: OnWait = unseen
    """Told what an action on the table waits for."""

    @property
    def log_naming(self) -> LogNaming:
        return log_naming(self.config.version)


def open_snapshot(storage: Storage, clock: Clock) -> Snapshot:
    """Open the table at the root of `storage`.

    Raises TableNotFound, UnsupportedTable (table version), CorruptFile and StorageError.
    """
    return _at_present(storage, open_config(storage, clock), clock)


def open_config(storage: Storage, clock: Clock) -> TableConfig:
    """The configuration alone. Raises what `open_snapshot` raises."""
    files, folders = storage.list_dir("")
    if not files and not folders:
        raise TableNotFound(f"there is nothing at {storage.root}", hint=_CHECK_PATH)
    if TABLE_FOLDER not in folders and any(file.name.startswith(PARTITION_METAFILE) for file in files):
        raise TableNotFound(f"{storage.root} is a partition of a table, and no table", hint=_CHECK_PATH)
    return TableConfig.load(storage, clock=clock)


def is_unchanged(table: Snapshot, since: Snapshot) -> bool:
    """Whether the table is unchanged between two snapshots: both read the same timeline and the same configuration."""
    return table.timeline.saw_the_same(since.timeline) and table.config.raw == since.config.raw


def reopen(table: Snapshot) -> Snapshot:
    """A new snapshot of the same table, under the same lock."""
    now = _at_present(table.storage, TableConfig.load(table.storage, clock=table.clock), table.clock)
    return replace(now, check_held=table.check_held, on_wait=table.on_wait)


def _at_present(storage: Storage, config: TableConfig, clock: Clock) -> Snapshot:
    for _ in range(_LOOKS - 1):
        # An archiver may run between the listing and the reads; a second attempt sees its result.
        with suppress(Outdated):
            return _look(storage, config, clock)
    return _look(storage, config, clock)


def _look(storage: Storage, config: TableConfig, clock: Clock) -> Snapshot:
    with ThreadPoolExecutor(1) as pool:
        metadata_config = pool.submit(MetadataTable.load_config, storage, config)
        timeline = Timeline.open(storage, config)
        slices = _slice_source(storage, config, timeline)
        replaced = pool.submit(replaced_file_groups, timeline)
        # The metadata table's timeline is read after the table's: a writer completes the two in the opposite order.
        metadata = MetadataTable.open(storage, config, timeline, slices, metadata_config.result())
        lister: Lister = MetadataLister(metadata) if metadata is not None else StorageLister(storage)
        naming, compacting = log_naming(config.version), compacted_file_groups(timeline)
        facts = DatedFacts(timeline, ArchivedTimes(storage, config.history_path))
        view = FileSystemView(lister, facts, replaced.result(), naming, compacting)
    return Snapshot(storage, config, timeline, metadata, view, slices, clock)


def _slice_source(storage: Storage, config: TableConfig, timeline: Timeline) -> SliceSource:
    if not config.is_merge_on_read:
        return BaseFileSlices(storage)
    # Only here: these modules take a tenth of the start of a command, and most tables do not need them.
    from .merging.slices import MergedSlices

    return MergedSlices.of(storage, config, timeline)


def pending_compactions(table: Snapshot) -> dict[FileGroupId, str]:
    """File groups in a pending compaction or log compaction, with its instant."""
    return compacted_file_groups(table.timeline, COMPACTIONS)


def live_names(table: Snapshot, partitions: Iterable[str]) -> dict[str, list[str]]:
    """The names of the base and log files that readers see, by data partition."""
    wanted = sorted({*partitions})
    table.view.load(wanted)
    return {one: [file.name for live in table.view.latest_slices(one) for file in live.files] for one in wanted}


def pending_clusterings(table: Snapshot, but: str = "") -> Mapping[FileGroupId, str]:
    """File groups in a pending clustering, with its instant; not those of the clustering `but`."""
    return {
        (one.partition, one.file_id): instant.ts
        for instant in table.timeline.pending_clusterings()
        if instant.ts != but
        for group in table.timeline.read_plan(instant).groups
        for one in group.slices
    }


def current_schema(table: Snapshot) -> str | None:
    """The table's Avro schema as JSON, without meta columns: that of the newest commit with a schema, else that of the
    table's creation, else None (TableSchemaResolver)."""
    return table.timeline.newest_schema() or table.config.create_schema
