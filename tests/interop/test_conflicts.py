"""Two writers: real Hudi and we see each other's plans, changes and locks."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.ingest import write_tasks

from ..unit.tables import open_local
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import META_COLUMNS, Peer, PeerError, write_options
from .pristine import Pristine
from .readers import same_rows
from .reading import Reading, newer

_ALLOW_UPDATES = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
}
_LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.wait_time_ms": "1000",
    "hoodie.write.lock.num_retries": "1",
    "hoodie.write.lock.client.num_retries": "1",
}


def test_files_that_changed_since_the_plan_are_a_conflict(peer: Peer, table: Tables) -> None:
    path = table("plain")
    row = peer.rows(path).slice(0, 1)
    ours.schedule(path)
    with pytest.raises(PeerError, match=r"(?i)clustering"):
        peer.upsert(path, newer(row))
    peer.upsert(path, newer(row), **_ALLOW_UPDATES)
    after = peer.rows(path)

    run = ours.run("execute", path, "--all-or-nothing")

    assert run.code == 4, run.stderr
    assert same_rows(after, peer.rows(path)) == []
    assert check_metadata(peer, path) == []
    # Another plan takes the files as they are now.
    ours.cluster(path)
    assert layout.pending(path) == []
    assert same_rows(after, peer.rows(path)) == []


def test_a_lock_is_shared(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("no_mdt"), known.rows("no_mdt")
    ours.schedule(path, options=_LOCK)
    lock = path / ".hoodie/lock"
    assert not lock.exists()
    lock.touch()
    run = ours.run("execute", path, options=_LOCK)
    assert run.code == 4, run.stderr
    assert "lock" in run.stderr
    assert same_rows(before, peer.rows(path)) == []
    lock.unlink()

    ours.execute(path, options=_LOCK)

    assert not lock.exists()
    assert same_rows(before, peer.rows(path)) == []
    peer.upsert(path, newer(before.slice(0, 3)), **_LOCK)
    assert peer.rows(path).num_rows == before.num_rows


def test_hudi_waits_for_a_plan_of_ours(peer: Peer, known: Pristine, table: Tables) -> None:
    """A plan that nobody executed yet: Hudi still inserts beside it, and leaves its files alone when it clusters."""
    path, before = table("bulk"), known.rows("bulk")
    planned = {f.name for files in layout.live_files(peer, path).values() for f in files}
    ours.schedule(path)
    new = newer(before.slice(0, 5))
    ids = pa.array([f"new-{i}" for i in range(5)])
    peer.insert(path, new.set_column(new.column_names.index("id"), new.schema.field("id"), ids))
    live = {Path(f).name for files in layout.live_files(peer, path).values() for f in files}
    assert planned < live
    ours.execute(path)
    assert peer.rows(path).num_rows == before.num_rows + 5
    assert check_metadata(peer, path) == []


def test_hudi_updates_a_file_group_of_our_upsert(peer: Peer, table: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours is rolled back, and goes on with the rows that Hudi has committed."""
    path = table("plain")
    # From now on its columns may be null, as those of the data frames that Hudi is given here.
    peer.upsert(path, newer(peer.rows(path).slice(0, 1)), **_LOCK)
    before = peer.rows(path).sort_by("id")
    columns = [name for name in before.column_names if name not in META_COLUMNS]

    def named(rows: pa.Table, name: str) -> pa.Table:
        column = rows.column_names.index("name")
        return newer(rows.set_column(column, "name", pa.array([name] * rows.num_rows)))

    update, meanwhile = write_tasks.write_updates, [named(before.slice(2, 4), "hudi")]

    def interrupted(*arguments: Any) -> Any:
        while meanwhile:
            peer.upsert(path, meanwhile.pop(), **_LOCK)
        return update(*arguments)

    monkeypatch.setattr(write_tasks, "write_updates", interrupted)
    new = named(named(before.slice(0, 4), "ours"), "ours").select(columns)
    done = hudi_services.open(path, engine="local").upsert(new, options=_LOCK)
    assert not meanwhile
    assert done.tables["written"].to_pylist()[0]["retries"] == 1
    after = peer.rows(path).sort_by("id")
    assert after.column("id").equals(before.column("id"))
    assert after.column("name").to_pylist()[:6] == ["ours"] * 4 + ["hudi"] * 2
    assert after.column("name").slice(6).equals(before.column("name").slice(6))
    assert layout.pending(path) == []
    assert check_metadata(peer, path) == []
    peer.upsert(path, named(before.slice(0, 1), "hudi again"), **_LOCK)
    assert peer.rows(path).num_rows == before.num_rows


