"""What a dry run predicts is what executing the plan then shows: the same files, nearly the same bytes."""

import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.base_files.bloom import DYNAMIC, SIMPLE, BloomFilter
from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering, clustering_estimate
from hudi_services.rewriting.rewrite import estimate_group, rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.memory import TaskMemory
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import parse_sort_columns
from hudi_services.runs.report import InOut, Report
from hudi_services.runs.request import ClusteringRequest, Mode
from hudi_services.runs.run import Run
from hudi_services.schema.table_schema import META_COLUMNS
from hudi_services.stores import open_storage

from .parquet_samples import slices_in
from .tables import RELEASES, digest, request, unpack

SORT = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"
DEMO = Path(__file__).resolve().parents[2] / "scripts/demo_table.zip"
WAYS: dict[str, dict[str, str]] = {
    "unsorted": {},
    "sorted": {SORT: "_hoodie_record_key"},
    "along a curve": {SORT: "_hoodie_record_key,_hoodie_commit_seqno", LAYOUT: "ZORDER"},
    "many files": {SORT: "_hoodie_record_key", "hoodie.clustering.plan.strategy.target.file.max.bytes": "600000"},
    "each by itself": {
        "hoodie.clustering.plan.strategy.class": "single_file",
        "hoodie.clustering.plan.strategy.max.num.groups": "100",
    },
}


def predicted(path: Path, options: dict[str, str]) -> Report:
    before = digest(path)
    report = clustering.schedule(request(path, Mode.SCHEDULE, options, dry_run=True))
    assert digest(path) == before
    return report


def executed(path: Path, options: dict[str, str]) -> Report:
    clustering.schedule(request(path, Mode.SCHEDULE, options))
    return clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())


@pytest.mark.thorough
@pytest.mark.spread(9)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", [*RELEASES, "demo"])
def test_on_real_tables(table: str, way: str, tmp_path: Path) -> None:
    if table == "demo":
        with zipfile.ZipFile(DEMO) as archive:
            archive.extractall(tmp_path)
        path = next(tmp_path.rglob(".hoodie")).parent
    else:
        path = unpack(table, tmp_path)
    estimate, done = predicted(path, WAYS[way]), executed(path, WAYS[way])
    assert (estimate.files, estimate.rows) == (done.files, done.rows)
    assert estimate.bytes.before == done.bytes.before
    assert estimate.bytes.after == pytest.approx(done.bytes.after, rel=0.15)
    decoded = [group["decoded"] for group in estimate.tables["clustering_groups"] if group["decoded"]]
    assert {reason: decoded.count(reason) for reason in decoded} == done.decoded
    assert estimate.warnings == []


ROWS = 60_000


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three files of several row groups each."""
    folder = tmp_path_factory.mktemp("group")
    rng = np.random.default_rng(1)
    rows = ROWS
    values: dict[str, Any] = {
        "a": rng.integers(0, 500, rows),
        "b": [f"user-{n}" for n in rng.integers(0, 1 << 40, rows)],
        "c": rng.random(rows),
        "d": [[f"tag-{n % 7}", f"tag-{n % 3}"] for n in range(rows)],
    }
    meta = {name: [f"{n:09d}" for n in range(rows)] for name in META_COLUMNS[:5]}
    table = pa.table({**meta, "_hoodie_file_name": ["one"] * rows, **values})
    for part in range(3):
        piece = table.slice(part * 20_000, 20_000)
        pq.write_table(piece, folder / f"{part}.parquet", compression="gzip", row_group_size=7_000)
    return folder


@pytest.mark.thorough
@pytest.mark.spread(5)
@pytest.mark.parametrize("codec", ["gzip", "zstd", "uncompressed"])
@pytest.mark.parametrize("sort", ["", "a", "b"])
def test_on_groups_of_several_row_groups(codec: str, sort: str, group: Path, tmp_path: Path) -> None:
    for file in group.iterdir():
        shutil.copy(file, tmp_path)
    storage = open_storage(str(tmp_path))
    one = RewriteTask(
        storage, "20260101000000000", "", *slices_in(storage, *(f"{part}.parquet" for part in range(3))), ("x-0",),
        parse_sort_columns(sort), "LINEAR", None, (), True, FileSettings(codec, bloom=None), TaskMemory(4 << 20),
    )  # fmt: skip
    (only,), whole = rewrite_group(one, "0-0-0").files, estimate_group(one)
    assert whole is not None
    assert whole.new_files == (pytest.approx(only.size, rel=0.15),)
    # Half way between two numbers of files.
    wanted = int(only.size / 3.5)
    task = replace(one, settings=replace(one.settings, file_bytes=wanted))
    estimate, done = estimate_group(task), rewrite_group(task, "0-0-1")
    assert estimate is not None
    assert (estimate.rows, len(estimate.new_files)) == (ROWS, len(done.files))
    assert estimate.decoded == done.decoded
    assert estimate.spilled == (done.spilled > 0)
    assert sum(estimate.new_files) == pytest.approx(sum(new.size for new in done.files), rel=0.15)


def test_a_file_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    """Of a plan that is there: a new plan leaves such files out."""
    path = unpack("1.2.0", tmp_path)
    planned = clustering.schedule(request(path, Mode.SCHEDULE))
    for file in path.glob("[!.]*/*.parquet"):
        file.write_bytes(file.read_bytes()[:-4] + b"PARX")
    report = clustering.execute(request(path, Mode.EXECUTE, dry_run=True))
    (warning,) = report.warnings
    assert "this plan could not be executed" in warning and "does not end like a parquet file" in warning
    assert report.groups == planned.groups


@pytest.mark.parametrize("where", ["rewrite_tasks", "estimate_group", "_tell"])
def test_whatever_ends_the_bill_is_a_warning(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpack("1.2.0", tmp_path)
    estimate = predicted(path, {})

    def fail(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(clustering_estimate, where, fail)
    report = predicted(path, {})
    assert report.warnings == ["no estimate: ZeroDivisionError: division by zero"]
    assert (report.state, report.exit_code, report.reason) == (estimate.state, 0, estimate.reason)
    assert (report.groups, report.rows) == (estimate.groups, InOut())
    assert [row["files"] for row in report.tables["clustering_groups"]] == [
        row["files"] for row in estimate.tables["clustering_groups"]
    ]


def test_the_time_of_the_bill_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, float]] = []

    def look(run: Run[ClusteringRequest], _: Any) -> None:
        seen.append(dict(run.report.seconds))

    monkeypatch.setattr(clustering, "add_estimate", look)
    report = predicted(unpack("1.2.0", tmp_path), {})
    assert seen[0]["plan"] == report.seconds["plan"]


@given(st.sampled_from([SIMPLE, DYNAMIC]), st.integers(0, 900))
def test_the_size_of_a_bloom_filter(kind: str, keys: int) -> None:
    made = BloomFilter.for_config(100, 0.01, 450, kind)
    expected = made.serialized_bytes(keys)
    made.add(pa.array([f"key-{n}" for n in range(keys)], pa.string()))
    assert len(made.serialize()) == expected
