"""Stuck instants are reported with evidence, and repaired; after a kill at any write, rows and files are the same."""

import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_services.codecs.rollback_plan import encode_rollback_plan
from hudi_services.commit.heartbeat import heartbeat_path
from hudi_services.commit.lease import Lease
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError, ConflictError, LockBusy, NeedsRecovery, NothingToDo
from hudi_services.jobs import clean, clustering, recover, rollback, undo
from hudi_services.options import resolve
from hudi_services.rollback.execution import plan_rollback
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.report_rows import Values
from hudi_services.runs.request import CleanRequest, Mode, RecoverRequest
from hudi_services.timeline.instant import Action
from hudi_services.timeline.instant import State as Instants

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import files_by_partition
from .repairs import DEAD_AT_ONCE, both, cluster, fail_newest, repair
from .rides import create
from .shares import THREE_SHARES, share
from .tables import RELEASES, open_local, request, unpack
from .test_upserts import rows

QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
KEEP_ONE = {**QUICK, "hoodie.clean.commits.retained": "1"}
LATER = "20991231000000000"


def wanted(path: Path, *, apply: bool = True, after: str = "0", instant: str | None = None) -> RecoverRequest:
    options = {**QUICK, "hudi.services.abandoned.after.minutes": after}
    return RecoverRequest(base_path=str(path), options=resolve([("test", options)]), apply=apply, instant=instant)


PAYLOADS = "org.apache.hudi.common.model."
LATEST, DEFAULT = "OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "initial", "payload", "mode", "says"),
    [
        ("MERGE_ON_READ", "6", LATEST, "EVENT_TIME_ORDERING", f"its rule was {LATEST}"),
        ("MERGE_ON_READ", "6", DEFAULT, "EVENT_TIME_ORDERING", ""),
        ("MERGE_ON_READ", "6", LATEST, "COMMIT_TIME_ORDERING", ""),
        ("MERGE_ON_READ", "8", DEFAULT, "EVENT_TIME_ORDERING", ""),
        ("COPY_ON_WRITE", "6", DEFAULT, "EVENT_TIME_ORDERING", f"each write named its rule, by default {LATEST}"),
        ("COPY_ON_WRITE", "8", DEFAULT, "EVENT_TIME_ORDERING", ""),
        ("COPY_ON_WRITE", "8", LATEST, "COMMIT_TIME_ORDERING", ""),
        ("COPY_ON_WRITE", "9", "", "EVENT_TIME_ORDERING", ""),
    ],
)
def test_an_upgrade_that_turned_late_rows(
    kind: str, initial: str, payload: str, mode: str, says: str, tmp_path: Path
) -> None:
    """The properties are those that 1.1.1 and 1.2.0 left, of tables of 0.15.0 and 1.0.2."""
    path = tmp_path / "rides"
    table = create(path, table_type=kind)
    table.insert(rows(0, 3))
    properties = path / ".hoodie/hoodie.properties"
    own = ("hoodie.record.merge.mode=", "hoodie.table.initial.version=")
    kept = [line for line in properties.read_text().splitlines() if not line.startswith(own)]
    kept += [f"{own[0]}{mode}", f"{own[1]}{initial}"]
    kept += [f"hoodie.table.legacy.payload.class={PAYLOADS}{payload}"] if payload else []
    properties.write_text("\n".join(kept) + "\n")
    told = table.recover().warnings
    assert [says in one and "value of ts is greater" in one for one in told] == ([True] if says else [])
    # No service that runs again and again tells it.
    options = {"hoodie.compact.inline.max.delta.commits": "9"}
    assert not any("upgrade" in one for one in table.plan_clustering(options=options).warnings)


def looked(path: Path, after: str = "60") -> list[Values]:
    """What a dry run says; it changes nothing."""
    report = recover.recover(wanted(path, apply=False, after=after), FaultyStorage(str(path), 0))
    assert report.reason == "dry run: nothing was changed; add --apply to carry out the decisions"
    return report.tables["instants"]


def timeline_folder(path: Path) -> Path:
    return path / ".hoodie/timeline" if (path / ".hoodie/timeline").exists() else path / ".hoodie"


