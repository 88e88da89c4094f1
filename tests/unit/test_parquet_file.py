import datetime as dt
import gc
import os
import struct
import weakref
from decimal import Decimal
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_services.base_files.file_reader import BaseFileReader, open_base_file
from hudi_services.base_files.file_writer import BaseFileWriter, check_pages
from hudi_services.base_files.page_copy import row_group_fingerprint
from hudi_services.codecs import thrift
from hudi_services.errors import CheckFailed, ConfigError, CorruptFile, HudiServicesError, UnsupportedTable
from hudi_services.parquet import file_schema as ps
from hudi_services.parquet.file_schema import FileSchema, node
from hudi_services.parquet.footer import ColumnChunk, Physical, read_footer
from hudi_services.parquet.sort_keys import sort_key
from hudi_services.stores import open_storage

from .parquet_samples import REAL_FILES, real_bytes, real_file, schema_of, write_pyarrow

FLBA, BYTES = Physical.FIXED_LEN_BYTE_ARRAY, Physical.BYTE_ARRAY


def copy(storage, path, name="out.parquet", **options):
    """Copy a base file through the raw form, as clustering does."""
    reader = open_base_file(storage, path)
    dictionary = reader.dictionary_columns
    with BaseFileWriter(storage, name, reader.schema, plain_leaves=reader.plain_leaves, **options) as writer:
        for i in range(len(reader.row_groups)):
            writer.write(reader.read_row_group(i, dictionary=dictionary))
        return writer.close({"k": "v"})


def check_copy(folder, storage, path, **options):
    """The copy has the same elements, values and statistics."""
    written = copy(storage, path, **options)
    one, other = open_base_file(storage, path), open_base_file(storage, written.path)
    assert other.schema == one.schema
    assert other.key_values == {"k": "v"}
    assert written.size == os.path.getsize(folder / written.path) == other.size
    assert written.rows == one.num_rows == other.num_rows
    expected = pq.ParquetFile(folder / path).read()
    assert pq.ParquetFile(folder / written.path).read().equals(expected)
    return one, other, written


@pytest.mark.thorough
@pytest.mark.parametrize("page_bytes", [64, 3000, 1 << 20])
@pytest.mark.parametrize("name", REAL_FILES)
def test_pages_that_are_compressed_here(tmp_path: Path, name: str, page_bytes: int) -> None:
    """In gzip, which pyarrow does not compress: pages, footer and page indexes are those of the file without codec."""
    storage, path = real_file(tmp_path, name)
    options = {"page_bytes": page_bytes, "row_group_bytes": 1 << 12}
    _, packed, _ = check_copy(tmp_path, storage, path, codec="gzip", **options)
    bare = open_base_file(storage, copy(storage, path, "bare.parquet", codec="none", **options).path)
    assert len(packed.row_groups) == len(bare.row_groups)
    for index, (one, other) in enumerate(zip(packed.row_groups, bare.row_groups, strict=True)):
        prints = [row_group_fingerprint(reader, index, file_name=None, recoded=True) for reader in (packed, bare)]
        assert prints[0] == prints[1]
        for chunk, uncompressed in zip(one.columns, other.columns, strict=True):
            facts = [(of.num_values, of.min, of.max, of.page_counts) for of in (chunk, uncompressed)]
            assert chunk.codec == 2 and facts[0] == facts[1]
            places = page_places(packed, chunk)
            assert [place[2] for place in places] == [place[2] for place in page_places(bare, uncompressed)]
            assert all(packed.read_bytes(start, 1) == b"\x15" for start, _, _ in places)
            first = chunk.start + chunk.dictionary_bytes
            assert [place[0] for place in places] == [*accumulate([size for _, size, _ in places[:-1]], initial=first)]
            assert places[-1][0] + places[-1][1] == chunk.end
    checked = pq.ParquetFile(tmp_path / "out.parquet", page_checksum_verification=True)
    assert checked.read().equals(pq.read_table(tmp_path / path))
    assert checked.metadata.num_row_groups == len(bare.row_groups)


