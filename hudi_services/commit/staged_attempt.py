"""An attempt that nobody sees before its commit: its new files are staged, and its instant is drawn at the commit.

begin      the lease of the attempt: other runs wait, or take the attempt back when this process is dead
(work)     new files in the staging folder; they need no markers, because no reader lists that folder
finish     under the lock: the instant, `LatePlan.show`, the inflight file, for each new file a marker and the move to
           its place in the table, then `transaction.publish` with the draft
clean-up   markers, staging folder

The rows of a new file name the file as it was staged: with its file id, and the time at which the attempt began. Of
this name, writers use the file id. When nothing has happened on the timeline since, the instant is that time.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..concurrency import at_once
from ..errors import HudiServicesError, JobLost, PartlyDone, StorageError
from ..metadata.table import MetadataTable
from ..snapshot import Snapshot
from ..timeline.instant import Instant, State
from .conflicts import NEW_PLAN, TakenOver
from .drafts import CommitDraft, TimesSource
from .late_attempts import delete_staged, take_back
from .late_plan import LatePlan
from .liveness import lease_name
from .markers import delete_markers
from .new_files import NewFiles, move_staged, path_at
from .settings import TransactionSettings
from .times import Times, refuse_ahead
from .transaction import Transaction, expect, publish


class StagedAttempt:
    """One execution of a plan that is published late; a context manager that takes the attempt back after an error.

    `instant` is a requested clustering that is not on the timeline; after `finish` it is the one that was committed.
    """

    is_late = True
    taken_up = False

    def __init__(
        self, table: Snapshot, instant: Instant, operation: str, plan: LatePlan, settings: TransactionSettings
    ) -> None:
        self.table = table
        self.instant = instant
        self.files = NewFiles.staged(table.storage, instant.ts)
        self.rolled_back: list[str] = []
        self.pending_seconds = 0.0
        """For how long the plan was pending, once the attempt is committed."""
        self._operation = operation
        self._plan = plan
        self._settings = settings
        self._transaction = Transaction(table, lease_name(instant), f"cluster {instant.ts}", settings)
        self._shown: Instant | None = None
        """The instant at which the plan was shown, as long as it is not completed."""
        self._moved: list[str] = []
        """The final paths of the new files, once they are moved."""

    def __enter__(self) -> "StagedAttempt":
        self._transaction.__enter__()
        try:
            # Local storage does not open a folder that does not exist.
            self.table.storage.put(self.files.path_in_table("staging"), b"")
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        left = error
        try:
            # After a lost job a task may still be writing a file: the next run takes the attempt back.
            if error is not None and not isinstance(error, JobLost):
                self._take_back(error)
        except BaseException as another:
            left = another
            raise
        finally:
            self._transaction.__exit__(type(left) if left else None, left, None)

    def finish(
        self, draft: CommitDraft, afterwards: Callable[[MetadataTable, TimesSource], None] | None = None
    ) -> None:
        """As `Attempt.finish`. After an error that leaves the table as it was, it may be called again."""
        self._drop_shown()
        staged = self.files.instant
        what = f"the {self._operation}"
        with self._transaction.section(f"commit {staged}", plan=NEW_PLAN, completes=what) as current:
            current.check_held()
            expect(current, draft)
            times = Times(current, self._settings.skew_millis)
            ts = staged if self._is_newest(current) else times.next()
            refuse_ahead(current, ts)
            name = current.timeline.layout.file_name(ts, self.instant.action, State.REQUESTED)
            shown = replace(self.instant, ts=ts, file_name=name)
            self._shown, began = shown, time.monotonic()
            current = self._plan.show(current, shown, draft, attempt=staged)
            current.check_held()
            current.timeline.publish(ts, shown.action, State.INFLIGHT)
            watched = self._plan.watched(current, shown)
            self._moved = [path_at(path, ts) for path in draft.paths]
            move_staged(current.storage, self.files, sorted(draft.paths), ts)
            times = Times(watched, 0, after=ts)
            publish(watched, draft.at(shown), times.next)
            self._shown, self.instant = None, shown
            self.pending_seconds = time.monotonic() - began
            if afterwards is not None and current.metadata is not None:
                afterwards(current.metadata, Times(current, 0, after=times.last).next)
        self._transaction.forget()

    def clean_up(self) -> None:
        """Remove markers and the staging folder; readers do not see them, so that a failure here does no harm."""
        delete_markers(self.table.storage, self.instant.ts)
        delete_staged(self.table.storage, self.files.instant)

    def _is_newest(self, current: Snapshot) -> bool:
        """Whether the time at which the attempt began is later than all times of the table."""
        latest = current.metadata.timeline.latest_time() if current.metadata is not None else ""
        return self.files.instant > max(current.timeline.latest_time(), latest[:17])

    def _drop_shown(self) -> None:
        """Take back a plan that was shown, and has no groups any more."""
        if self._shown is not None and take_back(self._transaction, self._shown.ts, self._shown.action, self._settings):
            self._shown = None

    def _take_back(self, error: BaseException) -> None:
        """Take the attempt back; where that fails, the next run does it. Raises PartlyDone when it is complete."""
        if self._shown is not None and isinstance(error, TakenOver):
            with suppress(HudiServicesError):
                # Readers would take our files for files of the commit that the other process makes.
                at_once(self.table.storage.delete_output, self._moved)
        else:
            try:
                self._drop_shown()
            except HudiServicesError:
                return
        if self._shown is not None and not isinstance(error, PartlyDone | TakenOver):
            raise PartlyDone(f"the {self._operation} is complete, in spite of: {error}") from error
        with suppress(StorageError):
            delete_staged(self.table.storage, self.files.instant)
            self._transaction.forget()
