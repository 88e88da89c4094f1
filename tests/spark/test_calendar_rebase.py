"""Dates and timestamps of the hybrid calendar, as Spark reads them and as our reader does."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hudi_services.base_files.file_reader import open_base_file
from hudi_services.calendars.calendar_zones import ZONES
from hudi_services.parquet.conversion import natural
from hudi_services.stores import open_storage

pytestmark = pytest.mark.spark

_FEW = (
    "UTC",
    "America/Los_Angeles",
    "Europe/Amsterdam",
    "Asia/Manila",
    "America/Juneau",
    "Africa/Monrovia",
    "GMT+8",
    "+08:00",
)
_FIRST, _INT96_FIRST = -62_135_596_800, -9_000_000_000
"""0001-01-01 in epoch seconds, and a time that nanoseconds, by which pyarrow writes INT96, can hold."""
_ROWS = 400


def _zones() -> list[str]:
    names = [name for line in ZONES.replace("\n ", " ").splitlines() for name in line.partition(": ")[2].split()]
    return [*names, *(f"GMT{sign}{hour}:30" for sign in "+-" for hour in range(14)), "Z", "UTC-05:30", "+05:30"]


def _write(folder: Path, number: int, zone: str) -> None:
    values = random.Random(zone)
    # Also close to where the Julian centuries end, and to the last changes of mean times.
    near = [-12_219_292_800, -2_208_988_800, *(-62_135_769_600 + 3_155_760_000 * century for century in range(20))]
    seconds = [values.randrange(_FIRST + 2 * 86_400, 0) for _ in range(_ROWS // 2)]
    seconds += [values.choice(near) + values.randrange(-2 * 86_400, 2 * 86_400) for _ in range(_ROWS // 2)]
    seconds = [max(_FIRST + 2 * 86_400, one) for one in seconds]
    micros = [second * 10**6 + values.randrange(10**6) for second in seconds]
    recent = [max(_INT96_FIRST * 10**6, one) for one in micros]
    utc = pa.timestamp("us", "UTC")
    table = pa.table(
        {
            "file": pa.array([number] * _ROWS),
            "row": pa.array(range(_ROWS)),
            "d": pa.array([second // 86_400 for second in seconds], pa.int32()).cast(pa.date32()),
            "at": pa.array(micros).cast(utc),
            "ms": pa.array([one // 1000 for one in micros]).cast(pa.timestamp("ms", "UTC")),
            "local": pa.array(micros).cast(pa.timestamp("us")),
            "nested": pa.array([[{"at": one}] for one in micros], pa.list_(pa.struct({"at": pa.int64()}))).cast(
                pa.list_(pa.struct({"at": utc}))
            ),
        }
    )
    entries = {"version": "3.5.1", "legacyDateTime": "", "legacyINT96": "", "timeZone": zone}
    notes = {f"org.apache.spark.{name}": value for name, value in entries.items()}
    pq.write_table(table.replace_schema_metadata(notes), folder / f"new-{number}.parquet")
    old = pa.table({"file": table["file"], "row": table["row"], "i96": pa.array(recent).cast(utc)})
    name = folder / f"i96-{number}.parquet"
    pq.write_table(old.replace_schema_metadata(notes), name, use_deprecated_int96_timestamps=True)


_COLUMNS = {
    "d": "unix_date(d)",
    "at": "unix_micros(at)",
    "ms": "unix_millis(ms)",
    "local": "local",
    "nested": "unix_micros(nested[0].at)",
    "i96": "unix_micros(i96)",
}


def _ours(folder: Path, name: str) -> pa.Table:
    reader = open_base_file(open_storage(str(folder)), name).gregorian()
    rows = reader.read_row_group(0)
    found = {"file": rows["file"], "row": rows["row"]}
    if "i96" in rows.column_names:
        target = reader.schema
        i96 = [natural(chunk, target.column("i96")) for chunk in rows["i96"].chunks]
        return pa.table({**found, "i96": pa.chunked_array(i96).cast(pa.int64())})
    nested = rows["nested"].combine_chunks().flatten().field("at")
    columns = {name: rows[name] for name in ("at", "ms", "local")} | {"nested": nested}
    days = rows["d"].cast(pa.int32())
    return pa.table({**found, "d": days, **{name: column.cast(pa.int64()) for name, column in columns.items()}})


@pytest.mark.thorough
@pytest.mark.parametrize("zones", [_FEW, pytest.param(tuple(_zones()), marks=pytest.mark.deep)], ids=["few", "all"])
def test_old_dates_are_those_that_spark_reads(zones: tuple[str, ...], tmp_path: Path) -> None:
    """In every zone that Spark has a table for, and by offsets."""
    for number, zone in enumerate(zones):
        _write(tmp_path, number, zone)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        for kind in ("new", "i96"):
            frame = spark.read.parquet(str(tmp_path / f"{kind}-*.parquet"))
            names = [name for name in _COLUMNS if name in frame.columns]
            frame = frame.selectExpr("file", "row", *(f"{_COLUMNS[name]} AS {name}" for name in names))
            frame.coalesce(2).write.parquet(str(tmp_path / f"by-spark-{kind}"))
    finally:
        spark.stop()
    for kind in ("new", "i96"):
        theirs = pq.read_table(tmp_path / f"by-spark-{kind}").sort_by([("file", "ascending"), ("row", "ascending")])
        assert theirs.num_rows == _ROWS * len(zones)
        for number, zone in enumerate(zones):
            ours = _ours(tmp_path, f"{kind}-{number}.parquet")
            part = theirs.slice(number * _ROWS, _ROWS)
            for name in ours.column_names:
                assert ours[name].to_pylist() == part[name].cast(ours[name].type).to_pylist(), (zone, name)
