"""Opening a table: its configuration, timeline and file-system view, as one value."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from .base_files.base_file_slices import BaseFileSlices
from .base_files.slices import SliceSource
from .base_files.source_folder import NO_SOURCES, SourceFolder
from .clock import Clock, uptime
from .concurrency import at_once
from .errors import HudiServicesError, Outdated, TableNotFound
from .file_names import PARTITION_METAFILE
from .metadata.metadata_table import MOST_FILES, MetadataLister, MetadataTable
from .metadata.records.keys import FILES
from .paths import TABLE_FOLDER
from .schema.schema_history import KnownHistory
from .schema.table_schema import TableSchema
from .storage import FileInfo, Storage
from .table.bootstrap_index import BASE_PATH, BootstrapIndex
from .table.file_ledger import FileLedger
from .table.log_naming import LogNaming, log_naming
from .table.meta_folder import MetaFolder
from .table.partitions import Lister, StorageLister
from .table.stored_history import stored_history
from .table.view import FileSystemView
from .table_config import METADATA_TABLE_FOLDER, TableConfig
from .timeline.active import Timeline
from .timeline.instant import Instant
from .waiting import OnWait, unseen

T = TypeVar("T")

_CHECK_PATH = "check the path of the table: it is the folder that holds the folder .hoodie"

_USUAL_TIMELINE = f"{TABLE_FOLDER}/timeline"
_LOOKS = 3
"""Attempts to open a table whose timeline is archived meanwhile."""


def hold_nothing() -> None:
    """Check nothing: a reader needs no lock."""


@dataclass(frozen=True)
class Snapshot:
    """A table at one moment. `metadata` is None when the table has no metadata table."""

    storage: Storage
    config: TableConfig
    meta: MetaFolder
    ledger: FileLedger
    """What its timeline says about files."""
    metadata: MetadataTable | None
    view: FileSystemView
    slices: SliceSource
    """Opens the file slices of the table."""
    history: KnownHistory
    """The versions of its schema, where it has a schema history."""
    sources: SourceFolder
    """The folder that a bootstrapped table may be read from."""
    clock: Clock
    stored: StorageLister
    """Lists partitions on storage, each once: of a critical section, since its beginning."""
    check_held: Callable[[], None] = hold_nothing
    """To be called before each step that cannot be undone: raises ConflictError when the lease or the lock under
    which the table was opened was lost meanwhile."""
    on_wait: OnWait = unseen
    """Told what an action on the table waits for."""

    @property
    def timeline(self) -> Timeline:
        return self.ledger.timeline

    @property
    def schema(self) -> TableSchema | None:
        """The schema of its rows, see `Timeline.schema`."""
        return self.timeline.schema

    def schema_at(self, instant: str) -> TableSchema | None:
        """The schema of files that bear this instant: that of the table, unless a later version has other columns.

        Raises as `KnownHistory.value`.
        """
        schema = self.schema
        if schema is None or not schema.version:
            return schema
        history = self.history.value
        assert history is not None, "a schema that names its version has a history"
        version = history.at(instant)
        return schema if version.id == history.now.id else history.until(instant).schema(self.config.name)

    def versioned_schema(self, instant: str) -> TableSchema | None:
        """As `schema_at`; None for a table without a schema history."""
        schema = self.schema_at(instant)
        return schema if schema is not None and schema.version else None

    @property
    def log_naming(self) -> LogNaming:
        return log_naming(self.config.version)


def open_snapshot(storage: Storage, clock: Clock) -> Snapshot:
    """Open the table at the root of `storage`.

    Raises TableNotFound, UnsupportedTable (table version), CorruptFile and StorageError.
    """
    with ThreadPoolExecutor(1) as pool:
        # Most tables have their timeline there, and the listing need not wait for the properties to say so.
        usual = pool.submit(storage.list_dir, _USUAL_TIMELINE)
        # Before the properties are read: otherwise a change in between would never be seen by `refresh`.
        meta = MetaFolder.list(storage)
        config = open_config(storage, clock)
        listed = usual.result()[0] if config.timeline_path == _USUAL_TIMELINE else _timeline_in(meta, config)
    with suppress(Outdated):
        return _look(storage, config, meta, clock, listed=listed)
    return _at_present(storage, config, meta, clock)


def read_ahead(table: Snapshot) -> None:
    """Read at the same time what every command reads that works with rows: the newest schema, the listing's files."""
    metadata = table.metadata
    reads: list[Callable[[], object]] = [lambda: table.schema]
    if metadata is not None:
        reads += [lambda: metadata.look_into([FILES]), lambda: metadata.committed, lambda: metadata.index_definitions]
    with suppress(HudiServicesError):
        at_once(lambda read: read(), reads)


