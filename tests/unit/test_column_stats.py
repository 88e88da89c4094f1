import datetime as dt
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.base_files.file_reader import open_base_file
from hudi_services.parquet import file_schema as ps
from hudi_services.parquet.chunk_stats import column_stats
from hudi_services.parquet.file_schema import node
from hudi_services.parquet.footer import ColumnChunk, Physical, RowGroup
from hudi_services.schema.column_type import Kind

from .parquet_samples import REAL_FILES, real_file, schema_of, write_pyarrow

EPOCH = dt.datetime(1970, 1, 1)


@pytest.mark.parametrize("name", REAL_FILES)
def test_real_files(tmp_path, name):
    storage, path = real_file(tmp_path, name)
    table = pq.ParquetFile(tmp_path / path).read()
    stats = {s.column: s for s in open_base_file(storage, path).column_stats()}
    rows = table.num_rows
    for column in ("_hoodie_record_key", "id", "ts", "name", "d", "f", "i", "b", "dec", "bigdec", "n", "part"):
        values = [v for v in table.column(column).to_pylist() if v is not None]
        found = stats[column]
        assert (found.value_count, found.null_count) == (rows, rows - len(values))
        assert found.has_range
        if column == "d":
            assert found.min == 0.0 and str(found.min) == "-0.0"
        assert (found.min, found.max) == (min(values, default=None), max(values, default=None)), column
    dates = table.column("dt").to_pylist()
    assert (stats["dt"].min, stats["dt"].max) == ((min(dates) - EPOCH.date()).days, (max(dates) - EPOCH.date()).days)
    assert stats["tsm"].type.unit == "micros" and stats["tsm"].type.utc
    assert stats["tsm"].min == 1_700_000_000_123_000
    assert stats["bin"].min == min(table.column("bin").to_pylist())
    assert "m.key_value.key" in stats and "st.x" in stats
    metadata = pq.read_metadata(tmp_path / path).row_group(0)
    for i in range(metadata.num_columns):
        column = metadata.column(i)
        found = stats[column.path_in_schema]
        assert found.total_size == column.total_compressed_size
        assert found.total_uncompressed_size == column.total_uncompressed_size


CASES = [
    (pa.array([True, False]), False, True, Kind.BOOLEAN),
    (pa.array([3, -2], pa.int8()), -2, 3, Kind.INT),
    (pa.array([2**32 - 1, 5], pa.uint32()), 5, 2**32 - 1, Kind.UNSIGNED),
    (pa.array([2**64 - 1, 5], pa.uint64()), 5, 2**64 - 1, Kind.UNSIGNED),
    (pa.array([1.5, -2.5], pa.float32()), -2.5, 1.5, Kind.FLOAT),
    (pa.array([float("nan"), 1.0]), 1.0, 1.0, Kind.DOUBLE),
    (
        pa.array([Decimal("-1.50"), Decimal("2.00")], pa.decimal128(4, 2)),
        Decimal("-1.50"),
        Decimal("2.00"),
        Kind.DECIMAL,
    ),
    (pa.array([Decimal(10) ** 37, Decimal(-1)], pa.decimal128(38, 0)), Decimal(-1), Decimal(10) ** 37, Kind.DECIMAL),
    (pa.array(["b", "é", "a"]), "a", "é", Kind.STRING),
    (pa.array([b"\xff", b"\x00"]), b"\x00", b"\xff", Kind.BYTES),
    (pa.array([b"ab", b"zz"], pa.binary(2)), b"ab", b"zz", Kind.FIXED),
    (pa.array([dt.time(0, 0, 1)], pa.time32("ms")), 1000, 1000, Kind.TIME),
    (pa.array([1500], pa.timestamp("ms")), 1500, 1500, Kind.TIMESTAMP),
]


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize(("values", "low", "high", "kind"), CASES)
def test_typed_values(tmp_path, values, low, high, kind, integers):
    storage, path = write_pyarrow(tmp_path, pa.table({"c": values}), store_decimal_as_integer=integers)
    (stats,) = open_base_file(storage, path).column_stats()
    assert (stats.min, stats.max, stats.type.kind, stats.has_range) == (low, high, kind, True)
    assert type(stats.min) is type(low)


def test_row_groups_are_put_together(tmp_path):
    table = pa.table({"c": [5, 1, None, None, 9, 2], "n": pa.array([None] * 6, pa.string())})
    storage, path = write_pyarrow(tmp_path, table, row_group_size=2)
    one, nothing = open_base_file(storage, path).column_stats()
    assert (one.min, one.max, one.value_count, one.null_count) == (1, 9, 6, 2)
    assert (nothing.min, nothing.max, nothing.value_count, nothing.null_count, nothing.has_range) == (
        None,
        None,
        6,
        6,
        True,
    )


def test_files_without_statistics_have_no_range(tmp_path):
    storage, path = write_pyarrow(tmp_path, pa.table({"c": [1, 2]}), write_statistics=False)
    (stats,) = open_base_file(storage, path).column_stats()
    assert (stats.has_range, stats.min, stats.max, stats.null_count, stats.value_count) == (False, None, None, None, 2)


def chunk(physical: Physical, low: bytes | None, high: bytes | None, nulls: int | None = 0) -> RowGroup:
    return RowGroup(
        9, (ColumnChunk(("c",), physical, 0, 9, 10, 10, 4, 0, False, low, high, True, nulls, None, None, (0,), None),)
    )


@pytest.mark.parametrize(
    ("physical", "low", "high"),
    [
        (Physical.INT96, bytes(12), bytes(12)),
        (Physical.DOUBLE, struct.pack("<d", float("nan")), struct.pack("<d", 1.0)),
        (Physical.INT64, b"\0", b"\0"),
        (Physical.BOOLEAN, b"", b"\1"),
        (Physical.BYTE_ARRAY, b"\xff\xfe", b"\xff\xff"),
        (Physical.INT32, None, struct.pack("<i", 1)),
    ],
)
def test_bounds_that_say_nothing_are_no_range(physical, low, high):
    column = node("c", ps.OPTIONAL, physical, **({"converted": ps.UTF8} if physical is Physical.BYTE_ARRAY else {}))
    (stats,) = column_stats(schema_of(column), [chunk(physical, low, high)])
    assert not stats.has_range and stats.min is None and stats.max is None


def test_one_row_group_without_bounds_hides_the_range():
    column = node("c", ps.REQUIRED, Physical.INT32)
    good, bad = chunk(Physical.INT32, bytes(4), bytes(4)), chunk(Physical.INT32, None, None, None)
    (stats,) = column_stats(schema_of(column), [good, bad])
    assert not stats.has_range and stats.value_count == 18 and stats.null_count == 0