def page_places(reader: BaseFileReader, chunk: ColumnChunk) -> list[tuple[int, int, int]]:
    """Offset, size and first row of each data page, by the offset index."""
    assert chunk.offset_index is not None
    index, _ = thrift.decode_struct(reader.read_bytes(*chunk.offset_index), "offset index")
    return [(one.get(1), one.get(2), one.get(3)) for one in index.get(1).items]


@pytest.mark.parametrize("name", REAL_FILES)
def test_a_real_file_is_copied_exactly(tmp_path, name):
    one, _, written = check_copy(tmp_path, *real_file(tmp_path, name))
    for own, copied in zip(one.column_stats(), written.columns, strict=True):
        assert (own.column, own.type, own.min, own.max) == (copied.column, copied.type, copied.min, copied.max)
        assert (own.value_count, own.null_count, own.has_range) == (
            copied.value_count,
            copied.null_count,
            copied.has_range,
        )


NAN, NEGATIVE_ZERO = float("nan"), -0.0
TIME = dt.datetime(2024, 2, 29, 23, 59, 59, 123456)
VALUES = {
    "bool": (pa.bool_(), [True, None, False]),
    "i8": (pa.int8(), [-1, None, 127]),
    "u8": (pa.uint8(), [255, None, 0]),
    "i16": (pa.int16(), [-1, None, 7]),
    "u32": (pa.uint32(), [2**32 - 1, None, 0]),
    "i32": (pa.int32(), [-1, None, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), None, 2**63 - 1]),
    "u64": (pa.uint64(), [2**64 - 1, None, 0]),
    "f16": (pa.float16(), [np.float16(1.5), None, np.float16(-2)]),
    "f32": (pa.float32(), [NEGATIVE_ZERO, None, 0.1]),
    "f64": (pa.float64(), [NEGATIVE_ZERO, None, 0.0]),
    "dec9": (pa.decimal128(9, 2), [Decimal("-1.23"), None, Decimal("9999999.99")]),
    "dec18": (pa.decimal128(18, 0), [Decimal(-1), None, Decimal(10**18 - 1)]),
    "dec38": (pa.decimal128(38, 10), [Decimal("-0.0000000001"), None, Decimal(10**27)]),
    "dec76": (pa.decimal256(76, 1), [Decimal("-0.1"), None, Decimal(10) ** 74]),
    "date": (pa.date32(), [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "t32": (pa.time32("ms"), [dt.time(23, 59, 59, 999000), None, dt.time(0)]),
    "t64": (pa.time64("us"), [dt.time(23, 59, 59, 999999), None, dt.time(0)]),
    "ms": (pa.timestamp("ms", "UTC"), [TIME, None, dt.datetime(1, 1, 1)]),
    "us": (pa.timestamp("us", "UTC"), [TIME, None, dt.datetime(9999, 1, 1)]),
    "ns": (pa.timestamp("ns", "UTC"), [TIME, None, dt.datetime(1700, 1, 1)]),
    "ntz": (pa.timestamp("us"), [TIME, None, dt.datetime(1, 1, 1)]),
    "text": (pa.string(), ["", None, "é\U0001f600"]),
    "bytes": (pa.binary(), [b"", None, b"\xff\x00"]),
    "fixed": (pa.binary(3), [b"abc", None, b"\xff\x00\x01"]),
    "list": (pa.list_(pa.int32()), [[1, None], None, []]),
    "list_required": (pa.list_(pa.field("element", pa.string(), nullable=False)), [["a"], None, []]),
    "lists": (pa.list_(pa.list_(pa.string())), [[["a"], None, []], None, [[None]]]),
    "map": (pa.map_(pa.string(), pa.float64()), [[("a", 1.0), ("b", None)], None, []]),
    "struct": (pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]), [{"x": 1, "y": ["a"]}, None, {"x": None}]),
}


