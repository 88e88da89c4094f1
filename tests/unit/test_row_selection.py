"""Rows of tables that are larger than an array can be: the limits are lowered, for 2 GiB are too slow for a test."""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_services
from hudi_services.base_files import row_selection
from hudi_services.base_files.row_selection import (
    in_parts,
    row_bytes,
    take_rows,
    take_table,
    value_codes,
    with_few_chunks,
)
from hudi_services.merging import spill, updates
from hudi_services.writing import distinct_rows, row_store

from .rides import create
from .tables import merged_rows

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

TEXTS = st.none() | st.text("aé", max_size=5)
ITEM = st.fixed_dictionaries({"n": st.none() | st.integers(0, 9), "t": TEXTS})
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), TEXTS),
    "large": (pa.large_string(), TEXTS),
    "bytes": (pa.binary(), st.none() | st.binary(max_size=4)),
    "number": (pa.int64(), st.none() | st.integers(0, 9)),
    "flag": (pa.bool_(), st.none() | st.booleans()),
    "list": (pa.list_(pa.string()), st.none() | st.lists(TEXTS, max_size=3)),
    "struct": (pa.struct({"n": pa.int32(), "t": pa.string()}), st.none() | ITEM),
    "map": (
        pa.map_(pa.string(), pa.string()),
        st.none() | st.dictionaries(st.text("ab", max_size=2), TEXTS, max_size=2).map(lambda one: list(one.items())),
    ),
    "deep": (pa.list_(pa.struct({"n": pa.int32(), "t": pa.string()})), st.none() | st.lists(ITEM, max_size=2)),
}
SCHEMA = pa.schema({name: kind for name, (kind, _) in TYPES.items()})
ROWS = st.lists(st.fixed_dictionaries({name: values for name, (_, values) in TYPES.items()}), max_size=12)


def in_chunks(rows: list[dict[str, Any]], cuts: list[int]) -> pa.Table:
    """The rows as slices of arrays, so that offsets count."""
    whole = pa.Table.from_pylist(rows, schema=SCHEMA).combine_chunks()
    at = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    slices = [whole.slice(start, end - start) for start, end in pairwise(at)]
    return pa.concat_tables([*slices, whole.slice(0, 0)])


@pytest.mark.thorough
@settings(deadline=None)
@given(ROWS, st.lists(st.integers(0, 20), max_size=4), st.data(), st.sampled_from([1, 20, 200, 1 << 29]))
def test_rows_that_are_taken(rows: list[dict[str, Any]], cuts: list[int], data: st.DataObject, limit: int) -> None:
    table = in_chunks(rows, cuts)
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=30) if rows else st.just([]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_selection, "_PIECE_BYTES", limit)
        patch.setattr(row_selection, "_ARRAY_BYTES", limit)
        found = take_table(table, np.array(order, np.int64))
        few = with_few_chunks(table)
    assert found.to_pylist() == [rows[number] for number in order]
    assert few.to_pylist() == rows
    for chunk in (chunk for column in found.drop_columns(["number", "flag"]).columns for chunk in column.chunks):
        # A row that is larger than an array may be is alone in its array.
        assert min(chunk.nbytes, row_bytes(chunk).sum()) <= limit + 100 or len(chunk) == 1


@settings(deadline=None)
@given(ROWS, st.lists(st.integers(0, 20), max_size=4), st.sampled_from([1, 30, 300, 1 << 29]))
def test_tables_in_parts(rows: list[dict[str, Any]], cuts: list[int], limit: int) -> None:
    table = in_chunks(rows, cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_selection, "PART_BYTES", limit)
        parts = list(in_parts(table))
    assert [row for part in parts for row in part.to_pylist()] == rows
    for part in parts:
        size = sum(int(row_bytes(chunk).sum()) for column in part.columns for chunk in column.chunks)
        # The bits of nulls and flags are those of another slice.
        assert min(size, part.nbytes) <= limit + 100 or part.num_rows <= 1


