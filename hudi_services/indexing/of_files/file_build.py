"""A build of indexes of files: it reads the files of the table, writes the file groups aside, and follows the table.

    1 read     tasks read the data files, and write runs of records
    2 write    tasks write a base file for each file group from its runs
    3 follow   for files that came or went meanwhile: log files on top of column_stats and bloom_filters; the base files
               of other indexes are written again, since log files do not widen every range of a data partition
    4 place    under the table's lock: the listing is written, and all files move into the metadata table

The files are in .hoodie/.hudi_services/file-indexes until then. A killed build begins anew.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from ...codecs.avro import AvroSchema, parse_schema
from ...codecs.hashing import file_group_index
from ...concurrency import at_once
from ...engine import Engine
from ...errors import ConflictError, CorruptFile
from ...file_names import OWN_FOLDER
from ...file_records.expected_state import ExpectedState
from ...file_records.footers import FileSource
from ...file_records.members import Member, data_files, members_of
from ...metadata.file_groups.new_groups import base_path, base_stat, initial_instants, log_path
from ...metadata.metadata_table import MetadataLister
from ...metadata.records.keys import BLOOM_FILTERS, COLUMN_STATS, FILES, bloom_filter_key, column_stats_key, group_id
from ...metadata.records.record_schema import stored_schema
from ...metadata_updates.creation import listing_content
from ...metadata_updates.new_partition import BuiltPartition, Placed, unused_instants
from ...model import FileSlice, LogFile
from ...own_commands import own_command
from ...packing import pack
from ...snapshot import Snapshot, is_unchanged
from ...storage import Storage
from ...table.partitions import Files
from ...table_config import TableConfig
from .asked import FileIndexes
from .file_group_writing import GroupFile, GroupTask, log_content, write_group
from .file_reading import FilesTask, read_files
from .record_runs import RecordRun

FOLDER = f"{OWN_FOLDER}/file-indexes"
Progress = Callable[[str, int, int], None]
_Place = tuple[str, str]
"""A data partition and the name of a file in it."""
_Group = tuple[str, int]
"""A metadata partition, and the number of a file group in it."""

_FILES_PER_TASK = 200
_BYTES_PER_TASK = 256 << 20
_FIRST_FREE_LOG = 2
_FOLLOWED_BY_LOGS = frozenset({COLUMN_STATS, BLOOM_FILTERS})


class FileBuild:
    """A build of `indexes`; `engine` runs its tasks."""

    def __init__(self, table: Snapshot, engine: Engine, progress: Progress, indexes: FileIndexes) -> None:
        self.wanted = indexes
        self._storage: Storage = table.storage
        self._engine = engine
        self._progress = progress
        self._seen: Snapshot | None = None
        """The table whose files are in the indexes."""
        self._listing: dict[str, Files] = {}
        self._described: set[_Place] = set()
        self._live: set[_Place] = set()
        self._instants: dict[str, str] = {}
        self._runs: dict[_Group, list[RecordRun]] = {}
        self._bases: dict[_Group, GroupFile] = {}
        self._went: set[_Place] = set()
        """Files that went while the indexes were built."""
        self._logs: dict[_Group, list[Placed]] = {}
        self._missing: set[str] = set()
        """Paths of files that were gone when they were to be read; the next look tells whether they are listed."""
        self._round = 0
        self._text, self._release = "", ""
        """The schema of the records, and the release that it is of."""
        self.made: TableConfig | None = None
        """The properties of the metadata table that was made for it."""

    def begin(self, table: Snapshot, times: Callable[[], str]) -> None:
        """Delete what a killed build has left, and choose the instants of the delta commits."""
        self.forget()
        count = len(self.wanted.groups)
        if table.metadata is not None:
            found = unused_instants(table.metadata, times, count)
        else:
            found = list(islice(initial_instants(table.log_naming, table.timeline), count))
        self._instants = dict(zip(self.wanted.groups, found, strict=True))

    @property
    def instants(self) -> list[str]:
        """Those of the delta commits, in the order of the partitions."""
        return list(self._instants.values())

    @property
    def files(self) -> int:
        """The number of data files that the indexes know."""
        return sum(map(len, self._listing.values()))

    @property
    def bases(self) -> list[GroupFile]:
        return [self._bases[group] for group in sorted(self._bases)]

    def read(self, table: Snapshot) -> None:
        """Read all files of the table into runs."""
        self._listing = self._listed(table)
        members = self._members(table)
        self._text, self._release = self._schema(table).text, table.config.version.release
        self._take(self._read(table, members, None))
        self._note(members)
        self._seen = table

    def write(self) -> None:
        """Write the base files."""
        self._write_bases(self._runs)

    def is_behind(self, table: Snapshot) -> bool:
        """Whether the table has changed since its files were read."""
        return self._seen is None or bool(self._missing) or not is_unchanged(table, self._seen)

    def catch_up(self, table: Snapshot) -> None:
        """Read what has changed, and write it on top of what is written.

        Raises ConflictError when another process has made the metadata table, and when the table has other columns by
        now: which of them get statistics was decided before.
        """
        assert self._seen is not None, "its files were read"
        if table.schema != self._seen.schema:
            raise ConflictError(
                f"{self._storage.root}: the columns of the table have changed while its indexes were built",
                hint="run again",
            )
        if self.wanted.makes_table and table.metadata is not None:
            raise ConflictError(f"{self._storage.root}: another process built the metadata table meanwhile")
        self._round += 1
        missing, self._missing = self._missing, set()
        self._listing = self._listed(table, {path.rpartition("/")[0] for path in missing})
        members = self._members(table)
        places = {_place(one) for one in members}
        fresh = places - self._described
        # Files that readers see again, as after a rollback, are in the ranges of their partitions.
        again = {_place(one) for one in members if one.is_live}.difference(self._live, fresh)
        gone = self._described - places
        runs = self._read(table, _whole_slices(members, fresh), fresh)
        self._follow([one for one in runs if one.index in _FOLLOWED_BY_LOGS], self._keys(gone))
        ranges = [one for one in runs if one.index not in _FOLLOWED_BY_LOGS]
        ranges += [
            one for one in self._read(table, _whole_slices(members, again), again) if one.index not in _FOLLOWED_BY_LOGS
        ]
        for path in sorted(missing & self._missing):
            raise CorruptFile(
                f"{self._storage.full_path(path)} is listed, and is not there",
                hint=f"run: {own_command('validate', self._storage.root)}",
            )
        self._take(ranges)
        self._note(members)
        self._went = (self._went | gone) - places
        self._write_bases({place: some for place, some in self._runs.items() if place[0] not in _FOLLOWED_BY_LOGS})
        self._seen = table

    def built(self) -> list[BuiltPartition]:
        """The partitions, whose files are in the work folder; of the listing the file is written now."""
        found = []
        for index, count in self.wanted.groups.items():
            instant, ids = self._instants[index], [group_id(index, number) for number in range(count)]
            if index == FILES:
                self._write_listing()
            of_index = [one for one in self.bases if one.index == index and one.entries]
            files = {base_path(index, ids[one.group], instant): Placed(one.path, one.size) for one in of_index}
            for (name, group), logs in self._logs.items():
                if name == index:
                    versions = range(_FIRST_FREE_LOG, _FIRST_FREE_LOG + len(logs))
                    files |= {
                        log_path(index, ids[group], instant, version): one
                        for version, one in zip(versions, logs, strict=True)
                    }
            stats = [base_stat(index, ids[one.group], instant, one.entries, one.size) for one in of_index]
            found.append(BuiltPartition(index, instant, ids, files, stats, self.wanted.definitions.get(index)))
        return found

    def forget(self) -> None:
        """Delete the work folder."""
        self._storage.delete_tree(FOLDER)

    # ---- what is read

    def _listed(self, table: Snapshot, also: Collection[str] = ()) -> dict[str, Files]:
        """The files of the table; of one without a metadata table, where they may have changed, and `also`."""
        if table.metadata is not None:
            lister = MetadataLister(table.metadata)
            return {partition: files for partition, files in lister.each(lister.partitions()) if files}
        changed = self._changed(table)
        changed = None if changed is None else changed.union(also)
        state = ExpectedState(table, only=changed)
        wanted = sorted(state.partitions)
        anew = dict(zip(wanted, at_once(state.committed, wanted), strict=True))
        kept = {} if changed is None else {one: some for one, some in self._listing.items() if one not in changed}
        return {partition: files for partition, files in sorted((kept | anew).items()) if files}

    def _changed(self, table: Snapshot) -> frozenset[str] | None:
        """The data partitions whose files may have changed since the last look; None for all.

        Where instants have gone, others may have come and gone: they are archived, and a savepoint may have been
        deleted.
        """
        if self._seen is None:
            return None
        known = {one.file_name for one in self._seen.timeline.instants}
        left = {one.ts for one in table.timeline.instants}
        if any(one.is_completed and one.ts not in left for one in self._seen.timeline.instants):
            return None
        found = [table.ledger.changes(one) for one in table.timeline.instants if one.file_name not in known]
        return None if None in found else frozenset().union(*(one for one in found if one is not None))

    def _note(self, members: Sequence[Member]) -> None:
        """What is described; files that were missing when they were read are not."""
        there = [one for one in members if one.file.path not in self._missing]
        self._described = {_place(one) for one in there}
        self._live = {_place(one) for one in there if one.is_live}

    def _read(self, table: Snapshot, members: Sequence[Member], described: set[_Place] | None) -> list[RecordRun]:
        """The runs of the files `described`, or of all `members`."""
        groups = {index: count for index, count in self.wanted.groups.items() if index != FILES}
        if not groups or not members:
            return []
        source = FileSource.of(self._storage, table.slices, table.config, table.timeline)
        packed = pack(_by_group(members), _size, _BYTES_PER_TASK, _FILES_PER_TASK)
        tasks = [
            FilesTask(
                source,
                own := tuple(member for some in of_task for member in some),
                None if described is None else frozenset(one.file.path for one in own if _place(one) in described),
                groups,
                self.wanted.columns,
                self.wanted.computations,
                self._text,
                f"{FOLDER}/run-{self._round}-{number}",
                logs_have_records=self.wanted.logs_have_records,
            )
            for number, of_task in enumerate(packed)
        ]
        found = self._engine.map(read_files, tasks, "read the files of the table", self._tell("read files"))
        self._missing |= {path for of_task in found for path in of_task.missing}
        return [run for of_task in found for run in of_task.runs]

    def _members(self, table: Snapshot) -> list[Member]:
        """The data files with their slices. Those that a savepoint hides count as live: they are seen when it goes."""
        files = data_files(self._listing)
        found = [self._shown(table, one) for one in members_of(table.view, files)]
        known = {_place(one) for one in found}
        hidden = table.ledger.facts.is_hidden
        for some in files.values():
            for file in some:
                if (file.partition, file.name) not in known and isinstance(file, LogFile) and hidden(file.instant):
                    alone = FileSlice(file.partition, file.file_id, file.instant, None, (file,))
                    found.append(Member(file, alone, is_live=True))
        return sorted(found, key=_place)

    @staticmethod
    def _shown(table: Snapshot, member: Member) -> Member:
        return replace(member, is_live=True) if table.ledger.facts.is_hidden(member.file.instant) else member

    def _schema(self, table: Snapshot) -> AvroSchema:
        if table.metadata is not None:
            return table.metadata.writer_schema
        return stored_schema(table.config.version.release)

    # ---- what is written

    def _take(self, runs: Sequence[RecordRun]) -> None:
        for run in runs:
            self._runs.setdefault((run.index, run.group), []).append(run)

    def _write_bases(self, groups: Mapping[_Group, Sequence[RecordRun]]) -> None:
        gone = {index: frozenset(keys) for index, keys in self._keys(self._went).items()}
        tasks = [
            GroupTask(
                self._storage,
                f"{FOLDER}/{index}-{group}-{self._round}.hfile",
                self._text,
                index in self.wanted.typed,
                index,
                group,
                tuple(runs),
                self._engine.task_memory,
                gone.get(index, frozenset()),
            )
            for (index, group), runs in sorted(groups.items())
        ]
        found = self._engine.map(write_group, tasks, "write the indexes", self._tell("write file groups"))
        self._bases |= {(one.index, one.group): one for one in found}

    def _follow(self, runs: Sequence[RecordRun], gone: Mapping[str, Sequence[str]]) -> None:
        """Write the next log file of each file group with new records, or with records to delete."""
        schema = parse_schema(self._text, "the schema of the metadata table")
        deleted: dict[_Group, list[str]] = {}
        for index in _FOLLOWED_BY_LOGS.intersection(gone):
            for key in gone[index]:
                deleted.setdefault((index, file_group_index(key, self.wanted.groups[index])), []).append(key)
        for place in sorted({(run.index, run.group) for run in runs} | deleted.keys()):
            index, group = place
            own = [run for run in runs if (run.index, run.group) == place]
            content = log_content(
                self._storage, self._instants[index], schema, index in self.wanted.typed, index, own,
                sorted(deleted.get(place, ())),
            )  # fmt: skip
            logs = self._logs.setdefault(place, [])
            path = f"{FOLDER}/log-{index}-{group}-{len(logs)}"
            self._storage.put(path, content)
            logs.append(Placed(path, len(content)))

    def _keys(self, files: Collection[_Place]) -> dict[str, list[str]]:
        """The keys of the records of some files, by metadata partition."""
        found: dict[str, list[str]] = {}
        if not files:
            return found
        if COLUMN_STATS in self.wanted.groups:
            columns = sorted(self.wanted.columns.columns)
            found[COLUMN_STATS] = [column_stats_key(column, *file) for file in sorted(files) for column in columns]
        if BLOOM_FILTERS in self.wanted.groups:
            found[BLOOM_FILTERS] = [bloom_filter_key(*file) for file in sorted(files)]
        for one in (computation.index for computation in self.wanted.computations):
            found[one.partition] = [
                column_stats_key(one.column, *file) if one.kind == COLUMN_STATS else bloom_filter_key(*file)
                for file in sorted(files)
            ]
        return found

    def _write_listing(self) -> None:
        content = listing_content(self._release, self._listing)
        path = f"{FOLDER}/{FILES}.hfile"
        self._storage.put(path, content)
        self._bases[FILES, 0] = GroupFile(FILES, 0, path, len(content), len(self._listing) + 1)

    def _tell(self, phase: str) -> Callable[[int, int], None]:
        return lambda done, total: self._progress(phase, done, total)


def _place(member: Member) -> _Place:
    return member.file.partition, member.file.name


def _by_group(members: Sequence[Member]) -> list[tuple[Member, ...]]:
    """Base files one by one, and the log files of a file group together: they are read together."""
    found: dict[tuple[str, str], list[Member]] = {}
    for one in members:
        key = one.file.file_id if isinstance(one.file, LogFile) else one.file.name
        found.setdefault((one.file.partition, key), []).append(one)
    return [tuple(some) for some in found.values()]


def _size(members: Sequence[Member]) -> int:
    return sum(one.file.size for one in members)


def _whole_slices(members: Sequence[Member], places: Collection[_Place]) -> list[Member]:
    """The files at the `places`, and the other log files of their slices."""
    slices = {_slice(one) for one in members if _place(one) in places}
    return [
        one for one in members if _place(one) in places or (isinstance(one.file, LogFile) and _slice(one) in slices)
    ]


def _slice(member: Member) -> tuple[str, str, str]:
    return member.slice.partition, member.slice.file_id, member.slice.base_instant
