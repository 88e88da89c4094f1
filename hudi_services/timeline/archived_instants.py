"""What an archive records of instants, in either layout: which writes were completed, and which were rolled back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..codecs.rollback_plan import RollbackMetadata
from .instant import Action

_WRITES = frozenset(action.value for action in Action if action.writes_data)
_COMPLETED = "COMPLETED"


@dataclass(frozen=True, slots=True)
class ArchivedAction:
    """One entry of an archive: an action in one state (HoodieInstant.State).

    `rolled_back` is the metadata of a rollback; `file_ids` are the file groups that a write touched, of those that the
    caller asked for.
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
    """The instants that an archive records: requested times with the names of their actions."""

    completed: Mapping[str, str]
    """Writes that were completed."""
    unfinished: Mapping[str, str]
    """Writes of which only pending states were archived."""
    rolled_back: Mapping[str, str]
    """Targets of rollbacks. A clustering may be here and in `completed`, too: it was executed again."""
    written: frozenset[str]
    """The file ids that completed writes touched, of those that the caller asked for."""
    whole: bool = True
    """Whether no file of the archive is missing, as far as the file names show."""

    @classmethod
    def of(cls, entries: Iterable[ArchivedAction], *, whole: bool = True) -> "ArchivedInstants":
        """The instants of all entries of an archive."""
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

        False for an archive that is not whole: an instant may be in a file that is missing.
        """
        return self.whole and bool(self.completed) and min(self.completed) < ts < max(self.completed)
