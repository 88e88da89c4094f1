"""Rows that do not fit into memory come in the order in which they would come if they did."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.errors import StorageError
from hudi_services.parquet.file_schema import FileSchema
from hudi_services.rewriting.rewrite import RewriteResult, rewrite_group
from hudi_services.rewriting.task import RewriteTask
from hudi_services.rows import external_sort
from hudi_services.rows.external_sort import ExternalSort
from hudi_services.rows.memory import TaskMemory
from hudi_services.rows.row_order import HILBERT, Z_ORDER
from hudi_services.rows.settings import FileSettings
from hudi_services.rows.sort_order import LINEAR, SortColumn, parse_sort_columns
from hudi_services.rows.sorting import RowSorter
from hudi_services.schema.table_schema import META_COLUMNS
from hudi_services.storage import Storage

from .parquet_samples import slices_in, write_pyarrow
from .test_ordering import schema_of
from .test_sorting import ORDER, ROW, SCHEMA, expected, schema

__all__ = ["schema"]


def merged(sorter: RowSorter, tables: Sequence[pa.Table], limit: int) -> tuple[pa.Table, int, int]:
    """The rows as they come, how many sections they came in, and the bytes that were spilled."""
    with ExternalSort(sorter, sum(len(table) for table in tables), TaskMemory(limit)) as sort:
        for table in tables:
            sort.add(table)
        sort.complete()
        first = [section.rows(0, section.num_rows) for section in sort.sections()]
        # Every pass gives the same, and parts of sections are what they are of the whole.
        for section, whole in zip(sort.sections(), first, strict=True):
            step = max(7, section.num_rows // 5)
            for start in range(0, section.num_rows, step):
                assert section.rows(start, step).to_pylist() == whole.slice(start, step).to_pylist()
        return pa.concat_tables(first), len(first), sort.spilled_bytes


@pytest.mark.thorough
@settings(deadline=None, max_examples=60)
@given(st.lists(ROW, min_size=1, max_size=60), ORDER, st.integers(1, 9), st.sampled_from([1, 2_000, 20_000, 1 << 30]))
def test_all_types_with_nulls(
    schema: FileSchema, rows: list[dict[str, Any]], order: list[SortColumn], step: int, limit: int
) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    tables = [table.slice(at, step) for at in range(0, len(table), step)]
    result, _, spilled = merged(RowSorter(schema, order), tables, limit)
    names = [column.name for column in order]
    assert result.select(names).to_pylist() == [{n: row[n] for n in names} for row in expected(rows, order)]
    assert sorted(map(str, result.to_pylist())) == sorted(map(str, table.to_pylist()))
    if limit in (1, 1 << 30):
        assert bool(spilled) == (limit == 1 and len(tables) > 1)


def random_table(rows: int) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "city": pa.array([f"city {n}" for n in rng.integers(0, 300, rows)]).dictionary_encode(),
            "n": pa.array(rng.integers(0, 1000, rows), mask=rng.random(rows) < 0.1),
            "text": [f"{n:x}" * 3 for n in rng.integers(0, 1 << 60, rows)],
        }
    )


@pytest.mark.thorough
@pytest.mark.parametrize("layout", [LINEAR, *(pytest.param(one, marks=pytest.mark.deep) for one in (Z_ORDER, HILBERT))])
def test_runs_with_dictionaries_of_their_own(layout: str, tmp_path: Path) -> None:
    table = random_table(30_000)
    schema = schema_of(table, tmp_path)
    tables = []
    for at in range(0, len(table), 1000):
        piece = table.slice(at, 1000)
        tables.append(piece.set_column(0, "city", piece["city"].cast(pa.string()).dictionary_encode()))
    columns = parse_sort_columns("city desc,n")
    sorter = RowSorter(schema, columns, layout)
    sorter.learn(table)
    whole = sorter.bare(sorter.sorted([table]))
    result, sections, spilled = merged(sorter, tables, 1 << 20)
    assert spilled and sections > 3
    places = [f"{a} {b}" for a, b in zip(whole["city"].to_pylist(), whole["n"].to_pylist(), strict=True)]
    if layout == LINEAR:
        assert [f"{a} {b}" for a, b in zip(result["city"].to_pylist(), result["n"].to_pylist(), strict=True)] == places
    assert sorted(result["text"].to_pylist()) == sorted(whole["text"].to_pylist())
    assert sorter.order(sorter.sorted([result])).tolist() == list(range(30_000))


def test_equal_keys_and_sorted_input(tmp_path: Path) -> None:
    """All keys equal: nothing may wait for ever. Sorted already: runs lie one behind the other."""
    for key in (pa.array([7] * 20_000), pa.array(range(20_000))):
        table = pa.table({"key": key, "n": range(20_000)})
        tables = [table.slice(at, 500) for at in range(0, 20_000, 500)]
        result, _, spilled = merged(RowSorter(schema_of(table, tmp_path), [SortColumn("key")]), tables, 200_000)
        assert spilled
        assert result["key"].to_pylist() == key.to_pylist()
        assert sorted(result["n"].to_pylist()) == list(range(20_000))


def rewritten(folder: Path, table: pa.Table, sort: str, layout: str, limit: int) -> tuple[RewriteResult, pa.Table]:
    meta = {name: pa.array([f"{n:09d}" for n in range(len(table))]) for name in META_COLUMNS[:5]}
    rows = pa.table({**meta, **dict(zip(table.column_names, table.columns, strict=True))})
    storage, path = write_pyarrow(folder, rows, row_group_size=3000)
    task = RewriteTask(
        storage, "20260101000000000", "", *slices_in(storage, path), ("a-0", "b-0"),
        parse_sort_columns(sort), layout, None, (), True, FileSettings(bloom=None), TaskMemory(limit),
    )  # fmt: skip
    result = rewrite_group(task, f"0-0-{limit}")
    return result, pa.concat_tables([read(storage, new.path) for new in result.files])


def read(storage: Storage, path: str) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.read_table(Path(storage.root) / path).drop_columns(["_hoodie_file_name"])


@pytest.mark.thorough
@pytest.mark.parametrize("layout", [LINEAR, pytest.param(Z_ORDER, marks=pytest.mark.deep)])
def test_a_group_larger_than_the_memory(layout: str, tmp_path: Path) -> None:
    """The same files as with enough memory; along a curve, whose sample is then smaller, the same rows."""
    table = random_table(40_000)
    whole, rows = rewritten(tmp_path, table, "text,n", layout, 1 << 30)
    spilled, same = rewritten(tmp_path, table, "text,n", layout, 4 << 20)
    assert not whole.spilled and spilled.spilled
    key = META_COLUMNS[2]
    assert rows.equals(same) if layout == LINEAR else rows.sort_by(key).equals(same.sort_by(key))
    assert [new.rows for new in spilled.files] == pytest.approx([n.rows for n in whole.files], rel=0.05)


@pytest.mark.thorough
def test_many_runs_are_merged_into_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_sort, "_FAN_IN", 3)
    table = random_table(20_000)
    open_files: list[int] = []
    original = ExternalSort._spill

    def spilled(sort: ExternalSort) -> None:
        original(sort)
        open_files.append(len(sort._runs))

    monkeypatch.setattr(ExternalSort, "_spill", spilled)
    tables = [table.slice(at, 500) for at in range(0, 20_000, 500)]
    sorter = RowSorter(schema_of(table, tmp_path), [SortColumn("text")])
    result, _, _ = merged(sorter, tables, 150_000)
    assert len(open_files) > 20 and max(open_files) <= 2 * 4
    assert result["text"].to_pylist() == sorted(table["text"].to_pylist())


def test_wide_rows_late_and_dictionaries_of_many_values(tmp_path: Path) -> None:
    """What the first run is like says nothing of the others."""
    narrow = pa.table({"k": range(3000), "p": pa.array(["x"] * 3000).dictionary_encode()})
    texts = pa.array([f"{n:05d}" * 1000 for n in range(300)])
    wide = pa.table({"k": range(300), "p": texts.dictionary_encode()})
    sorter = RowSorter(schema_of(narrow, tmp_path), [SortColumn("k")])
    tables = [narrow] * 10 + [wide] * 4
    limit = 1 << 20
    loaded: list[int] = []
    with ExternalSort(sorter, 33_000, TaskMemory(limit)) as sort:
        for one in tables:
            sort.add(one)
        sort.complete()
        for tables_of_section, order in sort._merged(sort._runs):
            loaded.append(sum(one.get_total_buffer_size() for one in tables_of_section))
            assert len(order)
    assert len(loaded) > 10 and max(loaded) < limit


@pytest.mark.thorough
def test_nothing_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{scratch},/nowhere")
    sorter = RowSorter(schema_of(random_table(10), tmp_path), [SortColumn("n")])
    _, _, spilled = merged(sorter, [random_table(2000) for _ in range(5)], 100_000)
    assert spilled and not os.listdir(scratch)


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sorter = RowSorter(schema_of(random_table(10), tmp_path), [SortColumn("n")])
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "nowhere"))
    with pytest.raises(StorageError, match="nowhere") as caught:
        merged(sorter, [random_table(2000) for _ in range(5)], 100_000)
    assert "--memory-per-task" in caught.value.hint
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "wb+", buffering=0))  # noqa: SIM115
    with pytest.raises(StorageError, match="No space left"):
        merged(sorter, [random_table(2000) for _ in range(5)], 100_000)