@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.deep
def test_clean_beside_a_live_writer(peer: Peer, known: Pristine, table: Tables) -> None:
    """Upserts of Hudi's one after the other, and our cleans all the time, under one lock provider of Hudi's."""
    path, before = table("plain"), known.rows("plain").sort_by("id")
    patient = {**_LOCK, "hoodie.write.lock.wait_time_ms": "20000", "hoodie.write.lock.num_retries": "20"}
    names, failed = [f"live-{i}" for i in range(3)], []

    def write() -> None:
        column = before.column_names.index("name")
        try:
            for name in names:
                rows = before.set_column(column, "name", pa.array([name] * before.num_rows))
                peer.upsert(path, newer(rows), **patient)
        except PeerError as error:
            failed.append(str(error))

    writer = threading.Thread(target=write)
    writer.start()
    runs = []
    while writer.is_alive():
        options = {**patient, "hoodie.clean.commits.retained": "1"}
        runs.append(ours.run("clean", path, options=options))
    writer.join()

    assert failed == []
    assert {run.code for run in runs} == {0}, [run.stderr for run in runs if run.code]
    assert sum(run.report["state"] == "completed" for run in runs) > 1
    assert not [warning for run in runs for warning in run.report["warnings"] if "rolled back" in warning]
    ours.run("clean", path, options=patient)
    assert layout.pending(path) == []
    assert not list((path / ".hoodie").glob("lock*"))
    after = Reading.of(peer, path)
    for rows in after.rows.values():
        assert sorted(rows["id"].to_pylist()) == before["id"].to_pylist()
        assert set(rows["name"].to_pylist()) == {names[-1]}
    assert check_metadata(peer, path) == []


class Beside:
    """Hudi's writer in a thread of its own; `wait` for a pending file of its instant, `end` when it must have ended."""

    def __init__(self, path: Path, write: Callable[[], object]) -> None:
        self._path = path
        self._before = set(open_local(path).timeline.sizes)
        self._failed: list[Exception] = []
        self._thread = threading.Thread(target=self._run, args=(write,))
        self._thread.start()

    def _run(self, write: Callable[[], object]) -> None:
        try:
            write()
        except Exception as error:
            self._failed.append(error)

    def new(self) -> set[str]:
        return set(open_local(self._path).timeline.sizes) - self._before

    def wait(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + 120
        while not what():
            assert self._thread.is_alive() and time.monotonic() < deadline, (self._failed, self.new())
            time.sleep(0.001)

    def end(self) -> None:
        self._thread.join(120)
        assert not self._thread.is_alive() and not self._failed, self._failed


@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.deep("0.15.0")
def test_a_partition_that_hudi_is_deleting(peer: Peer, table: Tables) -> None:
    """One lock, and optimistic control: Hudi's check before its commit would not find ours, and the rows be back."""
    path = table("plain")
    before, lock = peer.rows(path), path / ".hoodie/lock"
    gone = before["_hoodie_partition_path"][0].as_py()
    # It tries again after seconds: time for us to look around without the lock.
    patient = {**_LOCK, "hoodie.write.lock.client.num_retries": "20",
               "hoodie.write.lock.client.wait_time_ms_between_retry": "1500"}  # fmt: skip
    drop = {
        "hoodie.datasource.write.partitions.to.delete": gone,
        "hoodie.datasource.write.operation": "delete_partition",
    }
    writer = Beside(path, lambda: peer.upsert(path, before.slice(0, 1), **patient, **drop))
    writer.wait(lambda: any("replacecommit.requested" in name for name in writer.new()))
    writer.wait(lambda: _grab(lock))
    if not any("replacecommit.inflight" in name for name in writer.new()):
        time.sleep(1)
    assert not [name for name in writer.new() if name.endswith(".replacecommit")]
    lock.unlink()
    run = ours.run("schedule", path, options=_LOCK)
    assert run.code == 4 and "it is not known which file groups it will replace" in run.stderr, run.stderr
    writer.end()

    ours.cluster(path)
    for rows in Reading.of(peer, path).rows.values():
        assert gone not in rows["_hoodie_partition_path"].to_pylist()
        assert rows.num_rows == before.num_rows - before["_hoodie_partition_path"].to_pylist().count(gone)


def _grab(lock: Path) -> bool:
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


_SLOW_UPSERT = """
import os, time
from pyspark.sql import functions as F

def held(key):
    while not os.path.exists(go):
        time.sleep(0.05)
    return key

frame = spark.read.parquet(rows).withColumn("id", F.udf(held, "string")("id"))
frame.write.format("hudi").options(**options).mode("append").save(path)
"""


@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.deep
def test_an_upsert_that_looks_up_its_keys_for_long(peer: Peer, table: Tables, tmp_path: Path) -> None:
    """No lock: nobody but us can see that it will update the files that the plan replaces."""
    path = table("plain")
    before, go, source = peer.rows(path), tmp_path / "go", tmp_path / "rows.parquet"
    rows = newer(before.slice(0, 5))
    pq.write_table(rows.drop_columns([name for name in META_COLUMNS if name in rows.column_names]), source)
    options = write_options(path) | {"hoodie.datasource.write.operation": "upsert"}
    writer = Beside(
        path, lambda: peer.eval(_SLOW_UPSERT, go=str(go), rows=str(source), options=options, path=str(path))
    )
    try:
        writer.wait(lambda: any("commit.requested" in name for name in writer.new()))
        (requested,) = writer.new()
        file = path / open_local(path).timeline.path(requested)
        os.utime(file, (time.time() - 21 * 60,) * 2)
        run = ours.run("execute", path, "--mode", "scheduleAndExecute")
        assert run.code == 4 and "of another writer is in progress" in run.stderr, run.stderr
    finally:
        go.touch()
    writer.end()

    after = peer.rows(path)
    assert same_rows(before, after) != []
    ours.cluster(path)
    assert same_rows(after, peer.rows(path)) == []
