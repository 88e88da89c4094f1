"""A lease between processes of this tool, for tables without a Hudi lock provider, or with one that we cannot hold.

    .hoodie/.locks/hudi_services/<name>.<n>.json    {"owner", "action", "host", "pid", "since", "validUntil"}

The file with the largest n names the holder of the lease `name`. The lease is free when `validUntil` has passed, or
when the holder's process has ended (same machine, same process namespace). A process takes the lease by creating file
n + 1, which the store lets only one process do, and then by listing the files: the number may be too low, when it comes
from an older listing or is a guess. Only the owner rewrites its file: every few seconds to renew the lease, and at the
end to release it (validUntil 0, in a file of 512 bytes). The newest file stays, unless the owner calls `forget`, so
that numbers do not start again while another process still works with an older listing.

A lease knows its own files: the next try begins with the number that this process gave back last, without a listing.

No owner takes a lease for more than a minute. A `validUntil` further away than clocks may differ was not written by
this tool; then the age of the file decides. A file without such an object holds no lease.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ..codecs.json_text import parse_json
from ..computed_once import cached_property
from ..concurrency import at_once
from ..errors import AlreadyExists, ConflictError, CorruptFile, LockBusy, NotFound, StorageError
from ..limits import SMALL_FILE
from ..paths import TABLE_FOLDER
from ..storage import FileInfo, Storage, check_creates
from ..waiting import OnWait, Waiting, unseen

LEASE_FOLDER = f"{TABLE_FOLDER}/.locks/hudi_services"
LEASE_MILLIS = 60_000
TABLE_LEASE = "table"
"""The lease of a critical section."""
_CLOCKS_DIFFER_MILLIS = 600_000
_SHOWN = 80
"""Characters that are shown of each value in a lease."""
_RENEW_SECONDS = 10.0
_POLL_SECONDS = 0.2
MOST_TRIES, _PAUSE_SECONDS = 200, 0.01
"""For a free lease that cannot be taken: other processes take, release and forget it, but not so often."""
_MOST_DIGITS = 18
_RELEASED_BYTES = 512
"""The size of a lease that was given back, and of no other one: a listing tells that it is free."""

_live: set[str] = set()
"""Owners in this process: a lease of this process with another owner was left by work that died here."""
_given_back: dict[Hashable, int] = {}
"""The number of the newest lease of each table, when it was given back as far as this process knows, by storage."""
_foreseen: dict[Hashable, list[FileInfo]] = {}
"""The lease files of tables as they were listed ahead; each listing is used once."""
_MOST_KNOWN = 1_000


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The newest lease of a name: its holder, and until when the holder may have worked.

    `until_millis` is epoch milliseconds by the store's clock: a live owner renews its lease every few seconds.
    """

    holder: str
    """For people: the action that holds the lease, since when and where; "" when the lease is free."""
    until_millis: int

    @property
    def held(self) -> bool:
        return bool(self.holder)


def read_lease(storage: Storage, name: str) -> LeaseState | None:
    """The newest lease called `name`, None when no process ever took it."""
    newest = _newest(storage, name)
    return None if newest is None else _read(storage, newest)


