import datetime as dt
import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.base_files.file_reader import open_base_file
from hudi_services.base_files.file_writer import BaseFileWriter
from hudi_services.errors import UnsupportedTable
from hudi_services.parquet import file_schema as ps
from hudi_services.parquet.file_schema import FileSchema, node
from hudi_services.parquet.footer import Physical, parse_footer
from hudi_services.parquet.node_types import parquet_type
from hudi_services.parquet.schema_evolution import SourceSchema, agrees, build_node, resolve_target
from hudi_services.schema.avro_type import avro_columns
from hudi_services.schema.table_schema import TableSchema
from hudi_services.stores import open_storage

from .parquet_samples import REAL_FILES, real_bytes, schema_of

BYTES = Physical.BYTE_ARRAY


def record(*fields: tuple[str, object]) -> dict[str, object]:
    return {"type": "record", "name": "t_record", "fields": [{"name": n, "type": t} for n, t in fields]}


def null_or(kind: object) -> list[object]:
    return ["null", kind]


DECIMAL_10_2 = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


class Group:
    """Files of one group in `folder`, written oldest first."""

    def __init__(self, folder):
        self.folder = folder
        self.storage = open_storage(str(folder))
        self.names: list[str] = []

    def add(self, table: pa.Table, **options) -> "Group":
        self.names.insert(0, f"{len(self.names)}.parquet")
        pq.write_table(table, self.folder / self.names[0], store_schema=False, **options)
        return self

    def rewrite(self, table_schema) -> pa.Table:
        """The rows of all files, newest file first, written in the resolved target and read by pyarrow alone."""
        readers = [open_base_file(self.storage, name) for name in self.names]
        self.target = resolve_target(
            [SourceSchema(r.path, r.schema) for r in readers], table_schema and TableSchema.of(table_schema)
        )
        with BaseFileWriter(self.storage, "out.parquet", self.target) as writer:
            for reader in readers:
                for i in range(len(reader.row_groups)):
                    writer.write(reader.read_row_group(i, target=self.target))
            writer.close({})
        assert open_base_file(self.storage, "out.parquet").schema == self.target
        return pq.ParquetFile(self.folder / "out.parquet").read()


@pytest.fixture
def group(tmp_path):
    return Group(tmp_path)


def real_schema(name: str) -> FileSchema:
    return FileSchema.of(parse_footer(real_bytes(name), name))


@pytest.mark.parametrize("name", REAL_FILES)
def test_files_that_agree_with_the_table_are_the_target(name):
    schema = real_schema(name)
    sources = [SourceSchema(f"{i}.parquet", schema) for i in range(3)]
    assert resolve_target(sources, None) is schema
    text = parse_footer(real_bytes(name), name).key_values.get("parquet.avro.schema")
    if text is not None:
        assert resolve_target(sources, TableSchema(text)) is schema


def test_two_list_forms_take_the_newest_files(group):
    schemas = [real_schema(name).select(["id", "arr"]) for name in REAL_FILES]
    for newest, other in (schemas, schemas[::-1]):
        target = resolve_target([SourceSchema("new", newest), SourceSchema("old", other)], None)
        assert target == newest


def test_a_list_with_nulls_needs_three_levels():
    element = node("element", ps.OPTIONAL, BYTES, converted=ps.UTF8)
    list_node = node("list", ps.REPEATED, children=[element])
    nullable = schema_of(node("arr", ps.REQUIRED, children=[list_node], converted=ps.LIST))
    two = real_schema(REAL_FILES[0]).select(["arr"])
    target = resolve_target([SourceSchema("new", two), SourceSchema("old", nullable)], None)
    assert target == nullable


PROMOTIONS = [
    (pa.int32(), [-1, None, 2**31 - 1], "long", [-1, None, 2**31 - 1]),
    (pa.int32(), [-1, None, 16777217], "float", [-1.0, None, 16777216.0]),
    (pa.int32(), [-1, None], "double", [-1.0, None]),
    (pa.int32(), [-1, None], "string", ["-1", None]),
    (pa.int64(), [2**53 + 1, None], "double", [float(2**53), None]),
    (pa.int64(), [5, None], "float", [5.0, None]),
    (pa.int64(), [-(2**63), None], "string", ["-9223372036854775808", None]),
    (pa.float32(), [0.1, None, -0.0], "double", [0.1, None, -0.0]),
    (pa.string(), ["é", None], "bytes", ["é".encode(), None]),
    (pa.binary(), ["é".encode(), None], "string", ["é", None]),
    (pa.decimal128(5, 1), [Decimal("-1.5"), None], DECIMAL_10_2, [Decimal("-1.50"), None]),
]


@pytest.mark.parametrize(("kind", "values", "final", "expected"), PROMOTIONS)
@pytest.mark.parametrize("store_decimal_as_integer", [False, True])
def test_promotions(group, kind, values, final, expected, store_decimal_as_integer):
    group.add(pa.table({"c": pa.array(values, kind)}), store_decimal_as_integer=store_decimal_as_integer)
    assert group.rewrite(record(("c", null_or(final)))).column("c").to_pylist() == expected
    assert str(parquet_type(group.target.root.children[0]).required()) == str(
        avro_columns(record(("c", final)))[0].type.required()
    )


