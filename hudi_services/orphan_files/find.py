"""Finding orphan files: list, then load the timeline, then judge.

The order makes the search safe while writers are at work: a writer that begins after the listing has no file in it, and
a writer that began before is on the timeline. Files that are live by the snapshot from before the listing need no
judgement, and files about which a later snapshot cannot decide are only counted, so that just the doubtful files are
held in memory.

Without a metadata table a clean takes a rolled back file for the newest file of its file group once the timeline begins
after its instant, and deletes the committed files of the group. Such a file counts as an orphan file only when readers
keep another file of the group, also after every clean that was planned before, or when a dead attempt began the group.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..commit.liveness import now_millis
from ..model import BaseFile, DataFile
from ..snapshot import Snapshot, refresh
from ..storage import FileInfo, Storage
from ..timeline.instant import Action
from .data_files import DataFolders
from .known_files import FileJudge
from .leftovers import Leftover, list_leftovers, list_uploads
from .model import Ages, Item, OrphanFindings, OrphanKind, ReasonToStay, Total, Verdict

_REQUESTS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A data file to judge. `beside`: live base files of its file group, where readers list storage."""

    info: FileInfo
    file: DataFile
    beside: tuple[BaseFile, ...]


def find_orphan_files(table: Snapshot, ages: Ages, progress: Callable[[int, int], None]) -> OrphanFindings:
    """Find the orphan files of `table`; changes nothing. `progress` gets the number of folders listed, and known.

    Raises CorruptFile for a plan, a rollback, a savepoint or a metadata table that cannot be read.
    """
    folders = DataFolders(table.storage)
    listing = _list(table, folders, progress)
    leftovers = [*list_leftovers(table.storage), *list_uploads(table.storage, folders.nested)]
    current = refresh(table)
    knowledge = FileJudge(current)
    look = _Look(knowledge, ages, round(now_millis(current)), listing.kept)
    for candidate in listing.candidates:
        look.at_data_file(candidate)
    look.settle(current.storage, is_cleaning=_is_cleaning(table, current))
    for leftover in leftovers:
        look.at_leftover(leftover)
    items = tuple(sorted(look.items, key=lambda item: item.path))
    warnings = (*listing.warnings, *knowledge.warnings)
    return OrphanFindings(items, dict(look.kept), tuple(dict.fromkeys(warnings)))


@dataclass(frozen=True, slots=True)
class _Listing:
    """Data files to judge; the number of files that cannot be judged, by reason; warnings about unreadable files."""

    candidates: list[_Candidate]
    kept: dict[ReasonToStay, Total]
    warnings: list[str]


def _list(table: Snapshot, folders: DataFolders, progress: Callable[[int, int], None]) -> _Listing:
    """List the data files that are not live by `table`; the listing of a partition is read once for all its files."""
    before = FileJudge(table)
    candidates: list[_Candidate] = []
    kept: dict[ReasonToStay, Total] = defaultdict(Total)
    for _, files in folders.walk(progress):
        doubtful = []
        live: dict[str, list[BaseFile]] = defaultdict(list)
        for info, file in files:
            if before.is_live(file):
                if before.readers_list_storage and isinstance(file, BaseFile):
                    live[file.file_id].append(file)
            elif (why := before.beyond_knowledge(file)) is not None:
                kept[why] = kept[why].plus(info.size)
            else:
                doubtful.append((info, file))
        candidates += [_Candidate(info, file, tuple(live.get(file.file_id, ()))) for info, file in doubtful]
    return _Listing(candidates, kept, before.warnings if kept else [])


def _is_cleaning(before: Snapshot, now: Snapshot) -> bool:
    """Whether a clean is pending, or was completed after `before`."""
    known = {instant.ts for instant in before.timeline.completed({Action.CLEAN})}
    done = {instant.ts for instant in now.timeline.completed({Action.CLEAN})}
    return bool(now.timeline.pending({Action.CLEAN}) or done - known)


class _Look:
    """Sorts the listed files into orphan files and files that are kept."""

    def __init__(self, knowledge: FileJudge, ages: Ages, now_millis: int, kept: dict[ReasonToStay, Total]) -> None:
        self._knowledge = knowledge
        self._ages = ages
        self._now = now_millis
        self.items: list[Item] = []
        self.kept: dict[ReasonToStay, Total] = defaultdict(Total, kept)
        self._rolled_back: list[_Candidate] = []

    def at_data_file(self, candidate: _Candidate) -> None:
        verdict = self._knowledge.judge(candidate.file)
        if isinstance(verdict, OrphanKind) and self._is_young(candidate.info.mtime_millis, self._ages.minimum):
            verdict = ReasonToStay.YOUNG
        if verdict is OrphanKind.ROLLED_BACK and self._knowledge.readers_list_storage:
            self._rolled_back.append(candidate)
        else:
            self._sort(candidate, verdict)

    def settle(self, storage: Storage, *, is_cleaning: bool) -> None:
        """Judge the rolled back files. They may hold rows of other writes, except in groups that a dead attempt began.

        `is_cleaning`: a clean is about to delete files, or has deleted files since the listing.
        """
        if is_cleaning:
            for candidate in self._rolled_back:
                self._sort(candidate, ReasonToStay.CLEANING)
            return
        left = self._still_there(storage, [file for one in self._rolled_back for file in one.beside])
        alone = [one.file for one in self._rolled_back if left.isdisjoint(file.path for file in one.beside)]
        new = self._knowledge.begun_by_dead_attempts(alone)
        stay = {file.path for file in alone if file.file_id not in new}
        for candidate in self._rolled_back:
            self._sort(candidate, ReasonToStay.ONLY_FILE if candidate.file.path in stay else OrphanKind.ROLLED_BACK)

    def _still_there(self, storage: Storage, files: Collection[BaseFile]) -> set[str]:
        """The paths of the `files` that still exist, that readers see, and that neither a savepoint nor a plan names.

        A file that only a savepoint holds may be deleted with the savepoint.
        """
        paths = {file.path for file in files if self._knowledge.is_live(file) and not self._knowledge.is_held(file)}
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return {info.path for info in pool.map(storage.head, paths) if info is not None}

    def _sort(self, candidate: _Candidate, verdict: Verdict) -> None:
        if isinstance(verdict, OrphanKind):
            self._add(candidate.info, self._knowledge.attempt(candidate.file), verdict)
        elif verdict is not None:
            self._keep(candidate.info, verdict)

    def at_leftover(self, leftover: Leftover) -> None:
        if leftover.attempt in self._knowledge.pending:
            return
        young = self._is_young(leftover.mtime_millis, leftover.least_age(self._ages))
        for file in leftover.files:
            if young:
                self._keep(file, ReasonToStay.YOUNG)
            else:
                self._add(file, leftover.attempt, leftover.reason)

    def _is_young(self, mtime_millis: int, least_age: int) -> bool:
        return self._now - mtime_millis < least_age

    def _add(self, file: FileInfo, attempt: str, reason: OrphanKind) -> None:
        action = self._knowledge.action(attempt)
        self.items.append(Item(file.path, file.size, file.mtime_millis, attempt, action, reason))

    def _keep(self, file: FileInfo, why: ReasonToStay) -> None:
        self.kept[why] = self.kept[why].plus(file.size)