class Leases:
    """The leases of a table, as of one listing, which serves any number of names."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def read(self, name: str) -> LeaseState | None:
        """As `read_lease`; whether the holder still holds the lease is looked at now."""
        newest = self._newest.get(name)
        return None if newest is None else _read(self._storage, newest[1])

    @cached_property
    def _newest(self) -> dict[str, tuple[int, FileInfo]]:
        newest: dict[str, tuple[int, FileInfo]] = {}
        for file in self._storage.list_dir(LEASE_FOLDER)[0]:
            found = _parse(file.name)
            if found is not None and (found[0] not in newest or newest[found[0]][0] < found[1]):
                newest[found[0]] = found[1], file
        return newest


def _read(storage: Storage, newest: FileInfo) -> LeaseState:
    holder = _holder(storage, newest)
    return _lease(newest, _described(holder) if holder is not None else "")


def _newest(storage: Storage, name: str) -> FileInfo | None:
    files = dict(_stored(storage, name))
    return files[max(files)] if files else None


def _lease(file: FileInfo, holder: str = "") -> LeaseState:
    return LeaseState(holder, file.mtime_millis + int(_RENEW_SECONDS * 1000))


def _described(holder: dict[str, Any]) -> str:
    """Describe a holder, for people."""
    action, since, pid, host = (str(holder.get(name))[:_SHOWN] for name in ("action", "since", "pid", "host"))
    return f"{action} is at work since {since} (process {pid} on {host.split('/')[0]})"


class Lease:
    """A context manager that holds the lease `name`.

    Entering waits up to `wait_seconds` for the holder, and `on_wait` is told of the wait. Raises LockBusy, which names
    the holder. `is_new` says that no process can have taken a lease of this name before. A lease that is `confirmed`
    later is held once `confirm` has said so, and before that nothing may be written. The constructor raises
    ConfigError where the store cannot let one process take a lease.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        action: str,
        wait_seconds: float = 0.0,
        on_wait: OnWait = unseen,
        *,
        is_new: bool = False,
        confirmed: bool = True,
        left: list[str] | None = None,
    ) -> None:
        check_creates(storage)
        self._storage = storage
        self._name = name
        self._action = action
        self._wait = wait_seconds
        self._on_wait = on_wait
        # Of other names it matters who had the lease before.
        known = _given_back.get(storage.identity) if name == TABLE_LEASE and not confirmed else None
        self._guess: int | None = 0 if is_new else known
        """The number of the newest file, as far as it is known without a listing."""
        self._confirms = confirmed
        self._owner = str(uuid.uuid4())
        self._number = 0
        self._since = 0
        self._latest: FileInfo | None = None
        """The newest file before this lease was taken, if a listing had it."""
        self._older: list[str] = []
        self._left = left
        """The paths of older files of this name."""
        self._previous: LeaseState | None = None
        self._forget = self._is_ended = False
        self._is_confirmed = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Lease":
        with Waiting(self._on_wait) as waiting:
            self._take(waiting)
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()
        return self

    def _take(self, waiting: Waiting) -> None:
        deadline = time.monotonic() + self._wait
        tries = 0
        while not self._try():
            holder = self._holder()
            if holder is None:
                tries += 1
                if tries == MOST_TRIES:
                    raise StorageError(
                        f"{self._storage.full_path(self._path(self._number))} is in the way of a lease, and is none",
                        hint="delete it: no program makes a folder, a pipe or a socket there",
                    )
                time.sleep(_PAUSE_SECONDS)
                continue
            if time.monotonic() >= deadline:
                raise LockBusy(
                    f"{self._storage.root}: {_described(holder)}",
                    hint="try again when it has ended; a lease of a dead process ends by itself within a minute",
                )
            waiting.tell(f"another run: {_described(holder)}")
            time.sleep(_POLL_SECONDS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        _live.discard(self._owner)
        if self._thread:
            self._thread.join()
        if self._is_ended:
            return
        # Files with higher numbers belong to other processes, which took the lease while this one was stopped.
        gone = [*self._older, *([self._path(self._number)] if self._forget else [])]
        requests: list[Callable[[], None]] = [] if self._forget else [self._release]
        if gone:
            requests.append(lambda: self._storage.delete_all(gone, lambda count: None))
        try:
            at_once(lambda send: send(), requests)
        except StorageError:
            # The lease ends by itself, and the work that was done under it remains valid.
            return

    def _release(self) -> None:
        self._storage.put(self._path(self._number), self._content(0).ljust(_RELEASED_BYTES))
        if self._name != TABLE_LEASE:
            return
        if len(_given_back) >= _MOST_KNOWN:
            _given_back.clear()
        _given_back[self._storage.identity] = self._number

    @property
    def name(self) -> str:
        return self._name

    @property
    def previous(self) -> LeaseState | None:
        """The lease of this name before this one was taken; None when no process ever took it."""
        return self._previous

    def forget(self) -> None:
        """Delete the files of the lease on exit, because no process will use this name again."""
        self._forget = True

    def hand_over(self) -> list[str]:
        """End the lease, whose name no process will use again, and leave its files to the caller to delete."""
        self._stop.set()
        _live.discard(self._owner)
        self._is_ended = True
        return [*self._older, self._path(self._number)]

    def check(self) -> None:
        """Raise ConflictError when the lease was lost (this process was stopped for longer than it lasts)."""
        check_leases([self])

    def check_beside(self, stored: Iterable[FileInfo]) -> None:
        """As `check`, by a listing of the stored lease files; confirms a lease that is not confirmed yet."""
        if not self._is_confirmed:
            # Once it was lost, the file of its number may be that of another process.
            is_ours = not self._is_ended and self.confirm(stored)
        else:
            is_ours = max((number for number, _ in _numbered(stored, self._name)), default=0) == self._number
        if not is_ours:
            raise ConflictError(f"{self._storage.root}: another process took over the lease {self._name}")

    @property
    def storage(self) -> Storage:
        return self._storage

    def _try(self) -> bool:
        guess, self._guess = self._guess, None
        if guess is None:
            files = dict(_numbered(self._listed(), self._name))
            guess = max(files, default=0)
            if guess and _holder(self._storage, files[guess]):
                return False
            self._latest = files[guess] if guess else None
            self._previous = _lease(files[guess]) if guess else None
        self._number, self._since = guess + 1, _now()
        _live.add(self._owner)
        try:
            self._storage.create(self._path(self._number), self._content(_now() + LEASE_MILLIS))
        except AlreadyExists:
            _live.discard(self._owner)
            return False
        return not self._confirms or self.confirm(stored_leases(self._storage))

    def _listed(self) -> list[FileInfo]:
        """The lease files, as they were not long ago: `confirm` tells whether that was too long."""
        ahead = _foreseen.pop(self._storage.identity, None)
        return stored_leases(self._storage) if ahead is None else ahead

    def confirm(self, stored: Iterable[FileInfo]) -> bool:
        """Whether the number was the next one, so that the lease is held; when not, its file is deleted again.

        `stored` are the `stored_leases`, listed since.

        Between the listing and the creation of the file, other processes may have taken and released the lease, so
        that the number is too low; or they forgot it: the listed file is deleted, numbers began again, and a low one
        may be held. Without a listing, the file of the number before must be one that was given back.
        """
        now, before = dict(_numbered(stored, self._name)), self._number - 1
        if max(now, default=0) == self._number and (not before or _is_still(now.get(before), self._latest)):
            older = [self._path(number) for number in sorted(now) if number < self._number]
            if self._left is None:
                self._older = older
            else:
                self._left += older
            self._is_confirmed = True
            return True
        _live.discard(self._owner)
        _given_back.pop(self._storage.identity, None)
        self._is_ended = not self._confirms
        self._storage.delete(self._path(self._number))
        return False

    def _holder(self) -> dict[str, Any] | None:
        newest = _newest(self._storage, self._name)
        return _holder(self._storage, newest) if newest else None

    def _path(self, number: int) -> str:
        return f"{LEASE_FOLDER}/{self._name}.{number}.json"

    def _content(self, valid_until: int) -> bytes:
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._since / 1000))
        content = {"owner": self._owner, "action": self._action, "host": _machine(), "pid": os.getpid()}
        data = json.dumps({**content, "since": since, "validUntil": valid_until}).encode()
        return data + b" " if len(data) == _RELEASED_BYTES else data

    def _write(self, valid_until: int) -> None:
        self._storage.put(self._path(self._number), self._content(valid_until))

    def _renew(self) -> None:
        while not self._stop.wait(_RENEW_SECONDS):
            try:
                self._write(_now() + LEASE_MILLIS)
            except StorageError:
                # The next round tries again; check() raises when that is too late.
                continue