@pytest.mark.parametrize(("kind", "values", "final", "expected"), PROMOTIONS)
def test_promotions_inside_nested_values(group, kind, values, final, expected):
    element = pa.struct([("x", kind), ("gone", pa.int32())])
    rows = [[{"x": v, "gone": 1} for v in values], None, [], [None]]
    columns = {
        "l": pa.array(rows, pa.list_(element)),
        "m": pa.array([[("k", values[0])], None, [], [("a", None)]], pa.map_(pa.string(), kind)),
    }
    group.add(pa.table(columns).slice(0, 4))
    inner = {"type": "record", "name": "inner", "fields": []}
    inner["fields"] = [{"name": "new", "type": null_or("string")}, {"name": "x", "type": null_or(final)}]
    schema = record(
        ("m", null_or({"type": "map", "values": null_or(final)})),
        ("l", null_or({"type": "array", "items": null_or(inner)})),
    )
    read = group.rewrite(schema)
    assert read.column_names == ["m", "l"]
    assert read.column("l").to_pylist() == [[{"new": None, "x": v} for v in expected], None, [], [None]]
    assert read.column("m").to_pylist() == [[("k", expected[0])], None, [], [("a", None)]]


def test_columns_follow_the_table(group):
    group.add(pa.table({"a": [1], "old": ["x"], "b": ["y"]}))
    group.add(pa.table({"b": ["z"], "new": [0.5], "a": pa.array([2], pa.int64())}))
    schema = record(
        ("b", null_or("string")), ("a", null_or("long")), ("new", null_or("double")), ("none", null_or(MICROS))
    )
    read = group.rewrite(schema)
    assert read.to_pydict() == {"b": ["z", "y"], "a": [2, 1], "new": [0.5, None], "none": [None, None]}
    assert read.schema.field("none").type == pa.timestamp("us", "UTC")


def test_without_a_table_schema_the_newest_file_decides(group):
    group.add(pa.table({"a": pa.array([1], pa.int32()), "old": ["x"]}))
    group.add(pa.table({"new": [True], "a": pa.array([2], pa.int64())}))
    assert group.rewrite(None).to_pydict() == {"new": [True, None], "a": [2, 1], "old": [None, "x"]}


def test_a_required_column_that_a_file_lacks_becomes_optional(group):
    required = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False)])
    group.add(pa.table({"a": [1]}, schema=required.remove(1)))
    group.add(pa.table([pa.array([2]), pa.array([3])], schema=required))
    group.rewrite(record(("a", "long"), ("b", "long")))
    assert [c.repetition for c in group.target.root.children] == [ps.REQUIRED, ps.OPTIONAL]


def test_elements_come_from_the_newest_file_that_has_the_type(group):
    with_id = pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "5"})])
    group.add(pa.table([pa.array([1])], schema=with_id))
    group.add(pa.table({"a": pa.array([2], pa.int32())}))
    assert group.rewrite(record(("a", null_or("long")))).column("a").to_pylist() == [2, 1]
    assert group.target.root.children[0].element.get(9) == 5


def test_int96_stays_alone_and_becomes_micros_beside_micros(group):
    times = [dt.datetime(1, 1, 1), None, dt.datetime(2024, 5, 6, 7, 8, 9, 123456)]
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))})
    group.add(table, use_deprecated_int96_timestamps=True)
    schema = record(("t", null_or(MICROS)))
    group.rewrite(schema)
    assert group.target.leaves[0].physical is Physical.INT96
    group.add(table)
    assert group.rewrite(schema).column("t").cast(pa.timestamp("us")).to_pylist() == times * 2
    assert group.target.leaves[0].physical is Physical.INT64


def test_no_timestamp_is_cut(group):
    times = [dt.datetime(2024, 5, 6, 7, 8, 9, 123456), None]
    group.add(pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))}))
    group.add(pa.table({"t": pa.array([None], pa.timestamp("ms", "UTC"))}))
    read = group.rewrite(record(("t", null_or(MILLIS))))
    assert read.column("t").cast(pa.timestamp("us")).to_pylist() == [None, *times]


def test_decimal_forms_meet(group):
    values = [Decimal("-12345678.90"), None, Decimal("0.01")]
    table = pa.table({"d": pa.array(values, pa.decimal128(10, 2))})
    group.add(table, store_decimal_as_integer=True)
    group.add(table)
    schema = record(("d", null_or(DECIMAL_10_2)))
    assert group.rewrite(schema).column("d").to_pylist() == values * 2
    assert group.target.leaves[0].physical is Physical.FIXED_LEN_BYTE_ARRAY
    group.add(table, store_decimal_as_integer=True)
    assert group.rewrite(schema).column("d").to_pylist() == values * 3
    assert group.target.leaves[0].physical is Physical.INT64


REFUSED = [
    (pa.int64(), "int"),
    (pa.float64(), "float"),
    (pa.float64(), "string"),
    (pa.string(), "int"),
    (pa.bool_(), "int"),
    (pa.decimal128(20, 4), DECIMAL_10_2),
    (pa.list_(pa.int32()), "string"),
    (pa.list_(pa.int32()), {"type": "map", "values": "int"}),
    (pa.struct([("x", pa.int32())]), {"type": "array", "items": "int"}),
]


