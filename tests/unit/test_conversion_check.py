"""The check of converted columns: it accepts every right conversion, and finds every wrong one."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.errors import CheckFailed
from hudi_services.parquet import conversion
from hudi_services.parquet import file_schema as ps
from hudi_services.parquet.conversion import convert_column
from hudi_services.parquet.file_schema import Node, node
from hudi_services.parquet.footer import Physical
from hudi_services.parquet.node_types import build_node
from hudi_services.rows.conversion_check import ConversionCheck
from hudi_services.schema.column_type import Column, ColumnType, Kind

from .parquet_samples import schema_of
from .test_rewrite import rewrite

BYTES, FLBA = Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY
INTS = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-(2**31), 2**31 - 1, 16777217, 0, -1])
LONGS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1])
FLOATS = st.floats(width=32) | st.sampled_from([math.nan, -0.0, 0.0, math.inf, -math.inf, np.float32(1e-45).item()])
TEXTS = st.text(max_size=9)


def kind(of: Kind, **more: Any) -> Node:
    return build_node("c", ColumnType(of, nullable=True, **more))


def decimal(physical: Physical, precision: int, scale: int, width: int = 0) -> Node:
    more = {"type_length": width} if width else {}
    return node("c", ps.OPTIONAL, physical, converted=ps.DECIMAL, precision=precision, scale=scale, **more)


def unscaled(digits: int) -> st.SearchStrategy[int]:
    top = 10**digits - 1
    return st.integers(-top, top) | st.sampled_from([-top, top, 0, -1])


def times(unit: str, *, utc: bool = True) -> Node:
    return kind(Kind.TIMESTAMP, unit=unit, utc=utc)


@dataclass(frozen=True)
class Pair:
    """A conversion, and raw values to convert."""

    source: Node
    target: Node
    values: st.SearchStrategy[Any]
    raw: Callable[[Any], Any] = lambda value: value


def as_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def int96(micros: int) -> bytes:
    days, rest = divmod(micros, 86_400_000_000)
    return (rest * 1000).to_bytes(8, "little") + (days + 2_440_588).to_bytes(4, "little", signed=True)


INT96 = node("c", ps.OPTIONAL, Physical.INT96)
MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
MILLIS = st.integers(-62_135_596_800_000, 253_402_300_799_999)
PAIRS = {
    "int to long": Pair(kind(Kind.INT), kind(Kind.LONG), INTS),
    "int to float": Pair(kind(Kind.INT), kind(Kind.FLOAT), INTS),
    "int to double": Pair(kind(Kind.INT), kind(Kind.DOUBLE), INTS),
    "int to string": Pair(kind(Kind.INT), kind(Kind.STRING), INTS),
    "long to float": Pair(kind(Kind.LONG), kind(Kind.FLOAT), LONGS),
    "long to double": Pair(kind(Kind.LONG), kind(Kind.DOUBLE), LONGS),
    "long to string": Pair(kind(Kind.LONG), kind(Kind.STRING), LONGS),
    "float to double": Pair(kind(Kind.FLOAT), kind(Kind.DOUBLE), FLOATS),
    "string to bytes": Pair(kind(Kind.STRING), kind(Kind.BYTES), TEXTS),
    "bytes to string": Pair(kind(Kind.BYTES), kind(Kind.STRING), TEXTS, str.encode),
    "enum to string": Pair(kind(Kind.ENUM), kind(Kind.STRING), TEXTS, str.encode),
    "string to enum": Pair(kind(Kind.STRING), kind(Kind.ENUM), TEXTS),
    "decimal, wider": Pair(
        decimal(FLBA, 20, 3, 9), decimal(FLBA, 38, 7, 16), unscaled(20), lambda n: Decimal(n).scaleb(-3)
    ),
    "decimal, beyond 38 digits": Pair(decimal(BYTES, 30, 3), decimal(FLBA, 50, 10, 21), unscaled(30), as_bytes),
    "decimal of int": Pair(decimal(Physical.INT32, 5, 1), decimal(FLBA, 10, 2, 5), unscaled(5)),
    "decimal of long": Pair(decimal(Physical.INT64, 18, 4), decimal(BYTES, 20, 4), unscaled(18)),
    "decimal of bytes": Pair(decimal(BYTES, 20, 3), decimal(FLBA, 24, 5, 20), unscaled(20), as_bytes),
    "decimal to int": Pair(
        decimal(FLBA, 5, 1, 3), decimal(Physical.INT32, 6, 2), unscaled(5), lambda n: Decimal(n).scaleb(-1)
    ),
    "millis to micros": Pair(times("millis"), times("micros"), MILLIS),
    "local millis to micros": Pair(times("millis", utc=False), times("micros", utc=False), MILLIS),
    "micros to nanos": Pair(times("micros"), times("nanos"), st.integers(-(2**52), 2**52)),
    "time millis to micros": Pair(
        kind(Kind.TIME, unit="millis"), kind(Kind.TIME, unit="micros"), st.integers(0, 86_399_999)
    ),
    "INT96 to micros": Pair(INT96, times("micros"), MICROS, int96),
    "millis to INT96": Pair(times("millis"), INT96, MILLIS),
}


def converted(values: pa.Array, source: Node, target: Node) -> pa.ChunkedArray:
    return convert_column(pa.chunked_array([values]), source, target, schema_of(target).arrow.field(0).type)


def prove(read: pa.Array | None, source: Node | None, after: pa.ChunkedArray, target: Node) -> pa.Table:
    """Raises CheckFailed when `after` does not mean what was read."""
    schema = schema_of(*([source] if source is not None else [node("other", ps.OPTIONAL, BYTES)]))
    before = pa.table({"c": read}) if read is not None else pa.table({})
    columns = schema.columns_of(["c"])
    return ConversionCheck("f", schema, schema_of(target), columns).rows(before, pa.table({"c": after}))


def meaning(column: pa.ChunkedArray) -> list[object]:
    """To compare by: NaN is itself, and -0.0 is not 0.0."""
    return [
        repr(value)
        for value in column.cast(pa.int64() if pa.types.is_timestamp(column.type) else column.type).to_pylist()
    ]


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.spread(5)
@pytest.mark.parametrize("name", PAIRS)
def test_a_right_conversion_passes_and_one_wrong_value_does_not(name: str, data: st.DataObject) -> None:
    pair = PAIRS[name]
    values = st.none() | pair.values.map(pair.raw)
    raw = data.draw(st.lists(values, min_size=1, max_size=20))
    kind, start = schema_of(pair.source).arrow.field(0).type, data.draw(st.integers(0, len(raw) - 1))
    after = converted(pa.array(raw, kind).slice(start), pair.source, pair.target)
    read = pa.array(raw, kind).slice(start)
    hashed = prove(read, pair.source, after, pair.target).column("c")
    assert meaning(hashed) == meaning(after)
    raw[data.draw(st.integers(start, len(raw) - 1))] = data.draw(values)
    wrong = converted(pa.array(raw, kind).slice(start), pair.source, pair.target)
    if meaning(wrong) != meaning(after):
        with pytest.raises(CheckFailed, match="column c"):
            prove(read, pair.source, wrong, pair.target)


def numbers(array: pa.Array, by: int) -> pa.Array:
    """Integers of eight bytes times `by`."""
    return pc.multiply(array.view(pa.int64()), by).view(array.type)


Fault = Callable[[pa.Array], pa.Array]
# What a conversion could well get wrong.
FAULTS: dict[str, tuple[list[Any], Fault]] = {
    "int to long": ([-1, 5], lambda wrong: pc.add(wrong, 1)),
    "int to float": ([16777217], lambda wrong: pa.array([16777218.0], wrong.type)),
    "long to double": ([2**53 + 1], lambda wrong: pa.array([2.0**53 + 2], wrong.type)),
    "long to string": ([-7], lambda wrong: pa.array(["-07"])),
    "float to double": ([np.float32(0.1).item()], lambda wrong: pa.array([np.float32(0.1).item()], wrong.type)),
    "string to bytes": (["\u00e9"], lambda wrong: pa.array(["\u00e9".encode("latin-1")], wrong.type)),
    "decimal, wider": ([Decimal("1.500")], lambda wrong: pa.array([Decimal("0.150")], wrong.type)),
    "decimal, beyond 38 digits": (
        [as_bytes(2**70)],
        lambda wrong: pa.array([Decimal(2**70 + 2**64).scaleb(-3)], wrong.type),
    ),
    "decimal of int": ([-15], lambda wrong: pa.array([Decimal("1.50")], wrong.type)),
    "decimal of bytes": ([as_bytes(-1)], lambda wrong: pa.array([bytes(19) + b"\xff"], wrong.type)),
    "millis to micros": ([1_700_000_000_123], lambda wrong: numbers(wrong, 1000)),
    "micros to nanos": ([1_700_000_000_123], lambda wrong: pc.add(wrong.view(pa.int64()), 1).view(wrong.type)),
    "INT96 to micros": ([int96(-1)], lambda wrong: pc.add(wrong.view(pa.int64()), 86_400_000_000).view(wrong.type)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_conversion(name: str) -> None:
    pair, (values, fault) = PAIRS[name], FAULTS[name]
    read = pa.array(values, schema_of(pair.source).arrow.field(0).type)
    after = converted(read, pair.source, pair.target)
    prove(read, pair.source, after, pair.target)
    with pytest.raises(CheckFailed):
        prove(read, pair.source, pa.chunked_array([fault(after.chunk(0))]), pair.target)


def test_what_needs_no_conversion_is_hashed_as_it_was_read() -> None:
    column = kind(Kind.INT)
    read = pa.array([1, 2], pa.int32())
    found = prove(read, column, pa.chunked_array([pa.array([1, 3], pa.int32())]), column.with_repetition(ps.REQUIRED))
    assert found.column("c").to_pylist() == [1, 2]


def test_a_column_that_the_file_lacks_is_null() -> None:
    prove(None, None, pa.chunked_array([pa.nulls(2, pa.int64())]), kind(Kind.LONG))
    with pytest.raises(CheckFailed):
        prove(None, None, pa.chunked_array([pa.array([None, 0], pa.int64())]), kind(Kind.LONG))


def test_a_piece_without_rows_may_have_no_chunk() -> None:
    none = pa.chunked_array([], pa.int32()), pa.chunked_array([], pa.int64())
    source, target = (schema_of(kind(one)) for one in (Kind.INT, Kind.LONG))
    check = ConversionCheck("file", source, target, source.columns_of(["c"]))
    assert check.rows(*(pa.table([one], names=["c"]) for one in none)).num_rows == 0


def test_another_zone_and_other_types_are_no_conversion() -> None:
    moments = pa.array([0], pa.timestamp("ms", "UTC"))
    with pytest.raises(CheckFailed):
        prove(
            moments, times("millis"), pa.chunked_array([pa.array([0], pa.timestamp("us"))]), times("micros", utc=False)
        )
    with pytest.raises(CheckFailed, match="cannot be checked"):
        prove(pa.array([True]), kind(Kind.BOOLEAN), pa.chunked_array([pa.array([1])]), kind(Kind.LONG))


INNER = ColumnType(
    Kind.STRUCT, True, fields=(Column("x", ColumnType(Kind.INT, True)), Column("gone", ColumnType(Kind.STRING, True)))
)
WIDER = ColumnType(
    Kind.STRUCT, True, fields=(Column("new", ColumnType(Kind.DATE, True)), Column("x", ColumnType(Kind.LONG, True)))
)


def nested(element: ColumnType) -> Node:
    """map<string, array<element>>"""
    lists = ColumnType(Kind.LIST, True, element=element)
    return build_node("c", ColumnType(Kind.MAP, True, key=ColumnType(Kind.STRING), value=lists))


STRUCTS = st.none() | st.fixed_dictionaries({"x": st.none() | INTS, "gone": st.none() | TEXTS})
MAPS = st.none() | st.lists(st.tuples(TEXTS, st.none() | st.lists(STRUCTS, max_size=3)), max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.lists(MAPS, min_size=1, max_size=8), st.data())
def test_nested_values(rows: list[Any], data: st.DataObject) -> None:
    source, target = nested(INNER), nested(WIDER)
    kind, start = schema_of(source).arrow.field(0).type, data.draw(st.integers(0, len(rows) - 1))
    read = pa.array(rows, kind).slice(start)
    after = converted(read, source, target)
    prove(read, source, after, target)
    other = list(rows)
    other[data.draw(st.integers(start, len(rows) - 1))] = data.draw(MAPS)
    wrong = converted(pa.array(other, kind).slice(start), source, target)
    if wrong.to_pylist() != after.to_pylist():
        with pytest.raises(CheckFailed):
            prove(read, source, wrong, target)


def test_what_is_behind_a_null_does_not_count() -> None:
    source, target = (
        build_node("c", ColumnType(Kind.STRUCT, True, fields=(Column("x", ColumnType(k, True)),)))
        for k in (Kind.INT, Kind.LONG)
    )
    valid = pa.array([True, False])
    read = pa.StructArray.from_arrays([pa.array([1, 2], pa.int32())], ["x"], mask=pc.invert(valid))
    after = pa.StructArray.from_arrays([pa.array([1, 9])], ["x"], mask=pc.invert(valid))
    prove(read, source, pa.chunked_array([after]), target)
    with pytest.raises(CheckFailed):
        prove(read, source, pa.chunked_array([pa.array([{"x": 1}, {"x": None}], after.type)]), target)


def test_two_list_forms() -> None:
    """Elements in two levels, which have no place for a null, become such in three."""
    two = node("c", ps.OPTIONAL, children=[node("array", ps.REPEATED, Physical.INT32)], converted=ps.LIST)
    three = kind(Kind.LIST, element=ColumnType(Kind.INT, True))
    read = pa.array([[1, 2], None, [], [3]], schema_of(two).arrow.field(0).type)
    after = converted(read, two, three)
    prove(read, two, after, three)
    with pytest.raises(CheckFailed):
        prove(read, two, pa.chunked_array([pa.array([[1], None, [2], [3]], after.type)]), three)


# ---------------------------------------------------------------------------------------------- seen by a whole rewrite


EVOLVED = [
    (pa.int32(), [1, None, 3], pa.int64(), 4),
    (pa.int32(), [1, None, 3], pa.float64(), 4.5),
    (pa.int64(), [1, None, 3], pa.string(), "s"),
    (pa.float32(), [0.1, None, -0.0], pa.float64(), 4.5),
    (pa.string(), ["a", None, "b"], pa.binary(), b"c"),
    (pa.decimal128(5, 1), [Decimal("1.5"), None, Decimal("2.5")], pa.decimal128(10, 2), Decimal("3.25")),
    (pa.timestamp("ms", "UTC"), [1, None, 3], pa.timestamp("us", "UTC"), 4),
    (pa.list_(pa.int32()), [[1], None, [3]], pa.list_(pa.int64()), [4]),
    (pa.struct([("x", pa.int32())]), [{"x": 1}, None, {"x": 3}], pa.struct([("x", pa.int64())]), {"x": 4}),
]


@pytest.mark.parametrize(("old", "values", "new", "value"), EVOLVED)
def test_a_broken_conversion_commits_nothing(
    old: pa.DataType, values: list[Any], new: pa.DataType, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(
        pa.table({"id": ["a", "b", "c"], "v": pa.array(values, old)}), tmp_path / "old.parquet", store_schema=False
    )
    pq.write_table(pa.table({"id": ["d"], "v": pa.array([value], new)}), tmp_path / "new.parquet", store_schema=False)
    assert rewrite(tmp_path, "new.parquet", "old.parquet", meta_fields=False).rows_in == 4
    convert = conversion._convert_leaf
    monkeypatch.setattr(
        conversion, "_convert_leaf", lambda *of: (found := convert(*of)).take(pa.array(range(len(found))[::-1]))
    )
    with pytest.raises(CheckFailed, match="column v"):
        rewrite(tmp_path, "new.parquet", "old.parquet", meta_fields=False)
