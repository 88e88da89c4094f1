"""What an archive knows of instants, in either layout: which writes were completed, and which were rolled back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..codecs.rollback_plan import RollbackMetadata
from .instant import Action

_WRITES = frozenset(action.value for action in Action if action.writes_data)
_COMPLETED = "COMPLETED"


@dataclass(frozen=True, slots=True)
class ArchivedAction:
    """One entry of an archive: an action in one state (HoodieInstant.State).

    `rolled_back` is what a rollback undid; `file_ids` are file groups that a write touched, where they were asked for.
    """

    ts: str
    action: str
    state: str = _COMPLETED
    rolled_back: RollbackMetadata | None = None
    file_ids: frozenset[str] = frozenset()

    @property
    def is_completed_write(self) -> bool:
        return self.action in _WRITES and self.state == _COMPLETED


@dataclass(frozen=True, slots=True)
class ArchivedInstants:
    """Requested times with the names of their actions."""

    completed: Mapping[str, str]
    """Writes that were completed."""
    unfinished: Mapping[str, str]
    """Writes of which only pending states were archived."""
    rolled_back: Mapping[str, str]
    """Targets of rollbacks. A clustering may be among them and completed, too: it was executed again."""
    written: frozenset[str]
    """Those file ids, of the ones that were asked for, that completed writes knew."""
    whole: bool = True
    """Whether no file of the archive is missing, as far as their names tell."""

    @classmethod
    def of(cls, entries: Iterable[ArchivedAction], *, whole: bool = True) -> "ArchivedInstants":
        """The sum of all entries of an archive."""
        completed: dict[str, str] = {}
        pending: dict[str, str] = {}
        rolled_back: dict[str, str] = {}
        written: set[str] = set()
        for entry in entries:
            if entry.is_completed_write:
                completed[entry.ts] = entry.action
                written |= entry.file_ids
            elif entry.action in _WRITES:
                pending[entry.ts] = entry.action
            elif entry.rolled_back is not None:
                rolled_back[entry.rolled_back.target_ts] = entry.rolled_back.target_action
        unfinished = {ts: action for ts, action in pending.items() if ts not in completed}
        return cls(completed, unfinished, rolled_back, frozenset(written), whole)

    def surrounds(self, ts: str) -> bool:
        """Whether writes before and after `ts` are in the archive, which is filled oldest first and without a gap.

        Of an archive that is not whole nothing follows from what is not in it.
        """
        return self.whole and bool(self.completed) and min(self.completed) < ts < max(self.completed)