def test_values_that_an_array_does_not_show() -> None:
    """Dictionaries and views have each value once, and count as what they become."""
    long = "x" * 1000
    coded = pa.array([long, None, long] * 10).dictionary_encode()
    assert row_bytes(coded).tolist() == [1004, 4, 1004] * 10 and coded.nbytes < 2000
    assert row_bytes(coded.slice(1, 3)).tolist() == [4, 1004, 1004]
    views = pa.array([long, None, "short"], pa.string_view())
    assert row_bytes(views).tolist() == [1004, 4, 9] and row_bytes(views.slice(1)).tolist() == [4, 9]
    lists = pa.array([[[1, 2]], None, []], pa.list_(pa.list_(pa.int8(), 2)))
    assert row_bytes(lists).tolist() == [6, 4, 4]
    table = pa.table({"coded": coded, "views": pa.array([long] * 30, pa.string_view())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_selection, "PART_BYTES", 64_000)
        assert len(list(in_parts(table))) == 1
        patch.setattr(row_selection, "PART_BYTES", 5000)
        assert max(part.num_rows for part in in_parts(table, by_values=True)) == 2


def test_rows_that_are_taken_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One array would hold the column, but not what is taken of it."""
    monkeypatch.setattr(row_selection, "_PIECE_BYTES", 1000)
    monkeypatch.setattr(row_selection, "_ARRAY_BYTES", 1000)
    column = pa.chunked_array([["x" * 100, "y" * 100]])
    found = take_rows(column, pa.array([1] * 50 + [0]))
    assert found.num_chunks == 6 and found.to_pylist() == ["y" * 100] * 50 + ["x" * 100]


def test_codes() -> None:
    column = pa.chunked_array([["a", "b"], [], ["b", "c", "a"]])
    assert value_codes(column).tolist() == [0, 1, 1, 2, 0]
    assert value_codes(column[:0]).tolist() == value_codes(pa.chunked_array([], pa.string())).tolist() == []


def rows(first: int, end: int, ts: int) -> pa.Table:
    numbers = range(first, end)
    return pa.table(
        {
            "id": [f"k{n:05d}" for n in numbers],
            "day": ["d0"] * len(numbers),
            "ts": [ts] * len(numbers),
            "text": [f"{n} {'x' * (n % 50)}" for n in numbers],
            "lists": [[f"{n}"] * (n % 4) for n in numbers],
        }
    )


def written(path: Path, index: str, kind: str) -> pa.Table:
    """Upserts with rows of one key, deletes, and a compaction, of a table that all limits divide."""
    table = create(path, table_type=kind)
    options = {"hoodie.index.type": index}
    many_of_one = pa.concat_tables([rows(7, 8, ts) for ts in range(100)])
    for batch in (
        rows(0, 400, 1),
        pa.concat_tables([rows(300, 500, 2), rows(0, 50, 3), rows(300, 320, 1)]),
        many_of_one,
    ):
        table.upsert(batch.to_reader(max_chunksize=37), options=options)
    table.insert(pa.concat_tables([rows(0, 20, 9)] * 2), options={"hoodie.datasource.insert.dup.policy": "drop"})
    table.delete(pa.concat_tables([rows(100, 200, 0)] * 2), options=options)
    if kind == "MERGE_ON_READ":
        table.compact(options={"hoodie.compact.inline.max.delta.commits": 1})
    names = ["id", "day", "ts", "text", "lists"]
    return merged_rows(path).select(names)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ("SIMPLE", "MERGE_ON_READ"),
        pytest.param("SIMPLE", "COPY_ON_WRITE", marks=pytest.mark.deep),
        pytest.param("GLOBAL_SIMPLE", "COPY_ON_WRITE", marks=pytest.mark.deep),
    ],
)
def test_writes_of_more_rows_than_fit_into_arrays(
    index: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = written(tmp_path / "plain", index, kind)
    assert wanted.num_rows == 400 and pc.sum(wanted.column("ts")).as_py() == 49 * 3 + 99 + 50 + 100 + 200 * 2
    monkeypatch.setattr(row_selection, "PART_BYTES", 3000)
    monkeypatch.setattr(row_selection, "_PIECE_BYTES", 1000)
    monkeypatch.setattr(row_selection, "_ARRAY_BYTES", 1500)
    monkeypatch.setattr(distinct_rows, "_MOST_BYTES", 2000)
    monkeypatch.setattr(updates, "_MOST_BYTES", 2000)
    monkeypatch.setattr(distinct_rows, "_MOST_PARTS", 3)
    parts, stored, divisions = list[tuple[int, int]](), list[int](), list[int]()
    one_of_each, read, by_key = distinct_rows.DistinctRows._one_of_each, row_store.RowStore._read, spill.by_key

    def looked_up(self: Any, table: pa.Table) -> Any:
        parts.append((table.nbytes, pc.count_distinct(table.column("_hoodie_record_key")).as_py()))
        return one_of_each(self, table)

    def kept(self: Any, *place: Any) -> Iterator[pa.Table]:
        for table in read(self, *place):
            stored.append(table.nbytes)
            yield table

    def divided(tables: Any, count: int, before: int = 1) -> Any:
        divisions.append(before)
        return by_key(tables, count, before)

    monkeypatch.setattr(distinct_rows.DistinctRows, "_one_of_each", looked_up)
    monkeypatch.setattr(row_store.RowStore, "_read", kept)
    monkeypatch.setattr(distinct_rows, "by_key", divided)
    assert written(tmp_path / "divided", index, kind).equals(wanted)
    # Rows of one key cannot be divided.
    assert all(size <= 3000 or keys == 1 for size, keys in parts) and max(parts)[1] == 1 < max(parts)[0] // 3000
    assert max(stored) <= 3200
    # Three parts at once are not enough.
    assert {1, 3} < {*divisions}
    shutil.rmtree(tmp_path)


def test_a_column_with_more_bytes_than_its_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given may be dictionaries, and arrays without a limit: their rows are conformed some at a time."""
    monkeypatch.setattr(row_selection, "PART_BYTES", 5000)
    seen = list[int]()
    conform = hudi_services.writing.writer_schema.WriterSchema.conform

    def conformed(self: Any, table: pa.Table, *more: Any) -> pa.Table:
        found = conform(self, table, *more)
        seen.append(found.nbytes)
        return found

    monkeypatch.setattr(hudi_services.writing.writer_schema.WriterSchema, "conform", conformed)
    texts = pa.array(["x" * 1000] * 40)
    new = rows(0, 40, 1).drop_columns(["text"]).append_column("text", texts.dictionary_encode())
    new = new.append_column("more", texts.cast(pa.large_string())).append_column("view", texts.cast(pa.string_view()))
    assert create(tmp_path / "rides").upsert(new).report["rows"]["in"] == 40
    assert len(seen) >= 40 and max(seen) < 10_000