@pytest.mark.parametrize("options", [{}, {"use_deprecated_int96_timestamps": True}, {"store_decimal_as_integer": True}])
@pytest.mark.parametrize("codec", ["zstd", "uncompressed"])
def test_every_type_is_copied_exactly(tmp_path, options, codec):
    arrays = {name: pa.array(values, kind) for name, (kind, values) in VALUES.items() if name != "ns" or not options}
    storage, path = write_pyarrow(tmp_path, pa.table(arrays), store_schema=False, **options)
    check_copy(tmp_path, storage, path, codec=codec)


def test_floats_are_copied_bit_by_bit(tmp_path):
    patterns = [0x0000000000000000, 0x8000000000000000, 0x7FF8000000000000, 0x7FF8000000000123, 0xFFF8000000000001]
    doubles = np.array(patterns * 3, np.uint64).view(np.float64)
    for dictionary in (True, False):
        storage, path = write_pyarrow(tmp_path, pa.table({"d": doubles}), use_dictionary=dictionary)
        written = copy(storage, path)
        again = pq.ParquetFile(tmp_path / written.path).read().column("d").to_numpy().view(np.uint64)
        assert again.tolist() == patterns * 3


def test_field_ids_and_required_columns_stay(tmp_path):
    fields = [
        pa.field("a", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"}),
        pa.field("s", pa.struct([pa.field("x", pa.string(), nullable=False)]), metadata={"PARQUET:field_id": "9"}),
    ]
    table = pa.table([pa.array([1]), pa.array([{"x": "y"}], fields[1].type)], schema=pa.schema(fields))
    storage, path = write_pyarrow(tmp_path, table)
    _, other, _ = check_copy(tmp_path, storage, path)
    ids = [n.element.get(9) for n in other.schema.root.children]
    assert ids == [7, 9]


def write_raw(folder, schema, table, name="raw.parquet", **options):
    storage = open_storage(str(folder))
    with BaseFileWriter(storage, name, schema, **options) as writer:
        writer.write(table)
        written = writer.close({})
    return storage, written


def test_decimals_as_bytes_keep_their_form_and_get_true_bounds(tmp_path):
    extra = {"converted": ps.DECIMAL, "precision": 20, "scale": 2}
    schema = schema_of(node("b", ps.OPTIONAL, BYTES, **extra), node("f", ps.OPTIONAL, FLBA, type_length=12, **extra))
    values = [Decimal("1.00"), None, Decimal("-1.00"), Decimal("655.36"), Decimal("0.00")]
    raw = [None if v is None else int(v * 100).to_bytes(12, "big", signed=True) for v in values]
    short = [
        None if v is None else int(v * 100).to_bytes(n, "big", signed=True)
        for v, n in zip(values, (1, 0, 2, 4, 1), strict=True)
    ]
    table = pa.table({"b": pa.array(short, pa.binary()), "f": pa.array(raw, pa.binary(12))})
    storage, written = write_raw(tmp_path, schema, table)
    read = pq.ParquetFile(tmp_path / written.path).read()
    assert read.column("b").to_pylist() == read.column("f").to_pylist() == values
    for stats in written.columns:
        assert (stats.min, stats.max, stats.null_count) == (Decimal("-1.00"), Decimal("655.36"), 1)
    assert open_base_file(storage, written.path).schema == schema
    keys = sort_key(schema, table, "b")
    assert keys.to_pylist() == values


def test_json_enum_and_uuid_keep_their_annotation(tmp_path):
    schema = schema_of(
        node("j", ps.REQUIRED, BYTES, converted=ps.JSON),
        node("e", ps.REQUIRED, BYTES, converted=ps.ENUM),
        node("i", ps.OPTIONAL, FLBA, type_length=12, converted=ps.INTERVAL),
    )
    table = pa.table([pa.array([b"{}"]), pa.array([b"RED"]), pa.array([bytes(12)], pa.binary(12))], schema=schema.arrow)
    storage, written = write_raw(tmp_path, schema, table)
    reader = open_base_file(storage, written.path)
    assert reader.schema == schema
    assert [s.has_range for s in written.columns] == [True, True, False]
    assert reader.read_row_group(0).equals(table)


def test_int96_orders_as_time(tmp_path):
    times = [dt.datetime(1969, 12, 31, 23, 59), None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 1)]
    table = pa.table({"t": pa.array(times, pa.timestamp("us"))})
    storage, path = write_pyarrow(tmp_path, table, use_deprecated_int96_timestamps=True)
    reader = open_base_file(storage, path)
    raw = reader.read_row_group(0)
    assert raw.schema.field("t").type == pa.binary(12)
    key = sort_key(reader.schema, raw, "t")
    assert key.cast(pa.timestamp("us")).to_pylist() == times
    _, other, written = check_copy(tmp_path, storage, path)
    assert other.schema.leaves[0].physical is Physical.INT96
    assert not written.columns[0].has_range


