"""The log files of the record index are written before the lock is taken: under it they are moved."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import LockBusy, NeedsRecovery, NothingToDo
from hudi_services.jobs import clustering
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.validate import validate
from hudi_services.metadata.record_index.locations import millis_of
from hudi_services.metadata.records.keys import RECORD_INDEX
from hudi_services.metadata.records.model import LocationRecord
from hudi_services.options import resolve
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import ValidateRequest
from hudi_services.storage import Storage

from .faulty_storage import killed_anywhere
from .other_writers import OtherWriters
from .repairs import LOCK, both
from .tables import RELEASES, open_local, published, unpack
from .test_index_bootstrap import indexed_locations, real_locations
from .test_index_bootstrap import wanted as index_of

_WRITES_INDEX = "write the record index"


@pytest.fixture(params=["staged", "reserved", "first"])
def way(request: pytest.FixtureRequest) -> str:
    """How the plan is published."""
    return str(request.param)


@pytest.fixture(params=RELEASES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table with a record index."""
    path = unpack(request.param, tmp_path)
    assert index_bootstrap(index_of(path), engine=LocalEngine()).state is RunState.COMPLETED
    return path


class Watching(LocalEngine):
    """Notes for each time that the index is written whether the lock was held; then others act."""

    def __init__(self, path: Path, act: Callable[[], object] = lambda: None) -> None:
        self._lock = path / ".hoodie/lock"
        self._act = act
        self.held: list[bool] = []

    def map(self, function: Any, tasks: Sequence[Any], what: str, progress: Any) -> Any:
        done = super().map(function, tasks, what, progress)
        if what == _WRITES_INDEX:
            self.held.append(self._lock.exists())
            self._act()
        return done


def cluster(path: Path, way: str, engine: LocalEngine, storage: Storage | None = None) -> Report:
    biggest = max(one.base_bytes for one in open_local(path).view.live_slices())
    options = {**LOCK, "hoodie.write.lock.wait_time_ms": "400"}
    options["hoodie.clustering.plan.strategy.max.bytes.per.group"] = str(biggest * 5 // 2)
    return clustering.schedule_and_execute(published(way, path, options), storage, engine)


def is_right(path: Path) -> bool:
    """Whether the index has each key where it is, and the rows of the newest clustering at its instant."""
    table = open_local(path)
    done = table.timeline.last_clustering()
    assert table.metadata is not None and done is not None
    new = {one.file_id for some in table.timeline.read_commit(done).stats.values() for one in some}
    records = [one for one in table.metadata.reader(RECORD_INDEX).scan() if isinstance(one, LocationRecord)]
    times = {one.location.instant_millis for one in records if one.location.file_id in new}
    return indexed_locations(path) == real_locations(path) and times == {millis_of(done.ts)}


def is_valid(path: Path) -> bool:
    return validate(ValidateRequest(base_path=str(path), options=resolve([("test", LOCK)]))).exit_code == 0


@pytest.mark.thorough
def test_nothing_is_written_under_the_lock(path: Path, way: str) -> None:
    engine, wanted = Watching(path), both(path)
    assert cluster(path, way, engine).exit_code == 0
    assert engine.held == [False]
    assert is_right(path) and is_valid(path)
    assert both(path)[0].equals(wanted[0])
    assert not [*path.glob(".hoodie/.hudi_services/staged-*"), *path.glob(".hoodie/.temp/*")]


@pytest.mark.thorough
@pytest.mark.spread(8)
@pytest.mark.parametrize("times", [1, 5])
def test_a_newer_instant_comes(path: Path, way: str, times: int) -> None:
    """A staged attempt then draws another instant, and writes the log files again; a few times without the lock."""
    wanted, left = both(path), [times]

    def come() -> None:
        if left[0]:
            left[0] -= 1
            OtherWriters(path).commit_nothing()

    engine = Watching(path, come)
    done = cluster(path, way, engine)
    assert done.exit_code == 0
    again = {1: [False, False], 5: [False, False, False, True]}[times]
    assert engine.held == (again if way == "staged" else [False])
    assert is_right(path) and is_valid(path)
    assert both(path)[0].equals(wanted[0])


@pytest.mark.thorough
@pytest.mark.spread(2)
def test_a_group_is_left_out(path: Path, way: str) -> None:
    """Its keys stay where they are, although log files with new places were written."""
    wanted, one = both(path)[0], next(iter(open_local(path).view.live_slices()))
    begun: list[str] = []

    def begin() -> None:
        if not begun:
            begun.append(OtherWriters(path).begin(one))

    engine = Watching(path, begin)
    done = cluster(path, way, engine)
    assert done.exit_code == 7 and len(done.tables["dropped_groups"]) == 1
    assert engine.held == [False, False]
    assert is_right(path) and both(path)[0].equals(wanted)
    OtherWriters(path).end(begun[0])
    assert is_valid(path)


@pytest.mark.spread(4)
def test_killed_anywhere(path: Path, way: str) -> None:
    wanted = both(path)[0]
    for survived in killed_anywhere(path, lambda storage: cluster(path, way, LocalEngine(), storage), 3, 12):
        assert all(seen.equals(wanted) for seen in both(path)), survived
        # A plan that was published first waits for `execute`.
        with suppress(NothingToDo, LockBusy, NeedsRecovery):
            cluster(path, way, LocalEngine())
        assert all(seen.equals(wanted) for seen in both(path)), survived
        assert indexed_locations(path) == real_locations(path), survived
