"""Make the benchmark table with real Apache Hudi 1.2.0: make_bench_table.py PATH [--rows 6000000] ...

Rides of four days in 25 files each, as one bulk insert writes them: 15 columns of strings, numbers, decimals, times,
flags and nulls. Deterministic; 6 million rows take about a minute and 480 MB.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.interop.peer_server import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSION = "1.2.0"
COLUMNS = {
    "ride_id": "concat('ride-', lpad(cast(id as string), 12, '0'), '-', lower(hex(xxhash64(id))))",
    "ts": "id * 7 + 1700000000000",
    "driver": "concat('driver-', cast(abs(xxhash64(id)) % 20000 as string))",
    "rider": "concat('rider-', cast(abs(xxhash64(xxhash64(id))) % 900000 as string))",
    "begin_lat": "rand(1) * 180 - 90",
    "begin_lon": "rand(2) * 360 - 180",
    "end_lat": "rand(3) * 180 - 90",
    "end_lon": "rand(4) * 360 - 180",
    "fare": "cast(rand(5) * 100 as decimal(10,2))",
    "passengers": "cast(abs(xxhash64(xxhash64(id), 3)) % 5 as int)",
    "payment": "element_at(array('card', 'cash', 'wallet', 'corp'), cast(abs(xxhash64(id)) % 4 + 1 as int))",
    "pickup_at": "timestamp_millis(1700000000000 + id * 7)",
    "shared": "rand(6) > 0.5",
    "tip": "case when rand(7) < 0.1 then null else round(rand(8) * 10, 2) end",
}
OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "ride_id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the benchmark table with real Apache Hudi.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--files", type=int, default=25, help="files per partition")
    parser.add_argument("--memory", default="8g")
    arguments = parser.parse_args()
    make(arguments.path, arguments.rows, arguments.partitions, arguments.files, arguments.memory)


def rides(
    spark: "SparkSession", rows: int, partitions: int, tasks: int, where: str = "true", later: int = 0
) -> "DataFrame":
    """The rows whose `id` fulfils `where`, in so many tasks; their ordering value is later by `later`."""
    day = f"concat('2026-01-', lpad(cast(id div {rows // partitions} + 1 as string), 2, '0'))"
    columns = {**COLUMNS, "ts": f"{COLUMNS['ts']} + {later}", "day": day}
    frame = spark.range(0, partitions * (rows // partitions), 1, tasks).where(where)
    return frame.selectExpr(*(f"{sql} as {name}" for name, sql in columns.items()))


def make(path: Path, rows: int, partitions: int, files: int, memory: str) -> None:
    """Write the table into the new folder `path`: each task of the write is one file."""
    start = time.perf_counter()
    spark = session(VERSION, memory=memory, java_options="")
    try:
        frame = rides(spark, rows, partitions, partitions * files)
        frame.write.format("hudi").options(**OPTIONS).mode("overwrite").save(str(path))
    finally:
        spark.stop()
    print(f"made {path} with Hudi {VERSION} in {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
