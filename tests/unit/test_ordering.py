import datetime as dt
import itertools
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.errors import CheckFailed, ConfigError
from hudi_services.parquet.file_schema import FileSchema
from hudi_services.rewriting.data_skipping import ColumnBounds, Skipping, skipping
from hudi_services.rows.curves import hilbert, z_order
from hudi_services.rows.row_order import HILBERT, Z_ORDER, RowOrder, comparable, row_order
from hudi_services.rows.sort_order import LINEAR, SortColumn
from hudi_services.rows.sorting import RowSorter

from .parquet_samples import write_pyarrow


@pytest.mark.parametrize(("axes", "bits"), [(1, 5), (2, 4), (3, 3), (4, 2)])
def test_the_hilbert_curve_has_no_leaps(axes: int, bits: int) -> None:
    grid = np.array(list(itertools.product(range(1 << bits), repeat=axes)), np.int64)
    places = hilbert(list(grid.T.copy()), bits)
    assert sorted(places.tolist()) == list(range(1 << (axes * bits)))
    steps = np.abs(np.diff(grid[np.argsort(places)], axis=0)).sum(axis=1)
    assert (steps == 1).all()


@given(st.integers(1, 5), st.data())
def test_z_order_takes_bits_in_turn(axes: int, data: st.DataObject) -> None:
    bits = 63 // axes if axes > 1 else 20
    point = [data.draw(st.integers(0, (1 << bits) - 1)) for _ in range(axes)]
    expected = int("".join(f"{value >> bit & 1}" for bit in range(bits - 1, -1, -1) for value in point), 2)
    assert z_order([np.array([value]) for value in point], bits).tolist() == [expected]


KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "string": (pa.string(), st.text(max_size=12)),
    "binary": (pa.binary(), st.binary(max_size=12)),
    "fixed": (pa.binary(4), st.binary(min_size=4, max_size=4)),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**15), 10**15, places=3)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.timezone.utc))),
}