def open_config(storage: Storage, clock: Clock) -> TableConfig:
    """The configuration alone. Raises what `open_snapshot` raises."""
    try:
        return TableConfig.load(storage, clock=clock)
    except TableNotFound:
        files, folders = storage.list_dir("")
        if not files and not folders:
            raise TableNotFound(_nothing_in(storage), hint=_CHECK_PATH) from None
        if TABLE_FOLDER not in folders and any(file.name.startswith(PARTITION_METAFILE) for file in files):
            raise TableNotFound(f"{storage.root} is a partition of a table, and no table", hint=_CHECK_PATH) from None
        raise


def _nothing_in(storage: Storage) -> str:
    """Why a listing of the root is empty; stores list files and folders that do not exist as empty folders."""
    folder, _, name = storage.root.rpartition("/")
    # A bucket, and a store that does not let us look, have no such file.
    with suppress(HudiServicesError):
        if storage.elsewhere(folder or "/").head(name) is not None:
            return f"{storage.root} is a file, and a table is a folder"
    return f"there is nothing at {storage.root}: it does not exist, or is an empty folder"


def is_unchanged(table: Snapshot, since: Snapshot) -> bool:
    """Whether the table is unchanged between two snapshots: both read the same timeline and the same configuration."""
    return table.timeline.saw_the_same(since.timeline) and table.config.raw == since.config.raw


def refresh(table: Snapshot) -> Snapshot:
    """The table as it is now, under the same lock: `table` itself, with all that it has read, if nothing has changed.

    Raises what `open_snapshot` raises.
    """
    return refresh_beside(table, lambda: None)[0]


def refresh_beside(table: Snapshot, last: Callable[[], T], *, holds: float = 0.0) -> tuple[Snapshot, T]:
    """As `refresh`, and what `last` returns, which is called beside the requests for what has changed.

    A look at the timeline of the metadata table holds for `holds` seconds while nothing is completed.
    """
    storage, config = table.storage, table.config
    with ThreadPoolExecutor(3) as pool:
        listing = pool.submit(MetaFolder.list, storage)
        beside = pool.submit(last)
        ahead = None if table.metadata is None else _own_timeline(table.metadata.timeline, holds, pool)
        listed = storage.list_dir(config.timeline_path)[0] if config.timeline_path != TABLE_FOLDER else None
        meta = listing.result()
        if not meta.has_same_properties(table.meta):
            new = TableConfig.load(storage, clock=table.clock)
            listed = listed if new.timeline_path == config.timeline_path else None
            config = config if new == config else new
        files = _timeline_in(meta, config) if listed is None else listed
        try:
            now = _look(storage, config, meta, table.clock, table, files, ahead)
        except Outdated:
            now = _at_present(storage, config, meta, table.clock)
        if now is not table:
            now = replace(now, check_held=table.check_held, on_wait=table.on_wait)
        return now, beside.result()


def _own_timeline(known: Timeline, holds: float, pool: ThreadPoolExecutor) -> Callable[[], Timeline]:
    if uptime() - known.seen < holds:
        return lambda: known
    return pool.submit(known.reload).result


def _at_present(storage: Storage, config: TableConfig, meta: MetaFolder, clock: Clock) -> Snapshot:
    """The table with this configuration, which was read after `meta` was listed; its timeline is listed again."""
    for _ in range(_LOOKS - 1):
        # An archiver may run between the listing and the reads; a second attempt sees its result.
        with suppress(Outdated):
            return _look(storage, config, meta, clock)
    return _look(storage, config, meta, clock)


def _timeline_in(meta: MetaFolder, config: TableConfig) -> Iterable[FileInfo] | None:
    """The files of the timeline, where they are in `.hoodie` itself."""
    return meta.files.values() if config.timeline_path == TABLE_FOLDER else None


