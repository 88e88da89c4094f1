"""Two writers: real Hudi and we see each other's plans, changes and locks."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, PeerError
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


@pytest.mark.deep("1.0.2")
def test_files_that_changed_since_the_plan_are_a_conflict(peer: Peer, table: Tables) -> None:
    path = table("plain")
    row = peer.rows(path).slice(0, 1)
    ours.schedule(path)
    with pytest.raises(PeerError, match=r"(?i)clustering"):
        peer.upsert(path, newer(row))
    peer.upsert(path, newer(row), **_ALLOW_UPDATES)
    after = peer.rows(path)

    run = ours.run("execute", path)

    assert run.code == 4, run.stderr
    assert same_rows(after, peer.rows(path)) == []
    assert check_metadata(peer, path) == []
    # Another plan takes the files as they are now.
    ours.schedule(path)
    ours.execute(path)
    assert layout.pending(path) == []
    assert same_rows(after, peer.rows(path)) == []


@pytest.mark.releases("0.15.0", "1.2.0")
def test_a_lock_is_shared(peer: Peer, table: Tables) -> None:
    path = table("no_mdt")
    before = peer.rows(path)
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


@pytest.mark.releases("0.15.0", "1.2.0")
def test_hudi_waits_for_a_plan_of_ours(peer: Peer, table: Tables) -> None:
    """A plan that nobody executed yet: Hudi still inserts beside it, and leaves its files alone when it clusters."""
    path = table("bulk")
    before = peer.rows(path)
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


@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.deep("0.15.0")
def test_clean_beside_a_live_writer(peer: Peer, table: Tables) -> None:
    """Upserts of Hudi's one after the other, and our cleans all the time, under one lock provider of Hudi's."""
    path = table("plain")
    before = peer.rows(path).sort_by("id")
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
