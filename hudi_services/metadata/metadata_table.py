"""The metadata table: listings and column statistics of a table, kept in `.hoodie/metadata`.

It is a merge-on-read table of its own, with HFiles for base files and HFile blocks in its log files. The table's
`hoodie.table.metadata.partitions` names its partitions. The number of file groups of a partition is stored nowhere: the
latest file slices are counted. Source: HoodieBackedTableMetadata, HoodieTableMetadataUtil of Apache Hudi.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from ..base_files.base_file_slices import BaseFileSlices
from ..base_files.slices import SliceSource
from ..codecs.avro import AvroSchema
from ..computed_once import cached_property
from ..concurrency import at_once
from ..errors import ConflictError, NeedsRecovery, NotFound, Outdated, TableNotFound
from ..file_names import parse_log_file
from ..limits import SMALL_FILE
from ..model import FileSlice, LogFile
from ..storage import FileInfo, Storage
from ..table.facts import DatedFacts
from ..table.file_ledger import FileLedger
from ..table.log_naming import INITIALISATION, INSTANT_DIGITS, LogNaming, log_naming
from ..table.new_logs import LogNames
from ..table.partitions import Files, check_addressable
from ..table.view import joined, slices_of
from ..table_config import METADATA_TABLE_FOLDER, TableConfig
from ..timeline.active import Timeline
from ..timeline.instant import Action, Instant
from .file_groups.blocks import BlockFilter
from .file_groups.committed_files import REBUILD_HINT, CommittedFiles, DamagedLog, refuse_damage
from .file_groups.group_files import GroupFiles
from .partition_files import PartitionFiles, partition_in
from .records.keys import ALL_PARTITIONS_KEY, FILES, partition_id, partition_of

# A command that reads no record does without Arrow.
if TYPE_CHECKING:
    from .file_groups.reader import FileGroupReader, PartitionReader
    from .records.model import Record

_SEEK_AT_MOST = 8
"""Partitions to look up by their keys; for more, one scan of the listing costs less."""


@dataclass(frozen=True)
class MetadataTable:
    """One snapshot of the metadata table: its timeline is fixed, its files are read on demand."""

    storage: Storage
    table_config: TableConfig
    """The configuration of the table that the metadata table describes."""
    config: TableConfig
    """The configuration of the metadata table itself."""
    data_timeline: Timeline
    timeline: Timeline
    slices: SliceSource
    """Opens the file slices of the table that the metadata table describes."""
    on_damage: Callable[[DamagedLog], None]
    """Called for a log file that has lost committed bytes; by default it raises CorruptFile."""
    _definitions: dict[str, bytes | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The content of the file of index definitions by path, once it was read."""
    _groups: dict[str, list[FileSlice]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The file groups of partitions, of the same listing."""

    @classmethod
    def load_config(cls, storage: Storage, config: TableConfig) -> TableConfig | None:
        """The configuration of the metadata table of the table that has this `config`, None when there is none.

        Raises NeedsRecovery when the table names metadata partitions but has no metadata table.
        """
        if FILES not in config.metadata_partitions:
            return None
        try:
            return TableConfig.load(storage, METADATA_TABLE_FOLDER)
        except TableNotFound as e:
            raise NeedsRecovery(f"{storage.full_path(METADATA_TABLE_FOLDER)} is missing", hint=REBUILD_HINT) from e

    @classmethod
    def open(
        cls,
        storage: Storage,
        config: TableConfig,
        data_timeline: Timeline,
        slices: SliceSource | None = None,
        own: TableConfig | None = None,
        files: Iterable[FileInfo] | None = None,
    ) -> "MetadataTable | None":
        """The metadata table, None when the table has none (`files` is not among its metadata partitions).

        Writers open it again under the lock, with a timeline that was loaded there. `own` is the result of an earlier
        call of `load_config`, `files` are all its files, if they are known. Raises what `load_config` raises, and
        NeedsRecovery without a completed instant.
        """
        own = own or cls.load_config(storage, config)
        if own is None:
            return None
        folders = None if files is None else _by_folder(files)
        timeline = Timeline.open(storage, own, None if folders is None else folders.get(own.timeline_path, ()))
        if not timeline.completed():
            raise NeedsRecovery(f"{storage.full_path(own.timeline_path)} has no completed instant", hint=REBUILD_HINT)
        slices = slices or BaseFileSlices(storage)
        found = cls(storage, config, own, data_timeline, timeline, slices, partial(refuse_damage, storage.root))
        if folders is not None:
            found._partition_files.know(folders, found.partitions)
        return found

    def with_files(self, files: Iterable[FileInfo]) -> "MetadataTable":
        """The metadata table as it is now by all its `files`, with the same snapshot of the table."""
        folders = _by_folder(files)
        now = replace(
            self, timeline=Timeline.open(self.storage, self.config, folders.get(self.config.timeline_path, ()))
        )
        now._partition_files.know(folders, now.partitions)
        return now

    def reload(self) -> "MetadataTable":
        """A new snapshot of the metadata table, with the same snapshot of the table."""
        return self.beside(self.table_config, self.data_timeline, self.slices)

    def beside(
        self, table_config: TableConfig, data_timeline: Timeline, slices: SliceSource, timeline: Timeline | None = None
    ) -> "MetadataTable":
        """The metadata table as it is now, beside another snapshot of the table, under the same configuration.

        What was listed stays, if its timeline is the same and tells of all that changes its partitions.
        `timeline` is its timeline as it is now, if that was read already.
        """
        timeline = timeline or self.timeline.reload()
        now = replace(self, table_config=table_config, data_timeline=data_timeline, slices=slices, timeline=timeline)
        if now.is_at_rest and timeline.saw_the_same(self.timeline):
            now._partition_files.take(self._partition_files)
            now._definitions.update(self._definitions if table_config is self.table_config else {})
        return now

    def beside_grown(self, data_timeline: Timeline, slices: SliceSource) -> "MetadataTable":
        """The same snapshot beside a timeline of the table that has grown by an instant of the caller."""
        now = replace(self, data_timeline=data_timeline, slices=slices)
        now._partition_files.take(self._partition_files)
        now._definitions.update(self._definitions)
        return now

    def handed_on(self, written: Iterable[FileInfo], deleted: Iterable[str] = ()) -> "MetadataTable":
        """This snapshot with log files that the caller, who holds the lock, has `written` or `deleted` (paths) since.

        Those that were written are the newest of their file groups. The timeline stays: of a delta commit that it does
        not have, or not yet, the log files have names that the next one must not take, and no blocks that count.
        """
        added, gone = [*written], [*deleted]
        groups = dict(self._groups)
        for file in added:
            partition = partition_in(file.path)
            log = parse_log_file(partition, file.name, file.size)
            if log is not None and self.log_naming.counts(log, self._facts.is_committed):
                known = groups.pop(partition, [])
                if any(group.file_id == log.file_id for group in known):
                    groups[partition] = [_with_log(group, log) for group in known]
        for path in gone:
            groups.pop(partition_in(path), None)
        found = copy(self)
        # The fields of a frozen value; a copy made by `replace` would have no caches.
        found.__dict__.update(_partition_files=self._partition_files.handed_on(added, gone), _groups=groups)
        return found

    def tolerant(self, on_damage: Callable[[DamagedLog], None]) -> "MetadataTable":
        """The same snapshot, which calls `on_damage` for damaged log files and goes on, as Hudi's readers do."""
        found = replace(self, on_damage=on_damage)
        found._partition_files.take(self._partition_files)
        return found

    @cached_property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that a commit must update: ready partitions and partitions that are being built."""
        names = {*self.table_config.metadata_partitions, *self.table_config.metadata_partitions_inflight}
        return tuple(sorted(names))

    @property
    def is_at_rest(self) -> bool:
        """Whether no instant of its timeline is pending: files come and go while one is, and the timeline stays."""
        return not self.timeline.pending()

    @property
    def log_naming(self) -> LogNaming:
        return log_naming(self.config.version)

    @staticmethod
    def path(partition: str, name: str) -> str:
        """The path of a file of the metadata table, relative to the storage."""
        return f"{METADATA_TABLE_FOLDER}/{partition}/{name}"

    def stored_files(self, partition: str) -> Files:
        """The files that are in a partition's folder now, committed or not."""
        return _sizes(self._partition_files.stored(partition))

    def found_files(self, partition: str) -> Files:
        """As `stored_files`, as of the first listing by this snapshot: without the files that it wrote since then."""
        return _sizes(self._partition_files.of(partition))

    def names_now(self, partition: str) -> Iterable[str]:
        """The names in a partition's folder lately, and those that this snapshot has ever seen there."""
        return self._partition_files.names_now(partition)

    def earliest_instants(self, partition: str) -> frozenset[str]:
        """The earliest instant of the files of a partition, and those at which it was initialised; a log file of
        version 6 has the instant of its slice."""
        return self._partition_files.earliest_instants(partition)

    def log_names(self, partition: str, instant: str) -> LogNames:
        """Names the log files that `instant` adds to a partition of the metadata table."""
        numbers = self._partition_files.log_numbers(partition)
        return LogNames(self.log_naming, partition, instant, numbers, lambda: self.ledger.compacting)

    def look_into(self, partitions: Iterable[str]) -> None:
        """List these partitions at the same time, before their files are asked for."""
        self._partition_files.look_into(partitions)

    def file_groups(self, partition: str) -> list[FileSlice]:
        """The newest slice of every file group, in the order of the file ids; a hash spreads keys over them.

        A version 6 log file is named after `base_instant`. A slice whose compaction is pending has the files of the
        slice before, too. Raises NeedsRecovery when there is no file group, or ConflictError while an indexer is
        building the partition; CorruptFile when a committed file is missing.
        """
        if partition not in self._groups:
            self._groups[partition] = self._file_groups(partition)
        return [*self._groups[partition]]

    def _file_groups(self, partition: str) -> list[FileSlice]:
        groups = self.all_slices(partition)
        if not groups and partition in self.table_config.metadata_partitions_inflight:
            raise being_built(self.storage, partition)
        if not groups:
            folder = self.storage.full_path(f"{METADATA_TABLE_FOLDER}/{partition}")
            raise NeedsRecovery(f"{folder} holds no file group of the metadata table", hint=REBUILD_HINT)
        newest = {file_id: _merged(slices) for file_id, slices in groups.items()}
        instants = {file.instant for slices in groups.values() for one in slices for file in one.files}
        self.committed.check_slices(partition, newest, instants, self._facts.completion_time)
        return list(newest.values())

    def all_slices(self, partition: str) -> dict[str, list[FileSlice]]:
        """All committed slices of a partition by file id, oldest first."""
        return slices_of(partition, self.found_files(partition), self._facts, self.log_naming)

    def check_built(self) -> None:
        """Raise ConflictError while an indexer builds a partition that has no committed file groups yet.

        A commit must write to a partition as soon as it is named, and Hudi's own writers fail then (0.15 to 1.2:
        HoodieBackedTableMetadataWriter.tagRecordsWithLocation, "FileGroup count for MDT partition … should be > 0").
        """
        for partition in self.table_config.metadata_partitions_inflight:
            self.file_groups(partition)

    def reader(self, partition: str) -> "PartitionReader":
        """A reader of the records of a partition, as of its first read."""
        from .file_groups.reader import PartitionReader

        return PartitionReader(partial(self._open_groups, partition))

    def read_ahead(self, partitions: Iterable[str]) -> None:
        """Read the small files of the file groups of some partitions at the same time; the process keeps them."""
        self.look_into(partitions := [*partitions])
        slices = [(group, self._group_files(group)) for one in partitions for group in self.file_groups(one)]
        at_once(lambda one: one[1].read_small(one[0]), slices)

    def listed_partitions(self) -> frozenset[str]:
        """The data partitions that readers find."""
        found = next(stored.merged for _, stored in self._listings.stored([ALL_PARTITIONS_KEY]))
        return frozenset(map(partition_of, _live(found)))

    def list_partition(self, partition: str) -> dict[str, int]:
        """The files of one data partition with their sizes; empty for an unknown partition."""
        key = partition_id(partition)
        return _live(next((stored.merged for _, stored in self._listings.stored([key])), None))

    def list_each(self, partitions: Iterable[str]) -> Iterator[tuple[str, dict[str, int]]]:
        """As `list_partition` for each of some partitions, one after the other in the order of their keys."""
        for key, stored in self._listings.stored_in_order(map(partition_id, partitions)):
            yield partition_of(key), _live(stored.merged)

    @cached_property
    def writer_schema(self) -> AvroSchema:
        """The schema for the records of a new block, in any partition."""
        from .records.record_schema import writer_schema

        newest = (group.newest_schema for group in self._listings.groups)
        return writer_schema(self.config.version.release, next(newest, None))

    @cached_property
    def _listings(self) -> "PartitionReader":
        return self.reader(FILES)

    def _open_groups(self, partition: str) -> "list[FileGroupReader]":
        return at_once(self.open_group, self.file_groups(partition))

    def open_group(self, group: FileSlice) -> "FileGroupReader":
        """A reader of one of the `file_groups`. Raises CorruptFile, and Outdated when a listed file was deleted."""
        from .file_groups.reader import FileGroupReader

        try:
            return FileGroupReader(self._group_files(group), group, self.blocks, self.committed)
        except NotFound as error:
            raise Outdated.of(error) from error

    def _group_files(self, group: FileSlice) -> GroupFiles:
        return GroupFiles(self.storage, METADATA_TABLE_FOLDER, self._partition_files.of(group.partition))

    @property
    def index_definitions(self) -> bytes | None:
        """The content of the file of index definitions, None when there is none. Other writers may rewrite the file."""
        path = self.table_config.index_defs_path
        if path not in self._definitions:
            try:
                self._definitions[path] = self.storage.read(path, SMALL_FILE)
            except NotFound:
                self._definitions[path] = None
        return self._definitions[path]

    def forget_definitions(self) -> None:
        """Read the index definitions anew when they are asked for next: to be called before they are written.

        Hudi defines an index before it begins to build it, without a lock and without an instant here.
        """
        self._definitions.clear()

    @cached_property
    def own_delta_commits(self) -> tuple[Instant, ...]:
        """Completed delta commits whose time the table's timeline, as it was opened, does not have."""
        found = self.timeline.completed({Action.DELTA_COMMIT})
        return tuple(one for one in found if self.data_timeline.find(one.ts[:INSTANT_DIGITS]) is None)

    @cached_property
    def _partition_files(self) -> PartitionFiles:
        return PartitionFiles(self.storage)

    @cached_property
    def ledger(self) -> FileLedger:
        """What its own timeline says about files."""
        return FileLedger(self.timeline)

    @cached_property
    def blocks(self) -> BlockFilter:
        """The filter for log blocks that count, as of this snapshot."""
        return BlockFilter(self.data_timeline, self.ledger, self.log_naming)

    @cached_property
    def committed(self) -> CommittedFiles:
        """The contents that files must have, as of this snapshot."""
        return CommittedFiles(self.timeline, self.blocks.counts, self.on_damage, self.log_naming)

    @cached_property
    def _facts(self) -> "_Facts":
        return _Facts(self.timeline)


MOST_FILES = 1_000
"""A metadata table of so many files is listed by one request."""


def _by_folder(files: Iterable[FileInfo]) -> dict[str, list[FileInfo]]:
    found: dict[str, list[FileInfo]] = {}
    for file in files:
        found.setdefault(file.path.rpartition("/")[0], []).append(file)
    return found


def being_built(storage: Storage, partition: str) -> ConflictError:
    """The error for a partition that cannot be written to yet."""
    return ConflictError(
        f"{storage.root}: the index {partition} is being built (hoodie.table.metadata.partitions.inflight), and cannot "
        "be written to yet",
        hint="wait until it is built; when no process builds it any more, let HoodieIndexer of Apache Hudi finish it, "
        "or drop the index there",
    )


class MetadataLister:
    """`table.partitions.Lister` of the metadata table: it reads many partitions in one pass, a few by their keys."""

    def __init__(self, metadata: MetadataTable) -> None:
        self._metadata = metadata
        self._known: dict[str, dict[str, int]] = {}

    def partitions(self) -> list[str]:
        found = sorted(self._metadata.listed_partitions())
        check_addressable(self._metadata.storage.root, found)
        return found

    def files(self, partition: str) -> Files:
        if partition not in self._known:
            self._known[partition] = self._metadata.list_partition(partition)
        return self._known[partition]

    def load(self, partitions: Sequence[str]) -> None:
        missing = [one for one in partitions if one not in self._known]
        if len(missing) > _SEEK_AT_MOST:
            self._known.update(self._metadata.list_each(missing))

    def each(self, partitions: Sequence[str]) -> Iterator[tuple[str, Files]]:
        if len(partitions) > _SEEK_AT_MOST:
            return self._metadata.list_each(partitions)
        return ((one, self.files(one)) for one in partitions)


class _Facts(DatedFacts):
    """The facts of the metadata table: what built a partition is completed at its own time."""

    def completion_time(self, instant: str) -> str | None:
        found = super().completion_time(instant)
        if found is None and instant.startswith(INITIALISATION) and self.is_committed(instant):
            return instant
        return found


def _with_log(group: FileSlice, log: LogFile) -> FileSlice:
    return replace(group, log_files=(*group.log_files, log)) if group.file_id == log.file_id else group


def _merged(slices: list[FileSlice]) -> FileSlice:
    newest = slices[-1]
    if newest.base_file is not None or len(slices) == 1:
        return newest
    # The slice is named after a compaction that is not completed: readers still need the files that it would merge.
    return replace(joined(slices[-2], newest), base_instant=newest.base_instant)


def _sizes(files: Mapping[str, FileInfo]) -> Files:
    return {name: file.size for name, file in files.items()}


def _live(record: "Record | None") -> dict[str, int]:
    from .records.model import FilesRecord

    if not isinstance(record, FilesRecord):
        return {}
    return {name: entry.size for name, entry in record.entries.items() if not entry.deleted}
