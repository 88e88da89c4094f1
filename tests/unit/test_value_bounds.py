"""Every indexed column of a new file has a range that holds its values, by the order of its readers."""

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.base_files.chunk_bounds import complete_stats
from hudi_services.base_files.file_reader import BaseFileReader, open_base_file
from hudi_services.base_files.file_writer import BaseFileWriter
from hudi_services.base_files.new_file import NewFile
from hudi_services.base_files.page_copy import RowGroupCopier
from hudi_services.metadata.records.model import StatsRecord
from hudi_services.metadata.statistics.column_stats import column_records, untold_columns
from hudi_services.parquet import file_schema as ps
from hudi_services.parquet.chunk_stats import ColumnStats
from hudi_services.parquet.file_schema import Leaf, node
from hudi_services.parquet.footer import Physical
from hudi_services.parquet.value_bounds import BoundsOf
from hudi_services.schema.column_type import ColumnType, Kind
from hudi_services.storage import Storage

from .parquet_samples import write_pyarrow

NAN, INF = math.nan, math.inf
GREATEST = 1.7976931348623157e308
EPOCH = dt.datetime(1970, 1, 1)


def leaves_of(reader: BaseFileReader) -> list[str]:
    return [leaf.dotted for leaf in reader.schema.leaves]


def decoded(reader: BaseFileReader, storage: Storage, name: str = "new.parquet") -> tuple[ColumnStats, ...]:
    with BaseFileWriter(storage, name, reader.schema, ranged=leaves_of(reader), row_group_bytes=32) as writer:
        for number in range(len(reader.row_groups)):
            writer.write(reader.read_row_group(number, dictionary=reader.dictionary_columns))
        return writer.close({}).columns


def copied(reader: BaseFileReader, storage: Storage) -> tuple[ColumnStats, ...]:
    if any(chunk.min is not None for group in reader.row_groups for chunk in group.columns):
        # pyarrow leaves NaN out of the bounds that it tells; parquet-mr and we tell none then.
        decoded(reader, storage, "mid.parquet")
        reader = open_base_file(storage, "mid.parquet")
    with RowGroupCopier(
        storage, "new.parquet", reader.schema, file_name=None, codec=None, created_by="x", ranged=leaves_of(reader)
    ) as copier:
        for number in (n for n, group in enumerate(reader.row_groups) if group.num_rows):
            copier.append(reader, number)
        return copier.close({}).columns


Way = Callable[[BaseFileReader, Storage], tuple[ColumnStats, ...]]


def ranges(folder: Path, table: pa.Table, way: Way, **options: Any) -> dict[str, ColumnStats]:
    """Of the leaves in the new file, which are the same when they are taken from the file itself."""
    storage, path = write_pyarrow(folder, table, store_schema=False, **options)
    made = way(open_base_file(storage, path), storage)
    new = open_base_file(storage, "new.parquet")
    assert repr(complete_stats(new, leaves_of(new))) == repr(made)
    file = NewFile.of("p/new.parquet", 1, columns=made)
    assert untold_columns(file, leaves_of(new), typed=True) == []
    return {one.column: one for one in made}


LONG = "é" * 3000
CASES: list[tuple[str, pa.DataType, list[Any], tuple[Any, Any, int]]] = [
    ("nan only", pa.float64(), [NAN, NAN], (GREATEST, INF, 0)),
    ("nan and nulls", pa.float64(), [NAN, None], (GREATEST, INF, 1)),
    ("all null", pa.float64(), [None, None], (None, None, 2)),
    ("no rows", pa.float64(), [], (None, None, 0)),
    ("mixed", pa.float64(), [5.0, NAN, None, -2.0], (-2.0, INF, 1)),
    ("zeros beside nan", pa.float32(), [0.0, NAN], (-0.0, INF, 0)),
    ("one row group of nan", pa.float64(), [1.0, 2.0, NAN, NAN, 3.0, 4.0], (1.0, INF, 0)),
    ("one row group of nulls", pa.float64(), [1.0, NAN, None, None], (1.0, INF, 2)),
    ("no nan", pa.float32(), [0.5, 0.0, None, None], (-0.0, 0.5, 2)),
    ("long text", pa.string(), [LONG, "b", None, "z"], ("b", "é" * 63 + "ê", 1)),
    ("long text only", pa.string(), [LONG, None], ("é" * 64, "é" * 63 + "ê", 1)),
    ("below a long text", pa.string(), ["a" * 5000, "b"], ("a" * 64, "b", 0)),
    ("a long text in between", pa.string(), ["a", "b" * 5000, "c"], ("a", "c", 0)),
    ("long bytes", pa.binary(), [b"\xff" * 5000, b"a", None], (b"a", b"\xff" * 5000, 1)),
    ("long bytes to raise", pa.binary(), [b"a" * 62 + b"\xff" * 5000], (b"a" * 62 + b"\xff\xff", b"a" * 61 + b"b", 0)),
]


