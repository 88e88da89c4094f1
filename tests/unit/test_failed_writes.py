"""The rollback of failed writes at a clean, beside writers of Hudi that roll them back, too."""

import os
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

import hudi_services
from hudi_services.commit.heartbeat import heartbeat_path
from hudi_services.engine import LocalEngine
from hudi_services.errors import LockBusy, NothingToDo
from hudi_services.jobs import clean, clustering, writing
from hudi_services.options import resolve
from hudi_services.runs.request import Mode, WriteOperation, WriteRequest
from hudi_services.snapshot import Snapshot
from hudi_services.stores.local import LocalStorage

from .faulty_storage import FaultyStorage, Killed
from .other_writers import OtherWriters
from .repairs import LOCK, hide_metadata
from .rides import FILTERS, create
from .tables import RELEASES, open_local, request, unpack
from .test_clean import wanted
from .test_salvage import rows
from .test_upserts import rows as rides

_MINUTE = 60
_LAZY = {**LOCK, "hoodie.clean.failed.writes.policy": "LAZY", "hoodie.clean.commits.retained": "1"}


@pytest.mark.parametrize("release", RELEASES)
def test_a_heartbeat_that_has_just_expired(release: str, tmp_path: Path) -> None:
    """A heartbeat expires after two minutes; the write is rolled back after four, and is no reason to call for help."""
    path = unpack(release, tmp_path)
    hide_metadata(path)
    before = rows(path)
    others = OtherWriters(path)
    ts = others.begin(next(iter(open_local(path).view.live_slices())))
    heartbeat = path / heartbeat_path(ts)
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()

    def cleaned(minutes: int) -> str:
        for file in (heartbeat, *path.glob(f".hoodie/**/{ts}.*")):
            os.utime(file, (time.time() - minutes * _MINUTE,) * 2)
        try:
            return " ".join(clean.clean(wanted(path, _LAZY)).warnings)
        except NothingToDo:
            return ""

    assert "rolled back" not in cleaned(1) + cleaned(3)
    assert [one.ts for one in open_local(path).timeline.pending()] == [ts]
    assert f"failed writes were rolled back: {ts}" in cleaned(5)
    assert not open_local(path).timeline.pending() and rows(path).equals(before)


@pytest.mark.parametrize("release", RELEASES)
def test_a_clustering_that_was_given_up(release: str, tmp_path: Path) -> None:
    """hoodie.clustering.enable.expirations: a clean rolls it back when it is old enough, and its heartbeat is, too."""
    path = unpack(release, tmp_path)
    before = rows(path)
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert ts
    heartbeat = path / heartbeat_path(ts)
    heartbeat.parent.mkdir(exist_ok=True)
    expires = {**_LAZY, "hoodie.clustering.enable.expirations": "true"}
    at_once = {**expires, "hoodie.clustering.expiration.threshold.mins": "0"}

    def cleaned(options: dict[str, str]) -> str:
        try:
            return " ".join(clean.clean(wanted(path, options)).warnings)
        except NothingToDo:
            return ""

    heartbeat.touch()
    never = {**at_once, "hoodie.clean.failed.writes.policy": "NEVER"}
    assert "rolled back" not in " ".join(map(cleaned, (_LAZY, expires, never, at_once)))
    os.utime(heartbeat, (time.time() - 3 * _MINUTE,) * 2)
    assert "rolled back" not in cleaned(expires)
    assert f"failed writes were rolled back: {ts}" in cleaned(at_once)
    assert not open_local(path).timeline.pending() and rows(path).equals(before) and not heartbeat.exists()
    # A plan without a heartbeat counts as given up, as with Hudi; one that was executed is none.
    other = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert other and f"rolled back: {other}" in cleaned(at_once)
    clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
    assert "rolled back" not in cleaned(at_once) and rows(path).equals(before)


class _KilledAfterLogs(FaultyStorage):
    """It dies when it has written the log files of its delta commit; `known` is the table as another process saw it
    just before them."""

    known: Snapshot | None = None

    def create(self, path: str, data: bytes) -> None:
        if path.startswith(".hoodie/metadata/"):
            if ".log." in path and self.known is None:
                self.known = open_local(Path(self.root))
                assert self.known.metadata is not None
                self.known.metadata.look_into(self.known.metadata.partitions)
            if path.endswith(".deltacommit"):
                self.left = 0
        super().create(path, data)


def test_log_files_that_came_since_the_table_was_opened(tmp_path: Path) -> None:
    """The timeline of the metadata table is the same as then: what a pending instant has written is looked for anew."""
    path = tmp_path / "rides"
    options = {**FILTERS, "hoodie.table.services.enabled": "false", "hoodie.clean.failed.writes.policy": "LAZY"}
    create(path, table_version=6).insert(rides(0, 9), options=options)
    storage = _KilledAfterLogs(str(path))
    write = WriteRequest(
        base_path=str(path), options=resolve([("test", options)]), operation=WriteOperation.BULK_INSERT
    )
    with pytest.raises(Killed):
        writing.write(write, rides(30, 60).to_reader, storage)
    report = clean.clean(wanted(path, options), storage.known)
    assert "failed writes were rolled back" in " ".join(report.warnings)
    assert not open_local(path).timeline.pending()
    table = hudi_services.open(path, engine="local")
    assert table.validate(strict=True).ok and table.insert(rides(9, 12)).ok


class _SameMoment(LocalStorage):
    """A writer of Hudi begins at the very moment that our write has drawn for its instant, too."""

    ts = ""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if "/write-" in path and not self.ts:
            self.ts = path.rpartition("/write-")[2].partition(".")[0]
            self.put(heartbeat_path(self.ts), b"")
            self.put(f".hoodie/timeline/{self.ts}.commit.requested", b"")


@pytest.mark.parametrize("is_locked", [False, True], ids=["it takes the next moment", "it waits for the lock in vain"])
def test_the_heartbeat_of_another_writer_stays(is_locked: bool, tmp_path: Path) -> None:
    """Without it, a clean takes the other writer for dead."""
    path = tmp_path / "rides"
    create(path).insert(rides(0, 9), options={**FILTERS, "hoodie.table.services.enabled": "false"})
    options = {**FILTERS, **LOCK, "hoodie.table.services.enabled": "false", "hoodie.write.lock.wait_time_ms": "0"}
    if is_locked:
        (path / ".hoodie/lock").touch()
    storage = _SameMoment(str(path))
    write = WriteRequest(
        base_path=str(path), options=resolve([("test", options)]), operation=WriteOperation.BULK_INSERT
    )
    with pytest.raises(LockBusy) if is_locked else nullcontext():
        assert writing.write(write, rides(30, 60).to_reader, storage).exit_code == 0
    assert storage.ts and [one.name for one in (path / ".hoodie/.heartbeat").iterdir()] == [storage.ts]
