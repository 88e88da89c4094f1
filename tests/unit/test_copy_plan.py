"""When a group is copied as it is, and the reasons why its rows are decoded."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.base_files.base_file_slice import BaseFileSlice
from hudi_services.base_files.bloom import BloomSettings, parse
from hudi_services.base_files.file_reader import BaseFileReader
from hudi_services.base_files.record_keys import BLOOM_FILTER, MAX_KEY, MIN_KEY
from hudi_services.parquet.footer import read_footer
from hudi_services.rewriting.copy_plan import CopyPlan, copy_plan
from hudi_services.rewriting.rewrite import RewriteResult, rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows.file_sizing import segments_of, weighed_slices, written_sample
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import SortColumn
from hudi_services.schema.table_schema import META_COLUMNS
from hudi_services.stores import open_storage

from .parquet_samples import slices_in

SMALL = FileSettings(row_group_bytes=4096)


def write(folder: Path, name: str, rows: int, *, kind: pa.DataType | None = None, **options: object) -> None:
    meta = {column: pa.array([f"{name}-{i:06d}" for i in range(rows)], pa.string()) for column in META_COLUMNS[:5]}
    pq.write_table(pa.table({**meta, "n": pa.array(range(rows), kind or pa.int64())}), folder / name, **options)


def task_of(folder: Path, *inputs: str, files: int = 1) -> RewriteTask:
    ids = tuple(f"f{i}-0" for i in range(files))
    storage = open_storage(str(folder))
    slices = slices_in(storage, *inputs)
    return RewriteTask(storage, "20260101000000000", "", *slices, ids, (), "LINEAR", None, (), True, SMALL)


def planned(task: RewriteTask) -> CopyPlan | str:
    readers = [task.source.open(one) for one in task.slices]
    return plan_of(task, readers)


def plan_of(task: RewriteTask, readers: list[BaseFileSlice]) -> CopyPlan | str:
    written = [written_sample(one, 1, task.settings.codec, task.memory.stored) for one in readers]
    pieces = weighed_slices(readers, task.settings.codec, written)
    return copy_plan(task, readers, readers[0].schema, segments_of(readers), pieces)


def rewritten(task: RewriteTask) -> tuple[RewriteResult, list[list[str]]]:
    """The result, and the record keys of each new file."""
    result = rewrite_group(task, "0-0-0")
    tables = [pq.read_table(Path(task.storage.root) / new.path) for new in result.files]
    assert [set(t["_hoodie_file_name"].to_pylist()) for t in tables] == [{new.path} for new in result.files]
    assert [new.rows for new in result.files] == [t.num_rows for t in tables]
    return result, [t["_hoodie_record_key"].to_pylist() for t in tables]


def test_whole_files_are_copied_into_one(tmp_path: Path) -> None:
    write(tmp_path, "a", 30)
    write(tmp_path, "b", 20, row_group_size=7)
    result, (keys,) = rewritten(task_of(tmp_path, "a", "b"))
    assert result.decoded is None
    assert keys == [f"a-{i:06d}" for i in range(30)] + [f"b-{i:06d}" for i in range(20)]
    assert (result.before, result.rows_in) == (result.after, 50)


@pytest.mark.thorough
def test_row_groups_are_shared_out_evenly(tmp_path: Path) -> None:
    write(tmp_path, "a", 1000, row_group_size=10)
    write(tmp_path, "b", 500, row_group_size=10)
    result, keys = rewritten(task_of(tmp_path, "a", "b", files=4))
    assert result.decoded is None
    assert sorted(map(len, keys)) == [370, 370, 380, 380]
    assert len({key for one in keys for key in one}) == 1500


def test_large_row_groups_are_cut_by_decoding_them(tmp_path: Path) -> None:
    write(tmp_path, "a", 1000)
    result, keys = rewritten(task_of(tmp_path, "a", files=2))
    assert (result.decoded, [len(k) for k in keys]) == ("large row groups", [500, 500])


def test_small_row_groups_are_merged(tmp_path: Path) -> None:
    write(tmp_path, "a", 1000, row_group_size=100)
    task = replace(task_of(tmp_path, "a"), settings=FileSettings())
    result, _ = rewritten(task)
    assert result.decoded == "small row groups"
    assert pq.read_metadata(tmp_path / result.files[0].path).num_row_groups == 1


def test_other_reasons(tmp_path: Path) -> None:
    write(tmp_path, "a", 10)
    write(tmp_path, "narrow", 10, kind=pa.int32())
    write(tmp_path, "empty", 0)
    assert planned(replace(task_of(tmp_path, "a"), sort=(SortColumn("n"),))) == "sorted"
    assert planned(task_of(tmp_path, "a", "narrow")) == "schemas differ"
    assert planned(task_of(tmp_path, "empty")) == "no rows"
    assert isinstance(planned(task_of(tmp_path, "empty", "a")), CopyPlan)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda reader: setattr(reader, "created_by", "another"), "different parquet writers"),
        (lambda reader: setattr(reader, "row_groups", _with_codec(reader, 5)), "unknown codec"),
    ],
)
def test_reasons_in_footers(change: Callable[[BaseFileReader], None], reason: str, tmp_path: Path) -> None:
    write(tmp_path, "a", 10)
    task = task_of(tmp_path, "a", "a")
    readers = [task.source.open(one) for one in task.slices]
    change(readers[1])
    assert plan_of(task, readers) == reason


def _with_codec(reader: BaseFileReader, number: int) -> tuple[object, ...]:
    return tuple(replace(g, columns=tuple(replace(c, codec=number) for c in g.columns)) for g in reader.row_groups)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("entries", [5, 60_000])
def test_the_range_of_record_keys_comes_from_the_footers_where_it_can(
    exact: bool, entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that says "maybe" to all keys needs none of them; cut-off bounds are no keys."""
    write(tmp_path, "b", 30, row_group_size=7)
    write(tmp_path, "a", 20)
    task = task_of(tmp_path, "b", "a")
    task = replace(task, settings=replace(SMALL, bloom=BloomSettings(entries, max_entries=entries)))
    if not exact:
        footers = BaseFileSlice.open

        def cut_off(*arguments: Any, **options: Any) -> BaseFileSlice:
            reader = footers(*arguments, **options)
            groups = [replace(g, columns=tuple(replace(c, exact=False) for c in g.columns)) for g in reader.row_groups]
            reader.row_groups = tuple(groups)
            return reader

        monkeypatch.setattr(BaseFileSlice, "open", cut_off)
    read: list[str] = []
    original = BaseFileReader.read_row_group

    def told(self: BaseFileReader, *arguments: Any, **options: Any) -> pa.Table:
        read.append(self.path)
        return original(self, *arguments, **options)

    monkeypatch.setattr(BaseFileReader, "read_row_group", told)
    (file,) = rewrite_group(task, "0-0-0").files
    assert bool(read) == (entries == 60_000 or not exact)
    footer = read_footer(task.storage, file.path)[0].key_values
    assert (footer[MIN_KEY], footer[MAX_KEY]) == ("a-000000", "b-000029")
    assert parse(footer[BLOOM_FILTER], "it").might_contain("b-000017")