def test_sort_keys_of_dictionaries_are_ranks():
    schema = schema_of(node("s", ps.OPTIONAL, BYTES, converted=ps.UTF8))
    chunks = [pa.array(["b", None, "a"]).dictionary_encode(), pa.array(["Z", "é", "b"]).dictionary_encode()]
    key = sort_key(schema, pa.table({"s": pa.chunked_array(chunks)}), "s").to_pylist()
    assert key[1] is None
    ranked = sorted((k, s) for k, s in zip(key, ["b", None, "a", "Z", "é", "b"], strict=True) if s is not None)
    assert [s for _, s in ranked] == ["Z", "a", "b", "b", "é"]
    assert key[0] == key[5]


def test_sort_columns_must_exist_and_have_an_order():
    schema = schema_of(node("g", ps.OPTIONAL, children=[node("x", ps.OPTIONAL, Physical.INT32)]))
    table = pa.table({"g": [{"x": 1}]})
    for name in ("g", "nope"):
        with pytest.raises(ConfigError, match=name):
            sort_key(schema, table, name)


def test_columns_are_read_as_dictionaries_only_where_all_pages_are(tmp_path):
    table = pa.table(
        {
            "few": [f"v{i % 5}" for i in range(40000)],
            "many": [f"value {i} of many" for i in range(40000)],
            "n": [i % 3 for i in range(40000)],
        }
    )
    storage, path = write_pyarrow(tmp_path, table, dictionary_pagesize_limit=4000, store_schema=False)
    reader = open_base_file(storage, path)
    assert reader.dictionary_columns == {"few"}
    assert reader.plain_leaves == {"many"}
    read = reader.read_row_group(0, ["n", "few"], dictionary=["few", "many"])
    assert read.column_names == ["n", "few"]
    assert pa.types.is_dictionary(read.schema.field("few").type)
    check_copy(tmp_path, storage, path)


def test_files_with_and_without_dictionary_go_into_one(tmp_path):
    schema = schema_of(node("s", ps.OPTIONAL, BYTES, converted=ps.UTF8))
    parts = [["a", None, "b"], ["c", "a"], ["d"]]
    for first in (0, 1):
        tables = [pa.table({"s": pa.array(p)}) for p in parts]
        tables[first] = pa.table({"s": pa.array(parts[first]).dictionary_encode()})
        storage = open_storage(str(tmp_path))
        with BaseFileWriter(storage, "mixed.parquet", schema, row_group_bytes=1) as writer:
            for table in tables:
                writer.write(table)
            writer.close({})
        assert pq.ParquetFile(tmp_path / "mixed.parquet").read().column("s").to_pylist() == [
            s for part in parts for s in part
        ]


