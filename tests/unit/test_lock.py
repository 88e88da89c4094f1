"""The loss of Hudi's lock file is noticed before anything is published, and another writer's lock is not deleted."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.clock import uptime
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, HudiServicesError, LockBusy
from hudi_services.jobs import clean, clustering, rollback, undo
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.recover import recover
from hudi_services.locking.file_system import FileSystemLock
from hudi_services.locking.protocol import LockWait
from hudi_services.options import resolve
from hudi_services.runs.request import CleanRequest, IndexRequest, Mode, RecoverRequest
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from .faulty_storage import FaultyStorage
from .repairs import DEAD_AT_ONCE, both, cluster, fail_newest, repair
from .tables import open_local, request, unpack

LOCK = ".hoodie/lock"
OPTIONS = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.filesystem.expire": "1",
    "hoodie.write.lock.wait_time_ms": "20",
    "hoodie.write.lock.wait_time_ms_between_retry": "10",
}
EXPIRES_MINUTES, WAIT = 1, LockWait(20, 10)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def lock_of(storage: Storage) -> FileSystemLock:
    return FileSystemLock(storage, LOCK, EXPIRES_MINUTES, WAIT)


def expire(path: Path) -> None:
    os.utime(path / LOCK, (time.time() - 61,) * 2)


@pytest.mark.parametrize("other", [b"", b'{"lockCreateTime" : "2026-11-22 10:00:00.000"}', None])
def test_a_lock_that_was_lost(storage: Storage, tmp_path: Path, other: bytes | None) -> None:
    """Taken over; or deleted by a writer of Hudi that waited in vain, whose provider deletes when it is closed."""
    with lock_of(storage) as lock:
        lock.check()
        (tmp_path / LOCK).unlink()
        if other is not None:
            (tmp_path / LOCK).write_bytes(other)
        with pytest.raises(ConflictError, match="was taken over or deleted by another writer"):
            lock.check()
    assert (tmp_path / LOCK).exists() is (other is not None)


def test_one_that_is_held_for_long_is_renewed(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lock_of(storage) as lock:
        expire(tmp_path)
        monkeypatch.setattr("hudi_services.locking.file_system.uptime", lambda: uptime() + 31)
        lock.check()
        # Nobody finds it expired now.
        with pytest.raises(LockBusy), lock_of(storage):
            pass
        lock.check()


def test_two_who_find_it_expired(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / LOCK).touch()
    expire(tmp_path)
    head, first = storage.head, lock_of(open_storage(str(tmp_path)))

    def looked(path: str) -> object:
        found = head(path)
        if looks.append(path) or len(looks) == 1:
            first.__enter__()
        return found

    looks: list[str] = []
    monkeypatch.setattr(storage, "head", looked)
    with pytest.raises(LockBusy), lock_of(storage):
        pass
    first.check()
    first.__exit__(None, None, None)
    assert not (tmp_path / LOCK).exists()


class Taken(FaultyStorage):
    """Just before the write with this number, another writer finds that our lock has expired, and takes it.

    Not before the one that gives it back: no store compares what it deletes.
    """

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(str(path))
        self._lock = path / LOCK
        self._number = number
        self.after: list[str] = []
        """That write and those since."""
        self.is_taken = False

    def _write(self, what: str, path: str) -> None:
        super()._write(what, path)
        if not self.is_taken and len(self.log) > self._number and self._lock.exists() and path != LOCK:
            self._lock.write_bytes(b"another writer")
            self.is_taken = True
        if self.is_taken:
            self.after.append(f"{what} {path}")


def clustered(path: Path, storage: Storage) -> None:
    clustering.execute(request(path, Mode.EXECUTE, OPTIONS), storage, LocalEngine())


def scheduled(path: Path, storage: Storage) -> None:
    clustering.schedule(request(path, Mode.SCHEDULE, OPTIONS), storage)


def cleaned(path: Path, storage: Storage) -> None:
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", {**OPTIONS, **policy})])), storage)


def rolled_back(path: Path, storage: Storage) -> None:
    ts = open_local(path).timeline.pending()[-1].ts
    rollback.rollback(repair(path, "rollback", ts, {**OPTIONS, **DEAD_AT_ONCE}), storage)


def undone(path: Path, storage: Storage) -> None:
    ts = open_local(path).timeline.completed_writes()[-1].ts
    undo.undo(repair(path, "undo", ts, OPTIONS), storage)


def recovered(path: Path, storage: Storage) -> None:
    options = resolve([("test", {**OPTIONS, **DEAD_AT_ONCE})])
    recover(RecoverRequest(base_path=str(path), options=options, apply=True, instant=None), storage)


def indexed(path: Path, storage: Storage) -> None:
    index_bootstrap(IndexRequest(base_path=str(path), options=resolve([("test", OPTIONS)])), storage, LocalEngine())


def plan(path: Path) -> None:
    clustering.schedule(request(path, Mode.SCHEDULE))


_RUNS: dict[str, tuple[Callable[[Path], object], Callable[[Path, Storage], None]]] = {
    "schedule": (lambda path: None, scheduled),
    "execute": (plan, clustered),
    "clean": (cluster, cleaned),
    "rollback": (fail_newest, rolled_back),
    "undo": (cluster, undone),
    "recover": (fail_newest, recovered),
    "index-bootstrap": (lambda path: None, indexed),
}


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize(
    ("release", "command"), [*(("1.2.0", command) for command in _RUNS), ("0.15.0", "execute"), ("0.15.0", "undo")]
)
def test_taken_over_at_any_write(release: str, command: str, tmp_path: Path) -> None:
    """Nothing is completed by whoever lost the lock, and the lock of the other stays."""
    prepare, run = _RUNS[command]
    made = unpack(release, tmp_path / "made")
    prepare(made)
    before = both(made)[0]
    whole = tmp_path / "whole"
    shutil.copytree(made, whole)
    counted = FaultyStorage(str(whole))
    run(whole, counted)
    locked = _under_the_lock(counted.log)
    assert len(locked) > 2 or command == "schedule"
    # Some of them: the last ones, which complete things, and others all over.
    for number in sorted({*locked[:: len(locked) // 4 + 1], *locked[-3:]}):
        path = tmp_path / "taken"
        shutil.copytree(made, path)
        storage = Taken(path, number)
        error = None
        try:
            run(path, storage)
        except HudiServicesError as found:
            error = found
        assert storage.is_taken, number
        assert (path / LOCK).read_bytes() == b"another writer", number
        assert [one for one in storage.after[1:] if _publishes(one)] == [], number
        is_too_late = not any(_publishes(one) for one in counted.log[number + 1 :])
        assert error is not None or is_too_late, number
        for seen in both(path):
            assert seen.equals(before), number
        shutil.rmtree(path)


def _under_the_lock(log: list[str]) -> list[int]:
    """The numbers of the writes that were made while the lock was held."""
    found, is_held = [], False
    for number, one in enumerate(log):
        if is_held and one != f"delete {LOCK}":
            found.append(number)
        is_held = one == f"create {LOCK}" or (is_held and one != f"delete {LOCK}")
    return found


def _publishes(write: str) -> bool:
    """Whether it creates a plan, or a file of a completed instant on either timeline."""
    what, path = write.split(" ", 1)
    folder, _, name = path.rpartition("/")
    is_instant = what == "create" and name[:1].isdecimal() and folder.rpartition("/")[2] in _TIMELINES
    is_begun = name.endswith(".inflight") or (name.endswith(".requested") and "metadata/" in folder)
    return is_instant and not is_begun


_TIMELINES = {".hoodie", "timeline"}
