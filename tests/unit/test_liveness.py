"""Which writers are alive, by heartbeats, files, markers and leases, and what planning and committing then do."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.clock import SystemClock
from hudi_services.codecs.rollback_plan import RollbackPlan, encode_rollback_plan
from hudi_services.commit.conflicts import (
    Problems,
    check_pending_rollbacks,
    pending_rollbacks,
    pending_updates,
    recover_hint,
    refuse_beside_writers,
)
from hudi_services.commit.heartbeat import heartbeat_path
from hudi_services.commit.lease import Lease
from hudi_services.commit.liveness import Liveness, liveness
from hudi_services.commit.markers import create_marker, read_markers
from hudi_services.commit.settings import TransactionSettings
from hudi_services.errors import ConflictError, HudiServicesError, NeedsRecovery
from hudi_services.jobs import clustering
from hudi_services.model import BaseFile, CommitMetadata, FileSlice, WriteStat
from hudi_services.runs.request import Mode
from hudi_services.snapshot import Snapshot, open_snapshot
from hudi_services.timeline.instant import Action, State

from .counting_storage import CountingStorage
from .tables import open_local, request, unpack

T = "20990101000000000"
SETTINGS = TransactionSettings()
MINUTE = 60


class Pending:
    """A table with an inflight instant of `action`, whose files can be made older."""

    def __init__(self, path: Path, action: Action = Action.COMMIT, forecast: CommitMetadata | None = None) -> None:
        self.path = path
        timeline = self.table.timeline
        content = timeline.layout.encode_commit(forecast, "1.2.0") if forecast else b""
        timeline.publish(T, action, State.REQUESTED)
        timeline.publish(T, action, State.INFLIGHT, content)

    @property
    def table(self) -> Snapshot:
        return open_local(self.path)

    def write(self, name: str, minutes: float, content: bytes = b"") -> None:
        file = self.path / ".hoodie" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        age(file, minutes)

    def age_instant(self, minutes: float) -> None:
        for file in self.path.glob(f".hoodie/**/{T}*"):
            age(file, minutes)

    def life(self) -> Liveness:
        found = self.table.timeline.find(T)
        assert found
        return liveness(self.table, found, SETTINGS)


def age(file: Path, minutes: float) -> None:
    moment = time.time() - minutes * MINUTE
    os.utime(file, (moment, moment))


@pytest.fixture(params=["0.15.0", "1.2.0"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def test_a_write_without_heartbeat_has_an_hour(path: Path) -> None:
    pending = Pending(path)
    for minutes, alive in [(0, True), (59, True), (61, False)]:
        pending.age_instant(minutes)
        life = pending.life()
        assert (life.alive, life.heartbeat_millis) == (alive, None)
        assert abs(life.last_sign_millis - (time.time() - minutes * MINUTE) * 1000) < 10_000


def test_a_heartbeat_is_a_promise(path: Path) -> None:
    pending = Pending(path)
    pending.age_instant(3)
    pending.write(f".heartbeat/{T}", 1)
    assert pending.life().alive
    pending.write(f".heartbeat/{T}", 3)
    life = pending.life()
    assert not life.alive and life.heartbeat_millis is not None


@pytest.mark.parametrize("files", [{"p/f.parquet.marker.CREATE": b""}, {
    "MARKERS.type": b"TIMELINE_SERVER_BASED", "MARKERS0": b"p/f.parquet.marker.CREATE\n"}])  # fmt: skip
def test_markers_are_signs(path: Path, files: dict[str, bytes]) -> None:
    pending = Pending(path)
    pending.age_instant(300)
    for name, content in files.items():
        pending.write(f".temp/{T}/{name}", 30, content)
    assert pending.life().alive
    assert len(read_markers(pending.table.storage, T)) == 1


def planned(path: Path) -> str:
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert ts
    return ts


def clustering_life(path: Path, ts: str, state: State = State.INFLIGHT) -> Liveness:
    table = open_local(path)
    if state is State.INFLIGHT:
        table.timeline.publish(ts, table.timeline.layout.clustering_action, State.INFLIGHT)
        table = open_local(path)
    found = table.timeline.find(ts)
    assert found
    return liveness(table, found, SETTINGS)


def test_a_clustering_of_hudi_without_heartbeat(path: Path) -> None:
    """It may sort for long before its first file."""
    ts = planned(path)
    assert not clustering_life(path, ts, State.REQUESTED).alive
    assert clustering_life(path, ts).alive
    for minutes, alive in ((59, True), (61, False)):
        for file in path.glob(f".hoodie/**/{ts}*"):
            age(file, minutes)
        table = open_local(path)
        found = table.timeline.find(ts)
        assert found and liveness(table, found, SETTINGS).alive is alive


def test_the_lease_tells_of_our_own_attempts(path: Path) -> None:
    ts = planned(path)
    storage = open_local(path).storage
    with Lease(storage, f"clustering-{ts}", "execute"):
        assert clustering_life(path, ts, State.REQUESTED).alive
    # Given back, or its process dead: whatever it wrote last, nobody writes any more.
    assert not clustering_life(path, ts).alive
    lease = next(path.glob(f".hoodie/.locks/hudi_services/clustering-{ts}.*.json"))
    lease.write_text(json.dumps({**json.loads(lease.read_text()), "validUntil": 1 << 60, "pid": 2**22 + 1}))
    table = open_local(path)
    found = table.timeline.find(ts)
    assert found and not liveness(table, found, SETTINGS).alive
    # But what was written long after that lease is somebody else's.
    age(lease, 5)
    assert liveness(table, found, SETTINGS).alive


def test_writers_that_live_and_writers_that_died(path: Path) -> None:
    pending = Pending(path)
    with pytest.raises(ConflictError, match="another writer is in progress"):
        refuse_beside_writers(pending.table, SETTINGS)
    pending.age_instant(61)
    with pytest.raises(NeedsRecovery, match="was abandoned") as raised:
        refuse_beside_writers(pending.table, SETTINGS)
    assert raised.value.hint == f"run: hudi-services recover --base-path {path}" == recover_hint(pending.table)
    assert raised.value.exit_code == 6
    refuse_beside_writers(pending.table, SETTINGS, repairs="20980101000000000")


def slice_called(file_id: str, size: int = 1000) -> FileSlice:
    instant = "20260101000000000"
    name = f"{file_id}_0-0-0_{instant}.parquet"
    return FileSlice.of_base(BaseFile("day=2026-01-01", name, file_id, "0-0-0", instant, size))


def in_progress(path: Path, file_id: str, size: int = 1000, plan: str | None = None) -> list[HudiServicesError]:
    """Why the file group cannot be replaced."""
    return list(pending_updates(open_local(path), [slice_called(file_id, size)], SETTINGS, plan).values())


def test_an_announced_update(path: Path) -> None:
    stat = WriteStat("day=2026-01-01", "file-0", "", prev_commit="20260101000000000", num_update_writes=1)
    pending = Pending(path, forecast=CommitMetadata("UPSERT", {stat.partition: (stat,)}))
    assert in_progress(path, "file-1") == []
    (error,) = in_progress(path, "file-0")
    assert isinstance(error, ConflictError) and "in progress updates file-0" in error.message
    pending.age_instant(61)
    (error,) = in_progress(path, "file-0")
    assert isinstance(error, NeedsRecovery) and "was abandoned, updates file-0" in error.message


def test_rows_that_are_added_to_small_files(path: Path) -> None:
    """The inflight file of a write names the partitions of its inserts, and not the small files that they go to."""
    stat = WriteStat("day=2026-01-01", "", "", num_inserts=10)
    pending = Pending(path, forecast=CommitMetadata("UPSERT", {stat.partition: (stat,)}))
    assert len(in_progress(path, "file-0")) == 1
    assert in_progress(path, "file-0", 240 << 20) == []
    # A write that began after the plan leaves its file groups alone.
    plan = str(int(T) - 1)
    pending.table.timeline.publish(plan, Action.REPLACE_COMMIT, State.REQUESTED)
    for file in path.glob(f".hoodie/**/{plan}*"):
        age(file, 1)
    assert in_progress(path, "file-0", plan=plan) == []
    pending.age_instant(2)
    assert len(in_progress(path, "file-0", plan=plan)) == 1


def test_markers_name_files_that_a_write_has_begun(path: Path) -> None:
    pending = Pending(path, forecast=CommitMetadata("UPSERT", {}))
    assert in_progress(path, "file-0") == []
    create_marker(pending.table.storage, T, f"day=2026-01-01/file-0_1-1-1_{T}.parquet")
    assert len(in_progress(path, "file-0")) == 1


def test_one_question_for_many_file_groups(path: Path) -> None:
    """However many file groups a write or a rollback touches, its signs of life are looked up once."""
    instant = slice_called("x").base_instant
    rollback = encode_rollback_plan(RollbackPlan(instant, "commit", ()), open_local(path).config.version.release)
    stats = tuple(WriteStat("day=2026-01-01", f"file-{n}", "", prev_commit=instant) for n in range(9))
    Pending(path, forecast=CommitMetadata("UPSERT", {stats[0].partition: stats}))
    open_local(path).timeline.publish(str(int(T) + 1), Action.ROLLBACK, State.REQUESTED, rollback)
    storage = CountingStorage(str(path))

    def requests(question: Callable[..., Problems], files: int) -> int:
        table = open_snapshot(storage, SystemClock())
        storage.forget()
        assert len(question(table, [slice_called(f"file-{n}") for n in range(files)], SETTINGS)) == files
        return len(storage.requests)

    for question in (pending_updates, pending_rollbacks):
        # The first one fills the cache of files that never change.
        requests(question, 1)
        assert requests(question, 9) == requests(question, 1) > requests(question, 0)


def test_a_rollback_that_nobody_finishes(path: Path) -> None:
    table = open_local(path)
    one = table.view.latest_slices(table.view.partitions()[0])[0]
    data = encode_rollback_plan(RollbackPlan(one.base_instant, "commit", ()), table.config.version.release)
    table.timeline.publish(T, Action.ROLLBACK, State.REQUESTED, data)
    for minutes in (0, 19):
        for file in path.glob(f".hoodie/**/{T}*"):
            age(file, minutes)
        with pytest.raises(ConflictError, match="rolls back"):
            check_pending_rollbacks(open_local(path), [one], SETTINGS)
    for file in path.glob(f".hoodie/**/{T}*"):
        age(file, 21)
    # Hudi 1.2 gives a heartbeat of rollbacks when there are several writers.
    heartbeat = path / heartbeat_path(T)
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    with pytest.raises(ConflictError, match="rolls back"):
        check_pending_rollbacks(open_local(path), [one], SETTINGS)
    age(heartbeat, 3)
    with pytest.raises(NeedsRecovery, match="rolls back"):
        check_pending_rollbacks(open_local(path), [one], SETTINGS)


def test_an_hour_is_the_default_and_an_option(path: Path, tmp_path: Path) -> None:
    pending = Pending(path)
    pending.age_instant(5)
    options = {"hudi.services.abandoned.after.minutes": "4"}
    with pytest.raises(ConflictError):
        clustering.schedule(request(path, Mode.SCHEDULE))
    with pytest.raises(NeedsRecovery):
        clustering.schedule(request(path, Mode.SCHEDULE, options))
    shutil.rmtree(tmp_path)
