"""Runs that must end: groups that have no time are left out, or left for the next run."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering, compaction
from hudi_services.options import resolve
from hudi_services.rewriting import time_limit
from hudi_services.runs import group_tasks
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import CompactionRequest, Mode
from hudi_services.runs.retries import run_with_retries

from . import histories
from .tables import both_views, open_local, published, request, unpack
from .test_merge_histories import comparable, merged_rows
from .test_orphan_files import found as garbage_found

SINGLE = {"hoodie.clustering.plan.strategy.class": "single_file"}
SORT = {"hoodie.clustering.plan.strategy.sort.columns": "label"}
LIMIT = {"hudi.services.time.limit": "100s"}
SECONDS = 30
"""Of a group, by the clock of these tests."""


class Clock:
    """Stands still but for the groups, each of which takes as long."""

    def __init__(self) -> None:
        self.began = self.now = time.time()
        self.groups = 0

    def time(self) -> float:
        return self.now

    monotonic = time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    found = Clock()
    whole, write = time_limit.rewrite_once, group_tasks._exchanged

    def rewritten(*arguments: Any) -> Any:
        result = whole(*arguments)
        found.now += 0 if result.taken_over else SECONDS
        found.groups += not result.taken_over
        return result

    def exchanged(*arguments: Any) -> Any:
        results = write(*arguments)
        found.now += SECONDS * len(results[0])
        found.groups += len(results[0])
        return results

    monkeypatch.setattr(time_limit, "time", found)
    monkeypatch.setattr(time_limit, "rewrite_once", rewritten)
    monkeypatch.setattr(time_limit, "_rates", {})
    monkeypatch.setattr(group_tasks, "time", found)
    monkeypatch.setattr(group_tasks, "_exchanged", exchanged)
    yield found


def run(path: Path, options: dict[str, str], cores: int = 1, **more: Any) -> Report:
    wanted = request(path, Mode.EXECUTE, options, **more)
    return run_with_retries(lambda one: clustering.execute(one, None, LocalEngine(cores)), wanted, 0, lambda _: None)


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_the_finished_groups_are_committed(release: str, clock: Clock, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = both_views(path)[0]
    planned = clustering.schedule(request(path, Mode.SCHEDULE, SINGLE | SORT))
    report = run(path, LIMIT)
    # After three groups of like sizes, 10 s are left.
    assert (report.state, report.exit_code) == (RunState.PARTLY_DONE, 7)
    left = f"{planned.groups - 3} of {planned.groups} groups"
    assert report.reason == f"{left} were left out, because the time limit was over"
    assert clock.groups == 3 == report.files.after
    assert {row["why"] for row in report.tables["dropped_groups"]} == {
        f"the time limit of 100s was over before {left} could begin"
    }
    assert clock.now <= clock.began + 100
    assert all(seen.equals(before) for seen in both_views(path))
    assert not garbage_found(path)
    assert clustering.schedule(request(path, Mode.SCHEDULE, SINGLE | SORT)).groups == planned.groups


def test_a_limit_that_is_over_at_once(clock: Clock, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    before = both_views(path)[0]
    ts = clustering.schedule(request(path, Mode.SCHEDULE, SINGLE | SORT)).instant
    clock.now += 200
    report = run(path, LIMIT)
    assert (report.state, report.exit_code, clock.groups) == (RunState.PARTLY_DONE, 7, 0)
    assert report.error is not None and "the time limit of 100s was over" in str(report.error)
    assert all(seen.equals(before) for seen in both_views(path))
    assert run(path, {}).instant == ts
    assert all(seen.equals(before) for seen in both_views(path))


def test_all_or_nothing_goes_on_later(clock: Clock, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    before = both_views(path)[0]
    ts = clustering.schedule(request(path, Mode.SCHEDULE, SINGLE | SORT)).instant
    report = run(path, LIMIT, all_or_nothing=True)
    assert report.exit_code == 7 and "3 finished tasks are kept" in str(report.error)
    assert all(seen.equals(before) for seen in both_views(path))
    done = run(path, {}, all_or_nothing=True)
    assert (done.state, done.instant, done.resumed_groups) == (RunState.COMPLETED, ts, 3)
    assert all(seen.equals(before) for seen in both_views(path))


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["first", "staged", "reserved"])
def test_sorted_groups_of_several_tasks(
    way: str, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_tasks, "_to_divide", lambda groups, cores: list(range(len(groups))))
    path = unpack("1.2.0", tmp_path)
    before = both_views(path)[0]
    clock.now += 50
    small = {
        "hoodie.clustering.plan.strategy.target.file.max.bytes": "6000",
        "hoodie.index.bloom.num_entries": "100",
        "hoodie.bloom.index.filter.dynamic.max.entries": "100",
    }
    report = clustering.schedule_and_execute(published(way, path, small | SORT | LIMIT), engine=LocalEngine(16))
    assert (report.state, report.exit_code, clock.groups) == (RunState.PARTLY_DONE, 7, 1)
    assert report.reason == "1 of 2 groups were left out, because the time limit was over"
    assert all(seen.equals(before) for seen in both_views(path))


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_a_compaction_goes_on_later(release: str, clock: Clock, tmp_path: Path) -> None:
    """Log files that were written since belong to the base files of the compaction: all must be there."""
    path = histories.MadeHistory(release, "default_order", tmp_path).path
    before = comparable(merged_rows(open_local(path), 1 << 20))

    def compact(mode: Mode, options: dict[str, str]) -> Report:
        given = {"hoodie.compact.inline.max.delta.commits": "1", **options}
        wanted = CompactionRequest(base_path=str(path), mode=mode, options=resolve([("test", given)]))
        job = {Mode.SCHEDULE: lambda one: compaction.schedule(one)}.get(
            mode, lambda one: compaction.execute(one, None, LocalEngine())
        )
        return run_with_retries(job, wanted, 0, lambda _: None)

    planned = compact(Mode.SCHEDULE, {})
    assert planned.state is RunState.REQUESTED and planned.groups
    clock.now += 100 - SECONDS * (planned.groups - 1) - 1
    report = compact(Mode.EXECUTE, LIMIT)
    assert report.exit_code == 7 and report.error is not None
    done = compact(Mode.EXECUTE, {})
    assert (done.state, done.instant) == (RunState.COMPLETED, planned.instant)
    assert comparable(merged_rows(open_local(path), 1 << 20)) == before
