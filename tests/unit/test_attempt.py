"""What may happen to an execution while it runs, or after it: other processes, late tasks, false storage errors."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.codecs.rollback_plan import RollbackPlan, encode_rollback_plan
from hudi_services.commit.markers import create_marker, read_markers
from hudi_services.commit.times import Times
from hudi_services.engine import LocalEngine
from hudi_services.errors import (
    CheckFailed,
    ConflictError,
    JobLost,
    LockBusy,
    NeedsRecovery,
    NothingToDo,
    PartlyDone,
    StorageError,
)
from hudi_services.file_names import base_file_name, new_file_id
from hudi_services.jobs import clustering
from hudi_services.rollback.execution import roll_back
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import Mode
from hudi_services.snapshot import Snapshot
from hudi_services.storage import Storage
from hudi_services.stores.local import LocalStorage
from hudi_services.timeline.instant import Action, State

from .tables import RELEASES, listed_view, open_local, request, rows, unpack

LOCKED = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "100",
}


class Meanwhile(LocalEngine):
    """Does something when all groups are rewritten and nothing is committed yet."""

    def __init__(self, deed: Callable[[], object]) -> None:
        self._deed = deed

    def map(self, function: Any, tasks: Sequence[Any], description: str, progress: Any) -> list[Any]:
        results = super().map(function, tasks, description, progress)
        self._deed()
        return results


class Planned:
    """A table with a plan that was not executed yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before = rows(self.table, self.table.view)
        ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant
        assert ts
        self.ts = ts

    @property
    def table(self) -> Snapshot:
        return open_local(self.path)

    @property
    def state(self) -> State:
        found = self.table.timeline.find(self.ts, Action.REPLACE_COMMIT)
        assert found
        return found.state

    def execute(self, deed: Callable[[], object] = lambda: None, storage: Storage | None = None) -> Outcome:
        options = LOCKED if storage else {}
        return clustering.execute(request(self.path, Mode.EXECUTE, options), storage, Meanwhile(deed)).state

    def new_files(self) -> set[str]:
        files = self.table.storage.list_tree("")
        return {file.path for file in files if file.name.endswith(f"_{self.ts}.parquet")}

    def seen(self) -> list[pa.Table]:
        table = self.table
        return [rows(table, table.view), rows(table, listed_view(table))]

    def unharmed(self) -> bool:
        return all(seen.equals(self.before) for seen in self.seen())

    def another_file(self) -> str:
        """A whole base file of the plan's time that nobody's commit will name."""
        table = self.table
        old = table.view.latest_slices(table.view.partitions()[0])[0].base_file
        assert old
        name = base_file_name(new_file_id(), "9-9-9", self.ts)
        path = f"{old.partition}/{name}" if old.partition else name
        shutil.copy(self.path / old.path, self.path / path)
        return path


@pytest.fixture(params=["0.15.0", "1.2.0"])
def planned(request: pytest.FixtureRequest, tmp_path: Path) -> Planned:
    return Planned(unpack(request.param, tmp_path))


def test_another_process_rolled_it_back_and_began_anew(planned: Planned) -> None:
    others: list[str] = []

    def take_over() -> None:
        table = planned.table
        found = table.timeline.find(planned.ts, Action.REPLACE_COMMIT)
        assert found
        # A task of ours that writes on, after the rollback has read the markers.
        late = {path: (planned.path / path).read_bytes() for path in planned.new_files()}
        roll_back(table, found, Times(table, 0), keep_plan=True)
        for path, content in late.items():
            (planned.path / path).write_bytes(content)
        table.timeline.publish(planned.ts, table.timeline.layout.clustering_action, State.INFLIGHT)
        others.append(planned.another_file())
        create_marker(table.storage, planned.ts, others[0])

    with pytest.raises(ConflictError, match="rolled back by another process"):
        planned.execute(take_over)
    assert planned.state is State.INFLIGHT
    assert planned.new_files() == set(others)
    assert [marker.path for marker in read_markers(planned.table.storage, planned.ts)] == others
    assert planned.unharmed()


@pytest.mark.thorough
def test_another_process_completed_it(planned: Planned) -> None:
    def complete() -> None:
        table = planned.table
        found = table.timeline.find(planned.ts, Action.REPLACE_COMMIT)
        assert found
        roll_back(table, found, Times(table, 0), keep_plan=True)
        shutil.rmtree(planned.path / ".hoodie" / ".locks")
        planned.execute()
        shutil.rmtree(planned.path / ".hoodie" / ".locks", ignore_errors=True)

    with pytest.raises((ConflictError, NothingToDo)):
        planned.execute(complete)
    assert planned.state is State.COMPLETED
    assert planned.unharmed()


def test_files_of_tasks_that_outlived_their_driver_are_deleted(planned: Planned) -> None:
    early, marked, late = planned.another_file(), planned.another_file(), ""
    create_marker(planned.table.storage, planned.ts, marked)
    # What a killed process leaves of a file that it was writing.
    staged = planned.path / f"{marked}#1"
    staged.write_bytes(b"PAR1")

    def one_more() -> None:
        nonlocal late
        late = planned.another_file()

    assert planned.execute(one_more) is Outcome.COMPLETED
    assert planned.new_files().isdisjoint({early, marked, late})
    assert not staged.exists()
    assert planned.unharmed()


