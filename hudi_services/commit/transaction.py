"""The frame that every change of a table shares: a lease, critical sections, a heartbeat, completion, clean-up.

    lease          one process works at an instant
    section        under the table's lock: refuse, decide, publish requested and inflight files
    (work)         without the lock
    complete       under the lock: expectations, metadata table, completed file (the atomic step)
    clean-up       markers, heartbeat, checkpoints

What is done in between, and what a draft says, is for the operation to know.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from ..errors import StorageError
from ..snapshot import Snapshot
from ..timeline.instant import State
from .checkpoints import delete_checkpoints
from .critical_section import critical_section
from .drafts import Draft, TimesSource
from .heartbeat import Heartbeat
from .lease import Lease
from .markers import delete_markers
from .settings import TransactionSettings

_log = logging.getLogger(__name__)

_DEFAULTS = TransactionSettings()


def complete(current: Snapshot, draft: Draft, times: TimesSource) -> None:
    """Make the change of `draft` visible, in one atomic step; the caller holds the lock, under which `current` is.

    Raises what its expectations raise, before anything is written, ConflictError when the lock was lost, and
    StorageError.
    """
    for one in draft.expectations:
        _log.debug("expected: %s", one.sentence)
        one.check(current)
    current.check_held()
    draft.sync(current, times)
    if draft.instant is None:
        return
    data = draft.content(current)
    # Looks at the lease, too: whoever takes it from a process that was stopped for long begins by deleting files.
    completion = times()
    current.timeline.publish(draft.instant.ts, draft.instant.action, State.COMPLETED, data, completion)


class Transaction:
    """A context manager that holds the lease `name` while `action`, which people read, is under way."""

    def __init__(self, table: Snapshot, name: str, action: str, settings: TransactionSettings = _DEFAULTS) -> None:
        self._table = table
        self._settings = settings
        self._lease = Lease(table.storage, name, action)
        self._heartbeat: Heartbeat | None = None

    def __enter__(self) -> "Transaction":
        self._lease.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._heartbeat is not None:
                self._heartbeat.stop()
                if error is not None:
                    # An instant that is left counts as dead soon; the error is what the operator must read.
                    with suppress(StorageError):
                        self._heartbeat.remove()
        finally:
            self._lease.__exit__(kind, error, trace)

    @property
    def lease(self) -> Lease:
        return self._lease

    def beat(self, ts: str) -> None:
        """Give signs of life of the instant `ts` from now on, as Hudi's writers do."""
        self._heartbeat = Heartbeat(self._table.storage, ts, self._settings.heartbeat_millis / 1000)
        self._heartbeat.start()

    @contextmanager
    def section(
        self, action: str, *, plan: str | None = None, own: str = "", repairs: str | None = None, completes: str = ""
    ) -> Iterator[Snapshot]:
        """A critical section under the lease as well; the arguments are those of `critical_section`."""
        with critical_section(
            self._table,
            action,
            self._settings,
            plan=plan,
            own=own,
            lease=self._lease,
            repairs=repairs,
            completes=completes,
        ) as current:
            yield current

    def forget(self) -> None:
        """Leave no lease behind: nobody will ask for it again."""
        self._lease.forget()

    def clean_up(self, ts: str) -> None:
        """Remove what the instant needed while it was written; readers do not see it: a failure here harms nothing."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat.remove()
        delete_markers(self._table.storage, ts)
        delete_checkpoints(self._table.storage, ts)
