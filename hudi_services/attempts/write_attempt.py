"""One write of rows, from its instant to its commit.

    begin      lease and heartbeat of the instant that is due, then under the table's lock, if that is still the next
               one, the requested file: <ts>.commit.requested, or of a write that replaces file groups
               <ts>.replacecommit.requested
    (look up)  the table as it was under the lock: what is completed later is compared at the end
    workload   <ts>.inflight: which file groups are updated, and how many rows each of them gets
    (work)     a marker, then the file, for every new file
    finish     under the lock: the conflicts, files of repeated tasks, `transaction.publish` with the draft
    clean-up   markers, heartbeat

The order is that of Hudi 1.1 and later (BaseHoodieWriteClient.startCommit, commitStats): a writer of Hudi that begins
later sees the requested file, and one that commits later compares its file groups with ours.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from ..clock import uptime
from ..commit.commit_draft import CommitDraft
from ..commit.critical_section import critical_section
from ..commit.drafts import TimesSource
from ..commit.liveness import lease_name
from ..commit.markers import CREATE, Marker
from ..commit.settings import TransactionSettings
from ..commit.timeline_copies import remove_instant
from ..commit.times import Times, refuse_ahead
from ..commit.transaction import Transaction, begin, expect
from ..errors import ConflictError, HudiServicesError, LockBusy, NothingToDo, PartlyDone
from ..rollback.execution import pending_rollback
from ..snapshot import Snapshot, refresh, with_instant
from ..timeline.active import ANSWERS_HOLD_SECONDS
from ..timeline.instant import Action, Instant, State
from .frame import AttemptFrame, ReadyCommit
from .strays import remove_marked_strays


class WriteAttempt(AttemptFrame):
    """A context manager that begins a write, and rolls it back after an error.

    `operation` names it for people. `requested` is the content of the requested file, of the action `action`. `first`
    is called with the table under the lock, before the instant is drawn, and with a source of instants; it may change
    the table, and returns it as it is then. `repeats`: the engine may run a task more than once, of which only one try
    is in the draft. Entering raises the errors of `critical_section`, `finish` also ConflictError when another process
    has rolled the write back, as Hudi's writers do with one that they take for dead.
    """

    def __init__(
        self,
        table: Snapshot,
        operation: str,
        settings: TransactionSettings,
        first: Callable[[Snapshot, TimesSource], Snapshot],
        action: Action = Action.COMMIT,
        requested: bytes = b"",
        *,
        repeats: bool = True,
    ) -> None:
        super().__init__(table, f"the {operation}", settings)
        self._operation = operation
        self._first = first
        self._action = action
        self._requested = requested
        self._repeats = repeats
        self._claimed = ""
        self._requested_at = -math.inf
        """When its requested file was about to be created, by `uptime`."""

    def _begin(self) -> None:
        table, left = self.table, list[str]()
        due = self._claim_next()
        with critical_section(table, f"begin {self._what}", self._settings, commits=False, left=left) as current:
            times = Times(current, self._settings.skew_millis, is_writer=True, due=due)
            current = self._first(current, times.next)
            ts = times.next()
            refuse_ahead(current, ts)
            if ts != due:
                # Others were here first.
                self._give_up_claim(current)
                ts = self._claim_later(ts, times)
                current.check_held()
            # It was written while the lock was taken and the table was looked at.
            self._transaction.beating()
            self._requested_at = uptime()
            self._instant = current.timeline.publish(ts, self._action, State.REQUESTED, self._requested)
            self._what = f"the {self._operation} {ts}"
            self.table = with_instant(current, self._instant, self._requested)
        self.table = replace(self.table, check_held=table.check_held)
        self._transaction.know(self.table)
        self._transaction.leave(left)

    def _claim_next(self) -> str:
        """Claim the instant that is due now, unless another run of ours does, and return it."""
        times = Times(self.table, 0, is_writer=True)
        while True:
            with suppress(LockBusy):
                self._claim(due := times.draw())
                return due

    def _claim_later(self, ts: str, times: Times) -> str:
        """Claim this instant, or the first later one that no run of ours has claimed which waits for the lock: that run
        will find that others were here first."""
        while True:
            with suppress(LockBusy):
                self._claim(ts)
                return ts
            ts = times.next()

    def _claim(self, ts: str) -> None:
        """Take the lease of an instant that is not published, and begin its heartbeat."""
        name = self.table.timeline.layout.file_name(ts, self._action, State.REQUESTED)
        instant = Instant(ts, self._action, State.REQUESTED, None, name)
        what = f"write {ts}"
        claim = Transaction(self.table, lease_name(instant), what, self._settings, is_new=True, confirmed=False)
        self._entered = claim.__enter__()
        self._claimed = ts
        self._transaction.beat(ts)

    def _give_up_claim(self, table: Snapshot) -> None:
        self._leave_to_another(table)
        self._transaction.forget()
        self._transaction.stop_beating()
        self._transaction.__exit__(None, None, None)

    def _leave_to_another(self, table: Snapshot) -> None:
        """Leave the heartbeat where another writer has begun at the very instant that this one has claimed."""
        if table.timeline.at(self._claimed):
            self._transaction.leave_heartbeat()

    @property
    def ts(self) -> str:
        """The time of the instant."""
        return self.instant.ts

    def start(self, workload: bytes, beside: Callable[[], None]) -> None:
        """Create the inflight file, after `beside`, which writes what no reader sees.

        Raises ConflictError when the instant was rolled back meanwhile.
        """
        is_new = uptime() - self._requested_at < ANSWERS_HOLD_SECONDS
        begin(self.table, self.instant, workload, beside, looks=not is_new)

    def _before_commit(self, draft: CommitDraft) -> None:
        self._files = draft.paths
        if not self._repeats and draft.index_delta is None and not draft.secondary_deltas:
            of_log, stats = self.table.log_naming.marker_kind, [one.stat for one in draft.files]
            self._marked = [Marker(one.path, of_log if one.is_log else CREATE) for one in stats]
            self._marked += [Marker(path, of_log) for one in stats for path, _ in one.cdc_files]
        draft.rehearse(self.table)

    def _placed(self, current: Snapshot, draft: CommitDraft) -> ReadyCommit:
        self._require_ours(current)
        expect(current, draft)
        if self._repeats:
            # Under the lock, for which a writer may wait long: a task that is repeated elsewhere may still run. No
            # other process works at the instant of a write: its files are those of its tasks.
            remove_marked_strays(current, self.ts, draft.paths)
        return ReadyCommit(current, draft, self._settings.skew_millis)

    def _require_ours(self, current: Snapshot) -> Instant:
        found = current.timeline.find(self.ts, self._action)
        if found is None or found.is_completed or pending_rollback(current, self.ts) is not None:
            raise ConflictError(
                f"{current.storage.root}: the {self._operation} {self.ts} was rolled back by another writer",
                hint="nothing was committed. A writer of Hudi does so when it cleans failed writes eagerly: set "
                "hoodie.cleaner.policy.failed.writes=LAZY, hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"
                " and a lock provider in both writers, or write when no other writer is at work",
            )
        return found

    def _failed(self, error: BaseException) -> None:
        if self._instant is None:
            with suppress(HudiServicesError):
                self._leave_to_another(refresh(self.table))
            self._transaction.forget()
        elif not isinstance(error, PartlyDone):
            self._undo(error)

    def _take_away(self, current: Snapshot, error: BaseException) -> None:
        found = current.timeline.find(self.ts, self._action)
        if found is not None and not found.is_completed:
            if isinstance(error, NothingToDo):
                # There is no file to delete, and nobody needs to know.
                remove_instant(current, found)
            else:
                self._roll_back(current, found, keep_plan=False)
        self._transaction.forget()