def test_row_groups_know_only_their_own_strings(tmp_path):
    schema = schema_of(node("s", ps.OPTIONAL, BYTES, converted=ps.UTF8))
    values = sorted([f"v{i:04d}" for i in range(1000)] * 3)
    table = pa.table({"s": pa.array([*values[:-1], None]).dictionary_encode()})
    storage, written = write_raw(tmp_path, schema, table, row_group_bytes=table.nbytes // 3)
    reader = open_base_file(storage, written.path)
    assert len(reader.row_groups) > 2
    for i, group in enumerate(reader.row_groups):
        read = reader.read_row_group(i, dictionary=["s"]).column("s")
        assert read.chunk(0).dictionary.to_pylist() == sorted(set(read.to_pylist()) - {None})
        assert group.columns[0].min == read[0].as_py().encode()
    assert pq.ParquetFile(tmp_path / written.path).read().column("s").to_pylist() == [*values[:-1], None]


def test_the_file_name_column_is_the_writers(tmp_path):
    schema = schema_of(*(node(n, ps.OPTIONAL, BYTES, converted=ps.UTF8) for n in ("_hoodie_file_name", "s")))
    storage, written = write_raw(tmp_path, schema, pa.table({"s": ["x", "y"]}), file_name="f_0-0-0_1.parquet")
    read = open_base_file(storage, written.path).read_row_group(0)
    assert read.to_pydict() == {"_hoodie_file_name": ["f_0-0-0_1.parquet"] * 2, "s": ["x", "y"]}


def test_row_groups_keep_to_their_size(tmp_path):
    schema = schema_of(node("n", ps.REQUIRED, Physical.INT64))
    table = pa.table([pa.array(range(10000), pa.int64())], schema=schema.arrow)
    storage, written = write_raw(tmp_path, schema, table, row_group_bytes=8 * 3000)
    reader = open_base_file(storage, written.path)
    assert [g.num_rows for g in reader.row_groups] == [2500, 2500, 2500, 2500]
    assert (written.columns[0].min, written.columns[0].max, written.columns[0].value_count) == (0, 9999, 10000)


def test_an_empty_file_has_the_schema(tmp_path):
    schema = open_base_file(*real_file(tmp_path, REAL_FILES[0])).schema
    storage, written = write_raw(tmp_path, schema, pa.table({name: [] for name in schema.columns}))
    assert written.rows == 0
    assert open_base_file(storage, written.path).schema == schema
    assert all(s.has_range and s.min is None and s.value_count == 0 for s in written.columns)


def test_an_aborted_file_leaves_nothing(tmp_path):
    schema = schema_of(node("n", ps.REQUIRED, Physical.INT64))
    table = pa.table([pa.array(range(3_000_000), pa.int64())], schema=schema.arrow)
    with (
        pytest.raises(KeyError),
        BaseFileWriter(
            open_storage(str(tmp_path)), "a.parquet", schema, row_group_bytes=1 << 20, codec="uncompressed"
        ) as writer,
    ):
        writer.write(table)
        raise KeyError
    del writer
    assert os.listdir(tmp_path) == []


def test_nulls_in_a_required_column_are_refused(tmp_path):
    schema = schema_of(node("n", ps.REQUIRED, Physical.INT64))
    writer = BaseFileWriter(open_storage(str(tmp_path)), "a.parquet", schema)
    with pytest.raises(CheckFailed), writer:
        writer.write(pa.table({"n": pa.array([1, None], pa.int64())}))
        writer.close({})
    assert os.listdir(tmp_path) == []


def test_a_column_of_another_type_is_refused(tmp_path):
    schema = schema_of(node("n", ps.OPTIONAL, Physical.INT64))
    writer = BaseFileWriter(open_storage(str(tmp_path)), "a.parquet", schema)
    with pytest.raises(CheckFailed, match=r"n of a\.parquet should be int64 and is string"):
        writer.write(pa.table({"n": ["x"]}))


def test_a_schema_that_arrow_cannot_hold_is_refused_first(tmp_path):
    pair = [node("key", ps.OPTIONAL, BYTES, converted=ps.UTF8), node("value", ps.OPTIONAL, Physical.INT32)]
    schema = schema_of(node("m", ps.OPTIONAL, children=[node("map", ps.REPEATED, children=pair)], converted=ps.MAP))
    with pytest.raises(UnsupportedTable, match="Map keys"):
        BaseFileWriter(open_storage(str(tmp_path)), "a.parquet", schema)
    assert os.listdir(tmp_path) == []


N = node("x", ps.OPTIONAL, Physical.INT64)
OTHER_PAGES = [
    node("x", ps.REQUIRED, Physical.INT64),
    node("x", ps.OPTIONAL, Physical.INT32),
    node("x", ps.OPTIONAL, children=[node("y", ps.REQUIRED, BYTES)]),
    node("x", ps.REPEATED, Physical.INT64),
    node("x", ps.OPTIONAL, children=[N, N]),
]


@pytest.mark.parametrize("other", OTHER_PAGES)
def test_pages_of_another_shape_never_get_the_targets_elements(other):
    with pytest.raises(CheckFailed):
        check_pages(schema_of(other), schema_of(N), "f")


def test_a_null_list_is_not_a_list_with_a_null():
    outer = node("l", ps.OPTIONAL, children=[node("r", ps.REPEATED, Physical.INT64)])
    inner = node("l", ps.REQUIRED, children=[node("r", ps.REPEATED, children=[N])])
    with pytest.raises(CheckFailed):
        check_pages(schema_of(outer), schema_of(inner), "f")


def test_unknown_codecs_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="lzo"):
        BaseFileWriter(
            open_storage(str(tmp_path)), "a.parquet", schema_of(node("n", ps.OPTIONAL, Physical.INT64)), codec="lzo"
        )


