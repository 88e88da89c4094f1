"""Which pending writes of others stop a clustering, with a lock and without: none may commit into what it replaces."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.commit.conflicts import StaleInput, WriterAtWork, input_changes, raise_first, refuse_beside_writers
from hudi_services.commit.heartbeat import heartbeat_path
from hudi_services.commit.settings import TransactionSettings
from hudi_services.engine import LocalEngine
from hudi_services.errors import HudiServicesError, NeedsRecovery
from hudi_services.jobs import clean, clustering, undo
from hudi_services.locking.file_system import FileSystemProvider
from hudi_services.options import resolve
from hudi_services.runs.report import Report
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import CleanRequest, Mode
from hudi_services.timeline.instant import Action, State

from .repairs import both, cluster, hide_metadata, repair
from .tables import open_local, request, unpack

UNLOCKED = TransactionSettings()
LOCKED = TransactionSettings(lock=FileSystemProvider())
LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "100",
}
REQUESTED, INFLIGHT = (State.REQUESTED,), (State.REQUESTED, State.INFLIGHT)
COMMIT, REPLACE = Action.COMMIT, Action.REPLACE_COMMIT
GOES_ON = None


@pytest.fixture(params=["0.15.0", "1.2.0"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def plan(path: Path, minutes: float = 180) -> str:
    """Schedules a clustering; as if that had been so many minutes ago."""
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
    assert ts
    age(path, ts, minutes)
    return ts


def age(path: Path, ts: str, minutes: float) -> None:
    for file in path.glob(f".hoodie/**/{ts}*"):
        os.utime(file, (time.time() - minutes * 60,) * 2)


def begin(path: Path, ts: str, action: Action, states: tuple[State, ...], minutes: float) -> None:
    """What a writer of Hudi leaves on the timeline that began so many minutes ago, and announced nothing."""
    for state in states:
        open_local(path).timeline.publish(ts, action, state)
    age(path, ts, minutes)


def beat(path: Path, ts: str, minutes: float) -> None:
    heartbeat = path / heartbeat_path(ts)
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    age(path, ts, minutes) if minutes else None


_CASES: dict[str, tuple[Action, tuple[State, ...], int, float, float | None, type | None, type | None]] = {
    # action, states, instant beside the plan's, minutes ago, heartbeat minutes ago; without and with a lock
    "before the plan, looks up its keys": (COMMIT, REQUESTED, -1, 50, None, WriterAtWork, GOES_ON),
    "before the plan, nobody knows": (COMMIT, REQUESTED, -1, 61, None, NeedsRecovery, GOES_ON),
    "before the plan, a live heartbeat": (COMMIT, REQUESTED, -1, 999, 0, WriterAtWork, GOES_ON),
    "before the plan, a dead heartbeat": (COMMIT, REQUESTED, -1, 5, 4, NeedsRecovery, GOES_ON),
    "after it, by clocks, but the store has it before": (COMMIT, REQUESTED, 1, 181, 0, WriterAtWork, GOES_ON),
    "after it, refused lately": (COMMIT, REQUESTED, 1, 19, None, WriterAtWork, GOES_ON),
    "after it, refused some time ago": (COMMIT, REQUESTED, 1, 21, None, GOES_ON, GOES_ON),
    "after it, a live heartbeat": (COMMIT, REQUESTED, 1, 170, 0, WriterAtWork, GOES_ON),
    "inflight": (COMMIT, INFLIGHT, 1, 59, None, WriterAtWork, GOES_ON),
    "inflight, nobody knows": (COMMIT, INFLIGHT, 1, 61, None, NeedsRecovery, GOES_ON),
    "an overwrite before the plan": (REPLACE, REQUESTED, -1, 50, None, WriterAtWork, WriterAtWork),
    # insert_overwrite does not look at pending plans.
    "an overwrite after it": (REPLACE, REQUESTED, 1, 50, None, WriterAtWork, WriterAtWork),
    "an overwrite in flight": (REPLACE, INFLIGHT, 1, 50, None, WriterAtWork, WriterAtWork),
    "an overwrite, a live heartbeat": (REPLACE, INFLIGHT, -1, 999, 0, WriterAtWork, WriterAtWork),
    "an overwrite, nobody knows": (REPLACE, INFLIGHT, -1, 61, None, NeedsRecovery, NeedsRecovery),
    "an overwrite, a dead heartbeat": (REPLACE, REQUESTED, -1, 5, 4, NeedsRecovery, NeedsRecovery),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", _CASES)
def test_who_may_commit_into_what_we_replace(path: Path, case: str) -> None:
    action, states, beside, minutes, last_beat, unlocked, locked = _CASES[case]
    ts = plan(path)
    other = str(int(ts) + beside)
    begin(path, other, action, states, minutes)
    if last_beat is not None:
        beat(path, other, 0)
        os.utime(path / heartbeat_path(other), (time.time() - last_beat * 60,) * 2)
    for settings, expected in ((UNLOCKED, unlocked), (LOCKED, locked)):
        assert outcome(lambda settings=settings: refuse_beside_writers(open_local(path), settings, plan=ts)) is expected
    # A plan that is still to be made is later than all of them.
    expected = unlocked or (NeedsRecovery if minutes > 60 and last_beat is None else WriterAtWork)
    assert outcome(lambda: refuse_beside_writers(open_local(path), UNLOCKED, plan="")) is expected


def test_log_files_of_an_input_since_the_plan(path: Path) -> None:
    hide_metadata(path)
    table = open_local(path)
    partition = table.view.partitions()[0]
    planned = table.view.latest_slices(partition)
    assert input_changes(table, planned) == {}
    # The instant of the slice on version 6, of a completed delta commit on version 9.
    newest = planned[0].base_instant
    (path / partition / f".{planned[0].file_id}_{newest}.log.1_0-0-0").write_bytes(b"#HUDI#")
    now = open_local(path)
    with pytest.raises(StaleInput, match="got log files since the plan was made"):
        raise_first(input_changes(now, planned))
    with pytest.raises(StaleInput, match="lost log files since the plan was made"):
        raise_first(input_changes(table, now.view.latest_slices(partition)))


def outcome(deed: Callable[[], object]) -> type[HudiServicesError] | None:
    """What it raises."""
    try:
        deed()
    except HudiServicesError as error:
        return type(error)
    return None


def scheduled(path: Path, options: dict[str, str]) -> Report:
    """As if the plan that there is were not there yet."""
    plans = [file for end in ("clustering", "replacecommit") for file in path.glob(f".hoodie/**/*.{end}.requested")]
    requested = next(file for file in plans if file.stat().st_size)
    hidden = requested.rename(path.parent / requested.name)
    try:
        return clustering.schedule(request(path, Mode.SCHEDULE, options))
    finally:
        hidden.rename(requested)


def executed(path: Path, options: dict[str, str]) -> Report:
    return clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())


@pytest.mark.parametrize("options", [LOCK, {}])
def test_a_delete_partition_in_flight_before_the_plan(path: Path, options: dict[str, str]) -> None:
    """With a lock, too: Hudi's writer would not find the conflict, and the deleted rows would be back."""
    ts = plan(path)
    other = str(int(ts) - 1)
    begin(path, other, REPLACE, INFLIGHT, 5)
    before = both(path)[0]
    for deed in (scheduled, executed):
        with pytest.raises(WriterAtWork, match=f"the replacecommit {other} of another writer is in progress"):
            deed(path, options)
    age(path, other, 61)
    for deed in (scheduled, executed):
        with pytest.raises(NeedsRecovery, match=f"the replacecommit {other} .* was abandoned") as refused:
            deed(path, options)
        assert "hudi-services recover" in refused.value.hint
    assert [instant.ts for instant in open_local(path).timeline.pending()] == [other, ts]
    assert both(path)[0].equals(before)