def data_files(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*.parquet") if ".hoodie" not in f.parts}


def age(path: Path, seconds: int = 7200) -> None:
    """As if nothing had been written since."""
    for file in path.rglob("*"):
        os.utime(file, (time.time() - seconds,) * 2)


def is_mended(path: Path, before: pa.Table) -> None:
    for seen in both(path):
        assert seen.equals(before)
    table = open_local(path)
    assert not table.timeline.pending()
    assert table.metadata is not None and not table.metadata.timeline.pending()
    known = {instant.ts for instant in table.timeline.completed_writes()}
    strays = {f for f in data_files(path) if re.split(r"[_.]", f)[-2] not in known}
    assert strays == set()
    listed = {f"{p}/{name}" for p, names in files_by_partition(table.metadata).items() for name in names}
    assert {name for name in listed if name.endswith(".parquet")} == data_files(path)
    with pytest.raises(NothingToDo, match="nothing is pending"):
        recover.recover(wanted(path))


def executed(path: Path, storage: FaultyStorage) -> Report:
    return clustering.execute(request(path, Mode.EXECUTE), storage, LocalEngine())


def scheduled_and_executed(path: Path, storage: FaultyStorage) -> Report:
    return clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), storage, LocalEngine())


def cleaned(path: Path, storage: FaultyStorage) -> Report:
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    return clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", {**QUICK, **policy})])), storage)


def rolled_back(path: Path, storage: FaultyStorage) -> Report:
    ts = open_local(path).timeline.pending()[-1].ts
    return rollback.rollback(repair(path, "rollback", ts, DEAD_AT_ONCE), storage)


def undone(path: Path, storage: FaultyStorage) -> Report:
    ts = open_local(path).timeline.completed_writes()[-1].ts
    return undo.undo(repair(path, "undo", ts), storage)


def recovered(path: Path, storage: FaultyStorage) -> Report:
    return recover.recover(wanted(path), storage)


_CRASHES: dict[str, tuple[Callable[[Path], object], Callable[[Path, FaultyStorage], Report]]] = {
    "cluster": (lambda path: None, scheduled_and_executed),
    "clean": (cluster, cleaned),
    "rollback": (fail_newest, rolled_back),
    "undo": (cluster, undone),
    "recover": (fail_newest, recovered),
}


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.sweep
@pytest.mark.parametrize("crash", _CRASHES)
@pytest.mark.parametrize(("release", "number"), THREE_SHARES)
def test_killed_anywhere(release: str, number: int, crash: str, tmp_path: Path) -> None:
    prepare, run = _CRASHES[crash]
    made = unpack(release, tmp_path / "made")
    prepare(made)
    before = both(made)[0]
    whole = tmp_path / "whole"
    shutil.copytree(made, whole)
    storage = FaultyStorage(str(whole))
    run(whole, storage)
    assert len(storage.log) > 12
    for survived in share(range(1, len(storage.log), 4), number, 3):
        path = tmp_path / str(survived)
        shutil.copytree(made, path)
        with pytest.raises(Killed):
            run(path, FaultyStorage(str(path), survived))
        age(path)
        try:
            report = recover.recover(wanted(path))
        except NothingToDo:
            assert not open_local(path).timeline.pending(), storage.log[survived]
        else:
            assert report.state is RunState.COMPLETED, storage.log[survived]
        is_mended(path, before)
        shutil.rmtree(path)


