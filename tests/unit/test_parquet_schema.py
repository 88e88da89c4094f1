import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.codecs import thrift
from hudi_services.codecs.thrift import Struct
from hudi_services.errors import CorruptFile
from hudi_services.parquet import file_schema as ps
from hudi_services.parquet.file_schema import FileSchema, node
from hudi_services.parquet.footer import Physical, parse_footer
from hudi_services.parquet.node_types import parquet_type
from hudi_services.schema.column_type import decimal_width

from .parquet_samples import REAL_FILES, empty_footer, real_bytes, schema_of


def leaf(physical: Physical, **extra: object) -> ps.Node:
    return node("c", ps.OPTIONAL, physical, **extra)


def logical(member: int, **fields: tuple[int, object]) -> Struct:
    return Struct({member: (thrift.STRUCT, Struct(dict(fields.values())))})


FLBA, BYTES = Physical.FIXED_LEN_BYTE_ARRAY, Physical.BYTE_ARRAY
UNIT = Struct({2: (thrift.STRUCT, Struct())})
LEAVES = [
    # node, raw Arrow type, type, whether the raw statistics order as the type does
    (leaf(Physical.BOOLEAN), pa.bool_(), "boolean", True),
    (leaf(Physical.INT32), pa.int32(), "int", True),
    (leaf(Physical.INT32, converted=ps.INT_8), pa.int32(), "int", True),
    (leaf(Physical.INT32, converted=ps.INT_16), pa.int32(), "int", True),
    (leaf(Physical.INT32, converted=ps.UINT_16), pa.uint16(), "unsigned", True),
    (leaf(Physical.INT64), pa.int64(), "long", True),
    (leaf(Physical.INT32, converted=ps.DATE), pa.date32(), "date", True),
    (leaf(Physical.INT32, converted=ps.DECIMAL, precision=9, scale=2), pa.int32(), "decimal(9,2)", True),
    (leaf(Physical.INT64, converted=ps.DECIMAL, precision=18, scale=0), pa.int64(), "decimal(18,0)", True),
    (
        leaf(FLBA, type_length=5, converted=ps.DECIMAL, precision=10, scale=2),
        pa.decimal128(10, 2),
        "decimal(10,2)",
        True,
    ),
    (
        leaf(FLBA, type_length=17, converted=ps.DECIMAL, precision=39, scale=2),
        pa.decimal256(39, 2),
        "decimal(39,2)",
        True,
    ),
    (leaf(FLBA, type_length=16, converted=ps.DECIMAL, precision=10, scale=2), pa.binary(16), "decimal(10,2)", False),
    (leaf(BYTES, converted=ps.DECIMAL, precision=10, scale=2), pa.binary(), "decimal(10,2)", False),
    (leaf(Physical.INT96), pa.binary(12), "timestamp-micros", False),
    (leaf(Physical.INT64, converted=ps.TIMESTAMP_MILLIS), pa.timestamp("ms", "UTC"), "timestamp-millis", True),
    (
        leaf(
            Physical.INT64, logical=logical(ps.L_TIMESTAMP, a=(1, (thrift.TRUE, False)), b=(2, (thrift.STRUCT, UNIT)))
        ),
        pa.timestamp("us"),
        "local-timestamp-micros",
        True,
    ),
    (leaf(Physical.INT32, converted=ps.TIME_MILLIS), pa.time32("ms"), "time", True),
    (leaf(Physical.INT64, converted=ps.TIME_MICROS), pa.time64("us"), "time", True),
    (leaf(BYTES, converted=ps.UTF8), pa.string(), "string", True),
    (leaf(BYTES, logical=logical(ps.L_STRING)), pa.string(), "string", True),
    (leaf(BYTES), pa.binary(), "bytes", True),
    (leaf(BYTES, converted=ps.ENUM), pa.binary(), "enum", True),
    (leaf(BYTES, converted=ps.JSON), pa.binary(), "string", True),
    (leaf(BYTES, converted=ps.BSON), pa.binary(), "bytes", True),
    (leaf(FLBA, type_length=16, logical=logical(ps.L_UUID)), pa.binary(16), "uuid", True),
    (leaf(FLBA, type_length=12, converted=ps.INTERVAL), pa.binary(12), "fixed", False),
    (leaf(FLBA, type_length=7), pa.binary(7), "fixed", True),
    (leaf(BYTES, logical=logical(99)), pa.binary(), "bytes", False),
]


