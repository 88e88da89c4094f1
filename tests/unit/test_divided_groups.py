"""A group in parts, each of which is a task: its rows, their order and files are those of one task."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed
from hudi_services.jobs import clustering
from hudi_services.rewriting.resume import divide_once, rewrite_once
from hudi_services.rewriting.rewrite import RewriteResult, of_parts
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.settings import FileSettings
from hudi_services.runs import group_tasks
from hudi_services.runs.report import Report, RunState
from hudi_services.runs.request import Mode
from hudi_services.schema.table_schema import META_COLUMNS
from hudi_services.stores import open_storage

from . import histories
from .parquet_samples import slices_in
from .tables import RELEASES, both_views, open_local, request, unpack
from .test_merge_histories import comparable
from .test_merge_histories import merged_rows as table_rows
from .test_merge_on_read import CASES, MEMORY

INSTANT = "20260101000000000"


def write(folder: Path, name: str, rows: int, seed: int, **options: object) -> None:
    rng = np.random.default_rng(seed)
    meta = {column: pa.array([f"{name}-{i:06d}" for i in range(rows)], pa.string()) for column in META_COLUMNS[:5]}
    columns = {"n": pa.array(range(rows), pa.int64()), "x": rng.random(rows), "s": rng.choice(["a", "bb", None], rows)}
    pq.write_table(pa.table({**meta, **columns}), folder / name, **options)


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


@settings(max_examples=40)
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
    division = divide_once(task, "0-0-1")
    if len(division.tasks) == 1:
        assert len(whole.files) < 2 or division.tasks == (task,)
        return
    parts = [rewrite_once(part, f"{number}-0-2") for number, part in enumerate(division.tasks)]
    done = of_parts(parts, division.rows, division.bytes)
    assert done.before == done.after
    assert (done.rows_in, done.bytes_in, done.decoded) == (whole.rows_in, whole.bytes_in, whole.decoded)
    assert pa.concat_tables(rows_of(task, done)).equals(pa.concat_tables(rows_of(task, whole)))
    assert len(done.files) == len(whole.files)
    for new, old in zip(done.files, whole.files, strict=True):
        assert abs(new.rows - old.rows) <= 0.02 * done.rows_in / len(done.files) + 1
    # A part that is lost, or written twice, is seen.
    for wrong in (parts[1:], [*parts, parts[0]]):
        with pytest.raises(CheckFailed):
            of_parts(wrong, division.rows, division.bytes)
    # The parts that an earlier attempt has finished are taken over, by whoever divides the group again.
    again = divide_once(replace(task, resumes=True), "0-0-3")
    assert [rewrite_once(part, "9-9-9").taken_over for part in again.tasks] == [True] * len(parts)


@pytest.fixture
def small_groups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_tasks, "_LEAST_BYTES", 1)
        yield


FILES = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "6000"}
SMALL_FILTER = {"hoodie.index.bloom.num_entries": "100", "hoodie.bloom.index.filter.dynamic.max.entries": "100"}
CORES = 16


def clustered(path: Path, **options: str) -> Report:
    wanted = request(path, Mode.SCHEDULE_AND_EXECUTE, {**FILES, **SMALL_FILTER, **options})
    return clustering.schedule_and_execute(wanted, engine=LocalEngine(cores=CORES))


@pytest.mark.parametrize("release", RELEASES)
def test_a_plan_of_few_groups_on_many_cores(release: str, small_groups: None, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = both_views(path)[0]
    report = clustered(path)
    assert report.groups < report.tasks == report.files.after
    assert all(seen.equals(before) for seen in both_views(path))


@pytest.mark.spread(6)
@pytest.mark.parametrize(("release", "name"), CASES)
def test_slices_with_log_files_stay_whole(release: str, name: str, small_groups: None, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, name, tmp_path).path
    before = comparable(table_rows(open_local(path), MEMORY))
    report = clustered(path)
    assert report.state is RunState.COMPLETED
    assert report.rows.after == len(before)
    assert comparable(table_rows(open_local(path), MEMORY)) == before