@pytest.mark.thorough
@pytest.mark.parametrize("damage", [Path.unlink, lambda file: os.truncate(file, file.stat().st_size - 1)])
def test_a_new_file_that_is_not_stored_whole_is_not_committed(planned: Planned, damage: Callable[[Path], None]) -> None:
    with pytest.raises(CheckFailed, match="is not there as it was written"):
        planned.execute(lambda: damage(planned.path / sorted(planned.new_files())[0]))
    assert planned.state is State.REQUESTED
    assert planned.new_files() == set()
    assert planned.unharmed()


def test_rows_that_are_to_be_rolled_back_do_not_live_on(planned: Planned) -> None:
    def begin_rollback() -> None:
        table = planned.table
        target = table.timeline.completed_writes()[-1]
        plan = RollbackPlan(target.ts, target.action.value, ())
        data = encode_rollback_plan(plan, table.config.version.release)
        table.timeline.publish(Times(table, 0).next(), Action.ROLLBACK, State.REQUESTED, data)

    with pytest.raises(ConflictError, match="which wrote input files of this plan"):
        planned.execute(begin_rollback)
    assert planned.state is State.REQUESTED
    assert planned.unharmed()


@pytest.mark.thorough
def test_a_rollback_that_was_not_finished_is_finished_first(planned: Planned) -> None:
    """Its process died when the inflight file was gone and the requested file was not."""
    table = planned.table
    plan = RollbackPlan(planned.ts, table.timeline.layout.clustering_action.value, ())
    data = encode_rollback_plan(plan, table.config.version.release)
    begun = table.timeline.publish(Times(table, 0).next(), Action.ROLLBACK, State.REQUESTED, data)
    with pytest.raises(LockBusy, match="being rolled back by another process"):
        planned.execute()
    os.utime(Path(table.storage.root) / table.timeline.path(begun.file_name), (time.time() - 1300,) * 2)
    assert planned.execute() is Outcome.COMPLETED
    assert planned.table.timeline.pending() == ()
    assert planned.unharmed()


def test_a_restore_stops_the_commit(planned: Planned) -> None:
    def begin_restore() -> None:
        table = planned.table
        table.timeline.publish(Times(table, 0).next(), Action.RESTORE, State.REQUESTED)

    with pytest.raises(NeedsRecovery, match="is not finished"):
        planned.execute(begin_restore)
    assert planned.state is State.INFLIGHT
    assert planned.unharmed()


class _Stutters(LocalStorage):
    """Does one chosen operation, and then raises an error as if it had failed."""

    def __init__(self, url: str, what: str, suffix: str) -> None:
        super().__init__(url)
        self._what, self._suffix = what, suffix

    def _after(self, what: str, path: str) -> None:
        if what == self._what and path.endswith(self._suffix):
            raise StorageError(f"{path}: timeout")

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        self._after("create", path)

    def delete(self, path: str) -> None:
        super().delete(path)
        self._after("delete", path)

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        self._after("put", path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("what", "suffix", "text"),
    [("create", ".replacecommit", "is complete, in spite of"), ("delete", "/lock", "lock could not be given back")],
)
def test_a_failure_after_the_completed_instant(planned: Planned, what: str, suffix: str, text: str) -> None:
    if what == "delete":
        # Only the last time: the lock is taken and given back at the beginning, too.
        storage = _Stutters(str(planned.path), what, "?")

        def deed() -> None:
            storage._suffix = suffix
    else:
        storage = _Stutters(str(planned.path), what, suffix)

        def deed() -> None:
            pass

    with pytest.raises(PartlyDone, match=text):
        planned.execute(deed, storage)
    assert planned.state is State.COMPLETED
    assert planned.unharmed()


def test_a_heartbeat_or_lease_that_cannot_be_given_back(planned: Planned) -> None:
    leases = _Stutters(str(planned.path), "put", ".json")
    assert planned.execute(storage=leases) is Outcome.COMPLETED


def test_a_heartbeat_that_cannot_be_deleted(planned: Planned) -> None:
    assert planned.execute(storage=_Stutters(str(planned.path), "delete", planned.ts)) is Outcome.PARTLY_DONE
    assert planned.state is State.COMPLETED


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "error", [JobLost("lost"), CheckFailed("wrong"), KeyboardInterrupt()], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a writer"])
def test_an_attempt_that_fails_after_another_completed_the_plan(
    release: str, error: BaseException, beside: bool, tmp_path: Path
) -> None:
    """Its files, which its driver does not know yet, do not become visible: readers that list would see rows twice."""
    path = unpack(release, tmp_path)
    ts = clustering.schedule(request(path, Mode.SCHEDULE)).instant or ""
    before = rows(open_local(path), listed_view(open_local(path)))

    class Late(LocalEngine):
        def map(self, function, tasks, what, progress):  # type: ignore[no-untyped-def]
            if "rewrite" not in what:
                return super().map(function, tasks, what, progress)
            table = open_local(path)
            found = table.timeline.find(ts)
            assert found is not None
            roll_back(table, found, Times(table, 0), keep_plan=True)
            shutil.rmtree(path / ".hoodie" / ".locks")
            clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
            shutil.rmtree(path / ".hoodie" / ".locks", ignore_errors=True)
            super().map(function, tasks, what, progress)
            if beside:
                open_local(path).timeline.publish("20990101000000000", Action.COMMIT, State.REQUESTED)
            raise error

    with pytest.raises(type(error)):
        clustering.execute(request(path, Mode.EXECUTE), engine=Late())
    assert rows(open_local(path), listed_view(open_local(path))).equals(before)
