"""VECTOR, BLOB and VARIANT of Hudi 1.2.0: rewritten as they are, and written; real tables of 1.2.0."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.api.table import Table
from hudi_services.base_files.file_writer import BaseFileWriter
from hudi_services.errors import CheckFailed, ConfigError
from hudi_services.parquet.file_schema import REQUIRED, FileSchema, node
from hudi_services.parquet.node_types import build_nodes
from hudi_services.schema.column_type import ColumnType, Kind
from hudi_services.schema.table_schema import TableSchema
from hudi_services.stores import open_storage
from hudi_services.writing.enum_symbols import check_symbols

from .tables import as_written, digest, merged_rows, open_local, unpack

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

VECTORS = b"e:VECTOR(4),f:VECTOR(4),d:VECTOR(3, DOUBLE),i:VECTOR(5, INT8)"
QUIET = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
}
REFERENCE = pa.struct(
    [("external_path", pa.string()), ("offset", pa.int64()), ("length", pa.int64()), ("managed", pa.bool_())]
)
BLOB = pa.struct([("type", pa.string()), ("data", pa.binary()), ("reference", REFERENCE)])
INLINE = {"type": "INLINE", "data": b"xyz", "reference": None}
OUTSIDE = {"external_path": "/a", "offset": 1, "length": 2, "managed": False}
OUT_OF_LINE = {"type": "OUT_OF_LINE", "data": None, "reference": OUTSIDE}
SERVICES: Mapping[str, Mapping[str, str]] = {
    "cluster": {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"},
    "sort": {"hoodie.clustering.plan.strategy.sort.columns": "id"},
    "compact": {"hoodie.compact.inline.max.delta.commits": "1"},
}


def unpacked(folder: Path, kind: str) -> Path:
    """A table with the times of its writers: copied on the day when it was made, it may seem to be of another zone."""
    path = unpack("1.2.0", folder, kind)
    as_written(path)
    return path


def opened(path: Path) -> Table:
    return hudi_services.open(str(path), engine="local", options=QUIET)


def serve(path: Path, service: str) -> str:
    table, options = opened(path), SERVICES[service]
    done = table.compact(options=options) if service == "compact" else table.cluster(options=options)
    assert done.instant
    return done.instant


def files_of(path: Path, instant: str) -> list[Path]:
    return sorted(path.glob(f"*/*_{instant}.parquet"))


def values(path: Path) -> list[dict[str, Any]]:
    found = merged_rows(path)
    return found.select([name for name in found.column_names if not name.startswith("_hoodie")]).to_pylist()


@pytest.mark.thorough
@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("kind", ["vectors", "variant"])
def test_services_keep_rows_types_and_footer_entries(kind: str, service: str, tmp_path: Path) -> None:
    path = unpacked(tmp_path, kind)
    before, schema = values(path), open_local(path).schema
    instant = serve(path, service)
    assert values(path) == before
    assert open_local(path).schema == schema
    (new,) = files_of(path, instant)
    footer = pq.read_metadata(new).metadata
    assert footer.get(b"hoodie.vector.columns") == (VECTORS if kind == "vectors" else None)
    logical = {"vectors": {"vector", "blob"}, "variant": {"variant"}}[kind]
    assert logical <= _logical_types(json.loads(footer[b"parquet.avro.schema"]))
    assert opened(path).validate().exit_code == 0
    if service != "compact":
        opened(path).undo(instant)
        assert values(path) == before and opened(path).validate().exit_code == 0


def _logical_types(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_logical_types, schema))
    if not isinstance(schema, dict):
        return set()
    return {str(schema.get("logicalType"))}.union(*map(_logical_types, schema.values()))


def rows(ids: list[int], **changed: Any) -> pa.Table:
    floats = pa.list_(pa.float32())
    columns = {
        "id": pa.array(ids),
        "ts": pa.array([9] * len(ids)),
        "e": pa.array([[one, 0.5, -0.0, 1e-30] for one in ids], floats),
        "f": pa.array([None] * len(ids), floats),
        "d": pa.array([[0.1, one, 2.0] for one in ids], pa.list_(pa.float64(), 3)),
        "i": pa.array([[1, -128, 127, 0, one] for one in ids], pa.list_(pa.int8())),
        "b": pa.array([INLINE, OUT_OF_LINE, None, INLINE][: len(ids)], BLOB),
        "p": ["a"] * len(ids),
    }
    return pa.table({**columns, **changed})


def test_lists_are_written_as_vectors_and_structs_as_blobs(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "vectors")
    opened(path).upsert(rows([1, 3, 20]))
    opened(path).insert(rows([30]))
    serve(path, "compact")
    opened(path).bulk_insert(rows([40]))
    found = {one["id"]: one for one in values(path)}
    assert sorted(found) == [0, 1, 2, 3, 4, 5, 20, 30, 40]
    for one in (1, 20, 30, 40):
        e = pa.array([one, 0.5, -0.0, 1e-30], pa.float32()).to_numpy()
        assert found[one]["e"] == e.astype("<f4").tobytes() and found[one]["f"] is None
        assert found[one]["d"] == pa.array([0.1, one, 2.0]).to_numpy().astype("<f8").tobytes()
        assert found[one]["i"] == bytes([1, 128, 127, 0, one])
    assert found[1]["b"] == {**INLINE, "type": b"INLINE"} and found[20]["b"] is None
    assert found[3]["b"] == {**OUT_OF_LINE, "type": b"OUT_OF_LINE"}
    files = list(path.glob("p=a/*.parquet"))
    assert len(files) > 2
    assert all(pq.read_metadata(one).metadata[b"hoodie.vector.columns"] == VECTORS for one in files)
    assert opened(path).validate().exit_code == 0


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.list_(pa.int32()), [1, 2, 3, 4]), (pa.large_list(pa.float16()), [1.0, 2.0, 3.0, 4.0])]
)
def test_numbers_that_fit_become_those_of_the_vector(kind: pa.DataType, value: list[Any], tmp_path: Path) -> None:
    path = unpacked(tmp_path, "vectors")
    opened(path).upsert(rows([1], e=pa.array([value], kind), d=pa.array([[0.1, 1, 2]], pa.list_(pa.float32()))))
    (found,) = (one for one in values(path) if one["id"] == 1)
    assert found["e"] == pa.array([1, 2, 3, 4], pa.float32()).to_numpy().tobytes()
    # A float becomes the double of its shortest text, as in other columns.
    assert found["d"] == pa.array([0.1, 1.0, 2.0]).to_numpy().tobytes()


@pytest.mark.parametrize(
    ("column", "value", "said", "hint"),
    [
        (
            "e",
            pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float32())),
            "a list of 3 numbers, and VECTOR(4)",
            "of 4 numbers",
        ),
        ("e", pa.array([[1.0] * 5], pa.list_(pa.float32(), 5)), "a list of 5 numbers, and VECTOR(4)", "of 4 numbers"),
        (
            "e",
            pa.array([[1.0, None, 3.0, 4.0]], pa.list_(pa.float32())),
            "lists with nulls in them, and VECTOR(4)",
            "null",
        ),
        ("e", pa.array([[1.0] * 4], pa.list_(pa.float64())), "the type array<double>, and VECTOR(4)", "the type float"),
        ("e", pa.array([b"0" * 16], pa.binary(16)), "the type bytes, and VECTOR(4)", "lists of 4 numbers"),
        (
            "d",
            pa.array(["[1, 2, 3]"]),
            "the type string, and VECTOR(3, DOUBLE)",
            "lists of 3 numbers of the type double",
        ),
        ("i", pa.array([[1, 2, 3, 4, 200]], pa.list_(pa.int16())), "cannot be written as VECTOR(5, INT8)", ""),
        ("b", pa.array([b"abc"]), "the type bytes, and BLOB", "type (enum), data (bytes), reference ("),
        ("b", pa.array([{**INLINE, "type": "inline"}], BLOB), "column b.type has the value 'inline'", "INLINE, OUT_OF"),
        ("b", pa.array([{**OUT_OF_LINE, "reference": {**OUTSIDE, "managed": None}}], BLOB), "b.reference.managed", ""),
    ],
)
def test_other_values_are_refused_by_the_name_of_the_type(
    column: str, value: pa.Array, said: str, hint: str, tmp_path: Path
) -> None:
    path = unpacked(tmp_path, "vectors")
    before = digest(path)
    with pytest.raises(ConfigError) as refused:
        opened(path).upsert(rows([1], **{column: value}))
    assert said in refused.value.message and hint in refused.value.hint
    assert digest(path) == before


def test_a_new_column_does_not_become_a_vector(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "vectors")
    before, wanted = digest(path), pa.field("g", pa.list_(pa.float32()), metadata={"hudi_type": "VECTOR(2)"})
    with pytest.raises(
        ConfigError, match=r"the new column g is to be VECTOR\(2\) \(hudi_type\), and writes here make no"
    ):
        opened(path).upsert(rows([1]).append_column(wanted, pa.array([[1, 2]], wanted.type)))
    assert digest(path) == before
    opened(path).upsert(rows([1]).append_column("g", pa.array([[1, 2]], wanted.type)))
    (found,) = (one for one in values(path) if one["id"] == 1)
    assert found["g"] == [1.0, 2.0]


def test_variants_are_structs(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "variant")
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    number = {"metadata": b"\1\0\0", "value": b"\x0c\x2a"}
    with pytest.raises(ConfigError, match="column v has the type string, and VARIANT in the table"):
        opened(path).upsert(pa.table({"id": [1], "ts": [5], "p": ["a"], "v": ["{}"]}))
    opened(path).upsert(pa.table({"id": [1, 2], "ts": [5, 5], "p": ["a", "a"], "v": pa.array([number, None], kind)}))
    found = {one["id"]: one["v"] for one in values(path)}
    assert found[1] == number and found[2] is None


@pytest.mark.parametrize("symbols", ["enum", "nested"])
def test_a_text_that_is_no_symbol_of_an_enum_is_refused_at_any_depth(symbols: str) -> None:
    """A parquet file would take it, and Hudi could not read the file."""
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    if symbols == "enum":
        kinds: list[Any] = [enum, ["null", "E"]]
        arrays = [pa.array(["A", "B"]), pa.array([None, "C"])]
    else:
        inner = {"type": "record", "name": "R", "fields": [{"name": "x", "type": {"type": "array", "items": enum}}]}
        kinds = [["null", inner], {"type": "map", "values": "R"}]
        struct = pa.struct([("x", pa.list_(pa.string()))])
        arrays = [pa.array([{"x": ["A"]}, None], struct)]
        arrays.append(pa.array([[("k", {"x": ["B", "C"]})], []], pa.map_(pa.string(), struct)))
    fields = [{"name": f"c{number}", "type": kind} for number, kind in enumerate(kinds)]
    types = TableSchema.of({"type": "record", "name": "T", "fields": fields}).types
    check_symbols("c0", pa.chunked_array([arrays[0]]), types["c0"])
    check_symbols("other", pa.chunked_array([arrays[1]]), ColumnType(Kind.STRING))
    # As a column that the rows lack.
    check_symbols("c1", pa.nulls(2, arrays[1].type), types["c1"])
    with pytest.raises(ConfigError, match=r"column c1.* has the value 'C'") as refused:
        check_symbols("c1", pa.chunked_array([arrays[1]]), types["c1"])
    assert refused.value.hint == "give one of A, B"


def test_nulls_that_no_reader_sees_are_written_and_others_are_not(tmp_path: Path) -> None:
    """Rows of log files have them below a null struct whose fields may not be null."""
    field = {"name": "x", "type": "long"}
    avro = {"type": "record", "name": "r", "fields": [{"name": "s", "type": ["null", _record("i", [field])]}]}
    target = FileSchema(node("r", REQUIRED, children=build_nodes(TableSchema.of(avro).columns)))
    kind = target.arrow.field("s").type
    hidden = pa.nulls(2, kind)
    assert hidden.field(0).null_count == 2
    seen = pa.array([{"x": 1}], kind)
    with BaseFileWriter(open_storage(str(tmp_path)), "a.parquet", target) as writer:
        writer.write(pa.table({"s": pa.chunked_array([hidden, seen])}))
        writer.close({})
    assert pq.read_table(tmp_path / "a.parquet")["s"].to_pylist() == [None, None, {"x": 1}]
    broken = pa.StructArray.from_arrays([pa.array([None], pa.int64())], fields=list(kind))
    with (
        pytest.raises(CheckFailed, match=r"b\.parquet: column s\.x has 1 nulls"),
        BaseFileWriter(open_storage(str(tmp_path)), "b.parquet", target) as writer,
    ):
        writer.write(pa.table({"s": pa.chunked_array([broken])}))
    assert not (tmp_path / "b.parquet").exists()


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}
