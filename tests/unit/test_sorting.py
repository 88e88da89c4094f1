import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.base_files import row_selection
from hudi_services.base_files.file_reader import open_base_file
from hudi_services.base_files.row_selection import take_rows
from hudi_services.errors import ConfigError
from hudi_services.parquet.file_schema import FileSchema
from hudi_services.rows.sort_order import SortColumn
from hudi_services.rows.sorting import RowSorter
from hudi_services.stores import open_storage

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-5, 5)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "b": (pa.bool_(), st.booleans()),
    "s": (pa.string(), st.text(max_size=3)),
    "f": (pa.float64(), st.floats(allow_nan=False)),
    "d": (pa.date32(), st.dates()),
    "t": (
        pa.timestamp("us", "UTC"),
        st.datetimes(min_value=dt.datetime(1900, 1, 1), timezones=st.just(dt.timezone.utc)),
    ),
    "n": (pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3)),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in KINDS.items()])
ROW = st.fixed_dictionaries({name: st.one_of(st.none(), values) for name, (_, values) in KINDS.items()})
ORDER = st.lists(
    st.builds(SortColumn, st.sampled_from(SCHEMA.names), st.booleans(), st.booleans()),
    min_size=1,
    max_size=3,
    unique_by=lambda column: column.name,
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> FileSchema:
    folder = tmp_path_factory.mktemp("sorting")
    pq.write_table(SCHEMA.empty_table(), folder / "x.parquet")
    return open_base_file(open_storage(str(folder)), "x.parquet").schema


def comparable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def expected(rows: list[dict[str, Any]], order: list[SortColumn]) -> list[dict[str, Any]]:
    for column in reversed(order):
        nulls = [row for row in rows if row[column.name] is None]
        others = [row for row in rows if row[column.name] is not None]
        others.sort(key=lambda row: comparable(row[column.name]), reverse=column.descending)
        rows = nulls + others if column.nulls_first else others + nulls
    return rows


@pytest.mark.thorough
@settings(deadline=None, max_examples=150)
@given(st.lists(ROW, max_size=12), ORDER)
def test_order_of_all_types_with_nulls(schema: FileSchema, rows: list[dict[str, Any]], order: list[SortColumn]) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    names = [column.name for column in order]
    result = RowSorter(schema, order).sorted([table]).select(names).to_pylist()
    assert result == [{name: row[name] for name in names} for row in expected(rows, order)]


def test_dictionary_columns_in_chunks(schema: FileSchema) -> None:
    chunks = [pa.array(["b", None, "a"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    table = pa.table({"s": pa.chunked_array(chunks), "i": pa.array([1, 2, 3, 4, 5], pa.int32())})
    result = RowSorter(schema, [SortColumn("s", True, False), SortColumn("i", True)]).sorted([table])
    assert result["i"].to_pylist() == [4, 1, 5, 3, 2]


def test_unknown_column(schema: FileSchema) -> None:
    with pytest.raises(ConfigError, match="nope"):
        RowSorter(schema, [SortColumn("nope")]).sorted([pa.table({"i": [1]})])


@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string())])
def test_columns_that_do_not_fit_into_one_array(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [None if i % 7 == 0 else f"value {i}" for i in range(1000)]
    values = texts if kind == pa.string() else [[text] for text in texts]
    column = pa.chunked_array([values[:10], [], values[10:600], values[600:]], type=kind)
    order = pa.array([(i * 387) % 1000 for i in range(1000)])
    for piece in (1, 1000, 1 << 30):
        monkeypatch.setattr(row_selection, "_PIECE_BYTES", piece)
        taken = take_rows(column, order)
        assert taken.equals(column.take(order)) and (taken.num_chunks > 1) == (piece < 1 << 30)
    assert take_rows(column, pa.array([], pa.int64())).to_pylist() == []
