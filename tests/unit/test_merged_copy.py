"""Slices with log files whose row groups are copied where no log record touches them, and merged elsewhere."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_services.base_files.file_writer import CREATED_BY
from hudi_services.errors import CheckFailed
from hudi_services.merging import merged_logs
from hudi_services.merging.log_records import KEY
from hudi_services.merging.updates import ChangedRowGroups
from hudi_services.model import FileSlice
from hudi_services.rewriting.rewrite import RewriteResult, estimate_group, rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.memory import TaskMemory
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import SortColumn
from hudi_services.runs.rewrite_tasks import task_maker

from . import histories
from .tables import listed_view, open_local
from .test_merge_histories import comparable, merged_rows
from .test_merge_on_read import CASES, always

IN_PART = "log files in some row groups"
PLENTY, LITTLE = TaskMemory(), TaskMemory(limit=4096 * 5)


def cut_base_files(path: Path, rows: int) -> None:
    """Write each base file anew, in row groups of so many rows."""
    for file in path.rglob("*.parquet"):
        if ".hoodie" in file.parts:
            continue
        found = pq.ParquetFile(file)
        kept = {k: v for k, v in found.metadata.metadata.items() if k != b"ARROW:schema"}
        table = found.read().replace_schema_metadata(kept)
        pq.write_table(table, file, row_group_size=rows, store_schema=False, use_dictionary=False, version="2.6")


def tasks_of(path: Path, files: int, memory: TaskMemory) -> Iterator[RewriteTask]:
    """A task for each partition that has log files, with all its slices."""
    table = open_local(path)
    settings = FileSettings(row_group_bytes=2048, file_bytes=1 << 30)
    make = task_maker(table, "20990101000000000", settings)
    slices: dict[str, list[FileSlice]] = {}
    for one in listed_view(table).live_slices():
        # The files have other sizes than listed.
        base = replace(one.base_file, size=0) if one.base_file is not None else None
        slices.setdefault(one.partition, []).append(replace(one, base_file=base))
    for group in slices.values():
        if any(one.log_files for one in group):
            yield replace(make(group, [f"new{i}-0" for i in range(files)]), memory=memory)


def rewritten(task: RewriteTask) -> tuple[RewriteResult, list[dict[str, Any]]]:
    """The result, and the rows of the new files."""
    result = rewrite_group(task, "0-0-0")
    files = [Path(task.storage.root) / new.path for new in result.files]
    for file in files:
        metadata = pq.read_metadata(file)
        assert sum(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)) == metadata.num_rows
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert {row["_hoodie_file_name"] for row in rows} <= {file.name for file in files}
    return result, rows


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(comparable(rows), key=lambda row: (row[KEY], str(row)))


@pytest.mark.thorough
@pytest.mark.spread(23)
@pytest.mark.parametrize("memory", [PLENTY, LITTLE], ids=["in memory", "on disk"])
@pytest.mark.parametrize(("release", "name"), CASES)
def test_the_rows_of_a_history(release: str, name: str, memory: TaskMemory, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, name, tmp_path).path
    wanted = by_key(merged_rows(open_local(path), 1 << 30))
    cut_base_files(path, 1)
    in_part = 0
    for files in (1, 2):
        found: list[dict[str, Any]] = []
        for task in tasks_of(path, files, memory):
            result, rows = rewritten(task)
            in_part += result.decoded == IN_PART
            found += rows
        partitions = {row["_hoodie_partition_path"] for row in found}
        assert by_key(found) == [row for row in wanted if row["_hoodie_partition_path"] in partitions]


@pytest.mark.spread(11)
@pytest.mark.parametrize(("release", "name"), CASES[::5])
def test_the_order_of_rows_stays(release: str, name: str, tmp_path: Path) -> None:
    """Where a base file has a key twice, updates change the first row: it must stay the first."""
    path = histories.MadeHistory(release, name, tmp_path).path
    cut_base_files(path, 1)
    for task in tasks_of(path, 1, PLENTY):
        for number, one in enumerate(task.slices):
            alone = replace(task, slices=(one,), file_ids=(f"alone{number}-0",))
            _, rows = rewritten(alone)
            wanted = [row for _, piece in alone.inputs.open(one).tables() for row in piece.to_pylist()]
            assert [row[KEY] for row in rows] == [row[KEY] for row in wanted]


@pytest.mark.thorough
def test_an_estimate_of_slices_with_and_without_log_files(tmp_path: Path) -> None:
    """Also where all rows of the first piece are deleted."""
    seen = set()
    for release, name in CASES[::9]:
        path = histories.MadeHistory(release, name, tmp_path / f"{release}-{name}").path
        for memory in (PLENTY, LITTLE):
            for task in tasks_of(path, 1, memory):
                for sort in ((), (SortColumn(KEY),)):
                    one = replace(task, sort=sort, layout="LINEAR", settings=FileSettings())
                    found = estimate_group(one)
                    assert found is not None
                    assert found.rows == sum(one.inputs.open(part).num_rows for part in one.slices)
                    seen.add(found.decoded)
    assert {"sorted", "small row groups"} & seen


def some(tmp_path: Path) -> tuple[RewriteTask, Path]:
    """A task of which some row groups are copied."""
    path = histories.MadeHistory("1.2.0", "default_order", tmp_path).path
    cut_base_files(path, 1)
    (task,) = tasks_of(path, 1, PLENTY)
    return task, path


def test_untouched_row_groups_keep_their_pages(tmp_path: Path) -> None:
    task, path = some(tmp_path)
    result, rows = rewritten(task)
    assert result.decoded == IN_PART
    metadata = pq.read_metadata(path / result.files[0].path)
    assert metadata.created_by == CREATED_BY
    assert metadata.num_row_groups > 2
    assert len(rows) == result.before.rows == result.after.rows


def test_a_merge_that_hides_updates_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups that log records change would be copied."""
    task, _ = some(tmp_path)
    monkeypatch.setattr(ChangedRowGroups, "add", lambda *_: None)
    for memory in (PLENTY, LITTLE):
        with pytest.raises(CheckFailed, match=r"log records change [0-9]+ rows of row groups that were copied"):
            rewrite_group(replace(task, memory=memory), "0-0-0")


@pytest.mark.thorough
def test_a_merge_that_lies_beside_copied_row_groups_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, _ = some(tmp_path)
    monkeypatch.setattr(merged_logs, "log_wins", always)
    for memory in (PLENTY, LITTLE):
        with pytest.raises(CheckFailed, match="does not hold the same rows"):
            rewrite_group(replace(task, memory=memory), "0-0-0")