@pytest.mark.parametrize("way", [decoded, copied])
@pytest.mark.parametrize(("kind", "values", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_a_record_says(
    kind: pa.DataType, values: list[Any], expected: tuple[Any, Any, int], way: Way, tmp_path: Path
) -> None:
    table = pa.table({"c": pa.array(values, kind)})
    found = ranges(tmp_path, table, way, row_group_size=2)["c"]
    assert repr((found.min, found.max, found.null_count)) == repr(expected)
    assert (found.has_range, found.value_count) == (True, len(values))


@pytest.mark.parametrize("way", [decoded, copied])
def test_nested_leaves_and_those_without_any_statistics(way: Way, tmp_path: Path) -> None:
    table = pa.table(
        {
            "s": pa.array([{"x": 1.5, "t": LONG}, None, {"x": NAN, "t": "a"}, {"x": None, "t": None}]),
            "l": pa.array([[1.0, NAN], [], None, [None]], pa.list_(pa.float32())),
            "m": pa.array([[("k", 2.0)], None, [], [("a", NAN)]], pa.map_(pa.string(), pa.float64())),
            "d": pa.array([{"n": Decimal("-1.5")}, {"n": Decimal("2.5")}, None, None]),
        }
    )
    for options in ({}, {"write_statistics": False}):
        found = ranges(tmp_path, table, way, row_group_size=3, **options)
        told = {name.replace("list.", ""): (one.min, one.max, one.null_count) for name, one in found.items()}
        assert told == {
            "s.x": (1.5, INF, 2),
            "s.t": ("a", "é" * 63 + "ê", 2),
            "l.element": (1.0, INF, 3),
            "m.key_value.key": ("a", "k", 2),
            "m.key_value.value": (2.0, INF, 2),
            "d.n": (Decimal("-1.5"), Decimal("2.5"), 2),
        }


@pytest.mark.parametrize("way", [decoded, copied])
def test_times_in_96_bits(way: Way, tmp_path: Path) -> None:
    at = pa.array([-1, 1_700_000_000_000_001, None], pa.timestamp("us"))
    found = ranges(tmp_path, pa.table({"at": at}), way, use_deprecated_int96_timestamps=True)["at"]
    assert (found.min, found.max, found.null_count) == (-1, 1_700_000_000_000_001, 1)


def test_only_what_is_asked_for_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing at all of columns whose footers tell their ranges."""
    table = pa.table({"a": [NAN, 1.0], "b": [NAN, 2.0], "c": ["x", "y"], "d": [1, 2]})
    storage, path = write_pyarrow(tmp_path, table, store_schema=False)
    reader = open_base_file(storage, path)
    read: list[Any] = []
    pieces = BaseFileReader.pieces
    monkeypatch.setattr(BaseFileReader, "pieces", lambda *a, **k: read.append(a[2]) or pieces(*a, **k))
    for index in range(2):
        # As parquet-mr writes it.
        reader.row_groups = tuple(_without_range(group, index) for group in reader.row_groups)
    stats = {one.column: one for one in complete_stats(reader, ["a", "c", "d"])}
    assert read == [["a"]]
    assert [(stats[name].has_range, stats[name].max) for name in "abcd"] == [
        (True, INF), (False, None), (True, "y"), (True, 2),
    ]  # fmt: skip


def _without_range(group: Any, index: int) -> Any:
    from dataclasses import replace

    chunks = list(group.columns)
    chunks[index] = replace(chunks[index], min=None, max=None)
    return replace(group, columns=tuple(chunks))


def bounds_of(kind: dict[str, int], physical: Physical, values: pa.Array) -> tuple[Any, Any]:
    bounds = BoundsOf(Leaf(("c",), node("c", ps.OPTIONAL, physical, **kind), (ps.OPTIONAL,)))
    bounds.add(values)
    return bounds.bounds.low, bounds.bounds.high


TEXT = {"converted": ps.UTF8}


@given(
    st.text(max_size=70),
    st.sampled_from(["", "\ud7ff", "\uffff", "\U0010ffff", "\uffff\U0010ffff", "z"]),
    st.integers(0, 5000),
    st.text(max_size=3),
)
def test_texts_by_the_order_of_utf_8_and_of_utf_16(start: str, piece: str, times: int, end: str) -> None:
    text = start.encode("utf-8", "ignore").decode() + piece * times + end.encode("utf-8", "ignore").decode()
    low, high = bounds_of(TEXT, Physical.BYTE_ARRAY, pa.array([text]))
    for order in (lambda one: one.encode(), lambda one: one.encode("utf-16-be")):
        assert order(low) <= order(text) <= order(high)
    assert low == high == text if len(text.encode()) <= 4096 else len(low) == 64


def test_bytes_that_are_called_text() -> None:
    raw = pa.array([b"a\xff", b"\xc3"], pa.binary())
    values = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    # The greatest text there is: nothing that a query names is above it.
    assert bounds_of(TEXT, Physical.BYTE_ARRAY, values) == ("a", "\U0010ffff")


TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "string": (pa.string(), st.text(max_size=9) | st.builds(lambda t: t * 5000, st.text(min_size=1, max_size=2))),
    "bytes": (pa.binary(), st.binary(max_size=9) | st.builds(lambda b: b * 5000, st.binary(min_size=1, max_size=2))),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times()),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes()),
    "local": (pa.timestamp("us"), st.datetimes()),
    "millis": (pa.timestamp("ms", "UTC"), st.integers(-(10**12), 10**12)),
}


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_value_lies_within_the_record(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kind, strategy = TYPES[name]
    values = data.draw(st.lists(st.none() | strategy, max_size=8))
    options = {
        "row_group_size": data.draw(st.integers(1, 4)),
        "use_dictionary": data.draw(st.booleans()),
        "write_statistics": data.draw(st.booleans()),
        "store_decimal_as_integer": data.draw(st.booleans()),
    }
    array = pa.array(values, kind)
    table = pa.table({"c": array, "s": pa.StructArray.from_arrays([array], ["x"])})
    way = data.draw(st.sampled_from([decoded, copied]))
    found = ranges(tmp_path_factory.mktemp("bounds"), table, way, **options)
    for typed in (True, False):
        file = NewFile.of("p/f", 1, columns=found.values())
        for record in column_records(file, set(found), typed=typed):
            assert (record.value_count, record.null_count) == (len(values), array.null_count)
            for value in array.drop_null():
                assert_within(record, value, found[record.column].type, typed)


def assert_within(record: StatsRecord, value: pa.Scalar, kind: ColumnType, typed: bool) -> None:
    plain = value.value if pa.types.is_temporal(value.type) else value.as_py()
    if isinstance(plain, float) and math.isnan(plain):
        assert record.maximum == INF
        return
    if kind.kind is Kind.DECIMAL:
        plain = int(plain.scaleb(kind.scale))
    order = (lambda one: one.encode()) if isinstance(plain, str) else (lambda one: one)
    # A reader takes a number without a type for microseconds; Hudi compares it as it is.
    for one in (plain, plain * 1000) if kind.unit == "millis" and not typed else (plain,):
        assert order(record.minimum) <= order(one) <= order(record.maximum)
