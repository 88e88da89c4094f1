"""The frame of every attempt: a lease, a beginning, one way to finish, one way to undo.

An attempt places its new files in the table or in a staging folder, and has a plan that everybody sees, one that is
published with the commit (`late_plan`), or none. What differs by that is in its class:

    attempt           in place, with a plan that was given, or whose instant is reserved
    staged_attempt    staged, with a late plan
    write_attempt     in place, without a plan
"""

from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import NamedTuple, TypeVar

from ..commit.commit_draft import CommitDraft
from ..commit.conflicts import TakenOver
from ..commit.markers import Marker
from ..commit.new_files import NewFiles
from ..commit.settings import TransactionSettings
from ..commit.times import Times
from ..commit.transaction import Transaction, ask, publish
from ..errors import HudiServicesError, PartlyDone
from ..rollback.execution import roll_back
from ..snapshot import Snapshot
from ..timeline.instant import Instant
from .afterwards import Afterwards, settled
from .late_attempts import delete_staged
from .late_plan import LatePlan
from .strays import committed_files

A = TypeVar("A", bound="AttemptFrame")


class ReadyCommit(NamedTuple):
    """The table under the lock when all that the commit needs is in its place, and the draft of the commit.

    `skew_millis`: for how long the completion time waits for slower clocks.
    """

    table: Snapshot
    draft: CommitDraft
    skew_millis: int


class AttemptFrame:
    """A context manager: entering begins the attempt, and an error undoes it, or leaves it to the next one."""

    is_late = False
    """Whether the plan is published with the commit."""
    taken_up = False
    """Whether this attempt continues an earlier one: tasks may find that their groups are finished."""
    _late: LatePlan | None = None
    _plan: str | None = None
    """The instant of the plan, as for `conflicts.prospect`."""

    def __init__(self, table: Snapshot, what: str, settings: TransactionSettings) -> None:
        """`what` names the attempt for people."""
        self.table = table
        self._what = what
        self._settings = settings
        self._entered: Transaction | None = None
        self._instant: Instant | None = None
        self._files: frozenset[str] | None = None
        """Paths in the table of the new files, also of groups that were dropped, once `finish` has got to them."""
        self._marked: list[Marker] = []
        """The markers of the commit, where its folder has nothing else."""
        self.rolled_back: list[str] = []
        """Rollback instants that this attempt made."""
        self.begun_meanwhile: list[str] = []
        """Writes of others that have begun while a late plan was committed, without a shared lock."""
        self.after: Snapshot | None = None
        """The table after the commit; None where only another look would tell."""

    def __enter__(self: A) -> A:
        try:
            self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered is None:
            return
        left = error
        try:
            if error is not None:
                self._failed(error)
        except BaseException as another:
            left = another
            raise
        finally:
            self._entered.__exit__(type(left) if left else None, left, None)

    @property
    def instant(self) -> Instant:
        """The instant of the attempt, which a late plan may still change."""
        assert self._instant is not None, "the attempt has begun"
        return self._instant

    @property
    def files(self) -> NewFiles:
        """Where the new files are."""
        return NewFiles.in_place(self.table.storage, self.instant.ts)

    @property
    def _transaction(self) -> Transaction:
        assert self._entered is not None, "the attempt has a lease"
        return self._entered

    def finish(self, draft: CommitDraft, afterwards: Afterwards | None = None) -> None:
        """Make the new files of `draft` visible and the replaced file groups invisible, in one atomic step.

        `afterwards` is called after that step under the same lock, with the metadata table as it was before the step
        and a source of instants. Raises ConflictError, StaleInput, CheckFailed and StorageError, and PartlyDone when
        the commit is complete but the lock could not be released. Nothing was written when an expectation of the draft
        raises: `finish` may be called again with another draft.
        """
        self._before_commit(draft)
        action = f"commit {self.files.instant}"
        # A plan is no write, and the time of a staged attempt may be that of a write of others.
        own = self.instant.ts if self._plan is None else ""
        asks = partial(ask, draft)
        with self._transaction.section(action, plan=self._plan, own=own, completes=self._what, asks=asks) as current:
            placed = self._placed(current, draft)
            table, instant = placed.table, placed.draft.instant
            watched = table if self._late is None else self._late.watched(table, instant)
            times = Times(watched, placed.skew_millis, after=instant.ts)
            try:
                after = publish(watched, placed.draft, times.next)
            except TakenOver:
                self._lost(table)
                raise
            self._committed(instant)
            if self._late is not None:
                self.begun_meanwhile = self._late.begun_meanwhile(table, instant)
            self.after = settled(after, afterwards, Times(table, 0, after=times.last).next)
        self._ended()

    def clean_up(self) -> None:
        """Delete lease, heartbeat, markers and checkpoints, and what was staged.

        Readers see nothing of it, so that a failure here does no harm.
        """
        has_checkpoints = self._plan is not None and not self.is_late
        self._transaction.clean_up(self.instant.ts, self._marked, has_checkpoints=has_checkpoints)
        if self.is_late:
            delete_staged(self.table.storage, self.files.instant)

    def _begin(self) -> None:
        """Take the lease, and begin the attempt under it."""
        raise NotImplementedError

    def _failed(self, error: BaseException) -> None:
        """Undo the attempt, or leave it to the next one; may raise another error in the place of `error`."""
        raise NotImplementedError

    def _before_commit(self, draft: CommitDraft) -> None:
        """What needs no lock."""

    def _placed(self, current: Snapshot, draft: CommitDraft) -> ReadyCommit:
        """Check that the attempt is ours and what the draft expects; put everything in its place."""
        raise NotImplementedError

    def _lost(self, current: Snapshot) -> None:
        """Another process has taken the plan over when it was about to be completed."""

    def _committed(self, instant: Instant) -> None:
        """The commit is complete."""

    def _ended(self) -> None:
        """The lock is released after the commit."""
        self._transaction.done()

    def _undo(self, error: BaseException) -> bool:
        """Roll the attempt back under the lock; False where that fails, and the next run does it.

        The first error is what the operator must read. Raises PartlyDone when the attempt is complete.
        """
        is_complete = is_undone = False
        with suppress(HudiServicesError):
            with self._transaction.section(f"undo {self.instant.ts}", repairs=self.instant.ts) as current:
                is_complete = self._has_completed(current, self.instant)
                self._take_away(current, error)
            is_undone = True
        if is_complete:
            # The store reported a failure although it had stored the file.
            raise self._complete(error)
        return is_undone

    def _take_away(self, current: Snapshot, error: BaseException) -> None:
        """Roll the attempt back, if it is not complete, and still ours."""
        raise NotImplementedError

    def _roll_back(self, current: Snapshot, instant: Instant, *, keep_plan: bool) -> None:
        times = Times(current, self._settings.skew_millis)
        self.rolled_back.append(roll_back(current, instant, times, keep_plan=keep_plan))

    def _has_completed(self, current: Snapshot, instant: Instant) -> bool:
        """Whether this attempt, and no other one at the same plan, has completed the instant."""
        found = current.timeline.find(instant.ts, instant.action)
        if found is None or not found.is_completed or self._files is None:
            return False
        return committed_files(current, found) <= self._files

    def _complete(self, error: BaseException) -> PartlyDone:
        done = PartlyDone(f"{self._what} is complete, in spite of: {error}")
        done.__cause__ = error
        return done