def check_leases(leases: Sequence[Lease]) -> None:
    """As `Lease.check` for several leases of one table, with one listing."""
    stored = stored_leases(leases[0].storage)
    for lease in leases:
        lease.check_beside(stored)


def look_ahead(storage: Storage) -> None:
    """List the lease files for the next lease of this table that this process takes, beside other requests."""
    if len(_foreseen) >= _MOST_KNOWN:
        _foreseen.clear()
    _foreseen.pop(storage.identity, None)
    if storage.identity in _given_back:
        return
    listed = _foreseen[storage.identity] = stored_leases(storage)
    number, newest = max(_numbered(listed, TABLE_LEASE), key=lambda one: one[0], default=(0, None))
    if newest is not None and newest.size == _RELEASED_BYTES:
        _given_back[storage.identity] = number


def stored_leases(storage: Storage) -> list[FileInfo]:
    """The files of all leases of a table."""
    return storage.list_dir(LEASE_FOLDER)[0]


def _stored(storage: Storage, name: str) -> Iterator[tuple[int, FileInfo]]:
    """The files of the lease `name`, with their numbers."""
    return _numbered(stored_leases(storage), name)


def _numbered(files: Iterable[FileInfo], name: str) -> Iterator[tuple[int, FileInfo]]:
    for file in files:
        found = _parse(file.name)
        if found is not None and found[0] == name:
            yield found[1], file


def _parse(file_name: str) -> tuple[str, int] | None:
    """The name and the number of the lease that a file holds; None for a file that holds none."""
    parts = file_name.rsplit(".", 2)
    if len(parts) == 3 and parts[1].isdecimal() and len(parts[1]) <= _MOST_DIGITS:
        return parts[0], int(parts[1])
    return None


def _is_still(now: FileInfo | None, then: FileInfo | None) -> bool:
    """Whether the file before is the one that was listed, or has been given back."""
    if now is None:
        return False
    return now.size == _RELEASED_BYTES if then is None else (now, now.tag) == (then, then.tag)


def _holder(storage: Storage, file: FileInfo) -> dict[str, Any] | None:
    """The content of a lease file that is still held; None when it is not."""
    if file.size == _RELEASED_BYTES:
        return None
    try:
        holder = parse_json(storage.read(file.path, SMALL_FILE))
    except (NotFound, ValueError, CorruptFile):
        return None
    if not isinstance(holder, dict) or not isinstance(holder.get("validUntil"), int):
        return None
    until, latest = holder["validUntil"], _now() + LEASE_MILLIS + _CLOCKS_DIFFER_MILLIS
    if until > latest:
        until = file.mtime_millis + LEASE_MILLIS
    return holder if _now() < until <= latest and not _is_dead(holder) else None


def _now() -> int:
    return int(time.time() * 1000)


def _machine() -> str:
    """The machine, boot and process namespace, within which a process id means the same process."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{socket.gethostname()}/{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()}/{uuid.getnode()}/?"


def _is_dead(holder: dict[str, Any]) -> bool:
    machine = _machine()
    if machine.endswith("?") or holder.get("host") != machine:
        return False
    pid = holder.get("pid")
    if pid == os.getpid():
        return holder.get("owner") not in _live
    # For os.kill, 0 and negative numbers are whole groups of processes.
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False
