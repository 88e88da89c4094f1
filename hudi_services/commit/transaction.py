"""The frame of every change of a table: a lease, critical sections, a heartbeat, completion, clean-up.

    lease          one process works at an instant
    section        under the table's lock: refuse, decide, publish requested and inflight files
    (work)         without the lock
    complete       under the lock: expectations, metadata table, completed file (the atomic step)
    clean-up       markers, heartbeat, checkpoints

The operation decides what happens in between, and what its draft contains.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any

from ..concurrency import at_once
from ..errors import AlreadyExists, StorageError
from ..metadata.metadata_table import MetadataTable
from ..snapshot import Snapshot, with_instant
from ..timeline.instant import Instant, State
from .checkpoints import delete_checkpoints
from .conflicts import TakenOver
from .critical_section import critical_section, look
from .drafts import Draft, TimesSource
from .expectations import AskingExpectation
from .heartbeat import Heartbeat
from .lease import Lease
from .markers import Marker, marker_folder
from .settings import TransactionSettings

_log = logging.getLogger(__name__)

_DEFAULTS = TransactionSettings()


def complete(current: Snapshot, draft: Draft, times: TimesSource) -> Snapshot | None:
    """Make the change of `draft` visible, in one atomic step; the caller holds the lock and opened `current` under it.

    Returns the table as it is then; None where only another look would tell. Raises the errors of the draft's
    expectations, before anything is written, ConflictError when the lock was lost, and StorageError.
    """
    expect(current, draft)
    return publish(current, draft, times)


def ask(draft: Draft) -> None:
    """Ask for what the expectations of `draft` need of the storage. Raises StorageError."""
    at_once(lambda one: one.ask(), [one for one in draft.expectations if isinstance(one, AskingExpectation)])


def expect(current: Snapshot, draft: Draft) -> None:
    """Check the expectations of `draft`; raises their errors."""
    for one in draft.expectations:
        _log.debug("expected: %s", one.sentence)
        one.check(current)


def publish(current: Snapshot, draft: Draft, times: TimesSource) -> Snapshot | None:
    """`complete` without the expectations, which the caller has just checked under the same lock."""
    current.check_held()
    confirm = draft.sync(current, times)
    if draft.instant is None:
        return None
    data = draft.content(current)
    confirmed: list[MetadataTable] = []

    def completion_time() -> str:
        # `times` also checks the lease: a process that takes the lease from a stopped one begins by deleting files.
        # A completed delta commit that was there stays: where this is called once more, it is not looked for again.
        asked: list[Callable[[], Any]] = [times] if confirm is None or confirmed else [times, confirm]
        drawn, *tables = at_once(lambda ask: ask(), asked)
        confirmed.extend(tables)
        return str(drawn)

    done = current.timeline.publish(draft.instant.ts, draft.instant.action, State.COMPLETED, data, completion_time)
    if not confirmed and current.metadata is not None:
        return None
    return with_instant(current, done, data, *confirmed)


def begin(
    current: Snapshot,
    instant: Instant,
    data: bytes = b"",
    beside: Callable[[], None] | None = None,
    *,
    looks: bool = True,
) -> None:
    """Create the inflight file of a requested instant. Raises TakenOver when another process has just begun it.

    `beside` is called while the requested file is looked for; `looks` is false where it was created just now.

    Writers of Hudi carry out the plans that they find, and begin them without a lock.
    """
    try:
        current.timeline.publish(instant.ts, instant.action, State.INFLIGHT, data, beside=beside, looks=looks)
    except AlreadyExists as error:
        raise TakenOver(
            f"{current.storage.root}: another process has just begun the {instant.action.value} {instant.ts}",
            hint="wait for it; when that process dies, the next run goes on from there",
        ) from error


class Transaction:
    """A context manager that holds the lease `name` during `action`, a text for people."""

    def __init__(
        self,
        table: Snapshot,
        name: str,
        action: str,
        settings: TransactionSettings = _DEFAULTS,
        *,
        is_new: bool = False,
        confirmed: bool = True,
    ) -> None:
        """`is_new`: no process can have worked under this name. Unless it is `confirmed` on entering, the first section
        confirms that the lease is held; nothing may be written before."""
        self.name = name
        self._table = table
        self._settings = settings
        self._lease = Lease(table.storage, name, action, is_new=is_new, confirmed=confirmed)
        self._heartbeat: Heartbeat | None = None
        self._is_done = False
        self._left: list[str] = []
        """Files of leases and of a heartbeat that have ended."""

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
                    # A heartbeat file that stays expires soon; the operator must read the first error.
                    with suppress(StorageError):
                        self._heartbeat.remove()
        finally:
            self._lease.__exit__(kind, error, trace)
            if error is not None or not self._is_done:
                self._delete_left()

    def _delete_left(self) -> None:
        left, self._left = self._left, []
        # Files of old leases do no harm.
        with suppress(StorageError):
            if left:
                self._table.storage.delete_all(left, lambda count: None)

    @property
    def lease(self) -> Lease:
        return self._lease

    def know(self, table: Snapshot) -> None:
        """Let the next section begin with this value of the table: what has not changed since is not read again."""
        self._table = table

    def beat(self, ts: str) -> None:
        """Write heartbeats of the instant `ts` from now on, as Hudi's writers do; `beating` waits for the first one."""
        self._heartbeat = Heartbeat(self._table.storage, ts, self._settings.heartbeat_millis / 1000)
        self._heartbeat.start()

    def beating(self) -> None:
        """Wait until the first heartbeat is there. Raises StorageError."""
        if self._heartbeat is not None:
            self._heartbeat.begun()

    @contextmanager
    def section(
        self,
        action: str,
        *,
        plan: str | None = None,
        own: str = "",
        repairs: str | None = None,
        completes: str = "",
        beside_writers: bool = False,
        asks: Callable[[], None] | None = None,
    ) -> Iterator[Snapshot]:
        """A critical section that also checks this transaction's lease; arguments as for `critical_section`."""
        with critical_section(
            self._table,
            action,
            self._settings,
            plan=plan,
            own=own,
            lease=self._lease,
            repairs=repairs,
            completes=completes,
            beside_writers=beside_writers,
            left=self._left,
            asks=asks,
        ) as current:
            yield current

    def look(self, *, own: str) -> Snapshot:
        """The table as it is now, without its lock (`critical_section.look`); confirms the lease."""
        return look(self._table, self._settings, self._lease, own=own)

    def leave(self, paths: Iterable[str]) -> None:
        """Delete these files, which nobody needs, with those that the transaction leaves."""
        self._left += paths

    def stop_beating(self) -> None:
        """Write no more heartbeats, and delete the last one."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat.remove()

    def leave_heartbeat(self) -> None:
        """Write no more heartbeats, and leave the file, which is that of another writer, too."""
        if self._heartbeat is not None:
            self._heartbeat.hand_over()

    def forget(self) -> None:
        """Delete the files of the lease on exit, because no process will use it again."""
        self._lease.forget()

    def done(self) -> None:
        """End the lease and the heartbeat of a completed instant; `clean_up` deletes their files."""
        self._is_done = True
        self._left += self._lease.hand_over()
        if self._heartbeat is not None:
            self._left += self._heartbeat.hand_over()

    def clean_up(self, ts: str, marked: Sequence[Marker] = (), *, has_checkpoints: bool = True) -> None:
        """Delete what a completed instant has left: the files of lease and heartbeat, markers and checkpoints.

        `marked` are all files in the folder of the markers, where that is known. Readers see nothing of it: a failure
        here does no harm.
        """
        storage, folder = self._table.storage, marker_folder(ts)
        left = [*dict.fromkeys(self._left), *(one.stored_path(ts) for one in marked)]
        removals: list[Callable[[], None]] = []
        if left:
            removals.append(lambda: storage.delete_all(left, lambda count: None))
        if not marked:
            removals.append(partial(storage.delete_tree, folder))
        if has_checkpoints:
            removals.append(partial(delete_checkpoints, storage, ts))
        at_once(lambda remove: remove(), removals)
        if marked:
            storage.remove_empty_dirs(folder)
