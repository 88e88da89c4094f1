"""Avro records decoded by column, against fastavro, which decodes them one by one."""

import io
import json
import struct
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.errors import CorruptFile
from hudi_services.log_files.avro_columns import AvroColumns
from hudi_services.log_files.data_blocks import avro_pieces
from hudi_services.log_files.log_blocks import BlockPlace, BlockType

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "boolean": ("boolean", st.booleans()),
    "int": ("int", st.integers(-(2**31), 2**31 - 1)),
    "long": ("long", st.integers(-(2**63), 2**63 - 1)),
    "float": ("float", st.floats(width=32, allow_nan=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "string": ("string", TEXT),
    "bytes": ("bytes", st.binary(max_size=8)),
    "enum": ({"type": "enum", "name": "E{n}", "symbols": ["RED", "GREEN"]}, st.sampled_from(["RED", "GREEN"])),
    "fixed": ({"type": "fixed", "name": "F{n}", "size": 3}, st.binary(min_size=3, max_size=3)),
}
LIMIT = 6


@st.composite
def fields(draw: st.DrawFn, name: str, depth: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:
    """An Avro type, and its values; named types have the `name` of the field."""
    kinds = [*VALUES, "optional", *(["array", "map", "record"] if depth < 2 else [])]
    kind = draw(st.sampled_from(kinds))
    if kind in VALUES:
        schema, values = VALUES[kind]
        return json.loads(json.dumps(schema).replace("{n}", name)), values
    if kind == "optional":
        schema, values = draw(fields(name, depth).filter(lambda one: not isinstance(one[0], list)))
        return draw(st.sampled_from([["null", schema], [schema, "null"]])), st.none() | values
    schema, values = draw(fields(f"{name}_a", depth + 1))
    if kind == "array":
        return {"type": "array", "items": schema}, st.lists(values, max_size=4)
    if kind == "map":
        return {"type": "map", "values": schema}, st.dictionaries(TEXT, values, max_size=3)
    return (
        {"type": "record", "name": f"R{name}", "fields": [{"name": "a", "type": schema}, {"name": "b", "type": "int"}]},
        st.fixed_dictionaries({"a": values, "b": st.integers(-100, 100)}),
    )


@st.composite
def records(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    columns = [draw(fields(f"c{i}")) for i in range(draw(st.integers(1, 4)))]
    named = [{"name": f"c{i}", "type": schema} for i, (schema, _) in enumerate(columns)]
    rows = st.fixed_dictionaries({f"c{i}": values for i, (_, values) in enumerate(columns)})
    schema = {"type": "record", "name": "row", "namespace": "n.s", "fields": named}
    return schema, draw(st.lists(rows, max_size=LIMIT))


def block_of(schema: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[bytes, AvroColumns]:
    parsed = fastavro.parse_schema(schema)
    encoded = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        encoded.append(out.getvalue())
    content = struct.pack(">ii", 3, len(rows)) + b"".join(struct.pack(">i", len(one)) + one for one in encoded)
    return content, AvroColumns(json.dumps(schema), "f")


def pieces(content: bytes, decoder: AvroColumns, piece_bytes: int) -> list[pa.Table]:
    data = b"before" + content + b"after"
    place = BlockPlace(BlockType.AVRO_DATA, {}, "some/file.log", 6, len(content))
    return list(avro_pieces(lambda start, length: data[start : start + length], place, decoder, piece_bytes))


def same(found: Any, wanted: Any, schema: Any) -> bool:
    if isinstance(schema, list):
        (schema,) = [one for one in schema if one != "null"]
        return found is None if wanted is None else same(found, wanted, schema)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "enum":
        return bool(found == wanted.encode())
    if kind == "array":
        pairs = zip(found, wanted, strict=True)
        return len(found) == len(wanted) and all(same(one, other, schema["items"]) for one, other in pairs)
    if kind == "map":
        by_key = dict(found)
        return by_key.keys() == wanted.keys() and all(same(by_key[k], wanted[k], schema["values"]) for k in wanted)
    if kind == "record":
        return all(same(found[field["name"]], wanted[field["name"]], field["type"]) for field in schema["fields"])
    return bool(found == wanted)


@settings(max_examples=120, deadline=None)
@given(records(), st.integers(1, 200))
def test_columns_equal_the_records(made: tuple[dict[str, Any], list[dict[str, Any]]], piece_bytes: int) -> None:
    schema, rows = made
    content, decoder = block_of(schema, rows)
    found = [row for piece in pieces(content, decoder, piece_bytes) for row in piece.to_pylist()]
    assert len(found) == len(rows)
    for one, other in zip(found, rows, strict=True):
        assert all(same(one[field["name"]], other[field["name"]], field["type"]) for field in schema["fields"])
    for piece in pieces(content, decoder, piece_bytes):
        piece.validate(full=True)


@pytest.mark.thorough
@settings(max_examples=200, deadline=None)
@given(records(), st.data())
def test_damaged_records_raise_nothing_else(
    made: tuple[dict[str, Any], list[dict[str, Any]]], data: st.DataObject
) -> None:
    schema, rows = made
    content, decoder = block_of(schema, rows)
    broken = bytearray(content)
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=4)):
        broken[at] = byte
    try:
        for piece in pieces(bytes(broken), decoder, 1 << 20):
            piece.validate(full=True)
    except CorruptFile as e:
        assert "some/file.log" in e.message


def test_logical_types() -> None:
    fields: list[dict[str, Any]] = [
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "t", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "n", "type": {"type": "fixed", "name": "N", "size": 5, "logicalType": "decimal", "precision": 10,
                               "scale": 2}},
        {"name": "b", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    ]  # fmt: skip
    schema = {"type": "record", "name": "row", "fields": fields}
    bare: dict[str, Any] = json.loads(json.dumps(schema).replace("logicalType", "was"))
    rows = [
        {"d": 20000, "t": None, "n": b"\0\0\0\x01\x02", "b": b"\x01"},
        {"d": -1, "t": 7, "n": b"\xff" * 5, "b": b""},
    ]
    content, _ = block_of(bare, rows)
    decoder = AvroColumns(json.dumps(schema), "f")
    (piece,) = pieces(content, decoder, 1000)
    assert [str(field.type) for field in piece.schema] == ["date32[day]", "timestamp[us, tz=UTC]", "binary", "binary"]
    assert piece.column("n").to_pylist() == [b"\0\0\0\x01\x02", b"\xff" * 5]
    assert piece.column("t").cast(pa.int64()).to_pylist() == [None, 7]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (struct.pack(">ii", 0, 0), "data block version 0 is not supported"),
        (struct.pack(">ii", 3, 2) + struct.pack(">i", 1) + b"\x02", "1 records, and 2 by their count"),
        (struct.pack(">iii", 3, 1, -1), "a record of -1 bytes"),
        (struct.pack(">iii", 3, 1, 9) + b"\x02", "a record ends after its block"),
        (struct.pack(">iii", 3, 1, 2) + b"\x02\x02", "does not end where its length says"),
        (struct.pack(">iii", 3, 1, 1) + b"\x80", "after the block"),
        (struct.pack(">iii", 3, 1, 6) + b"\xfe\xff\xff\xff\xff\x01", "is too large"),
        (struct.pack(">iii", 3, 1, 11) + b"\xff" * 11, "does not end"),
        (b"\0", "data block version"),
    ],
)
def test_what_is_no_block(content: bytes, text: str) -> None:
    decoder = AvroColumns('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}', "f")
    with pytest.raises(CorruptFile, match=text) as raised:
        pieces(content, decoder, 1000)
    assert "some/file.log" in raised.value.message


def test_values_that_overlap() -> None:
    """A length that leads into the next record cannot make a row of it."""
    decoder = AvroColumns('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}', "f")
    data = b"\x08abcd\x02ab"
    with pytest.raises(CorruptFile):
        decoder.decode(data, np.array([0, 2]), np.array([5, 5]), "some/file.log", 0)
