"""An attempt that nobody sees before its commit: its new files are staged, and its instant is drawn at the commit.

begin      the lease of the attempt: other runs wait, or take the attempt back when this process is dead
(work)     new files in the staging folder; they need no markers, because no reader lists that folder
finish     under the lock: the instant, `LatePlan.show`, the inflight file, for each new file a marker and the move to
           its place in the table, then `transaction.publish` with the draft
clean-up   markers, staging folder

The rows of a new file name the file as it was staged: with its file id, and the time at which the attempt began. Of
this name, writers use the file id. When nothing has happened on the timeline since, the instant is that time. When log
files of the record index are written before the lock is taken, the instant is drawn before them, unless another comes.
"""

import time
from contextlib import suppress
from dataclasses import replace

from ..commit.begun_rollbacks import rollbacks_of
from ..commit.checkpoints import delete_checkpoints
from ..commit.commit_draft import CommitDraft
from ..commit.conflicts import NEW_PLAN, TakenOver
from ..commit.expectations import VersionUnchanged
from ..commit.lease import read_lease
from ..commit.liveness import lease_name
from ..commit.markers import delete_markers
from ..commit.new_files import NewFiles, move_staged, path_at
from ..commit.settings import TransactionSettings
from ..commit.times import Times, refuse_ahead
from ..commit.transaction import Transaction, begin, expect
from ..concurrency import at_once
from ..errors import (
    ConflictError,
    HudiServicesError,
    JobLost,
    StorageError,
)
from ..snapshot import Snapshot, refresh
from ..timeline.instant import Instant, State
from .frame import AttemptFrame, ReadyCommit
from .late_attempts import delete_staged, take_back
from .late_plan import LatePlan
from .strays import claimed_files, committed_files


class NewerInstant(ConflictError):
    """The timeline has got an instant that is newer than the one for which log files of the draft were written."""