@pytest.mark.parametrize(("column", "arrow", "name", "ordered"), LEAVES, ids=[str(i) for i in range(len(LEAVES))])
def test_leaf_forms(column, arrow, name, ordered):
    schema = schema_of(column)
    assert schema.arrow.field("c").type == arrow
    assert str(parquet_type(column)) == name
    assert ps.keeps_order(column) == ordered


def elements(name: str) -> FileSchema:
    return FileSchema.of(parse_footer(real_bytes(name), "f"))


@pytest.mark.parametrize("name", REAL_FILES)
def test_real_schemas_keep_every_element(name):
    footer = parse_footer(real_bytes(name), "f")
    schema = FileSchema.of(footer)
    assert list(schema.elements) == footer.elements
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert schema.columns[:5] == (
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    )


@pytest.mark.parametrize("name", REAL_FILES)
def test_levels_are_those_of_pyarrow(name):
    import io

    expected = pq.ParquetFile(io.BytesIO(real_bytes(name))).schema
    for i, found in enumerate(elements(name).leaves):
        column = expected.column(i)
        assert (found.dotted, found.max_def, found.max_rep) == (
            column.path,
            column.max_definition_level,
            column.max_repetition_level,
        )


def test_lists_in_two_and_three_levels_have_one_type():
    two, three = (elements(name).column("arr") for name in REAL_FILES)
    assert two is not None and three is not None and two != three
    assert parquet_type(two) == parquet_type(three)
    assert elements(REAL_FILES[0]) != elements(REAL_FILES[1])


def test_the_root_name_is_no_difference():
    column = leaf(Physical.INT32)
    one = FileSchema(node("spark_schema", ps.REQUIRED, children=[column]))
    other = FileSchema(node("hoodie.t.t_record", ps.REQUIRED, children=[column]))
    assert one == other and hash(one) == hash(other)
    assert one != schema_of(column.with_repetition(ps.REQUIRED))


def test_select_orders_columns():
    schema = elements(REAL_FILES[0]).select(["ts", "arr", "id"])
    assert schema.columns == ("ts", "arr", "id")
    assert [found.path[0] for found in schema.leaves] == ["ts", "arr", "id"]


@pytest.mark.parametrize("precision", range(1, 77))
def test_decimal_width_is_minimal(precision):
    width = decimal_width(precision)
    largest = 10**precision - 1
    assert int.from_bytes(largest.to_bytes(width, "big", signed=True), "big", signed=True) == largest
    with pytest.raises(OverflowError):
        largest.to_bytes(width - 1, "big", signed=True)


@pytest.mark.thorough
@settings(max_examples=200)
@given(st.data())
def test_damaged_elements_make_a_schema_or_are_corrupt(data):
    found = [Struct(dict(e.fields)) for e in elements(REAL_FILES[0]).elements]
    for _ in range(data.draw(st.integers(1, 5))):
        element = data.draw(st.sampled_from(found))
        field = data.draw(st.integers(1, 10))
        junk = data.draw(
            st.tuples(st.just(thrift.I32), st.integers(-5, 2**31))
            | st.tuples(st.just(thrift.TRUE), st.booleans())
            | st.tuples(st.just(thrift.BINARY), st.binary(max_size=3))
            | st.tuples(st.just(thrift.STRUCT), st.just(Struct()))
            | st.none()
        )
        if junk is None:
            element.drop(field)
        else:
            element.set(field, *junk)
    try:
        schema = FileSchema.of(empty_footer(found))
        for column in schema.root.children:
            parquet_type(column)
        assert len(schema.raw.leaves) == len(schema.leaves)
    except CorruptFile as e:
        assert e.message.startswith("f")


def test_endless_nesting_is_refused():
    deep = [node("g", ps.REQUIRED, children=[leaf(Physical.INT32)]).element for _ in range(1000)]
    with pytest.raises(CorruptFile):
        FileSchema.of(empty_footer(deep))


def test_a_column_under_another_name_is_the_same_one():
    column = schema_of(ps.node("old", ps.OPTIONAL, Physical.INT64)).column("old")
    assert column.with_name("old") is column
    renamed = ps.FileSchema(schema_of(column.with_name("new")).root)
    assert renamed.columns == ("new",) and renamed.arrow.names == ["new"]
    assert parquet_type(renamed.column("new")) == parquet_type(column)