def test_statistics_and_page_index_of_retyped_columns_go(tmp_path):
    table = pa.table({"t": pa.array([TIME], pa.timestamp("us")), "n": [1]})
    storage, path = write_pyarrow(tmp_path, table, use_deprecated_int96_timestamps=True)
    copy(storage, path)
    group = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    assert not group.column(0).statistics.has_min_max and not group.column(0).has_column_index
    assert group.column(1).statistics.has_min_max and group.column(1).has_column_index


def test_columns_that_point_outside_the_file_are_corrupt(tmp_path):
    storage, path = write_pyarrow(tmp_path, pa.table({"a": [1, 2, 3]}))
    footer, ranges = read_footer(storage, path)
    chunk = footer.tree.get(4).items[0].get(1).items[0]
    chunk.get(3).set(7, 6, 10**12)
    data = (tmp_path / path).read_bytes()
    length = struct.unpack("<I", data[-8:-4])[0]
    (tmp_path / "bad.parquet").write_bytes(data[: ranges.size - 8 - length] + footer.as_file()[4:])
    with pytest.raises(CorruptFile, match=r"bad\.parquet"):
        open_base_file(storage, "bad.parquet")


@pytest.mark.thorough
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_read_or_are_refused_by_name(tmp_path, data):
    content = bytearray(real_bytes(REAL_FILES[1])) if data.draw(st.booleans()) else bytearray(small_file(tmp_path))
    start = 4 if data.draw(st.booleans()) else max(4, len(content) - 6000)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(start, len(content) - 9))] = data.draw(st.integers(0, 255))
    (tmp_path / "damaged.parquet").write_bytes(content)
    try:
        reader = open_base_file(open_storage(str(tmp_path)), "damaged.parquet")
        for i in range(len(reader.row_groups)):
            reader.read_row_group(i, dictionary=reader.dictionary_columns)
    except HudiServicesError as e:
        assert isinstance(e, (CorruptFile, UnsupportedTable)), e
        assert "damaged.parquet" in e.message or isinstance(e, UnsupportedTable)


def small_file(folder) -> bytes:
    if not (folder / "small.parquet").exists():
        table = pa.table(
            {"a": list(range(200)), "s": [f"x{i % 3}" for i in range(200)], "l": [[i] for i in range(200)]}
        )
        pq.write_table(table, folder / "small.parquet", store_schema=False, compression="gzip")
    return (folder / "small.parquet").read_bytes()


def test_a_schema_is_not_lost_in_the_arrow_metadata(tmp_path):
    # pyarrow's own schema entry would turn strings into large strings.
    table = pa.table({"s": pa.array(["a"], pa.large_string()), "d": pa.array(["x"]).dictionary_encode()})
    storage, path = write_pyarrow(tmp_path, table)
    reader = open_base_file(storage, path)
    assert reader.read_row_group(0).schema.types == [pa.string(), pa.string()]
    assert isinstance(reader.schema, FileSchema)


