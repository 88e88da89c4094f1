"""Avro records of Arrow columns: the same bytes as another library writes, and read back by our own decoder."""

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.log_files.avro_columns import AvroColumns
from hudi_services.log_files.avro_encoding import AvroEncoder, varints
from hudi_services.log_files.block_contents import avro_block_content, framed
from hudi_services.log_files.data_blocks import avro_pieces
from hudi_services.log_files.log_blocks import BlockType, HeaderKey, LogBlock
from hudi_services.log_files.log_reader import scan_blocks
from hudi_services.log_files.log_writer import encode_block
from hudi_services.parquet.conversion import converted_table


def _decimal(name: str, size: int, precision: int, scale: int) -> dict[str, Any]:
    fixed = {"type": "fixed", "name": name, "size": size}
    return {**fixed, "logicalType": "decimal", "precision": precision, "scale": scale}


_TEXTS = {"type": "array", "items": "string"}
_INNER = {
    "type": "record",
    "name": "inner",
    "fields": [{"name": "x", "type": "int"}, {"name": "z", "type": ["null", _TEXTS]}],
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "namespace": "hoodie.t",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "f", "type": ["null", "float"]},
        {"name": "d", "type": "double"},
        {"name": "b", "type": ["null", "boolean"]},
        {"name": "s", "type": ["string", "null"]},
        {"name": "y", "type": ["null", "bytes"]},
        {"name": "dec", "type": ["null", _decimal("fixed", 5, 10, 2)]},
        {"name": "wide", "type": _decimal("wide", 16, 38, 0)},
        {"name": "dt", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "ts", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "a", "type": ["null", {"type": "array", "items": ["null", "int"]}]},
        {"name": "m", "type": ["null", {"type": "map", "values": ["null", "string"]}]},
        {"name": "r", "type": ["null", _INNER]},
        {"name": "same", "type": ["null", "inner"]},
    ],
}
_ITEM = pa.field("element", pa.string(), nullable=False)
_STRUCT = pa.struct([pa.field("x", pa.int32(), nullable=False), ("z", pa.list_(_ITEM))])
ARROW = pa.schema(
    [
        pa.field("i", pa.int32(), nullable=False),
        ("l", pa.int64()),
        ("f", pa.float32()),
        pa.field("d", pa.float64(), nullable=False),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("y", pa.binary()),
        ("dec", pa.decimal128(10, 2)),
        pa.field("wide", pa.decimal128(38, 0), nullable=False),
        ("dt", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("a", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.string())),
        ("r", _STRUCT),
        ("same", _STRUCT),
    ]
)

_INT = st.integers(-(2**31), 2**31 - 1)
_LONG = st.integers(-(2**63), 2**63 - 1)
_TEXT = st.text(max_size=80)
_RECORD = st.fixed_dictionaries({"x": _INT, "z": st.none() | st.lists(_TEXT, max_size=3)})
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": _INT,
            "l": st.none() | _LONG,
            "f": st.none() | st.floats(width=32, allow_nan=False),
            "d": st.floats(allow_nan=False),
            "b": st.none() | st.booleans(),
            "s": st.none() | _TEXT,
            "y": st.none() | st.binary(max_size=200),
            "dec": st.none() | st.decimals(-99999999, 99999999, places=2),
            "wide": st.decimals(-(10**37), 10**37, places=0),
            "dt": st.none() | st.dates(),
            "ts": st.none() | st.integers(-(2**50), 2**50),
            "a": st.none() | st.lists(st.none() | _INT, max_size=4),
            "m": st.none() | st.dictionaries(_TEXT, st.none() | _TEXT, max_size=3),
            "r": st.none() | _RECORD,
            "same": st.none() | _RECORD,
        }
    ),
    max_size=12,
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    found = [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in rows]
    return pa.Table.from_pylist(found, schema=ARROW)


@pytest.mark.thorough
@given(ROWS, st.integers(0, 3))
def test_records_are_those_of_fastavro(rows: list[dict[str, Any]], skipped: int) -> None:
    """Also of a table that is a part of another one."""
    encoded = AvroEncoder(json.dumps(SCHEMA)).encode(table(rows).slice(skipped))
    schema = fastavro.parse_schema(json.loads(json.dumps(SCHEMA)))
    wanted = []
    for row in rows[skipped:]:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        wanted.append(out.getvalue())
    assert encoded.to_pylist() == wanted


@pytest.mark.thorough
@given(ROWS)
def test_blocks_are_read_back(rows: list[dict[str, Any]]) -> None:
    """By the code that reads the log files of Hudi."""
    given_, text = table(rows), json.dumps(SCHEMA)
    content = avro_block_content(len(rows), [framed(AvroEncoder(text).encode(given_))])
    data = encode_block(LogBlock(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: text}, content))

    def read(start: int, length: int) -> bytes:
        return data[start : start + length]

    (block,) = scan_blocks(read, len(data), "f")
    decoder = AvroColumns(text, "f")
    columns = decoder.schema.columns_of(decoder.schema.columns)
    found = [
        converted_table(piece, piece.num_rows, decoder.schema, columns, decoder.as_written)
        for piece in avro_pieces(read, block, decoder)
    ]
    assert [row for piece in found for row in piece.to_pylist()] == given_.to_pylist()


@given(st.lists(_LONG))
def test_varints(values: list[int]) -> None:
    wanted = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, {"type": "long"}, value)
        wanted.append(out.getvalue())
    assert varints(np.array(values, np.int64)).to_pylist() == wanted


@pytest.mark.parametrize("symbols", [["A", "B"], ["B", "A", "C"]])
def test_enums(symbols: list[str]) -> None:
    kind = {"type": "enum", "name": "e", "symbols": symbols}
    schema = {"type": "record", "name": "r", "fields": [{"name": "e", "type": kind}]}
    encoded = AvroEncoder(json.dumps(schema)).encode(pa.table({"e": ["B", "A"]}))
    assert encoded.to_pylist() == [bytes([2 * symbols.index(one)]) for one in "BA"]