@pytest.mark.parametrize("minutes", [21, 600])
def test_a_requested_write_that_gives_a_heartbeat(path: Path, minutes: float) -> None:
    """It looks up its keys, and will update what the plan replaces."""
    ts = plan(path, minutes - 1)
    other = str(int(ts) - 1)
    begin(path, other, COMMIT, REQUESTED, minutes)
    beat(path, other, 0)
    for deed in (scheduled, executed):
        with pytest.raises(WriterAtWork, match=f"the commit {other} of another writer is in progress"):
            deed(path, {})
    # A clean replaces nothing, but writes the metadata table, as that writer may at any moment.
    with pytest.raises(WriterAtWork, match="is in progress"):
        cleaned(path)
    (path / heartbeat_path(other)).unlink()
    assert cleaned(path) is Outcome.COMPLETED


def cleaned(path: Path) -> Outcome:
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    options = resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0", **policy})])
    return clean.clean(CleanRequest(base_path=str(path), options=options)).state


@pytest.mark.parametrize("options", [LOCK, {}])
def test_undo_beside_a_write_that_nobody_knows_of(path: Path, options: dict[str, str]) -> None:
    """No sign of life for hours does not prove that it will not commit."""
    ts = cluster(path)
    other = str(int(ts) + 1)
    begin(path, other, COMMIT, REQUESTED, 600)
    with pytest.raises(NeedsRecovery, match=f"the commit {other} .* was abandoned"):
        undo.undo(repair(path, "undo", ts, options))
    assert open_local(path).timeline.find(ts, Action.REPLACE_COMMIT)
