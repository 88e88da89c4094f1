"""Finding orphan files: list, then load the timeline, then judge.

The order makes it safe beside writers: whoever begins after the listing has no file in it, and whoever began before
is on the timeline. What a look before the listing vouches for needs no judgement, and of what is beyond its knowledge
no later one tells more, so that only doubtful files are held in memory.

Without a metadata table a clean takes a rolled back file for the newest of its file group once the timeline has passed
it, and deletes the committed ones beside it. Such a file goes only when another is left for readers, whatever a clean
that was planned before has yet to delete.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..commit.liveness import now_millis
from ..model import BaseFile
from ..snapshot import Snapshot, reopen
from ..storage import FileInfo, Storage
from ..timeline.instant import Action
from .data_files import DataFolders
from .known_files import KnownFiles
from .leftovers import Leftover, list_leftovers, list_uploads
from .model import Ages, DataFile, Findings, Item, Kept, OrphanKind, Total, Verdict

_REQUESTS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class _Candidate:
    """`beside`: live base files of its file group, where readers list storage."""

    info: FileInfo
    file: DataFile
    beside: tuple[BaseFile, ...]


def find_orphan_files(table: Snapshot, ages: Ages, progress: Callable[[int, int], None]) -> Findings:
    """One look at all of `table`; changes nothing. `progress` gets folders listed, and folders known.

    Raises CorruptFile for a plan, a rollback, a savepoint or a metadata table that cannot be read.
    """
    folders = DataFolders(table.storage)
    listing = _list(table, folders, progress)
    leftovers = [*list_leftovers(table.storage), *list_uploads(table.storage, folders.nested)]
    current = reopen(table)
    knowledge = KnownFiles(current)
    look = _Look(knowledge, ages, round(now_millis(current)), listing.kept)
    for candidate in listing.candidates:
        look.at_data_file(candidate)
    look.settle(current.storage, is_cleaning=_is_cleaning(table, current))
    for leftover in leftovers:
        look.at_leftover(leftover)
    items = tuple(sorted(look.items, key=lambda item: item.path))
    warnings = (*listing.warnings, *knowledge.warnings)
    return Findings(items, dict(look.kept), tuple(dict.fromkeys(warnings)))


@dataclass(frozen=True, slots=True)
class _Listing:
    """Data files to be judged, those that nobody can judge, counted, and what could not be read about these."""

    candidates: list[_Candidate]
    kept: dict[Kept, Total]
    warnings: list[str]


def _list(table: Snapshot, folders: DataFolders, progress: Callable[[int, int], None]) -> _Listing:
    """Data files that `table` does not vouch for; the partition's listing is read once for all of its files."""
    before = KnownFiles(table)
    candidates: list[_Candidate] = []
    kept: dict[Kept, Total] = defaultdict(Total)
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
    """Sorts what was listed into orphan files and what is kept."""

    def __init__(self, knowledge: KnownFiles, ages: Ages, now_millis: int, kept: dict[Kept, Total]) -> None:
        self._knowledge = knowledge
        self._ages = ages
        self._now = now_millis
        self.items: list[Item] = []
        self.kept: dict[Kept, Total] = defaultdict(Total, kept)
        self._rolled_back: list[_Candidate] = []

    def at_data_file(self, candidate: _Candidate) -> None:
        verdict = self._knowledge.judge(candidate.file)
        if isinstance(verdict, OrphanKind) and self._is_young(candidate.info.mtime_millis, self._ages.minimum):
            verdict = Kept.YOUNG
        if verdict is OrphanKind.ROLLED_BACK and self._knowledge.readers_list_storage:
            self._rolled_back.append(candidate)
        else:
            self._sort(candidate, verdict)

    def settle(self, storage: Storage, *, is_cleaning: bool) -> None:
        """Judge the rolled back files that may hold rows of others: those of groups that an attempt began do not.

        `is_cleaning`: a clean is about to delete files, or did so since they were listed.
        """
        if is_cleaning:
            for candidate in self._rolled_back:
                self._sort(candidate, Kept.CLEANING)
            return
        left = self._still_there(storage, [file for one in self._rolled_back for file in one.beside])
        alone = [one.file for one in self._rolled_back if left.isdisjoint(file.path for file in one.beside)]
        new = self._knowledge.begun_by_dead_attempts(alone)
        stay = {file.path for file in alone if file.file_id not in new}
        for candidate in self._rolled_back:
            self._sort(candidate, Kept.ONLY_FILE if candidate.file.path in stay else OrphanKind.ROLLED_BACK)

    def _still_there(self, storage: Storage, files: Collection[BaseFile]) -> set[str]:
        """Paths of those that readers see and that neither a savepoint nor a plan names; storage is asked again.

        What only a savepoint holds goes with it.
        """
        paths = {file.path for file in files if self._knowledge.is_live(file) and not self._knowledge.is_held(file)}
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return {info.path for info in pool.map(storage.head, paths) if info is not None}

    def _sort(self, candidate: _Candidate, verdict: Verdict) -> None:
        if isinstance(verdict, OrphanKind):
            self._add(candidate.info, candidate.file.instant, verdict)
        elif verdict is not None:
            self._keep(candidate.info, verdict)

    def at_leftover(self, leftover: Leftover) -> None:
        if leftover.attempt in self._knowledge.pending:
            return
        young = self._is_young(leftover.mtime_millis, leftover.least_age(self._ages))
        for file in leftover.files:
            if young:
                self._keep(file, Kept.YOUNG)
            else:
                self._add(file, leftover.attempt, leftover.reason)

    def _is_young(self, mtime_millis: int, least_age: int) -> bool:
        return self._now - mtime_millis < least_age

    def _add(self, file: FileInfo, attempt: str, reason: OrphanKind) -> None:
        action = self._knowledge.action(attempt)
        self.items.append(Item(file.path, file.size, file.mtime_millis, attempt, action, reason))

    def _keep(self, file: FileInfo, why: Kept) -> None:
        self.kept[why] = self.kept[why].plus(file.size)
