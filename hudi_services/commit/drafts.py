"""Drafts: the content and the effects of a commit, as values that carry their expectations.

`Draft` is the protocol that `transaction.complete` needs. `commit_draft.CommitDraft` is the draft of every operation
that adds files; the drafts of cleans, rollbacks, repairs and new indexes are in the modules of those operations.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ..snapshot import Snapshot
from ..timeline.instant import Instant
from .expectations import Expectation

# A command that changes nothing does without Arrow.
if TYPE_CHECKING:
    from ..metadata_updates.delta_commit import Confirm

TimesSource = Callable[[], str]
"""Returns a new instant, later than all instants of the table's timeline and of the metadata table's timeline."""


class Draft(Protocol):
    """A change of the table that becomes visible in one step."""

    @property
    def instant(self) -> Instant | None:
        """The pending instant that the draft completes; None for a change of the metadata table alone."""

    @property
    def expectations(self) -> Sequence[Expectation]: ...

    def sync(self, current: Snapshot, times: TimesSource) -> "Confirm | None":
        """Update everything else, the metadata table first; may be repeated after a kill.

        The result is to be called before the completed file is created; None where nothing is left to be confirmed.
        """

    def content(self, current: Snapshot) -> bytes:
        """The content of the completed file; called after `sync`."""
