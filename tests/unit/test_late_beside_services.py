"""Our other services beside `--publish late`: staged files are nothing to them; a reserved instant names no group."""

import random
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, NothingToDo
from hudi_services.jobs import clean, clustering
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import IndexRequest, Mode
from hudi_services.timeline.instant import Action

from .repairs import LOCK, both, newest
from .tables import RELEASES, open_local, request, unpack
from .test_clean import VERSIONS_1
from .test_clean import wanted as clean_of
from .test_completed_rollback import rolled_back, undone
from .test_index_bootstrap import indexed_locations, is_listed, real_locations
from .test_index_bootstrap import wanted as index_of
from .test_publish_late import Table
from .test_salvage import Beside, rows


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(6, 24))])
def test_what_a_service_takes_away_is_left_out(seed: int, tmp_path: Path) -> None:
    """It deletes files that the run reads, or has read: no group of these is committed, and every other one is."""
    chance = random.Random(seed)
    table = Table(RELEASES[seed % len(RELEASES)], tmp_path, chance.choice(["STAGED", "RESERVED"]))
    service = ("clean", "undo", "rollback")[seed // 3 % 3]
    is_before = chance.random() < 0.5
    options = {**table.options}
    if service == "undo":
        target = table.cluster().instant
        biggest = max(one.base_bytes for one in open_local(table.path).view.live_slices())
        options["hoodie.clustering.plan.strategy.max.bytes.per.group"] = str(biggest * 5 // 2)
    if service == "rollback":
        target = table.update(chance.choice(table.slices))
    before = {one.file_id: one for one in open_local(table.path).view.live_slices()}
    wanted = rows(table.path)

    def act() -> None:
        if service == "clean":
            table.update(chance.choice(list(before.values())))
            assert clean.clean(clean_of(table.path, VERSIONS_1)).state is RunState.COMPLETED
        elif service == "undo":
            assert undone(table.path, target or "", {}).state is RunState.COMPLETED
        else:
            assert rolled_back(table.path, target or "", {}).state is RunState.COMPLETED

    late = request(table.path, Mode.SCHEDULE_AND_EXECUTE, options, publish_late=True)
    try:
        done = clustering.schedule_and_execute(late, None, Beside(act, 0.0 if is_before else 1.0))
    except ConflictError:
        # Of an undone clustering no group is left.
        assert service == "undo"
    else:
        assert service != "undo" and done.exit_code == 7
        assert len(done.tables["dropped_groups"]) == 1 and (done.groups or 0) > 1
    assert rows(table.path).equals(wanted)
    assert table.is_clean()
    assert not open_local(table.path).timeline.pending()


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("lock", [{}, LOCK], ids=["no lock", "lock"])
def test_an_index_is_not_published_beside_it(release: str, lock: dict[str, str], tmp_path: Path) -> None:
    """The index waits for the reserved instant, as for every clustering in execution. What was built is kept."""
    path = unpack(release, tmp_path)
    wanted = both(path)
    errors: list[str] = []
    hasty = {**index_of(path).options.texts(), "hoodie.write.lock.wait_time_ms": "0", **lock}
    build = IndexRequest(base_path=str(path), options=resolve([("test", hasty)]), resume=True)

    def index() -> None:
        with pytest.raises(ConflictError, match="and may not know of the new index") as raised:
            index_bootstrap(build, engine=LocalEngine())
        errors.append(raised.value.hint)

    reserved = {**lock, "hudi.services.publish.late": "reserved"}
    late = request(path, Mode.SCHEDULE_AND_EXECUTE, reserved, publish_late=True)
    done = clustering.schedule_and_execute(late, None, Beside(index, 1.0))
    assert done.exit_code == 0 and "what was built is kept" in errors[0] and not is_listed(path)
    assert index_bootstrap(build, engine=LocalEngine()).state is RunState.COMPLETED
    assert indexed_locations(path) == real_locations(path)
    assert both(path)[0].equals(wanted[0])


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_an_index_that_is_published_meanwhile_gets_the_keys(release: str, before: bool, tmp_path: Path) -> None:
    """Nobody sees a staged attempt, so that the index does not wait for it: the commit brings the index up to date."""
    path = unpack(release, tmp_path)
    wanted = both(path)
    build = Beside(lambda: index_bootstrap(index_of(path), engine=LocalEngine()), 0.0 if before else 1.0)
    late = request(path, Mode.SCHEDULE_AND_EXECUTE, publish_late=True)
    assert clustering.schedule_and_execute(late, None, build).exit_code == 0
    assert is_listed(path) and indexed_locations(path) == real_locations(path)
    assert both(path)[0].equals(wanted[0])


@pytest.mark.parametrize("release", RELEASES)
def test_a_plan_that_is_executed_after_the_index_was_published(release: str, tmp_path: Path) -> None:
    """A plan that nobody executes yet does not block the index: whoever executes it later sees the index."""
    path = unpack(release, tmp_path)
    clustering.schedule(request(path, Mode.SCHEDULE))
    assert index_bootstrap(index_of(path), engine=LocalEngine()).state is RunState.COMPLETED
    assert clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine()).exit_code == 0
    assert newest(path).action is Action.REPLACE_COMMIT
    assert indexed_locations(path) == real_locations(path)


@pytest.mark.parametrize("release", RELEASES)
def test_a_clean_is_planned_beside_it(release: str, tmp_path: Path) -> None:
    """It is not refused: it keeps what the reserved instant holds back, as beside every pending instant."""
    table = Table(release, tmp_path, "RESERVED")
    states: list[object] = []

    def act() -> None:
        for one in table.slices[:3]:
            table.update(one)
        try:
            states.append(clean.clean(clean_of(table.path, {"hoodie.cleaner.commits.retained": "1"})).state)
        except NothingToDo as idle:
            states.append(idle.message)

    done = table.cluster(Beside(act, 1.0))
    assert done.exit_code == 7 and len(states) == 1
    assert table.is_clean() and rows(table.path).equals(table.rows)