@pytest.mark.parametrize("release", RELEASES)
def test_a_failed_write(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    ts = fail_newest(path)
    age(path)
    files = timeline_files(path, ts)
    (row,) = looked(path)
    assert (row["instant"], row["state"], row["decision"]) == (ts, "inflight", "roll back")
    assert row["why"] == "no sign of life for 2 hours"
    assert str(row["blocks"]).startswith("cleaning and archiving")
    assert int(str(row["markers"])) > 0
    before = both(path)[0]
    report = recover.recover(wanted(path, after="60"))
    (row,) = report.tables["instants"]
    assert str(row["done"]).startswith("rolled back by ")
    is_mended(path, before)
    (kept,) = (path / ".hoodie/.hudi_services/removed").iterdir()
    assert {file.name for file in kept.iterdir()} == files


def timeline_files(path: Path, ts: str) -> set[str]:
    return {file.name for file in timeline_folder(path).glob(f"{ts}*")}


@pytest.mark.parametrize("heartbeat", [True, False])
def test_a_live_writer_is_left_alone(heartbeat: bool, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    ts = fail_newest(path)
    age(path, 600)
    if heartbeat:
        (path / heartbeat_path(ts)).parent.mkdir(exist_ok=True)
        (path / heartbeat_path(ts)).touch()
    (row,) = looked(path)
    assert (row["decision"], row["heartbeat"]) == ("wait", "alive" if heartbeat else "none")
    with pytest.raises(NothingToDo, match="must wait"):
        recover.recover(wanted(path, after="60"))
    assert open_local(path).timeline.pending()
    if heartbeat:
        os.utime(path / heartbeat_path(ts), (time.time() - 121,) * 2)
        (row,) = looked(path)
        assert (row["decision"], row["heartbeat"]) == ("roll back", "ended")


def test_a_plan_waits_and_then_is_dropped(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    before = both(path)[0]
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    (row,) = looked(path)
    assert (row["instant"], row["decision"]) == (ts, "wait")
    options = {**QUICK, "hudi.services.abandoned.after.minutes": "60"}
    given = " ".join(f"--hoodie-conf {key}={value}" for key, value in sorted(options.items()))
    command = f"hudi-services execute --base-path {path} {given} --instant-time {ts}"
    assert row["why"] == f"the plan can be executed: {command}"
    age(path)
    (row,) = looked(path)
    assert row["decision"] == "drop the plan"
    assert (
        row["why"] == "it was planned 2 hours ago and was not executed; schedule a new plan if you want the clustering"
    )
    recover.recover(wanted(path, after="60"))
    is_mended(path, before)
    assert (path / f".hoodie/.hudi_services/removed/{ts}/{ts}.clustering.requested").exists()


def test_a_plan_whose_inputs_changed_is_dropped_at_once(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert ts
    requested = timeline_folder(path) / f"{ts}.clustering.requested"
    plan = requested.read_bytes()
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    before = both(path)[0]
    (timeline_folder(path) / f"{LATER}.clustering.requested").write_bytes(plan)
    (row,) = looked(path)
    assert row["decision"] == "drop the plan"
    assert "was replaced or removed since the plan was made" in str(row["why"])
    recover.recover(wanted(path, after="60"))
    is_mended(path, before)


@pytest.mark.thorough
@pytest.mark.parametrize("content", [b"", b"Obj\x01nonsense"])
@pytest.mark.parametrize("kind", ["rollback.requested", "clean.requested", "clustering.requested", "rollback.inflight"])
def test_plans_that_cannot_be_read(kind: str, content: bytes, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    before = both(path)[0]
    action = kind.split(".")[0]
    for name in {f"{LATER}.{action}.requested", f"{LATER}.{kind}"}:
        (timeline_folder(path) / name).write_bytes(content if name.endswith("requested") else b"")
    if (action, content) != ("clean", b""):
        code = ConflictError if content or action == "rollback" else None
        if code:
            with pytest.raises(code, match=rf"{LATER}\.{action}\.requested"):
                clustering.schedule(request(path, Mode.SCHEDULE))
    age(path)
    if content or action == "rollback":
        with pytest.raises(NeedsRecovery) as refused:
            clustering.schedule(request(path, Mode.SCHEDULE))
        assert refused.value.exit_code == 6
        assert refused.value.hint == f"run: hudi-services recover --base-path {path}"
    (row,) = looked(path)
    assert row["decision"] == ("roll back" if (action, content) == ("clustering", b"") else "drop the plan")
    recover.recover(wanted(path, after="60"))
    is_mended(path, before)


def test_an_orphaned_rollback_is_finished(tmp_path: Path) -> None:
    """Its target is gone already: what is left is to say so."""
    path = unpack("0.15.0", tmp_path)
    ts = fail_newest(path)
    with pytest.raises(Killed):
        rolled_back(path, FaultyStorage(str(path), 6))
    for file in path.glob(f".hoodie/{ts}*"):
        file.unlink()
    age(path)
    before = both(path)[0]
    (row,) = looked(path)
    assert (row["action"], row["decision"]) == ("rollback", "resume")
    recover.recover(wanted(path, after="60"))
    is_mended(path, before)


def test_what_only_hudi_can_finish(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    folder = timeline_folder(path)
    for number, name in enumerate(("restore.inflight", "indexing.inflight", "savepoint.inflight")):
        (folder / f"2099123100000000{number}.{name}").touch()
        if not name.startswith("savepoint"):
            (folder / f"2099123100000000{number}.{name.replace('inflight', 'requested')}").touch()
    age(path)
    decisions = {row["action"]: row["decision"] for row in looked(path)}
    assert decisions == {"restore": "wait", "indexing": "wait", "savepoint": "drop the plan"}


def test_one_instant_alone(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    ts = fail_newest(path)
    with pytest.raises(ConfigError, match="no pending instant 1") as refused:
        recover.recover(wanted(path, instant="1"))
    assert ts in refused.value.hint
    assert recover.recover(wanted(path, instant=ts)).instant == ts


@pytest.mark.parametrize("command", ["schedule", "execute", "clean"])
def test_a_table_in_need_says_so(command: str, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    if command == "clean":
        # An old write that never ended: everything after it must stay.
        for name in ("commit.requested", "inflight"):
            (timeline_folder(path) / f"20260101000000000.{name}").touch()
    else:
        clustering.schedule(request(path, Mode.SCHEDULE))
    if command == "execute":
        fail_newest(path)
    age(path)
    runs: dict[str, Callable[[], Report]] = {
        "schedule": lambda: clustering.schedule(request(path, Mode.SCHEDULE)),
        "execute": lambda: clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine()),
        "clean": lambda: clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", KEEP_ONE)]))),
    }
    with pytest.raises(NeedsRecovery) as refused:
        runs[command]()
    assert refused.value.exit_code == 6
    assert refused.value.hint == f"run: hudi-services recover --base-path {path}"


def planned(path: Path) -> str:
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert ts
    return ts


def planned_stale(path: Path) -> str:
    """Its inputs are gone: it can never be executed, but whoever holds the lease will find that out."""
    plan = (timeline_folder(path) / f"{planned(path)}.clustering.requested").read_bytes()
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    (timeline_folder(path) / f"{LATER}.clustering.requested").write_bytes(plan)
    return LATER


def planned_unreadable(path: Path) -> str:
    (timeline_folder(path) / f"{LATER}.clustering.requested").write_bytes(b"Obj\x01nonsense")
    return LATER


def killed(run: Callable[[Path, FaultyStorage], object], writes: int) -> Callable[[Path], str]:
    def prepare(path: Path) -> str:
        with pytest.raises(Killed):
            run(path, FaultyStorage(str(path), writes))
        return open_local(path).timeline.pending()[-1].ts

    return prepare


def cleaned_half(path: Path) -> str:
    cluster(path)
    return killed(cleaned, 12)(path)


def rolled_back_half(path: Path) -> str:
    fail_newest(path)
    return killed(rolled_back, 6)(path)


_LEASED: dict[str, tuple[Callable[[Path], str], str]] = {
    "a plan": (planned, "clustering"),
    "a plan that can never be executed": (planned_stale, "clustering"),
    "a plan that cannot be read": (planned_unreadable, "clustering"),
    "an execution": (killed(scheduled_and_executed, 16), "clustering"),
    "a clean": (cleaned_half, "clean"),
    "a rollback": (rolled_back_half, "rollback"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", _LEASED)
def test_whoever_holds_the_lease_is_alive_at_any_age(case: str, tmp_path: Path) -> None:
    """Ours may wait for the lock for long, with a plan that was made yesterday."""
    prepare, lease = _LEASED[case]
    path = unpack("1.2.0", tmp_path)
    ts = prepare(path)
    age(path)
    with Lease(open_local(path).storage, f"{lease}-{ts}", f"execute {ts}"):
        row = next(row for row in looked(path) if row["instant"] == ts)
        assert row["decision"] == "wait"
        assert str(row["why"]).startswith(f"execute {ts} is at work since ")
        with pytest.raises(NothingToDo, match="must wait"):
            recover.recover(wanted(path, instant=ts))
        if lease != "clean":
            with pytest.raises((LockBusy, NeedsRecovery, ConflictError)):
                rollback.rollback(repair(path, "rollback", ts, DEAD_AT_ONCE))
        assert timeline_files(path, ts)
    assert next(row for row in looked(path) if row["instant"] == ts)["decision"] != "wait"


def test_whoever_finishes_a_rollback_of_its_plan(tmp_path: Path) -> None:
    """An execution finds the rollback of an earlier attempt, and goes on with the plan: nobody else shall drop that."""
    path = unpack("1.2.0", tmp_path)
    ts = killed(scheduled_and_executed, 16)(path)
    rollback_of(path, ts)
    age(path)
    with Lease(open_local(path).storage, f"clustering-{ts}", f"execute {ts}"):
        assert {row["decision"] for row in looked(path)} == {"wait"}
        with pytest.raises(LockBusy):
            rollback.rollback(repair(path, "rollback", ts, DEAD_AT_ONCE))
    # It does not stand in its own way.
    assert executed(path, FaultyStorage(str(path))).state is RunState.COMPLETED


def rollback_of(path: Path, ts: str) -> None:
    table = open_local(path)
    target = table.timeline.find(ts)
    assert target
    data = encode_rollback_plan(plan_rollback(table, target), table.config.version.release)
    table.timeline.publish(LATER, Action.ROLLBACK, Instants.REQUESTED, data)


def test_a_savepoint_is_as_old_as_itself(tmp_path: Path) -> None:
    """And not as the commit that it holds, which has the same time."""
    path = unpack("1.2.0", tmp_path)
    age(path, 86_400 * 9)
    ts = open_local(path).timeline.completed_writes()[-1].ts
    (timeline_folder(path) / f"{ts}.savepoint.inflight").touch()
    (row,) = looked(path)
    assert (row["action"], row["age"], row["last_sign"]) == ("savepoint", "0 seconds", "0 seconds ago")