@settings(max_examples=30)
@given(st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_comparable_values_order_as_the_values_do(kind: str, data: st.DataObject) -> None:
    arrow, values = KINDS[kind]
    drawn = data.draw(st.lists(values, min_size=2, max_size=30))
    array = pa.array(drawn, arrow)
    found = comparable(array)
    for (a, x), (b, y) in itertools.pairwise(sorted(zip(drawn, found.tolist(), strict=True), key=lambda pair: pair[0])):
        assert x <= y, (a, b)


@pytest.mark.spread(4)
@pytest.mark.parametrize("layout", [Z_ORDER, HILBERT])
@pytest.mark.parametrize("kind", KINDS)
def test_a_curve_narrows_both_columns(kind: str, layout: str, tmp_path: Any) -> None:
    """Cut into 16 runs, each has a small part of the values of either column."""
    rng = np.random.default_rng(5)
    rows = 4096
    ranks = [rng.permutation(rows), rng.permutation(rows)]
    table = pa.table({name: column(kind, rank) for name, rank in zip("ab", ranks, strict=True)})
    columns = (SortColumn("a"), SortColumn("b", descending=True, nulls_first=False))
    schema = schema_of(table, tmp_path)
    ordered = in_order(schema, table, columns, layout)
    assert sorted(ordered.to_pylist(), key=str) == sorted(table.to_pylist(), key=str)
    by_layout, by_first = (spread(one) for one in (ordered, in_order(schema, table, columns, LINEAR)))
    if kind == "boolean":
        assert max(by_layout) <= 2
    else:
        assert max(by_layout) < 0.45 < max(by_first)


def column(kind: str, ranks: npt.NDArray[np.int64]) -> pa.Array:
    """Values that order as the ranks do, with some nulls."""
    make: dict[str, Any] = {
        "boolean": lambda n: n % 2 == 0,
        "double": float,
        "string": lambda n: f"https://example.org/{n:06d}",
        "binary": lambda n: n.to_bytes(3, "big"),
        "fixed": lambda n: n.to_bytes(4, "big"),
        "decimal": Decimal,
        "date": lambda n: dt.date(1970, 1, 1) + dt.timedelta(n),
        "timestamp": lambda n: dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(hours=n),
    }
    return pa.array([None if n == 7 else make.get(kind, int)(n) for n in ranks.tolist()], KINDS[kind][0])


def spread(table: pa.Table) -> list[float]:
    """For each column the average share of its values that a sixteenth of the rows spans."""
    found = []
    for name in table.column_names:
        order = {value: n for n, value in enumerate(sorted(set(table[name].to_pylist()) - {None}))}
        size = len(table) // 16
        runs = [
            [order[v] for v in table[name].slice(at, size).to_pylist() if v is not None]
            for at in range(0, len(table), size)
        ]
        found.append(float(np.mean([(max(run) - min(run) + 1) / len(order) for run in runs])))
    return found


def schema_of(table: pa.Table, folder: Any) -> FileSchema:
    from hudi_services.base_files.file_reader import open_base_file

    return open_base_file(*write_pyarrow(folder, table)).schema


def in_order(schema: FileSchema, table: pa.Table, columns: Sequence[SortColumn], layout: str) -> pa.Table:
    sorter = RowSorter(schema, columns, layout)
    sorter.learn(table)
    return sorter.bare(sorter.sorted([table]))


class Backwards(RowOrder):
    """By the first column, the greatest first."""

    def learn(self, sample: Sequence[pa.ChunkedArray]) -> None:
        self.highest = max(sample[0].to_pylist())

    def places(self, keys: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
        return (self.highest - keys[0].to_numpy()).astype(np.int64)


class Wrong(Backwards):
    def places(self, keys: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
        return super().places(keys)[1:]


class Failing(Backwards):
    def learn(self, sample: Sequence[pa.ChunkedArray]) -> None:
        raise ZeroDivisionError("division by zero")


def test_an_order_of_the_operators_own(tmp_path: Any) -> None:
    table = pa.table({"a": [1, 3, 2]})
    schema = schema_of(table, tmp_path)
    assert in_order(schema, table, [SortColumn("a")], f"{__name__}:Backwards")["a"].to_pylist() == [3, 2, 1]
    with pytest.raises(CheckFailed, match="test_ordering:Wrong gave"):
        in_order(schema, table, [SortColumn("a")], f"{__name__}:Wrong")
    with pytest.raises(ConfigError, match=r"the layout .*:Failing failed: ZeroDivisionError"):
        in_order(schema, table, [SortColumn("a")], f"{__name__}:Failing")
    with pytest.raises(ConfigError, match="is no subclass"):
        in_order(schema, table, [SortColumn("a")], f"{__name__}:schema_of")


def test_too_many_columns_for_a_curve() -> None:
    with pytest.raises(ConfigError, match="32 sort columns are too many"):
        row_order(Z_ORDER, [SortColumn(f"c{i}") for i in range(32)])
    assert row_order(Z_ORDER, [SortColumn(f"c{i}") for i in range(31)]) is not None


def test_what_a_clustering_is_worth() -> None:
    before = ColumnBounds("a", ((0, 100), (0, 100), (), None), tuple((n, n + 10) for n in range(0, 100, 20)))
    (found,) = skipping([[before]])
    # Without values a file is never read; with unknown ones always.
    assert (found.column, found.files_before, found.files_after) == ("a", 4, 5)
    assert found.read_before == 3.0 and found.read_after < 2.0
    assert skipping([[ColumnBounds("a", ((0, 1), ("a", "b")), ())]]) == []
    assert skipping([[ColumnBounds("a", ((), None), ())]]) == []
    assert skipping([]) == []
    assert isinstance(found, Skipping)


def test_the_example_in_the_documents(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/clustering.md").read_text()
    code = text.partition("# my_company/orders.py\n")[2].partition("```")[0]
    (tmp_path / "orders_of_my_company.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    hours = [5, 30, None, 26, 1]
    times = pa.array([None if h is None else dt.datetime(2026, 1, 1) + dt.timedelta(hours=h) for h in hours])
    table = pa.table({"t": times, "n": hours})
    ordered = in_order(schema_of(table, tmp_path), table, [SortColumn("t")], "orders_of_my_company:ByHour")
    assert ordered["n"].to_pylist() == [None, 1, 26, 5, 30]