def _look(
    storage: Storage,
    config: TableConfig,
    meta: MetaFolder,
    clock: Clock,
    known: Snapshot | None = None,
    listed: Iterable[FileInfo] | None = None,
    ahead: Callable[[], Timeline] | None = None,
) -> Snapshot:
    """The table with this configuration; `known` if it is still true.

    `listed` are the files of the timeline; `ahead` gives the timeline of the metadata table, read at the same time.
    """
    had = known.metadata if known is not None and known.config is config else None
    with ThreadPoolExecutor(3) as pool:
        metadata_config = None if had is not None else pool.submit(MetadataTable.load_config, storage, config)
        timeline = Timeline.open(storage, config, listed)
        history = KnownHistory(lambda: stored_history(storage, config, timeline))
        sources = NO_SOURCES if known is None else known.sources
        slices = _slice_source(storage, config, timeline, history, sources)
        ledger = FileLedger(timeline)
        replaced = pool.submit(lambda: ledger.replaced_by)
        # The metadata table's timeline is read after the table's: a writer completes the two in the opposite order.
        if metadata_config is None:
            assert had is not None and known is not None
            # When nothing was completed since `known`, nothing was between the two listings.
            is_early = ahead is not None and _completed(timeline) <= _completed(known.timeline)
            own_timeline = ahead() if ahead is not None and is_early else None
            metadata: MetadataTable | None = had.beside(config, timeline, slices, own_timeline)
        else:
            folder, has_one = METADATA_TABLE_FOLDER, FILES in config.metadata_partitions
            files = pool.submit(storage.list_few, folder, MOST_FILES) if has_one else None
            own = metadata_config.result()
            found = files.result() if files is not None else None
            metadata = MetadataTable.open(storage, config, timeline, slices, own, found)
        if known is not None and _is_still(known, config, timeline, metadata):
            return known
        replaced.result()
        return _assembled(storage, config, meta, ledger, metadata, slices, history, sources, clock)


def with_sources(table: Snapshot, sources: SourceFolder) -> Snapshot:
    """The table, whose base files without columns get them from this folder."""
    if sources == table.sources:
        return table
    slices = _slice_source(table.storage, table.config, table.timeline, table.history, sources)
    return replace(table, slices=slices, sources=sources)


def with_instant(
    table: Snapshot, instant: Instant, content: bytes = b"", metadata: MetadataTable | None = None
) -> Snapshot:
    """`table` with an instant that the caller has just published, whose file has this content.

    `metadata` is the metadata table as it is now, where that has changed, too.
    """
    timeline = table.timeline.grown(instant, content)
    history = KnownHistory(lambda: stored_history(table.storage, table.config, timeline))
    slices = _slice_source(table.storage, table.config, timeline, history, table.sources)
    metadata = metadata or table.metadata
    now = None if metadata is None else metadata.beside_grown(timeline, slices)
    ledger = table.ledger.grown(timeline)
    grown = _assembled(
        table.storage, table.config, table.meta, ledger, now, slices, history, table.sources, table.clock
    )
    return replace(grown, check_held=table.check_held, on_wait=table.on_wait)


def _completed(timeline: Timeline) -> set[str]:
    return {instant.file_name for instant in timeline.instants if instant.is_completed}


def _is_still(known: Snapshot, config: TableConfig, timeline: Timeline, metadata: MetadataTable | None) -> bool:
    if known.config is not config or not timeline.saw_the_same(known.timeline):
        return False
    if metadata is None or known.metadata is None:
        return metadata is known.metadata
    return metadata.is_at_rest and metadata.timeline.saw_the_same(known.metadata.timeline)


def _assembled(
    storage: Storage,
    config: TableConfig,
    meta: MetaFolder,
    ledger: FileLedger,
    metadata: MetadataTable | None,
    slices: SliceSource,
    history: KnownHistory,
    sources: SourceFolder,
    clock: Clock,
) -> Snapshot:
    lister: Lister = MetadataLister(metadata) if metadata is not None else StorageLister(storage)
    index = BootstrapIndex(storage, config) if config.raw.get(BASE_PATH) else None
    naming = log_naming(config.version)
    view = FileSystemView(lister, ledger.facts, ledger.replaced, naming, ledger.compacting, index)
    stored = StorageLister(storage)
    return Snapshot(storage, config, meta, ledger, metadata, view, slices, history, sources, clock, stored)


def _slice_source(
    storage: Storage, config: TableConfig, timeline: Timeline, history: KnownHistory, sources: SourceFolder
) -> SliceSource:
    if not config.is_merge_on_read:
        return BaseFileSlices(storage, history, sources)
    # Only here: these modules take a tenth of the start of a command, and most tables do not need them.
    from .merging.slices import MergedSlices

    return MergedSlices.of(storage, config, timeline, history, sources)


def live_names(table: Snapshot, partitions: Iterable[str]) -> dict[str, list[str]]:
    """The names of the base and log files that readers see, by data partition."""
    wanted = sorted({*partitions})
    table.view.load(wanted)
    return {one: [file.name for live in table.view.latest_slices(one) for file in live.files] for one in wanted}
