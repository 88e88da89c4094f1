"""Scheduling on tables that real Apache Hudi wrote: dry runs, plan strategies, limits, waiting for commits."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_services.clustering.eligibility import ClusteringReason
from hudi_services.clustering.strategies import STRATEGIES, PlanStrategy
from hudi_services.clustering.value_ranges import ValueRanges
from hudi_services.codecs.clustering_plan import ClusteringPlan, encode_clustering_plan
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError, NeedsRecovery, NothingToDo
from hudi_services.jobs import clustering, undo
from hudi_services.metadata.file_groups.reader import FileGroupReader
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.records.keys import COLUMN_STATS
from hudi_services.model import FileSlice
from hudi_services.options import clustering_keys as keys
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import Mode
from hudi_services.timeline.instant import Action

from .repairs import DEAD_AT_ONCE, repair
from .tables import RELEASES, digest, open_local, request, unpack

SORT = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"
STRATEGY = "hoodie.clustering.plan.strategy.class"
EXECUTION = "hoodie.clustering.execution.strategy.class"
SELECTED = "hoodie.clustering.plan.strategy.partition.selected"
BUDGET = "hudi.services.clustering.plan.max.bytes"
MAX_COMMITS = "hoodie.clustering.inline.max.commits"
KEY, WRITTEN = "_hoodie_record_key", "_hoodie_commit_time"


@pytest.fixture(params=RELEASES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def schedule(path: Path, options: dict[str, str] | None = None, **changes: object) -> Report:
    return clustering.schedule(request(path, Mode.SCHEDULE, options, **changes))


def live_slices(path: Path) -> dict[str, list[FileSlice]]:
    view = open_local(path).view
    return {partition: view.latest_slices(partition) for partition in view.partitions()}


def test_a_dry_run_writes_nothing_and_says_what_schedule_does(path: Path) -> None:
    before = digest(path)
    dry = schedule(path, dry_run=True)
    assert digest(path) == before
    assert dry.state is RunState.COMPLETED and dry.dry_run and dry.exit_code == 0 and dry.instant is None
    slices = [one for some in live_slices(path).values() for one in some]
    verdicts = dry.tables["file_slices"]
    assert {(one["partition"], one["file_id"]) for one in verdicts} == {(one.partition, one.file_id) for one in slices}
    assert len(verdicts) == len(slices) == dry.files.before + sum(dry.left_out.values())
    real = schedule(path)
    assert real.state is RunState.REQUESTED and "file_slices" not in real.tables
    assert (real.groups, real.files, real.left_out) == (dry.groups, dry.files, dry.left_out)
    assert real.bytes.before == dry.bytes.before and real.bytes.after is None
    plan = open_local(path).timeline.read_plan(open_local(path).timeline.pending_clusterings()[0])
    for number, group in enumerate(plan.groups):
        planned = {one["file_id"] for one in verdicts if one["group"] == number}
        assert planned == {one.file_id for one in group.slices}


def test_every_reason_of_a_dry_run(path: Path) -> None:
    partitions = sorted(live_slices(path))
    schedule(path, {SELECTED: partitions[0]})
    with pytest.raises(NothingToDo) as idle:
        schedule(path, {SELECTED: partitions[0]}, dry_run=True)
    assert f"{len(live_slices(path)[partitions[0]])} {ClusteringReason.PENDING_CLUSTERING.value}" in idle.value.message
    dry = schedule(path, {SELECTED: ",".join(partitions[:2])}, dry_run=True)
    by_partition = {
        p: {row["reason"] for row in dry.tables["file_slices"] if row["partition"] == p} for p in partitions
    }
    assert by_partition[partitions[0]] == {ClusteringReason.PENDING_CLUSTERING.value}
    assert by_partition[partitions[1]] == {ClusteringReason.PICKED.value}
    assert all(by_partition[p] == {ClusteringReason.FILTERED_OUT.value} for p in partitions[2:])


def test_an_empty_plan_has_a_report_of_its_own(path: Path) -> None:
    """The reasons of the file slices are told when there is nothing to plan, too."""
    wanted = request(path, Mode.SCHEDULE, {"hoodie.clustering.plan.strategy.small.file.limit": "1"}, dry_run=True)
    seen: list[object] = []
    with pytest.raises(NothingToDo, match=ClusteringReason.TOO_LARGE.value):
        clustering.schedule(dataclasses.replace(wanted, on_report=seen.append))
    (report,) = seen
    assert isinstance(report, Report) and report.dry_run
    assert {row["reason"] for row in report.tables["file_slices"]} == {ClusteringReason.TOO_LARGE.value}


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("name", STRATEGIES)
def test_each_strategy_plans_what_can_be_executed(path: Path, name: str) -> None:
    report = schedule(path, {STRATEGY: name, "hudi.services.clustering.plan.columns": WRITTEN})
    assert report.state is RunState.REQUESTED and report.groups
    executed = clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert executed.state is RunState.COMPLETED and executed.rows.before == executed.rows.after


def test_ranges_by_the_index_and_by_the_footers_are_the_same(path: Path) -> None:
    for slices in live_slices(path).values():
        table = open_local(path)
        by_footer, by_any = ValueRanges(table), ValueRanges(table)
        by_footer._indexed = lambda partition, column: {}  # type: ignore[method-assign]
        for column in (KEY, WRITTEN):
            found = by_any(slices, column)
            assert found == by_footer(slices, column)
            assert all(one is not None and one[0] <= one[1] for one in found)
        assert by_any(slices, "no_such_column") == [None] * len(slices)


def test_the_index_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpack("1.2.0", tmp_path)
    opened: list[FileSlice] = []
    original = MetadataTable.open_group

    def open_group(self: MetadataTable, group: FileSlice) -> FileGroupReader:
        opened.append(group)
        return original(self, group)

    table, slices = open_local(path), live_slices(path)
    assert table.metadata is not None
    monkeypatch.setattr(MetadataTable, "open_group", open_group)
    ranges = ValueRanges(table)
    assert not opened, "a strategy may ask for no range"
    for of_partition in slices.values():
        for column in (KEY, WRITTEN):
            ranges(of_partition, column)
    assert len(slices) > 1 and opened == table.metadata.file_groups(COLUMN_STATS)


def test_what_is_beyond_the_limits_is_said_and_planned_next(path: Path) -> None:
    everything = {(one.partition, one.file_id) for some in live_slices(path).values() for one in some}
    largest = max(sum(one.base_file.size for one in some if one.base_file) for some in live_slices(path).values())
    limits = {"hudi.services.clustering.plan.max.bytes": str(largest), "hudi.services.clustering.plan.order": "gain"}
    planned: Counter[tuple[str, str]] = Counter()
    for _ in range(len(live_slices(path))):
        report = schedule(path, limits)
        left = report.left_out.get(ClusteringReason.BUDGET.value, 0)
        assert bool(left) == any("are left for the next plan" in warning for warning in report.warnings)
        timeline = open_local(path).timeline
        plans = [timeline.read_plan(instant) for instant in timeline.pending_clusterings()]
        planned = Counter(
            (one.partition, one.file_id) for plan in plans for group in plan.groups for one in group.slices
        )
        if not left:
            break
    assert planned.keys() == everything and set(planned.values()) == {1}


def test_a_budget_below_the_size_of_a_group(path: Path) -> None:
    """Groups are packed to what a plan may take, so that work goes on; a file that it cannot hold says so."""
    sizes = [one.base_file.size for some in live_slices(path).values() for one in some if one.base_file]
    plans = 0
    with pytest.raises(NothingToDo):
        while True:
            report = schedule(path, {BUDGET: str(2 * max(sizes))})
            assert report.bytes.before is not None and report.bytes.before <= 2 * max(sizes)
            plans += 1
    assert plans >= len(sizes) // 2
    assert len(open_local(path).timeline.pending_clusterings()) == plans


def test_a_file_that_no_plan_takes(path: Path) -> None:
    with pytest.raises(NothingToDo, match=ClusteringReason.LARGER_THAN_BUDGET.value):
        schedule(path, {BUDGET: "10"})


def test_waiting_for_commits(path: Path) -> None:
    commits = len(open_local(path).timeline.completed_writes())
    with pytest.raises(NothingToDo, match=f"{commits} of {commits + 1} commits on the timeline"):
        schedule(path, {MAX_COMMITS: str(commits + 1)})
    with pytest.raises(NothingToDo, match=f"{commits} of {commits + 2} commits"):
        schedule(path, {MAX_COMMITS: "1", "hoodie.clustering.async.max.commits": str(commits + 2)})
    ts = schedule(path, {MAX_COMMITS: str(commits)}).instant
    with pytest.raises(NothingToDo, match=f"0 of 1 commit since the pending clustering {ts}"):
        schedule(path, {MAX_COMMITS: "1"})
    with pytest.raises(NeedsRecovery, match=f"0 of 1 commit since the pending clustering {ts}"):
        schedule(path, {MAX_COMMITS: "1", **DEAD_AT_ONCE})
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    with pytest.raises(NothingToDo, match=f"0 of 1 commit since the clustering {ts}"):
        schedule(path, {MAX_COMMITS: "1"})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({STRATEGY: "overlap"}, "needs columns"),
        ({EXECUTION: keys.SINGLE_FILE_EXECUTION}, "rewrites each file by itself, and the plan strategy size groups"),
        ({STRATEGY: "overlap", "hudi.services.clustering.plan.columns": "typo"}, "plan.columns column typo is not in"),
        ({LAYOUT: "no.such:Layout", SORT: KEY}, "the layout no.such:Layout cannot be loaded"),
        ({STRATEGY: f"{__name__}:Failing"}, "the plan strategy .*:Failing failed: KeyError: 'my.cities'"),
        ({STRATEGY: f"{__name__}:Huge"}, "the plan strategy .*:Huge made a group of .* is the largest size"),
        ({STRATEGY: f"{__name__}:Names"}, "the plan strategy .*:Names gave the file group a twice, or made it up"),
        ({STRATEGY: f"{__name__}:Wordless"}, "has a left_out that is no text"),
    ],
)
def test_what_cannot_be_planned_ends_before_a_write(options: dict[str, str], problem: str, path: Path) -> None:
    before = digest(path)
    with pytest.raises(ConfigError, match=problem):
        schedule(path, {"hoodie.clustering.plan.strategy.max.bytes.per.group": "1000", **options})
    assert digest(path) == before


class Failing(PlanStrategy):
    def groups(self, slices: Sequence[FileSlice]) -> Iterator[Sequence[FileSlice]]:
        yield [one for one in slices if one.file_id in self.context.options["my.cities"]]


class Huge(PlanStrategy):
    def groups(self, slices: Sequence[FileSlice]) -> list[Sequence[FileSlice]]:
        return [slices]


class Names(PlanStrategy):
    def groups(self, slices: Sequence[FileSlice]) -> Any:
        return ["abc"]


class Wordless(Huge):
    left_out = ClusteringReason.NOT_CHOSEN  # type: ignore[assignment]


class Generators(PlanStrategy):
    def groups(self, slices: Sequence[FileSlice]) -> Any:
        yield (one for one in slices)


def the_plan(path: Path) -> ClusteringPlan:
    timeline = open_local(path).timeline
    (instant,) = timeline.pending_clusterings()
    return timeline.read_plan(instant)


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("name", keys.COPY_EXECUTIONS)
@pytest.mark.parametrize(("sort", "warnings"), [({}, 0), ({SORT: KEY}, 1), ({SORT: KEY, LAYOUT: "NONE"}, 0)])
def test_classes_for_copying_sort_where_there_are_sort_columns(
    name: str, sort: dict[str, str], warnings: int, path: Path
) -> None:
    """As in Hudi, which then falls back to sorting; the plan names a class that every release has."""
    report = schedule(path, {EXECUTION: name, **sort})
    assert sum("copies files only without sort columns" in warning for warning in report.warnings) == warnings
    assert the_plan(path).strategy_class == keys.SORT_AND_SIZE_EXECUTION
    executed = clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert ("sorted" in executed.decoded) == bool(warnings)


@pytest.mark.thorough
@pytest.mark.parametrize(("sort", "warnings"), [({}, 0), ({SORT: KEY}, 1)])
def test_a_plan_of_hudi_for_copying(sort: dict[str, str], warnings: int, path: Path) -> None:
    schedule(path, sort)
    table = open_local(path)
    (instant,) = table.timeline.pending_clusterings()
    (name, _) = keys.COPY_EXECUTIONS
    theirs = replace(table.timeline.read_plan(instant), strategy_class=name)
    file = path / table.timeline.path(table.timeline.requested_name(instant))
    file.write_bytes(encode_clustering_plan(theirs, table.config.version.release))
    executed = clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert executed.state is RunState.COMPLETED
    assert sum("copies files only without sort columns" in warning for warning in executed.warnings) == warnings
    assert ("sorted" in executed.decoded) == bool(warnings)


@pytest.mark.thorough
def test_single_files_stay_single(path: Path) -> None:
    """One new file for each, however large the old one is."""
    slices = [one for some in live_slices(path).values() for one in some]
    small = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "1000", SORT: KEY}
    schedule(path, {STRATEGY: "single_file", EXECUTION: keys.SINGLE_FILE_EXECUTION, **small})
    plan = the_plan(path)
    assert plan.strategy_class == keys.SINGLE_FILE_EXECUTION
    assert [(len(group.slices), group.output_groups) for group in plan.groups] == [(1, 1)] * len(slices)
    executed = clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert executed.files.after == len(slices) and executed.decoded == {"sorted": len(slices)}


def test_groups_may_be_generators(path: Path) -> None:
    assert schedule(path, {STRATEGY: f"{__name__}:Generators"}).state is RunState.REQUESTED


@pytest.mark.thorough
def test_a_dry_run_of_execution(path: Path) -> None:
    ts, before = schedule(path).instant, digest(path)
    dry = clustering.execute(request(path, Mode.EXECUTE, dry_run=True))
    assert dry.dry_run and (dry.state, dry.instant) == (RunState.COMPLETED, ts)
    assert digest(path) == before
    done = clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert (dry.groups, dry.files, dry.rows) == (done.groups, done.files, done.rows)
    both = clustering.schedule_and_execute(request(unpacked_again(path), Mode.SCHEDULE_AND_EXECUTE, dry_run=True))
    assert both.dry_run and both.instant is None and both.tables["file_slices"]


def unpacked_again(path: Path) -> Path:
    """The same table with more to cluster: the clustering of the test is undone."""
    (ts,) = [one.ts for one in open_local(path).timeline.completed({Action.REPLACE_COMMIT})]
    undo.undo(repair(path, "undo", ts))
    return path
