"""The execution of a plan that writes new files: begun and finished under the table's lock, with the work in between.

begin      take up an earlier attempt that left checkpoints, or roll it back; heartbeat, .inflight
(work)     a marker, then the file, for every new file; a checkpoint for every finished group
finish     files of dead task attempts, then `transaction.complete` with the draft
clean-up   markers, heartbeat, checkpoints
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ..clock import duration
from ..commit.begun_rollbacks import rollbacks_of
from ..commit.checkpoints import checkpoints, delete_checkpoints
from ..commit.commit_draft import CommitDraft
from ..commit.conflicts import NEW_PLAN, StaleInput, TakenOver
from ..commit.expectations import Expectation
from ..commit.liveness import lease_name, liveness, now_millis, rollback_liveness
from ..commit.markers import Marker, delete_markers
from ..commit.settings import TransactionSettings
from ..commit.transaction import Transaction, begin, expect
from ..concurrency import at_once
from ..errors import (
    ConflictError,
    HudiServicesError,
    JobLost,
    LockBusy,
    NothingToDo,
    TimeOver,
)
from ..rollback.execution import drop_requested, pending_rollback
from ..snapshot import Snapshot, refresh
from ..timeline.instant import Action, Instant, State
from .frame import AttemptFrame, ReadyCommit
from .late_plan import LatePlan
from .strays import claimed_files, committed_files, marked_files, remove_strays


class Attempt(AttemptFrame):
    """One execution of a requested plan, between `begin` and `finish`; a context manager that cleans up.

    `operation` names the attempt for people. `inputs` are expectations that are also checked at the beginning: a plan
    whose inputs are stale is dropped, because it can never be executed. An error rolls the attempt back and leaves the
    table as it was. An attempt whose job was lost or interrupted stays if it has checkpoints; the next attempt takes
    it up. With a `late` plan the caller takes the attempt back.
    """

    def __init__(
        self,
        table: Snapshot,
        instant: Instant,
        operation: str,
        inputs: Sequence[Expectation],
        settings: TransactionSettings,
        plan: LatePlan | None = None,
    ) -> None:
        super().__init__(table, f"the {operation} {instant.ts}", settings)
        self._instant = instant
        self._inputs = tuple(inputs)
        self._late = plan
        self.is_late = plan is not None
        self._plan = instant.ts if plan is None else NEW_PLAN
        self._begun = False
        self._rollbacks: frozenset[str] = frozenset()
        """The rollback instants on the timeline when this attempt began."""
        self.completed_at = 0.0
        """When the commit was complete, by the monotonic clock, seconds."""

    def _failed(self, error: BaseException) -> None:
        # An attempt at a plan that nobody knows is taken back by its job, wherever it has failed.
        if self._begun and self._late is None:
            self._undo_or_leave(error)

    def expected_instant(self, table: Snapshot) -> str:
        """The instant at which `finish` commits, whatever `table` has."""
        return self.instant.ts

    def _before_commit(self, draft: CommitDraft) -> None:
        self._files = draft.paths | (self._files or frozenset())

    def _placed(self, current: Snapshot, draft: CommitDraft) -> ReadyCommit:
        self._require_ours(current)
        ts = self.instant.ts
        looks: Sequence[Callable[[], Any]] = (partial(expect, current, draft), partial(marked_files, current, ts))
        _, marked = at_once(lambda look: look(), looks)
        # If this process was stopped for long, another process has taken over, and owns the files to delete.
        remove_strays(current, ts, draft.paths, marked)
        if self._late is not None:
            current = self._late.show(current, self.instant, draft, attempt=ts)
        return ReadyCommit(current, draft, self._settings.skew_millis)

    def _lost(self, current: Snapshot) -> None:
        self._delete_unclaimed(current)

    def _committed(self, instant: Instant) -> None:
        self._begun, self.completed_at = False, time.monotonic()

    def _begin(self) -> None:
        ts = self.instant.ts
        lease, what = lease_name(self.instant), f"execute {ts}"
        self._entered = Transaction(self.table, lease, what, self._settings, confirmed=False).__enter__()
        with self._transaction.section(f"begin {ts}", plan=ts, beside_writers=self._late is not None) as current:
            found = self._require_pending(current)
            # The next Hudi writer would finish a pending rollback, even if the plan was executed meanwhile.
            begun_rollback = pending_rollback(current, found.ts)
            done: frozenset[str] = frozenset()
            if found.state is State.INFLIGHT or begun_rollback is not None:
                self._refuse_live(current, found, begun_rollback)
                if begun_rollback is None:
                    done = self._done_before(current, found)
                if not done:
                    self._roll_back(current, found, keep_plan=True)
                    current = refresh(current)
            try:
                self._check_inputs(current)
            except StaleInput as stale:
                current.check_held()
                drop_requested(current, self.instant)
                raise _dropped(stale, ts) from stale
            self.taken_up = bool(done)
            current.check_held()
            marked = self._made_ready(current, is_new=not done)
            # A task that outlived the process of an earlier attempt may have written after the attempt's rollback.
            remove_strays(current, ts, done, marked)
            if not done:
                # Also a link in the place of their folder, which leads elsewhere.
                delete_markers(current.storage, ts)
            self._rollbacks = frozenset(i.ts for i in current.timeline.instants if i.action is Action.ROLLBACK)
            if not done:
                begin(current, self.instant)
            self._begun = True
            self.table = current
            self._transaction.know(current)

    def _made_ready(self, current: Snapshot, *, is_new: bool) -> list[Marker]:
        """Begin the heartbeat; delete what an earlier attempt has noted, if this one `is_new`. Returns the markers."""
        storage, ts = current.storage, self.instant.ts
        steps: list[Callable[[], Any]] = [partial(marked_files, current, ts), partial(self._transaction.beat, ts)]
        if is_new:
            steps.append(partial(delete_checkpoints, storage, ts))
        marked: list[Marker] = at_once(lambda step: step(), steps)[0]
        return marked

    def _check_inputs(self, current: Snapshot) -> None:
        for one in self._inputs:
            one.check(current)

    def _done_before(self, current: Snapshot, dead: Instant) -> frozenset[str]:
        """The files of the groups that a dead attempt finished; none when the inputs of the plan are stale."""
        try:
            self._check_inputs(current)
        except StaleInput:
            return frozenset()
        return _done_files(current, dead)

    def _refuse_live(self, current: Snapshot, instant: Instant, rollback: Instant | None) -> None:
        """Raise LockBusy while a Hudi process may be executing the plan, or rolling the attempt back.

        For our own attempts and rollbacks the leases decide.
        """
        lease = self._transaction.lease
        if rollback is not None:
            signs, what = rollback_liveness(current, rollback, self._settings, held=lease), "rolled back"
        else:
            signs, what = liveness(current, instant, self._settings, held=lease), "executed"
        if not signs.alive:
            return
        # Our lease must not make this attempt look like one of ours to the next run.
        self._transaction.forget()
        silence = duration(now_millis(current) - signs.last_sign_millis)
        raise LockBusy(
            f"{current.storage.root}: {self._what} is being {what} by another process, which gave a sign "
            f"of life {silence} ago",
            hint="wait for it; without a sign for two minutes where it gives a heartbeat, else for "
            "hudi.services.abandoned.after.minutes, it counts as dead",
        )

    def _require_pending(self, current: Snapshot) -> Instant:
        found = current.timeline.find(self.instant.ts, self.instant.action)
        if found is None:
            raise ConflictError(f"{current.storage.root}: {self._what} was rolled back by another process")
        if found.is_completed:
            raise NothingToDo(f"{self._what} is completed already")
        return found

    def _require_ours(self, current: Snapshot) -> Instant:
        """The inflight instant, if it is still the one that this attempt began.

        Otherwise delete the new files and raise ConflictError or NothingToDo: readers would take the files, which bear
        the instant of the plan, for files of its commit. Files that another attempt at the plan has taken over stay.
        """
        try:
            current.check_held()
            found = self._require_pending(current)
            taken = rollbacks_of(current, self.instant.ts, self._rollbacks)
            if taken or found.state is not State.INFLIGHT:
                raise TakenOver(
                    f"{current.storage.root}: {self._what} was rolled back by another process",
                    hint="nothing was committed; execute again when that process has ended",
                )
            return found
        except (ConflictError, NothingToDo):
            self._delete_unclaimed(current)
            raise

    def _delete_unclaimed(self, current: Snapshot) -> None:
        at_once(
            current.storage.delete_output, sorted((self._files or frozenset()) - claimed_files(current, self.instant))
        )

    def _undo_or_leave(self, error: BaseException) -> None:
        """Roll the attempt back, unless it was lost or interrupted and the next attempt can take it up."""
        kept = self._count_done() if isinstance(error, JobLost | TimeOver | KeyboardInterrupt) else 0
        if not kept:
            self._undo(error)
        elif isinstance(error, JobLost | TimeOver):
            hint = "; ".join(filter(None, [error.hint, "the next execute does the rest"]))
            raise type(error)(f"{error.message}; {kept} finished tasks are kept", hint=hint) from error

    def _count_done(self) -> int:
        """The number of checkpoints of this attempt; 0 when they cannot be listed."""
        try:
            current = refresh(self.table)
            return len(checkpoints(current, self._require_pending(current)))
        except HudiServicesError:
            return 0

    def _undo(self, error: BaseException) -> bool:
        if not super()._undo(error):
            with suppress(HudiServicesError):
                self._remove_strays_of_another()
            return False
        if isinstance(error, StaleInput):
            raise _dropped(error, self.instant.ts) from error
        return True

    def _take_away(self, current: Snapshot, error: BaseException) -> None:
        self._roll_back(current, self._require_ours(current), keep_plan=not isinstance(error, StaleInput))

    def _remove_strays_of_another(self) -> None:
        """When another process has completed the instant: delete our files, which readers would take for committed.

        They are not known before `finish`. The commit names every file that stays, whoever is at work.
        """
        current = refresh(self.table)
        found = current.timeline.find(self.instant.ts, self.instant.action)
        if found is not None and found.is_completed and not self._has_completed(current, found):
            remove_strays(current, self.instant.ts, committed_files(current, found))


def _dropped(stale: BaseException, ts: str) -> StaleInput:
    return StaleInput(
        f"{stale}: the plan {ts} cannot be executed any more and was dropped",
        hint="no row was touched; schedule a new plan",
    )


def _done_files(table: Snapshot, attempt: Instant) -> frozenset[str]:
    return frozenset(file.path for group in checkpoints(table, attempt) for file in group.files)
