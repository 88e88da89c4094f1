"""A group in parts, each of which is a task: its rows, their order and files are those of one task."""

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConfigError
from hudi_services.jobs import clustering
from hudi_services.local_pieces import LocalPieces
from hudi_services.rewriting import division, exchange
from hudi_services.rewriting.division import GroupParts, GroupSources, SurveyTask, survey
from hudi_services.rewriting.resume import parts_of, rewrite_once
from hudi_services.rewriting.rewrite import RewriteResult, of_parts
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.memory import TaskMemory
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import SortColumn
from hudi_services.runs import group_tasks
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import Mode
from hudi_services.schema.table_schema import META_COLUMNS
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.timeline.instant import Action

from ..tiers import DEEP
from . import histories
from .faulty_storage import FaultyStorage, Killed
from .parquet_samples import slices_in
from .shares import places, share
from .tables import RELEASES, both_views, open_local, request, unpack
from .test_crash import mend
from .test_merge_histories import comparable
from .test_merge_histories import merged_rows as table_rows
from .test_merge_on_read import CASES, MEMORY

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""An example writes files: to make a failing one smaller would take minutes."""
INSTANT = "20260101000000000"


def write(folder: Path, name: str, rows: int, seed: int, **options: object) -> None:
    rng = np.random.default_rng(seed)
    meta = {column: pa.array([f"{name}-{i:06d}" for i in range(rows)], pa.string()) for column in META_COLUMNS[:5]}
    columns = {
        "n": pa.array(rng.permutation(rows), pa.int64()),
        "x": rng.random(rows),
        "s": rng.choice(["a", "bb", None], rows),
        "tie": pa.array(np.full(rows, seed % 2), pa.int32()),
    }
    pq.write_table(pa.table({**meta, **columns}), folder / name, **options)


def parts_by_surveys(task: RewriteTask) -> GroupParts | GroupSources:
    """As the tasks of an engine do it, which send what they find."""
    surveys = [survey(pickle.loads(pickle.dumps(one)), "0-0-1") for one in SurveyTask.of_group(task)]
    return parts_of(task, pickle.loads(pickle.dumps(surveys)))


def rows_of(task: RewriteTask, result: RewriteResult) -> list[pa.Table]:
    """The rows of each new file, without the names of files."""
    found = []
    for new in result.files:
        table = pq.read_table(Path(task.storage.root) / new.path)
        assert set(table["_hoodie_file_name"].to_pylist()) == {new.path} and table.num_rows == new.rows
        found.append(table.drop_columns(["_hoodie_file_name"]))
    return found


files = st.lists(
    st.tuples(st.integers(1, 400), st.integers(20, 500), st.sampled_from(["snappy", "zstd"])), min_size=1, max_size=6
)


@pytest.mark.thorough
@pytest.mark.sweep
@settings(max_examples=20 if DEEP else 6, phases=PHASES)
@given(files=files, count=st.integers(2, 7), row_group=st.sampled_from([2_000, 20_000, 1 << 20]))
def test_parts_are_the_files_of_one_task(
    files: list[tuple[int, int, str]], count: int, row_group: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("group")
    names = []
    for number, (rows, size, codec) in enumerate(files):
        names.append(f"in{number}.parquet")
        write(folder, names[-1], rows, number, row_group_size=size, compression=codec)
    storage = open_storage(str(folder))
    ids = tuple(f"f{i}-0" for i in range(count))
    form = FileSettings(row_group_bytes=row_group, codec="snappy")
    slices = slices_in(storage, *names)
    task = RewriteTask(storage, INSTANT, "", *slices, ids, (), "LINEAR", None, (), True, form, resumes=False)
    whole = rewrite_once(replace(task, instant="20260101000000001"), "0-0-0")
    found = parts_by_surveys(task)
    assert isinstance(found, GroupParts)
    if len(found.tasks) == 1:
        assert len(whole.files) < 2 or found.tasks == (task,)
        return
    parts = [rewrite_once(part, f"{number}-0-2") for number, part in enumerate(found.tasks)]
    done = of_parts(parts, found.bytes, found.rows)
    assert done.before == done.after
    assert (done.rows_in, done.bytes_in, done.decoded) == (whole.rows_in, whole.bytes_in, whole.decoded)
    assert pa.concat_tables(rows_of(task, done)).equals(pa.concat_tables(rows_of(task, whole)))
    assert len(done.files) == len(whole.files)
    for new, old in zip(done.files, whole.files, strict=True):
        assert abs(new.rows - old.rows) <= 0.02 * done.rows_in / len(done.files) + 1
    # A part that is lost, or written twice, is seen.
    for wrong in (parts[1:], [*parts, parts[0]]):
        with pytest.raises(CheckFailed):
            of_parts(wrong, found.bytes, found.rows)
    # The parts that an earlier attempt has finished are taken over, by whoever divides the group again.
    again = parts_by_surveys(replace(task, resumes=True))
    assert isinstance(again, GroupParts)
    assert [rewrite_once(part, "9-9-9").taken_over for part in again.tasks] == [True] * len(parts)


@pytest.fixture(scope="module")
def small_groups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_tasks, "_LEAST_BYTES", 1)
        patch.setattr(division, "_SOURCE_BYTES", 8_000)
        patch.setattr(division, "_SURVEYED_BYTES", 20_000)
        patch.setattr(exchange, "_SENT_BYTES", 20_000)
        yield


def all_divided(groups: Sequence[RewriteTask]) -> group_tasks.Rewritten:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_tasks, "_to_divide", lambda groups, cores: list(range(len(groups))))
        return group_tasks.rewrite_groups(LocalEngine(), groups, lambda done, total: None)


sorts = st.lists(
    st.tuples(st.sampled_from(["n", "x", "s", "tie"]), st.booleans(), st.booleans()),
    min_size=1,
    max_size=3,
    unique_by=lambda one: one[0],
)


@pytest.mark.thorough
@pytest.mark.sweep
@settings(max_examples=15 if DEEP else 6, phases=PHASES)
@given(
    files=files,
    count=st.integers(2, 7),
    sort=sorts,
    layout=st.sampled_from(["LINEAR", "ZORDER", "HILBERT"]),
    memory=st.sampled_from([1 << 30, 100_000]),
)
def test_sorted_parts_are_ranges_of_the_order(
    files: list[tuple[int, int, str]],
    count: int,
    sort: list[tuple[str, bool, bool]],
    layout: str,
    memory: int,
    small_groups: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("sorted")
    names = [f"in{number}.parquet" for number in range(len(files))]
    for number, (rows, size, codec) in enumerate(files):
        write(folder, names[number], rows, number, row_group_size=size, compression=codec)
    storage = open_storage(str(folder))
    columns = tuple(SortColumn(*one) for one in sort)
    ids = tuple(f"f{i}-0" for i in range(count))
    slices = slices_in(storage, *names)
    task = RewriteTask(
        storage, INSTANT, "", *slices, ids, columns, layout, None, (), True, FileSettings(), TaskMemory(memory)
    )
    whole = rewrite_once(replace(task, instant="20260101000000001"), "0-0-0")
    done = all_divided([task])
    (result,) = done.results.values()
    assert (result.before, result.after) == (whole.before, whole.after)
    assert (result.rows_in, result.bytes_in, result.decoded) == (whole.rows_in, whole.bytes_in, "sorted")
    assert done.tasks > len(result.files) > 0
    keys = [name for name, _, _ in sort]
    if layout == "LINEAR":
        # Rows with one key have no order among them.
        ours, theirs = (pa.concat_tables(rows_of(task, one)).select(keys) for one in (result, whole))
        assert ours.equals(theirs)
    else:
        assert sum(map(len, rows_of(task, result))) == result.rows_in
    if result.rows_in > 20 * count:
        assert abs(len(result.files) - len(whole.files)) <= 1
        mean = result.rows_in / len(result.files)
        # Of few different keys, or of little memory for a sample, it is not known what the rows between them weigh.
        if not {*keys} <= {"s", "tie"} and memory > 1 << 20:
            assert all(0.5 * mean < new.rows < 1.6 * mean for new in result.files)
    again = all_divided([task])
    assert again.results[0].taken_over and again.results[0].files == result.files


@pytest.mark.thorough
@pytest.mark.parametrize("sort", [(), (SortColumn("d"),)], ids=["unsorted", "sorted"])
def test_files_of_two_calendars(sort: tuple[SortColumn, ...], small_groups: None, tmp_path: Path) -> None:
    """The same number is another day in the hybrid calendar: all parts read the days as one task would."""
    version, legacy = {"org.apache.spark.version": "3.5.0"}, {"org.apache.spark.legacyDateTime": ""}
    names = ["hybrid.parquet", "gregorian.parquet"]
    for name, notes in zip(names, ({**version, **legacy}, version), strict=True):
        meta = {column: pa.array([f"{name}-{i:06d}" for i in range(3000)], pa.string()) for column in META_COLUMNS[:5]}
        days = pa.array(np.arange(3000) % 7 - 200_000, pa.int32()).cast(pa.date32())
        pq.write_table(
            pa.table({**meta, "d": days}).replace_schema_metadata(notes), tmp_path / name, row_group_size=400
        )
    storage = open_storage(str(tmp_path))
    ids = ("f0-0", "f1-0", "f2-0")
    slices = slices_in(storage, *names)
    task = RewriteTask(storage, INSTANT, "", *slices, ids, sort, "LINEAR", None, (), True, FileSettings())
    whole = rewrite_once(replace(task, instant="20260101000000001"), "0-0-0")
    done = all_divided([task])
    result = done.results[0]
    assert done.tasks >= len(result.files) > 1
    assert (result.before, result.after, result.decoded) == (whole.before, whole.after, whole.decoded)
    ours, theirs = (
        pa.concat_tables(rows_of(task, one)).sort_by([("d", "ascending"), ("_hoodie_record_key", "ascending")])
        for one in (result, whole)
    )
    assert ours.equals(theirs)
    for new in (*result.files, *whole.files):
        assert b"org.apache.spark.legacyDateTime" not in pq.read_metadata(tmp_path / new.path).metadata


FILES = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "6000"}
SMALL_FILTER = {"hoodie.index.bloom.num_entries": "100", "hoodie.bloom.index.filter.dynamic.max.entries": "100"}
CORES = 16


SORT = {"hoodie.clustering.plan.strategy.sort.columns": "label,ts desc"}
SORT_HISTORY = {"hoodie.clustering.plan.strategy.sort.columns": "val desc"}


def clustered(path: Path, options: dict[str, str]) -> Report:
    wanted = request(path, Mode.SCHEDULE_AND_EXECUTE, {**FILES, **SMALL_FILTER, **options})
    return clustering.schedule_and_execute(wanted, engine=LocalEngine(cores=CORES))


def executed(path: Path, storage: Storage | None, options: dict[str, str]) -> Report:
    """One divided group for each partition; a resumed run has the same cores."""
    wanted = request(path, Mode.EXECUTE, {**SMALL_FILTER, **options})
    return clustering.execute(wanted, storage, LocalEngine(cores=CORES))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sort", "number"), [pytest.param({}, 0, marks=pytest.mark.deep), (SORT, 1)], ids=["unsorted", "sorted"]
)
def test_killed_at_any_write(sort: dict[str, str], number: int, small_groups: None, tmp_path: Path) -> None:
    made = unpack("1.2.0", tmp_path)
    ts = clustering.schedule(request(made, Mode.SCHEDULE, {**FILES, **SMALL_FILTER, **sort})).instant
    assert ts is not None
    before = both_views(made)[0]
    storage = FaultyStorage(str(shutil.copytree(made, tmp_path / "whole")))
    whole = executed(Path(storage.root), storage, sort)
    taken = 0
    for survived in share(places(storage.log), number, 2):
        path = Path(shutil.copytree(made, tmp_path / f"killed-{survived}"))
        with pytest.raises(Killed):
            executed(path, FaultyStorage(str(path), survived), sort)
        assert all(seen.equals(before) for seen in both_views(path))
        if not open_local(path).timeline.find(ts, Action.REPLACE_COMMIT).is_completed:
            report = executed(path, None, sort)
            taken += report.resumed_groups or 0
            assert report.files.after == whole.files.after
        mend(path, ts, before, survived)
        shutil.rmtree(path)
    assert taken


@pytest.mark.thorough
@pytest.mark.parametrize("sort", [{}, SORT], ids=["unsorted", "sorted"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_plan_of_few_groups_on_many_cores(
    release: str, sort: dict[str, str], small_groups: None, tmp_path: Path
) -> None:
    path = unpack(release, tmp_path)
    before = both_views(path)[0]
    report = clustered(path, sort)
    assert report.groups < report.files.after <= report.tasks
    assert all(seen.equals(before) for seen in both_views(path))
    assert bool(report.tables.get("skipping")) == bool(sort)


class Unreliable(LocalPieces):
    """Rows get lost, double or changed on their way, as `fault` says."""

    fault: Callable[[list[tuple[Any, pa.Table]]], list[tuple[Any, pa.Table]]]

    def results(self, step: Any, task: Any, description: str, progress: Any) -> list[Any]:
        parts = [partial(self._at_fault, rows) for rows in self._partitions]
        return LocalPieces(parts, self._held).results(step, task, description, progress)

    def _at_fault(self, rows: Callable[[], Iterator[tuple[Any, pa.Table]]]) -> Iterator[tuple[Any, pa.Table]]:
        return iter(type(self).fault(list(rows())))


def changed(rows: list[tuple[Any, pa.Table]]) -> list[tuple[Any, pa.Table]]:
    (label, table), *others = rows
    column = table.column_names.index("ts")
    values = pa.array([0] * table.num_rows, pa.int64()).cast(table.schema.field(column).type)
    return [(label, table.set_column(column, table.schema.field(column), values)), *others]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda rows: rows[1:], "rows were lost between the tasks"),
        (lambda rows: [*rows, rows[-1]], "rows were lost between the tasks"),
        (changed, "does not hold the rows that it was to have"),
        pytest.param(lambda rows: [rows[0], *rows], "rows were lost between the tasks", marks=pytest.mark.deep),
        pytest.param(lambda rows: rows[:-1], "rows were lost between the tasks", marks=pytest.mark.deep),
    ],
    ids=["lost", "source doubled", "changed", "doubled", "source lost"],
)
def test_a_fault_between_tasks_is_found(fault: Any, said: str, small_groups: None, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    before = both_views(path)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Unreliable, "fault", staticmethod(fault), raising=False)
        patch.setattr(LocalPieces, "_held_ones", lambda *args: Unreliable(*_parts(kept(*args))))
        with pytest.raises(CheckFailed, match=said):
            clustered(path, SORT)
    assert all(seen.equals(before) for seen in both_views(path))
    assert executed(path, None, SORT).rows.after == before.num_rows
    assert all(seen.equals(before) for seen in both_views(path))


kept = LocalPieces._held_ones


def _parts(pieces: LocalPieces) -> tuple[Any, Any]:
    return pieces._partitions, pieces._held


@pytest.mark.thorough
@pytest.mark.spread(23)
@pytest.mark.parametrize("sort", [{}, SORT_HISTORY], ids=["unsorted", "sorted"])
@pytest.mark.parametrize(("release", "name"), CASES)
def test_slices_with_log_files_stay_whole(
    release: str, name: str, sort: dict[str, str], small_groups: None, tmp_path: Path
) -> None:
    path = histories.MadeHistory(release, name, tmp_path).path
    before = comparable(table_rows(open_local(path), MEMORY))
    report = clustered(path, sort)
    assert report.state is RunState.COMPLETED
    assert report.rows.after == len(before)
    assert comparable(table_rows(open_local(path), MEMORY)) == before


def test_a_sort_of_whole_partitions(small_groups: None, tmp_path: Path) -> None:
    """Smaller groups would have files of overlapping ranges."""
    path = unpack("1.2.0", tmp_path)
    before = both_views(path)[0]
    groups = {"hoodie.clustering.plan.strategy.max.bytes.per.group": "6000"}
    whole = {**groups, **SORT, "hudi.services.clustering.sort.scope": "partition"}
    parted = clustering.schedule(request(path, Mode.SCHEDULE, {**FILES, **groups, **SORT}, dry_run=True))
    report = clustered(path, whole)
    table = open_local(path)
    partitions = table.view.partitions()
    assert report.groups == len(partitions) < parted.groups
    assert all(seen.equals(before) for seen in both_views(path))
    for partition in partitions:
        slices = table.view.latest_slices(partition)
        found = [pq.read_table(path / one.base_file.path)["label"].to_pylist() for one in slices if one.base_file]
        ranges = sorted((min(labels), max(labels)) for labels in found)
        assert len(ranges) > 1 and all(one[1] <= other[0] for one, other in pairwise(ranges))
    (gain,) = [row for row in report.tables["skipping"] if row["column"] == "label"]
    assert gain["read_after"] / gain["files_after"] < gain["read_before"] / gain["files_before"]
    for wrong, said in (
        ({"hudi.services.clustering.sort.scope": "partition"}, "nothing is sorted"),
        ({**whole, "hoodie.clustering.plan.strategy.class": "single_file"}, "rewrites each by itself"),
    ):
        with pytest.raises(ConfigError, match=said):
            clustering.schedule(request(path, Mode.SCHEDULE, wrong))