def test_a_range_with_nan_is_not_told(tmp_path):
    """Spark holds NaN for the greatest number; a footer whose range leaves it out would hide the row from a filter."""
    table = pa.table({"a": [1.0, float("nan"), None], "b": [1.0, 2.0, None], "s": [{"x": 1.0}, None, {"x": 2.0}]})
    pq.write_table(table, tmp_path / "in.parquet")
    storage = open_storage(str(tmp_path))
    reader = open_base_file(storage, "in.parquet")
    writer = BaseFileWriter(storage, "out.parquet", reader.schema)
    writer.write(reader.read_row_group(0))
    writer.close({})
    group = pq.read_metadata(tmp_path / "out.parquet").row_group(0)
    told = {group.column(i).path_in_schema: group.column(i).statistics for i in range(3)}
    assert not told["a"].has_min_max and told["a"].null_count == 1
    assert (told["b"].min, told["b"].max) == (1.0, 2.0)
    assert not told["s.x"].has_min_max
    assert pq.read_table(tmp_path / "out.parquet", filters=[("b", ">", 1.5)]).num_rows == 1


def test_a_reader_goes_at_once(tmp_path) -> None:
    """Not only when the garbage collector comes by: a footer may hold megabytes, and bulk work rarely calls it."""
    gc.disable()
    try:
        reader = open_base_file(*real_file(tmp_path, REAL_FILES[0]))
        reader.read_row_group(0)
        alive = weakref.ref(reader)
        del reader
        assert alive() is None
    finally:
        gc.enable()


def test_a_large_row_group_is_read_through_small_buffers(tmp_path: Path) -> None:
    """Not even its stored bytes need fit into memory: a page of each column does."""
    rows = 200_000
    values = np.random.default_rng(1).integers(0, 1 << 60, rows)
    table = pa.table({"a": values, "b": [f"{n:x}" for n in values], "c": pa.array(["x", "y"] * (rows // 2))})
    storage, path = write_pyarrow(tmp_path, table, row_group_size=rows, compression="none")
    reader = open_base_file(storage, path)
    sizes: list[int] = []
    original = reader._source._ranges._storage.read_range

    class Counting:
        def read_range(self, path: str, start: int, length: int) -> bytes:
            sizes.append(length)
            return original(path, start, length)

    reader._source._ranges._storage = Counting()  # type: ignore[assignment]
    at_once = 300_000
    assert reader.row_groups[0].compressed_bytes > 10 * at_once
    found = pa.concat_tables(reader.pieces(0, dictionary={"c"}, at_once=at_once))
    assert len(sizes) > 10 and max(sizes) <= 1 << 20
    assert found.cast(table.schema).equals(table)
    sizes.clear()
    whole = pa.concat_tables(reader.pieces(0, ["b"], at_once=1 << 30))
    assert len(sizes) == 1 and whole["b"].to_pylist() == table["b"].to_pylist()


def test_the_smallest_pages_lose_no_list(tmp_path: Path) -> None:
    storage, path = write_pyarrow(tmp_path, pa.table({"l": [["a", "b"], [], None] * 9}), store_schema=False)
    reader = open_base_file(storage, path)
    raw = reader.read_row_group(0)
    with BaseFileWriter(storage, "small.parquet", reader.schema, page_bytes=1, row_group_bytes=1) as writer:
        writer.write(raw)
        writer.close({})
    small = open_base_file(storage, "small.parquet")
    assert pa.concat_tables(piece for i in range(len(small.row_groups)) for piece in small.pieces(i)).equals(raw)


def test_pages_where_a_reader_stops_early_are_told(tmp_path: Path) -> None:
    """pyarrow writes an empty page before the list, and takes it for the end."""
    storage, path = write_pyarrow(tmp_path, pa.table({"l": [["a", "b"]]}), store_schema=False, data_page_size=1)
    reader = open_base_file(storage, path)
    for read in (lambda: list(reader.pieces(0)), lambda: [reader.read_row_group(0)]):
        with pytest.raises(CorruptFile, match=r"in\.parquet: row group 0 lacks 1 of the rows"):
            read()
