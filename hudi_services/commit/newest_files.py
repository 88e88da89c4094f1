"""Whether all sources agree on the newest files of a file group, before it is rewritten or older files are deleted.

The sources are the view (by the metadata table, if the table has one), a listing of the partition on storage, and the
commits of the active timeline. A rewrite of a file that is not the newest would bring back older values of rows, a
rewrite without one of the log files would lose updates, and a clean that relies on a newer file which does not exist
would delete rows. Only the partitions of the file groups are listed, and only the commits that may have written the
newest files or later ones are read.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from ..computed_once import cached_property
from ..concurrency import at_once
from ..errors import CheckFailed, HudiServicesError
from ..file_names import parse_base_file, parse_data_file
from ..log_files.log_blocks import MAGIC
from ..model import BaseFile, CommitMetadata, FileSlice, LogFile, path_in
from ..own_commands import own_command
from ..snapshot import Snapshot
from ..table.file_ledger import FileName, written_files, written_names
from ..table.partitions import Files, ListedFiles
from ..table.view import CHANGE_DATA, FileGroupId

_Load = Callable[[Sequence[str]], None]


def check_newest(table: Snapshot, groups: Collection[FileGroupId]) -> None:
    """Raise CheckFailed, naming the file, when the sources differ on one of the `groups` that readers see.

    Raises CorruptFile and StorageError when a source cannot be read.
    """
    sources = _Sources(table, groups)
    problems = (sources.problem(group) for group in sorted(groups))
    _refuse(table, next((problem for problem in problems if problem), ""))


def read_ahead(table: Snapshot, groups: Collection[FileGroupId]) -> None:
    """Read the commits that `check_newest` needs, before the lock is taken; errors are left to it."""
    with suppress(HudiServicesError):
        partitions = sorted({partition for partition, _ in groups})
        live = {(one.partition, one.file_id): one.base_file for one in table.view.latest_slices_of(partitions)}
        _commits_since(table, [live.get(group) for group in groups])


def groups_of(files: Mapping[str, Collection[str]]) -> list[FileGroupId]:
    """The file groups of data files, whose bare names are given by partition."""
    parsed = (parse_data_file(partition, name, 0) for partition, names in files.items() for name in names)
    return sorted({(file.partition, file.file_id) for file in parsed if file is not None})


def _commits_since(table: Snapshot, bases: Iterable[BaseFile | None]) -> dict[str, CommitMetadata]:
    """The commits, by instant, that may have written these base files or later ones; without a base file, all."""
    oldest = min((base.instant if base is not None else "" for base in bases), default="")
    writes = [one for one in table.timeline.completed_writes() if one.ts >= oldest]
    return {one.ts: found for one, found in zip(writes, at_once(table.timeline.read_commit, writes), strict=True)}


def check_superseded(table: Snapshot, files: Mapping[str, Collection[str]]) -> None:
    """Raise CheckFailed unless a newer base file, or a replacecommit, takes the place of each file to be deleted.

    `files` are bare names by partition; base files that are deleted already do not matter. Also raises CheckFailed
    for a file that a savepoint holds, that a pending plan names, or that is no data file, and for log files whose base
    file stays. Otherwise as `check_newest`.
    """
    # Check first, so that no plan is published that cannot be carried out.
    table.storage.check_paths(path_in(partition, min(names)) for partition, names in files.items() if names)
    _refuse(table, _held_by_savepoint(table, files))
    _refuse(table, _named_by_plan(table, files))
    named: dict[FileGroupId, set[str]] = {}
    logs: dict[FileGroupId, set[str]] = {}
    for partition, names in files.items():
        for name in names:
            file = parse_data_file(partition, name, 0)
            if file is None:
                _refuse(table, f"{path_in(partition, name)} is to be deleted, and is no data file")
            elif table.view.replaced_at(partition, file.file_id) is None:
                going = named if isinstance(file, BaseFile) else logs
                going.setdefault((partition, file.file_id), set()).add(name)
    sources = _Sources(table, named.keys() | logs.keys())
    for group in sorted(named.keys() | logs.keys()):
        bases_going, logs_going = named.get(group, set()), logs.get(group, set())
        problem = sources.problem(group) or (bases_going and sources.still_needed(group, bases_going))
        _refuse(table, problem or (logs_going and sources.logs_needed(group, logs_going, bases_going)) or "")


def _held_by_savepoint(table: Snapshot, files: Mapping[str, Collection[str]]) -> str:
    """Describe a file to be deleted that a savepoint holds; "" without such a file."""
    held = table.ledger.held
    taken = min(_pairs(files) & held.keys(), default=None)
    return f"{path_in(*taken)} is to be deleted, and the savepoint {held[taken]} holds it" if taken else ""


def _named_by_plan(table: Snapshot, files: Mapping[str, Collection[str]]) -> str:
    """Describe a file to be deleted that a pending plan reads; "" without such a file."""
    taken = min(_pairs(files) & table.ledger.planned, default=None)
    return f"{path_in(*taken)} is to be deleted, and a pending plan names it" if taken else ""


def _pairs(files: Mapping[str, Collection[str]]) -> frozenset[FileName]:
    return frozenset((partition, name) for partition, names in files.items() for name in names)


def _refuse(table: Snapshot, problem: str) -> None:
    if problem:
        check = "orphan-files" if table.metadata is None else "validate"
        raise CheckFailed(
            f"{table.storage.root}: {problem}",
            hint=f"nothing was changed; find out what is wrong: {own_command(check, table.storage.root)}",
        )


class _Sources:
    """The sources, for some file groups."""

    def __init__(self, table: Snapshot, groups: Collection[FileGroupId]) -> None:
        self._table = table
        self._groups = groups
        self._partitions = sorted({partition for partition, _ in groups})
        self._lister = table.stored
        loads: tuple[_Load, ...] = (self._lister.load, table.view.load)
        at_once(lambda load: load(self._partitions), loads)
        self._view: dict[str, dict[str, FileSlice]] = {}
        self._listed: dict[str, dict[str, list[FileSlice]]] = {}
        self._view_of_storage = table.view.of_files(self._lister)
        self._read: dict[str, dict[str, FileSlice]] = {}

    def problem(self, group: FileGroupId) -> str:
        """How the sources differ on the newest file of a file group; "" when they agree or the group was replaced."""
        partition, file_id = group
        if self._table.view.replaced_at(partition, file_id) is not None:
            return ""
        if problem := self._beside_logs(group):
            return problem
        seen, committed = self._seen(group), self._committed.get(group)
        if seen is None:
            # A file that is neither listed nor stored was replaced and cleaned.
            is_there = committed is not None and committed.name in self._stored(partition)
            return f"{committed.name} is not listed, and {committed.instant} wrote it" if committed and is_there else ""
        return self._beside_commits(seen, committed) or self._beside_storage(seen, file_id)

    def still_needed(self, group: FileGroupId, going: Collection[str]) -> str:
        """Why the base files `going` of a file group must not be deleted; "" when they may be."""
        if not any(name in self._stored(group[0]) for name in going):
            return ""
        newest = self._seen(group)
        if newest is not None and newest.name not in going:
            return self._too_new(newest, going)
        name = newest.path if newest else min(going)
        return f"{name} is to be deleted, and no newer file or replacecommit takes its place"

    def _too_new(self, newest: BaseFile, going: Collection[str]) -> str:
        """Describe a base file in `going` that is later than `newest`, and that a writer may commit; "" without one."""
        bases = (parse_base_file(newest.partition, name, 0) for name in sorted(going))
        name = next((base.path for base in bases if base and base.instant > newest.instant), "")
        return f"{name} is to be deleted, and {newest.name}, which readers see, is older" if name else ""

    def logs_needed(self, group: FileGroupId, going: Collection[str], bases: Collection[str]) -> str:
        """Why the log files `going` of a file group must not be deleted beside its base files `bases`; "" otherwise."""
        partition, file_id = group
        newest = self._slices_seen(partition).get(file_id)
        needed = sorted(log.path for log in (newest.log_files if newest else ()) if log.name in going)
        if needed:
            return f"{needed[0]} is to be deleted, and readers need it"
        # With the base files that are deleted already, or their log files would seem to belong to older slices.
        files = {**dict.fromkeys((*bases, *going), 0), **self._stored(partition)}
        view = self._table.view.of_files(ListedFiles({partition: files}))
        for one in view.all_slices(partition).get(file_id, ()):
            taken = next((log.path for log in one.log_files if log.name in going), "")
            if taken and one.base_file is not None and one.base_file.name not in bases:
                return f"{taken} is to be deleted, and its base file {one.base_file.name} stays"
        return ""

    def _seen(self, group: FileGroupId) -> BaseFile | None:
        """The newest base file by the view; None for a file group that readers do not see."""
        found = self._slices_seen(group[0]).get(group[1])
        return found.base_file if found is not None else None

    def _stored(self, partition: str) -> Files:
        """The files in the partition's folder."""
        return self._lister.files(partition)

    def _beside_commits(self, seen: BaseFile, committed: BaseFile | None) -> str:
        if committed is None:
            silent = seen.instant in self._told
            return f"{seen.path} is listed, and the commit {seen.instant} does not name it" if silent else ""
        if committed.instant > seen.instant:
            return f"{seen.path} is the newest that is listed, and {committed.instant} wrote {committed.name}"
        if committed.instant == seen.instant and committed.name != seen.name:
            return f"{seen.path} is listed, and the commit {seen.instant} wrote {committed.name}"
        if committed.instant < seen.instant and seen.instant in self._told:
            return f"{seen.path} is listed, and the commit {seen.instant} does not name it"
        if committed.name == seen.name and committed.size and committed.size != seen.size:
            return f"{seen.path} is listed with {seen.size} bytes, and {seen.instant} wrote {committed.size}"
        return ""

    def _beside_storage(self, seen: BaseFile, file_id: str) -> str:
        stored = self._stored(seen.partition).get(seen.name)
        if stored is None:
            return f"{seen.path} is listed, and is not there"
        if stored != seen.size:
            return f"{seen.path} is listed with {seen.size} bytes, and has {stored}"
        for one in self._slices_stored(seen.partition).get(file_id, ()):
            if one.base_file is not None and one.base_instant > seen.instant and self._counts(one.base_file):
                return f"{seen.path} is the newest that is listed, and {one.base_file.name} is stored"
        return ""

    def _beside_logs(self, group: FileGroupId) -> str:
        """How the sources differ on the log files of the newest slice of a file group; "" when they agree."""
        partition, file_id = group
        newest = self._slices_seen(partition).get(file_id)
        if newest is None:
            return ""
        listed, stored = {log.name: log.size for log in newest.log_files}, self._stored(partition)
        for name, size in listed.items():
            grows = stored.get(name, 0) > size and self._may_grow(path_in(partition, name), size)
            if name not in stored or (stored[name] != size and not grows):
                found = f"has {stored[name]}" if name in stored else "is not there"
                return f"{path_in(partition, name)} is listed with {size} bytes, and {found}"
        for log in self._logs_written.get(group, ()):
            if log.name not in listed:
                return f"{log.path} is not listed, and a completed write has written it"
            size = listed[log.name]
            if size < log.size or (size > log.size > 0 and not self._may_grow(log.path, log.size)):
                return f"{log.path} has {size} bytes, and a completed write has written {log.size}"
        return self._unlisted(group, listed)

    def _may_grow(self, path: str, size: int) -> bool:
        """Whether a log file with more than `size` bytes has got blocks since: on version 6, where writes append."""
        if self._table.log_naming.tells_writers:
            return False
        return self._table.storage.read_range(path, size, len(MAGIC)) == MAGIC

    def _unlisted(self, group: FileGroupId, listed: Collection[str]) -> str:
        """Describe a stored log file of the newest slice that is not in `listed`, and counts by its name."""
        if not self._table.log_naming.tells_writers or not (listed or self._table.config.is_merge_on_read):
            return ""
        partition, file_id = group
        if partition not in self._read:
            self._read[partition] = {one.file_id: one for one in self._view_of_storage.latest_slices(partition)}
        found = self._read[partition].get(file_id)
        logs = found.log_files if found is not None else ()
        return next((f"{log.path} is stored, and is not listed" for log in logs if log.name not in listed), "")

    @cached_property
    def _logs_written(self) -> Mapping[FileGroupId, Sequence[LogFile]]:
        """The log files of the newest slices by the commits."""
        found: dict[FileGroupId, list[LogFile]] = {}
        if not self._table.config.is_merge_on_read:
            return found
        writes = self._table.ledger.writes
        for ts, commit in self._commits.items():
            for _, log in written_files(commit, self._partitions):
                if not isinstance(log, LogFile) or log.suffix == CHANGE_DATA:
                    continue
                group = (log.partition, log.file_id)
                base = self._seen(group)
                if base is None or not self._table.log_naming.is_merged(log, writes[ts], base.instant):
                    found.setdefault(group, []).append(log)
        return found

    def _counts(self, file: BaseFile) -> bool:
        """Whether a completed write wrote the file; otherwise a repeated or dead task may have left it."""
        if file.instant in self._told:
            return file.name in self._told[file.instant]
        return file.instant in self._silent or file.instant in self._table.timeline.archived.completed

    def _slices_seen(self, partition: str) -> dict[str, FileSlice]:
        if partition not in self._view:
            self._view[partition] = {one.file_id: one for one in self._table.view.latest_slices(partition)}
        return self._view[partition]

    def _slices_stored(self, partition: str) -> dict[str, list[FileSlice]]:
        if partition not in self._listed:
            self._listed[partition] = self._view_of_storage.all_slices(partition)
        return self._listed[partition]

    @cached_property
    def _commits(self) -> dict[str, CommitMetadata]:
        """The commits, by instant, that may have written the newest files of the file groups."""
        return _commits_since(self._table, map(self._seen, self._groups))

    @cached_property
    def _told(self) -> dict[str, frozenset[str]]:
        """The names of the files that each commit records, by instant; commits without a record are left out."""
        names = ((ts, written_names(commit)) for ts, commit in self._commits.items())
        return {ts: some for ts, some in names if some is not None}

    @cached_property
    def _silent(self) -> frozenset[str]:
        """The instants of the commits that record no files."""
        return frozenset(self._commits.keys() - self._told.keys())

    @cached_property
    def _committed(self) -> Mapping[FileGroupId, BaseFile]:
        """The newest base files of the file groups by the commits; of size 0 where a commit does not record it."""
        newest: dict[FileGroupId, BaseFile] = {}
        for commit in self._commits.values():
            for _, one in written_files(commit, self._partitions):
                group = (one.partition, one.file_id)
                if isinstance(one, BaseFile) and (group not in newest or one.instant > newest[group].instant):
                    newest[group] = one
        return newest
