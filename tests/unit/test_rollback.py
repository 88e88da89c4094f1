"""Rolling back failed and completed writes: what goes, what stays, what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.cli.app import run
from hudi_services.commit.lease import Lease
from hudi_services.commit.markers import marker_folder
from hudi_services.errors import ConfigError, ConflictError, LockBusy, NeedsRecovery, NothingToDo
from hudi_services.jobs import clustering
from hudi_services.jobs.rollback import rollback
from hudi_services.runs.report import Report
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import Mode
from hudi_services.storage import Storage
from hudi_services.timeline.instant import Action, State

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import files_by_partition
from .repairs import (
    DEAD_AT_ONCE,
    NO_HEARTBEAT,
    P,
    both,
    cluster,
    fail_newest,
    files_of,
    newest,
    repair,
    timeline_files,
)
from .shares import TWO_SHARES, places, share
from .tables import open_local, request, unpack

MARKERS = ["DIRECT", "TIMELINE_SERVER_BASED", ""]


@pytest.fixture(params=["0.15.0", "1.0.2", "1.2.0"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def roll_back(path: Path, ts: str, storage: Storage | None = None, **more: bool) -> Report:
    return rollback(repair(path, "rollback", ts, DEAD_AT_ONCE, **more), storage)


def finish(path: Path, ts: str, storage: Storage | None = None, **more: bool) -> Report:
    """Roll back, or go on with a rollback whose process just died."""
    return rollback(repair(path, "rollback", ts, NO_HEARTBEAT, **more), storage)


def is_gone(path: Path, ts: str) -> None:
    table = open_local(path)
    assert files_of(path, ts) == set() == timeline_files(path, ts)
    assert not (path / marker_folder(ts)).exists()
    assert not table.timeline.pending()
    assert table.metadata is not None and not table.metadata.timeline.pending()
    assert all(ts not in name for names in files_by_partition(table.metadata).values() for name in names)


@pytest.mark.thorough
@pytest.mark.parametrize("markers", MARKERS)
def test_a_failed_write(path: Path, markers: str) -> None:
    stats = open_local(path).timeline.read_commit(newest(path)).stats
    ts = fail_newest(path, markers)
    before = both(path)
    left = files_of(path, ts)
    report = roll_back(path, ts)
    assert report.state is Outcome.COMPLETED and report.instant == ts
    assert [seen.equals(before[0]) for seen in both(path)] == [True, True]
    is_gone(path, ts)
    done = open_local(path).timeline.completed({Action.ROLLBACK})[-1]
    plan = open_local(path).timeline.read_rollback_plan(done)
    assert (plan.ts, plan.action) == (ts, "commit")
    assert {file.removeprefix(f"{path}/") for request in plan.requests for file in request.files} == left
    known = {(stat.file_id, ts) for of_partition in stats.values() for stat in of_partition}
    assert {(request.file_id, request.base_instant) for request in plan.requests} == (known if markers else {("", "")})
    metadata = open_local(path).timeline.read_rollback(done)
    assert (metadata.ts, metadata.target_ts, metadata.target_action) == (done.ts, ts, "commit")
    assert {f.removeprefix(f"{path}/") for p in metadata.partitions.values() for f in p.deleted} == left
    assert sum(int(str(row["files"])) for row in report.tables["partitions"]) == len(left)
    assert report.tables["rollbacks"] == [{"instant": done.ts, "of": ts, "action": "commit"}]


def test_copies_of_the_timeline_files_are_kept(path: Path) -> None:
    ts = newest(path).ts
    table = open_local(path)
    content = {name: table.timeline.read_details(name) for name in timeline_files(path, ts)}
    assert len(content) == 3
    report = roll_back(path, ts, completed=True)
    folder = path / ".hoodie/.hudi_services/removed" / str(report.tables["rollbacks"][0]["instant"])
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == content


def test_a_completed_write(path: Path) -> None:
    """Also with its lower states gone: an instant must not look archived while it is rolled back."""
    updated = both(path)
    ts = newest(path).ts
    left = files_of(path, ts)
    with pytest.raises(ConfigError, match="is completed, and a rollback would delete its rows"):
        roll_back(path, ts)
    for name in timeline_files(path, ts) - {newest(path).file_name}:
        next(path.glob(f".hoodie/**/{name}")).unlink()
    dry = roll_back(path, ts, completed=True, dry_run=True)
    assert (dry.state, dry.reason) == (Outcome.COMPLETED, "dry run: nothing was changed")
    assert sum(int(str(row["files"])) for row in dry.tables["visible_again"]) == len(left)
    assert files_of(path, ts) == left and both(path)[0].equals(updated[0])
    assert roll_back(path, ts, completed=True).tables["partitions"] == dry.tables["partitions"]
    is_gone(path, ts)
    seen = both(path)
    assert seen[0].equals(seen[1]) and seen[0].num_rows == updated[0].num_rows
    assert "update" in updated[0]["label"].to_pylist() and "update" not in seen[0]["label"].to_pylist()


def test_one_after_the_other(path: Path) -> None:
    """All the way back, and each refuses to go before the later ones."""
    instants = [i.ts for i in open_local(path).timeline.completed_writes()]
    with pytest.raises(ConflictError, match="its rows may build on it") as raised:
        roll_back(path, instants[0], completed=True)
    assert raised.value.hint == f"roll back {instants[-1]} first"
    for ts in reversed(instants[1:]):
        roll_back(path, ts, completed=True)
        is_gone(path, ts)
    seen = both(path)
    assert seen[0].equals(seen[1]) and seen[0].num_rows == 100


def test_a_plan_that_nobody_began(path: Path) -> None:
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert ts
    before = both(path)
    report = roll_back(path, ts)
    assert report.tables["partitions"] == []
    is_gone(path, ts)
    assert both(path)[0].equals(before[0])
    with pytest.raises(NothingToDo, match="was rolled back already"):
        roll_back(path, ts)


def test_who_is_alive_is_left_alone(path: Path) -> None:
    ts = fail_newest(path)
    everything = files(path)
    with pytest.raises(LockBusy, match="another process is at work on the commit"):
        rollback(repair(path, "rollback", ts))
    beat = path / ".hoodie/.heartbeat" / ts
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    with pytest.raises(LockBusy):
        roll_back(path, ts)
    beat.unlink()
    assert files(path) == everything


def files(path: Path) -> set[str]:
    """All files of a table, but for leases."""
    return {str(file) for file in path.rglob("*") if file.is_file() and ".locks" not in file.parts}


def test_an_attempt_of_ours_that_runs(path: Path) -> None:
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert ts
    with Lease(open_local(path).storage, f"clustering-{ts}", "execute"), pytest.raises(LockBusy):
        roll_back(path, ts)
    roll_back(path, ts)


def test_another_write_that_is_alive(path: Path) -> None:
    """Without a lock nobody may write beside it; one that died does not stop a repair."""
    ts = fail_newest(path)
    other = "20990101000000000"
    timeline = open_local(path).timeline
    for state in (State.REQUESTED, State.INFLIGHT):
        timeline.publish(other, Action.COMMIT, state)
    beat = path / ".hoodie/.heartbeat" / other
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    with pytest.raises(ConflictError, match="another writer is in progress"):
        roll_back(path, ts)
    beat.unlink()
    with pytest.raises(NeedsRecovery):
        clustering.schedule(request(path, Mode.SCHEDULE, DEAD_AT_ONCE))
    roll_back(path, ts)
    roll_back(path, other)
    assert not open_local(path).timeline.pending()


def test_what_cannot_be_rolled_back(path: Path) -> None:
    ts = newest(path).ts
    timeline = open_local(path).timeline
    timeline.publish("20990101000000000", Action.CLEAN, State.REQUESTED)
    with pytest.raises(ConfigError, match="has no instant 20980101000000000") as raised:
        roll_back(path, "20980101000000000")
    assert raised.value.hint == "pending are: 20990101000000000 (clean)"
    with pytest.raises(ConfigError, match="only writes can be rolled back"):
        roll_back(path, "20990101000000000")
    for state in (State.INFLIGHT, State.COMPLETED):
        timeline.publish(ts, Action.SAVEPOINT, state, b"", "20990201000000000")
    with pytest.raises(ConfigError, match="the savepoint"):
        roll_back(path, ts, completed=True)


def previous_files(path: Path) -> list[Path]:
    """Those that the newest commit, an update, superseded."""
    commit = open_local(path).timeline.read_commit(newest(path))
    stats = [stat for of_partition in commit.stats.values() for stat in of_partition]
    return [next((path / s.partition).glob(f"{s.file_id}_*_{s.prev_commit}.parquet")) for s in stats]


def test_rows_whose_older_files_were_cleaned(path: Path) -> None:
    ts = newest(path).ts
    previous_files(path)[0].unlink()
    with pytest.raises(ConflictError, match="cleaned"):
        roll_back(path, ts, completed=True)


def test_rows_whose_older_files_are_about_to_be_cleaned(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hudi_services.codecs.clean_plan import CleanerPlan
    from hudi_services.timeline.active import Timeline

    ts = newest(path).ts
    old = previous_files(path)[0]
    plan = CleanerPlan("KEEP_LATEST_COMMITS", "", "", {str(old.parent.relative_to(path)): (f"file:{old}",)})
    monkeypatch.setattr(Timeline, "read_cleaner_plan", lambda self, instant: plan)
    open_local(path).timeline.publish("20990101000000000", Action.CLEAN, State.REQUESTED)
    with pytest.raises(ConflictError, match="the pending clean 20990101000000000"):
        roll_back(path, ts, completed=True)


def test_files_that_a_pending_plan_reads(path: Path) -> None:
    ts = newest(path).ts
    planned = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    with pytest.raises(ConflictError, match=f"the pending plan {planned} reads"):
        roll_back(path, ts, completed=True)


def test_a_rollback_that_hudi_began_is_finished(path: Path) -> None:
    """By the instant of its target, or by its own."""
    ts = fail_newest(path)
    with pytest.raises(Killed):
        roll_back(path, ts, FaultyStorage(str(path), 6))
    (begun,) = open_local(path).timeline.pending({Action.ROLLBACK})
    report = finish(path, begun.ts)
    assert report.instant == ts
    is_gone(path, ts)


def test_a_marker_of_a_file_that_was_never_written(path: Path) -> None:
    ts = fail_newest(path)
    before = both(path)
    name = f"11111111-1111-1111-1111-111111111111-0_7-0-0_{ts}.parquet"
    (path / marker_folder(ts) / P / f"{name}.marker.CREATE").touch()
    # What a writer in this process leaves of a file that it did not close.
    (path / P / f"{name}#1").touch()
    roll_back(path, ts)
    is_gone(path, ts)
    assert not (path / P / f"{name}#1").exists()
    assert both(path)[0].equals(before[0])


def test_a_marker_of_something_else(path: Path) -> None:
    """All that a copy-on-write commit wrote bears its time: a listing finds it, and nothing of others."""
    ts, before = fail_newest(path), both(path)
    live = next(one.base_file.path for one in open_local(path).view.latest_slices(P) if one.base_file)
    (path / marker_folder(ts) / f"{live}.marker.CREATE").touch()
    report = roll_back(path, ts)
    assert any("does not name a file of" in text and "by listing" in text for text in report.warnings)
    is_gone(path, ts)
    assert (path / live).exists() and both(path)[0].equals(before[0])


def test_the_command_line(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ts = fail_newest(path)
    command = ["rollback", "--base-path", str(path), "--instant", ts]
    dead = ["--hoodie-conf", "hudi.services.abandoned.after.minutes=0"]
    assert run(command) == 4
    assert "another process is at work" in capfd.readouterr().err
    assert run([*command, *dead, "--dry-run", "--fail-if-idle"]) == 0
    assert "a dry run, nothing was changed" in capfd.readouterr().out
    assert run([*command, *dead, "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["service"], report["action"], report["instant"]) == ("rollback", "rollback", ts)
    assert report["tables"]["partitions"] and report["state"] == "completed"
    assert any(option["key"] == "hoodie.rollback.using.markers" for option in report["options"])
    assert run([*command, *dead, "--fail-if-idle"]) == 3
    assert run(["undo", "--base-path", str(path), "--instant", "20980101000000000"]) == 2
    assert "has no completed clustering" in capfd.readouterr().err


def failed(path: Path) -> str:
    return fail_newest(path)


def failed_without_markers(path: Path) -> str:
    return fail_newest(path, "")


def completed(path: Path) -> str:
    return newest(path).ts


def completed_clustering(path: Path) -> str:
    return cluster(path)


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), TWO_SHARES)
@pytest.mark.parametrize("make", [failed, failed_without_markers, completed, completed_clustering])
def test_every_write_may_be_the_last(release: str, number: int, make: Callable[[Path], str], tmp_path: Path) -> None:
    made, whole = unpack(release, tmp_path / "made"), tmp_path / "whole"
    ts = make(made)
    shutil.copytree(made, whole)
    before = both(whole)
    storage = FaultyStorage(str(whole))
    roll_back(whole, ts, storage, completed=True)
    after = both(whole)
    assert after[0].equals(after[1])
    assert len(storage.log) > 15
    for survived in share(places(storage.log), number, 4):
        path = tmp_path / "killed"
        shutil.copytree(made, path)
        with pytest.raises(Killed) as killed:
            roll_back(path, ts, FaultyStorage(str(path), survived), completed=True)
        at = f"after {survived} writes: {killed.value}"
        seen = both(path)
        assert seen[0].equals(seen[1]), at
        assert seen[0].equals(before[0]) or seen[0].equals(after[0]), at
        mend(path, ts)
        assert all(one.equals(after[0]) for one in both(path)), at
        shutil.rmtree(path)


def mend(path: Path, ts: str) -> None:
    try:
        finish(path, ts, completed=True)
    except NothingToDo:
        assert open_local(path).timeline.find(ts) is None
    is_gone(path, ts)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_killed_while_it_mends(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    ts = fail_newest(path)
    before = both(path)
    for survived in range(2, 12):
        with pytest.raises(Killed):
            finish(path, ts, FaultyStorage(str(path), survived))
        assert all(seen.equals(before[0]) for seen in both(path))
    mend(path, ts)
    assert all(seen.equals(before[0]) for seen in both(path))
