"""Finding garbage: list, then load the timeline, then judge.

The order makes it safe beside writers: whoever begins after the listing has no file in it, and whoever began before
is on the timeline. What a look before the listing vouches for needs no judgement, so that only doubtful files are held
in memory.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..handle import Table, reopen
from ..model import BaseFile
from ..storage import FileInfo
from .data_files import DataFolders
from .knowledge import Knowledge
from .leftovers import Leftover, list_leftovers, list_uploads
from .model import Ages, DataFile, Findings, Garbage, Item, Kept, Total, Verdict


@dataclass(frozen=True, slots=True)
class _Candidate:
    """`is_alone`: no live base file of its file group lies beside it, but perhaps one that only a savepoint holds."""

    info: FileInfo
    file: DataFile
    is_alone: bool


def find_garbage(table: Table, ages: Ages, progress: Callable[[int, int], None]) -> Findings:
    """One look at all of `table`; changes nothing. `progress` gets folders listed, and folders known.

    Raises CorruptFile for a plan, a rollback, a savepoint or a metadata table that cannot be read.
    """
    folders = DataFolders(table.storage)
    candidates = list(_candidates(table, folders, progress))
    leftovers = [*list_leftovers(table.storage), *list_uploads(table.storage, folders.nested)]
    current = reopen(table)
    knowledge = Knowledge(current)
    look = _Look(knowledge, ages, round(current.clock.now().timestamp() * 1000))
    for candidate in candidates:
        look.at_data_file(candidate)
    look.settle()
    for leftover in leftovers:
        look.at_leftover(leftover)
    items = tuple(sorted(look.items, key=lambda item: item.path))
    return Findings(items, dict(look.kept), tuple(dict.fromkeys(knowledge.warnings)))


def _candidates(table: Table, folders: DataFolders, progress: Callable[[int, int], None]) -> Iterator[_Candidate]:
    """Data files that `table` does not vouch for; the partition's listing is read once for all of its files."""
    before = Knowledge(table)
    for _, files in folders.walk(progress):
        doubtful = [(info, file) for info, file in files if not before.is_live(file)]
        if not doubtful:
            continue
        names = {file.name for _, file in doubtful}
        live = (file for _, file in files if file.name not in names and isinstance(file, BaseFile))
        groups = {file.file_id for file in live if not before.is_in_savepoint(file)}
        yield from (_Candidate(info, file, file.file_id not in groups) for info, file in doubtful)


class _Look:
    """Sorts what was listed into garbage and what is kept."""

    def __init__(self, knowledge: Knowledge, ages: Ages, now_millis: int) -> None:
        self._knowledge = knowledge
        self._ages = ages
        self._now = now_millis
        self.items: list[Item] = []
        self.kept: dict[Kept, Total] = defaultdict(Total)
        self._alone: list[_Candidate] = []

    def at_data_file(self, candidate: _Candidate) -> None:
        verdict = self._knowledge.judge(candidate.file)
        if isinstance(verdict, Garbage) and self._is_young(candidate.info.mtime_millis, self._ages.minimum):
            verdict = Kept.YOUNG
        if verdict is Garbage.ROLLED_BACK and candidate.is_alone and self._knowledge.readers_list_storage:
            self._alone.append(candidate)
        else:
            self._sort(candidate, verdict)

    def settle(self) -> None:
        """Judge the rolled back files that may hold rows of others: those of groups that an attempt began do not."""
        new = self._knowledge.begun_by_dead_attempts([candidate.file for candidate in self._alone])
        for candidate in self._alone:
            self._sort(candidate, Garbage.ROLLED_BACK if candidate.file.file_id in new else Kept.ONLY_FILE)

    def _sort(self, candidate: _Candidate, verdict: Verdict) -> None:
        if isinstance(verdict, Garbage):
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

    def _add(self, file: FileInfo, attempt: str, reason: Garbage) -> None:
        action = self._knowledge.action(attempt)
        self.items.append(Item(file.path, file.size, file.mtime_millis, attempt, action, reason))

    def _keep(self, file: FileInfo, why: Kept) -> None:
        self.kept[why] = self.kept[why].plus(file.size)
