"""One write of rows, from its instant to its commit.

    begin      lease and heartbeat of the instant that is due, then under the table's lock, if that is still the next
               one, the requested file: <ts>.commit.requested, or of a write that replaces file groups
               <ts>.replacecommit.requested
    (look up)  the table as it was under the lock: what is completed later is compared at the end
    workload   <ts>.inflight: which file groups are updated, and how many rows each of them gets
    (work)     a marker, then the file, for every new file
    finish     files of dead tasks; under the lock: the conflicts, `transaction.publish` with the draft
    clean-up   markers, heartbeat

The order is that of Hudi 1.1 and later (BaseHoodieWriteClient.startCommit, commitStats): a writer of Hudi that begins
later sees the requested file, and one that commits later compares its file groups with ours.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

from ..commit.critical_section import critical_section
from ..commit.drafts import CommitDraft, TimesSource
from ..commit.liveness import lease_name
from ..commit.markers import CREATE, Marker
from ..commit.new_files import NewFiles
from ..commit.settings import TransactionSettings
from ..commit.timeline_copies import remove_instant
from ..commit.times import Times, refuse_ahead
from ..commit.transaction import Transaction, begin, expect, publish
from ..concurrency import at_once
from ..errors import ConflictError, HudiServicesError, LockBusy, NothingToDo, PartlyDone
from ..rollback.execution import pending_rollback, roll_back
from ..snapshot import Snapshot, with_instant
from ..timeline.instant import Action, Instant, State
from .afterwards import Afterwards, settled
from .attempt import committed_files, remove_marked_strays
from .leased import end


class WriteAttempt:
    """A context manager that begins a write, and rolls it back after an error.

    `operation` names it for people. `requested` is the content of the requested file, of the action `action`. `first`
    is called with the table under the lock, before the instant is drawn, and with a source of instants; it may change
    the table, and returns it as it is then. Entering raises the errors of `critical_section`.
    """

    def __init__(
        self,
        table: Snapshot,
        operation: str,
        settings: TransactionSettings,
        first: Callable[[Snapshot, TimesSource], Snapshot],
        action: Action = Action.COMMIT,
        requested: bytes = b"",
    ) -> None:
        self.table = table
        """From the beginning on: the table as it was when the requested file was there."""
        self._operation = operation
        self._settings = settings
        self._first = first
        self._action = action
        self._requested = requested
        self._instant: Instant | None = None
        self._transaction: Transaction | None = None
        self._files: frozenset[str] = frozenset()
        self._marked: list[Marker] = []
        """The markers of the commit, where its folder has nothing else."""
        self.after: Snapshot | None = None
        """The table after the commit; None where only another look would tell."""
        self.rolled_back = ""
        """The rollback instant, where the attempt has failed and was rolled back."""

    def __enter__(self) -> "WriteAttempt":
        table, left = self.table, list[str]()
        try:
            due = self._claim_next()
            what = f"begin the {self._operation}"
            with critical_section(table, what, self._settings, commits=False, left=left) as current:
                times = Times(current, self._settings.skew_millis, is_writer=True, due=due)
                current = self._first(current, times.next)
                ts = times.next()
                refuse_ahead(current, ts)
                if ts != due:
                    # Others were here first.
                    self._give_up_claim()
                    self._claim(ts)
                    current.check_held()
                self._instant = current.timeline.publish(ts, self._action, State.REQUESTED, self._requested)
                self.table = with_instant(current, self._instant, self._requested)
            self.table = replace(self.table, check_held=table.check_held)
            assert self._transaction is not None, "the instant is claimed"
            self._transaction.know(self.table)
            self._transaction.leave(left)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def _claim_next(self) -> str:
        """Claim the instant that is due now, unless another run of ours does, and return it."""
        times = Times(self.table, 0, is_writer=True)
        while True:
            with suppress(LockBusy):
                self._claim(due := times.draw())
                return due

    def _claim(self, ts: str) -> None:
        """Take the lease of an instant that is not published, and begin its heartbeat."""
        name = self.table.timeline.layout.file_name(ts, self._action, State.REQUESTED)
        instant = Instant(ts, self._action, State.REQUESTED, None, name)
        what = f"write {ts}"
        claim = Transaction(self.table, lease_name(instant), what, self._settings, is_new=True, confirmed=False)
        self._transaction = claim.__enter__()
        self._transaction.beat(ts)

    def _give_up_claim(self) -> None:
        assert self._transaction is not None, "there is one"
        self._transaction.forget()
        self._transaction.stop_beating()
        self._transaction.__exit__(None, None, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transaction is not None:
            end(self._transaction, error, self._failed)

    @property
    def instant(self) -> Instant:
        assert self._instant is not None, "the attempt has begun"
        return self._instant

    @property
    def files(self) -> NewFiles:
        """Where the new files are."""
        return NewFiles.in_place(self.table.storage, self.ts)

    @property
    def ts(self) -> str:
        """The time of the instant."""
        return self.instant.ts

    def start(self, workload: bytes, beside: Callable[[], None]) -> None:
        """Create the inflight file, after `beside`, which writes what no reader sees.

        Raises ConflictError when the instant was rolled back meanwhile.
        """
        begin(self.table, self.instant, workload, beside)

    def finish(self, draft: CommitDraft, afterwards: Afterwards | None = None, *, repeats: bool = True) -> None:
        """Make the new files of `draft` visible, in one atomic step; `afterwards` as for `Attempt.finish`.

        `repeats`: the engine may have run a task more than once, of which only one try is in the draft.

        Raises the errors of `transaction.complete`, and ConflictError when another process has rolled the write back,
        as Hudi's writers do with one that they take for dead.
        """
        assert self._transaction is not None, "the attempt has begun"
        self._files = draft.paths
        what = f"the {self._operation} {self.ts}"
        # No other process works at the instant of a write: its files are those of its tasks.
        before: list[Callable[[], Any]] = [partial(draft.rehearse, self.table)]
        if repeats:
            before.append(partial(remove_marked_strays, self.table, self.ts, draft.paths))
        elif draft.moved is None and not draft.pairs:
            kinds = {True: self.table.log_naming.marker_kind, False: CREATE}
            self._marked = [Marker(one.stat.path, kinds[one.stat.is_log]) for one in draft.files]
        at_once(lambda do: do(), before)
        with self._transaction.section(f"commit {self.ts}", own=self.ts, completes=what) as current:
            self._require_ours(current)
            expect(current, draft)
            times = Times(current, self._settings.skew_millis)
            after = publish(current, draft, times.next)
            self.after = settled(after, afterwards, Times(current, 0, after=times.last).next)
        self._transaction.done()

    def clean_up(self) -> None:
        """Delete lease, heartbeat and markers; readers do not see them, so that a failure here does no harm."""
        assert self._transaction is not None, "the attempt has begun"
        self._transaction.clean_up(self.ts, self._marked, has_checkpoints=False)

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
        """Roll the write back. Raises PartlyDone when it is complete in spite of `error`."""
        assert self._transaction is not None, "the attempt has begun"
        if self._instant is None:
            self._transaction.forget()
            return
        if isinstance(error, PartlyDone):
            return
        is_complete = False
        # The first error is what the operator must read; the next write rolls this one back.
        with suppress(HudiServicesError):
            with self._transaction.section(f"undo {self.ts}", repairs=self.ts) as current:
                found = current.timeline.find(self.ts, self._action)
                if found is not None and found.is_completed:
                    is_complete = committed_files(current, found) == self._files
                elif found is not None and isinstance(error, NothingToDo):
                    # There is no file to delete, and nobody needs to know.
                    remove_instant(current, found)
                elif found is not None:
                    times = Times(current, self._settings.skew_millis)
                    self.rolled_back = roll_back(current, found, times, keep_plan=False)
            self._transaction.forget()
        if is_complete:
            raise PartlyDone(f"the {self._operation} {self.ts} is complete, in spite of: {error}") from error
