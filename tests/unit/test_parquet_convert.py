"""Conversions of slices and chunks, which whole files do not bring about."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.errors import CheckFailed, CorruptFile
from hudi_services.parquet import file_schema as ps
from hudi_services.parquet.conversion import convert_column, converted_table, natural
from hudi_services.parquet.file_schema import node
from hudi_services.parquet.footer import Physical
from hudi_services.parquet.node_types import build_node
from hudi_services.rows.conversion_check import ConversionCheck
from hudi_services.schema.column_type import ColumnType, Kind

from .parquet_samples import schema_of

FLBA, BYTES = Physical.FIXED_LEN_BYTE_ARRAY, Physical.BYTE_ARRAY
DECIMAL = {"converted": ps.DECIMAL, "precision": 20, "scale": 3}


def convert(values: pa.Array, source: ps.Node, target: ps.Node) -> list[object]:
    field = schema_of(target).arrow.field(0)
    return convert_column(pa.chunked_array([values]), source, target, field.type).to_pylist()


@given(st.lists(st.none() | st.integers(-(10**19), 10**19), max_size=30), st.data())
def test_decimal_forms_are_one_number(numbers, data):
    start = data.draw(st.integers(0, len(numbers)))
    decimals = [None if n is None else Decimal(n).scaleb(-3) for n in numbers]
    forms = {
        "fixed": node("c", ps.OPTIONAL, FLBA, type_length=9, **DECIMAL),
        "wide": node("c", ps.OPTIONAL, FLBA, type_length=20, **DECIMAL),
        "bytes": node("c", ps.OPTIONAL, BYTES, **DECIMAL),
    }
    arrays = {
        "fixed": pa.array(decimals, pa.decimal128(20, 3)),
        "wide": pa.array([n if n is None else n.to_bytes(20, "big", signed=True) for n in numbers], pa.binary(20)),
        "bytes": pa.array(
            [n if n is None else n.to_bytes(n.bit_length() // 8 + 1, "big", signed=True) for n in numbers], pa.binary()
        ),
    }
    for name, source in forms.items():
        if name == "wide":
            continue
        sliced = arrays[name].slice(start)
        assert natural(sliced, source).to_pylist() == decimals[start:]
        for other, target in forms.items():
            column = pa.chunked_array([sliced])
            made = convert_column(column, source, target, schema_of(target).arrow.field(0).type)
            if other != "wide":
                assert pa.chunked_array([natural(c, target) for c in made.chunks]).to_pylist() == decimals[start:]
            else:
                assert made.to_pylist() == arrays["wide"].slice(start).to_pylist()


def test_a_decimal_wider_than_its_type_is_corrupt():
    column = node("c", ps.OPTIONAL, BYTES, **DECIMAL)
    with pytest.raises(CorruptFile):
        natural(pa.array([bytes(17)]), column)


def inner(name: str, *fields: ps.Node) -> ps.Node:
    return node(name, ps.OPTIONAL, children=fields)


def test_slices_of_nested_values_are_converted():
    def of(x: Physical, *more: ps.Node) -> ps.Node:
        element = node("element", ps.OPTIONAL, children=[node("x", ps.OPTIONAL, x), *more])
        return node("l", ps.OPTIONAL, children=[node("list", ps.REPEATED, children=[element])], converted=ps.LIST)

    source = of(Physical.INT32)
    target = of(Physical.INT64, node("y", ps.OPTIONAL, BYTES, converted=ps.UTF8))
    rows = [[{"x": 1}], None, [], [{"x": 2}, None, {"x": None}], [{"x": 3}]]
    values = pa.array(rows, schema_of(source).arrow.field(0).type)
    expected = [None if r is None else [None if e is None else {**e, "y": None} for e in r] for r in rows]
    for start in range(len(rows)):
        for length in range(len(rows) - start + 1):
            got = convert(values.slice(start, length), source, target)
            assert got == expected[start : start + length]


def test_slices_of_maps_and_structs_are_converted():
    def of(x: Physical) -> ps.Node:
        pair = [node("key", ps.REQUIRED, BYTES, converted=ps.UTF8), node("value", ps.OPTIONAL, x)]
        entries = node("m", ps.OPTIONAL, children=[node("key_value", ps.REPEATED, children=pair)], converted=ps.MAP)
        return inner("s", entries, node("z", ps.OPTIONAL, x))

    rows = [{"m": [("a", 1)], "z": 1}, None, {"m": None, "z": None}, {"m": [], "z": 2}, {"m": [("b", None)], "z": 3}]
    values = pa.array(rows, schema_of(of(Physical.INT32)).arrow.field(0).type)
    for start in range(len(rows)):
        assert convert(values.slice(start), of(Physical.INT32), of(Physical.DOUBLE)) == rows[start:]


def test_lists_of_lists_and_required_repeated_groups():
    def of(x: Physical) -> ps.Node:
        innermost = node("array", ps.REPEATED, x)
        nested = node("array", ps.REPEATED, children=[innermost], converted=ps.LIST)
        return node("l", ps.OPTIONAL, children=[nested], converted=ps.LIST)

    rows = [[[1, 2], []], None, [], [[3]]]
    values = pa.array(rows, schema_of(of(Physical.INT32)).arrow.field(0).type)
    assert convert(values.slice(1), of(Physical.INT32), of(Physical.INT64)) == rows[1:]


def test_dictionaries_stay_until_something_changes():
    text = node("c", ps.OPTIONAL, BYTES, converted=ps.UTF8)
    column = pa.chunked_array([pa.array(["a", None, "a"]).dictionary_encode()])
    assert convert_column(column, text, text, pa.string()) is column
    changed = convert_column(column, text, node("c", ps.OPTIONAL, BYTES), pa.binary())
    assert changed.to_pylist() == [b"a", None, b"a"]


def test_columns_are_found_by_the_map_and_not_by_their_names() -> None:
    """As a column has another name in files from before it was renamed."""
    source = schema_of(*(build_node(name, ColumnType(kind)) for name, kind in (("a", Kind.INT), ("b", Kind.STRING))))
    of_table = (("b", Kind.LONG), ("c", Kind.STRING), ("new", Kind.DATE))
    target = schema_of(*(build_node(name, ColumnType(kind, nullable=True)) for name, kind in of_table))
    read = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]})
    columns = {"b": "a", "c": "b", "new": None}
    found = converted_table(read, 2, source, columns, target)
    assert found.to_pydict() == {"b": [1, 2], "c": ["x", "y"], "new": [None, None]}
    assert ConversionCheck("f", source, target, columns).rows(read, found).to_pydict() == found.to_pydict()
    changed = found.set_column(0, "b", pa.array([1, 3]))
    with pytest.raises(CheckFailed, match="the values of column b were changed"):
        ConversionCheck("f", source, target, columns).rows(read, changed)