@pytest.mark.parametrize(("kind", "final"), REFUSED)
def test_what_has_no_promotion_is_refused_by_column_and_file(group, kind, final):
    group.add(pa.table({"c": pa.array([None], kind)}))
    with pytest.raises(UnsupportedTable, match=r"column c .*0\.parquet"):
        group.rewrite(record(("c", null_or(final))))


def test_other_names_for_the_same_values_are_copied(group):
    table = pa.table(
        {"ntz": pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("us")), "f": pa.array([b"abc"], pa.binary(3))}
    )
    group.add(table)
    read = group.rewrite(record(("ntz", null_or("long")), ("f", null_or("bytes"))))
    assert read.equals(table)


AVRO = [
    ("int", "int"),
    ({"type": "string", "avro.java.string": "String"}, "string"),
    ({"type": {"type": "long", "logicalType": "local-timestamp-micros"}}, "local-timestamp-micros"),
    ({"type": "int", "logicalType": "date"}, "date"),
    ({"type": "long", "logicalType": "time-micros"}, "time"),
    (
        {"type": "fixed", "name": "fixed", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2},
        "decimal(10,2)",
    ),
    ({"type": "fixed", "name": "f", "size": 5}, "fixed"),
    ({"type": "enum", "name": "e", "symbols": ["A"]}, "enum"),
    ({"type": "string", "logicalType": "uuid"}, "string"),
    ({"type": "array", "items": ["null", "int"]}, "array<int>"),
    ({"type": "map", "values": MICROS}, "map<timestamp-micros>"),
    (record(("x", "int"), ("y", null_or("bytes"))), "record<x: int, y: bytes>"),
]


@pytest.mark.parametrize(("schema", "expected"), AVRO)
def test_avro_types_make_parquet_columns_of_the_same_type(schema, expected):
    kind, nullable = TableSchema.of(record(("c", schema), ("d", null_or("long")))).types.values()
    assert str(kind) == expected and nullable.nullable and not kind.nullable
    built = build_node("c", kind)
    assert str(parquet_type(built)) == expected
    sink = io.BytesIO()
    pq.write_table(schema_of(built).arrow.empty_table(), sink)


def test_avro_names_are_found_in_their_namespace():
    fixed = {"type": "fixed", "name": "fixed", "namespace": "hoodie.t.c", "size": 3}
    outer = {"type": "record", "name": "r", "namespace": "hoodie.t", "fields": [{"name": "a", "type": fixed}]}
    outer["fields"].append({"name": "b", "type": "hoodie.t.c.fixed"})
    assert [one.type.size for one in avro_columns(outer)] == [3, 3]


@pytest.mark.parametrize(
    "field",
    [
        ["null", "int", "string"],
        "t_record",
        "unknown",
        {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]},
        7,
    ],
)
def test_avro_schemas_without_a_column_form_are_refused(field):
    with pytest.raises(UnsupportedTable):
        avro_columns(record(("c", field)))


def test_the_unit_of_the_files_stays_and_the_finest_wins(group):
    """Spark's row writer may store millis under a table schema that says micros."""
    moment = dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc)
    table_schema = record(("c", null_or(MICROS)))
    group.add(pa.table({"c": pa.array([moment, None], pa.timestamp("ms", "UTC"))}))
    assert group.rewrite(table_schema).column("c").to_pylist() == [moment, None]
    assert str(parquet_type(group.target.root.children[0]).required()) == "timestamp-millis"
    assert not agrees(group.target, TableSchema.of(table_schema))
    group.add(pa.table({"c": pa.array([moment], pa.timestamp("us", "UTC"))}))
    group.rewrite(table_schema)
    assert str(parquet_type(group.target.root.children[0]).required()) == "timestamp-micros"
    assert agrees(group.target, TableSchema.of(table_schema))


def test_lists_of_one_file_have_one_form(tmp_path):
    """Two files, one of them with nulls in one of its lists: the other list does not stay in two levels beside it."""
    storage = open_storage(str(tmp_path))
    plain, holes = pa.list_(pa.field("array", pa.string(), nullable=False)), pa.list_(pa.string())
    for i, kind in enumerate((plain, holes)):
        table = pa.table({"a": pa.array([["x"]], plain), "b": pa.array([["y"]], kind)})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    sources = [SourceSchema(f"{i}.parquet", open_base_file(storage, f"{i}.parquet").schema) for i in range(2)]
    two_levels = [SourceSchema(s.path, _with_two_levels(s.schema)) for s in sources]
    target = resolve_target(two_levels, None)
    assert {leaf.dotted for leaf in target.leaves} == {"a.list.element", "b.list.element"}


def _with_two_levels(schema):
    """The schema with the list `a` as Avro writers store it."""
    a, b = schema.root.children
    repeated = a.children[0].children[0].with_repetition(ps.REPEATED)
    return FileSchema(schema.root.with_children([a.with_children([repeated]), b]))