class StagedAttempt(AttemptFrame):
    """One execution of a plan that is published late; a context manager that takes the attempt back after an error.

    `instant` is a requested clustering that is not on the timeline; after `finish` it is the one that was committed.
    After an error that leaves the table as it was, `finish` may be called again. It raises NewerInstant when files of
    the draft were written for an instant that is not the newest any more.
    """

    is_late = True
    _plan = NEW_PLAN

    def __init__(
        self, table: Snapshot, instant: Instant, operation: str, plan: LatePlan, settings: TransactionSettings
    ) -> None:
        super().__init__(table, f"the {operation}", settings)
        self._instant = instant
        self._staged = NewFiles.staged(table.storage, instant.ts)
        self.pending_seconds = 0.0
        """For how long the plan was pending, once the attempt is committed."""
        self._expected = instant.ts
        """The instant at which the attempt commits, if no newer one comes before."""
        self._late: LatePlan = plan
        self._shown: Instant | None = None
        """The instant at which the plan was shown, as long as it is not completed."""
        self._shown_at = 0.0
        self._is_begun = False
        """Whether the plan that was shown is inflight by this attempt."""

    @property
    def files(self) -> NewFiles:
        return self._staged

    def _begin(self) -> None:
        what = f"cluster {self.instant.ts}"
        self._entered = Transaction(self.table, lease_name(self.instant), what, self._settings).__enter__()
        # Local storage does not open a folder that does not exist.
        self.table.storage.put(self.files.path_in_table("staging"), b"")

    def _failed(self, error: BaseException) -> None:
        # After a lost job a task may still be writing a file: the next run takes the attempt back.
        if not isinstance(error, JobLost):
            self._take_back(error)
        elif self._shown is not None:
            self._remove_moved(self._shown)

    def expected_instant(self, table: Snapshot) -> str:
        """The instant at which `finish` commits, if `table`, as it is now, gets no newer one before."""
        if not self._is_newest(table):
            self._expected = Times(table, 0).next()
        return self._expected

    def _before_commit(self, draft: CommitDraft) -> None:
        self._drop_shown()
        # No other run takes up this attempt; and what is claimed at this time from now on, others claim.
        delete_checkpoints(self.table.storage, self.files.instant)

    def _placed(self, current: Snapshot, draft: CommitDraft) -> ReadyCommit:
        current.check_held()
        # The plan and its action are those of the version that the table had.
        VersionUnchanged(self.table.config.version).check(current)
        expect(current, draft)
        is_newest, skew = self._is_newest(current), self._settings.skew_millis
        if draft.index_delta is not None and draft.index_delta.ahead and not is_newest:
            raise NewerInstant(f"{current.storage.root}: the timeline has instants after {draft.index_delta.ahead}")
        ts = self._expected if is_newest else Times(current, skew).next()
        refuse_ahead(current, ts)
        name = current.timeline.layout.file_name(ts, self.instant.action, State.REQUESTED)
        shown = replace(self.instant, ts=ts, file_name=name)
        self._shown, self._is_begun, self._shown_at = shown, False, time.monotonic()
        current = self._late.show(current, shown, draft, attempt=self.files.instant)
        current.check_held()
        self._is_begun = True
        begin(current, shown)
        self._files = frozenset(path_at(path, ts) for path in draft.paths)
        move_staged(current.storage, self.files, sorted(draft.paths), ts)
        # The time of completion waits for the slowest clock, unless the instant has just done so.
        return ReadyCommit(current, draft.at(shown), skew if is_newest else 0)

    def _committed(self, instant: Instant) -> None:
        self._shown, self._instant = None, instant
        self.pending_seconds = time.monotonic() - self._shown_at

    def _ended(self) -> None:
        self._transaction.forget()

    def _is_newest(self, current: Snapshot) -> bool:
        """Whether the expected instant is later than all times of the table."""
        latest = current.metadata.timeline.latest_time() if current.metadata is not None else ""
        return self._expected > max(current.timeline.latest_time(), latest[:17])

    def _drop_shown(self) -> None:
        """Take back a plan that was shown. Raises TakenOver when another process executes it."""
        shown = self._shown
        if shown is None:
            return
        self._refuse_taken_over(shown)
        if take_back(self._transaction, shown.ts, shown.action, self._settings):
            self._shown = None

    def _refuse_taken_over(self, instant: Instant) -> None:
        """Its attempt at the plan is not ours to roll back."""
        self._transaction.lease.check()
        table = refresh(self.table)
        found = table.timeline.find(instant.ts, instant.action)
        if found is None or found.is_completed:
            return
        name = lease_name(instant)
        lease = None if name == self._transaction.name else read_lease(table.storage, name)
        is_begun = found.state is State.INFLIGHT and not self._is_begun
        if is_begun or (lease is not None and lease.held) or rollbacks_of(table, instant.ts, ()):
            raise TakenOver(f"{table.storage.root}: another process executes the plan {instant.ts}")

    def _take_back(self, error: BaseException) -> None:
        """Take the attempt back; where that fails, the next run does it. Raises PartlyDone when it is complete."""
        shown, is_left = self._shown, isinstance(error, TakenOver)
        try:
            if not is_left:
                self._drop_shown()
        except HudiServicesError:
            is_left = True
        if shown is not None and self._remove_moved(shown):
            self._shown, self._instant = None, shown
            with suppress(StorageError):
                self.clean_up()
                self._transaction.forget()
            self._what = f"{self._what} {shown.ts}"
            raise self._complete(error)
        if is_left and not isinstance(error, TakenOver):
            return
        with suppress(StorageError):
            delete_staged(self.table.storage, self.files.instant)
            self._transaction.forget()

    def _remove_moved(self, instant: Instant) -> bool:
        """Delete the moved files, except those that are committed or claimed; whether this attempt has committed them.

        When this process was stopped for long, another one may have executed the plan, or rolled it back: readers would
        take our files for files of that commit, or, once the timeline begins later, for committed ones.
        """
        ours, moved = False, self._files or frozenset()
        with suppress(HudiServicesError):
            claimed = claimed_files(self.table, instant)
            now = refresh(self.table)
            found = now.timeline.find(instant.ts, instant.action)
            if found is not None and found.is_completed:
                claimed, ours = committed_files(self.table, found), self._has_completed(now, instant)
            at_once(self.table.storage.delete_output, sorted(moved - claimed))
            if found is None:
                delete_markers(self.table.storage, instant.ts)
        return ours
