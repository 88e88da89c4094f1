"""Make scripts/demo_table.zip with real Apache Hudi 1.2.0, for the examples of the documentation: make_demo_table.py

The table is what small writes leave behind: three days with twenty files each, from two commits, and the metadata table
with the partitions that are on by default. Everything else is left at its default too.
"""

import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.interop.peer_server import session  # noqa: E402

ARCHIVE = ROOT / "scripts/demo_table.zip"
NAME = "demo_table"
COMMITS, DAYS, FILES_PER_COMMIT, ROWS_PER_FILE = 2, 3, 10, 18
COLUMNS = (
    "concat('trip-', lpad(conv(cast(pmod(xxhash64(id), 4294967296) as string), 10, 16), 8, '0')) as trip_id",
    "1767225600000 + id * 977 as ts",
    "concat('driver-', lpad(cast(pmod(hash(id), 400) as string), 3, '0')) as driver",
    "element_at(array('Berlin', 'Kyoto', 'Lima', 'Zürich'), cast(pmod(hash(id, 1), 4) + 1 as int)) as city",
    "cast(pmod(hash(id, 2), 9000) / 100 + 5 as decimal(8,2)) as fare",
    "case when pmod(id, 5) = 0 then null else pmod(hash(id, 3), 50) / 10 end as tip",
    "timestamp_millis(1767225600000 + id * 977) as picked_up_at",
)
OPTIONS = {
    "hoodie.table.name": NAME,
    "hoodie.datasource.write.recordkey.field": "trip_id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / NAME
        make(table)
        pack(table)
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes")


def make(table: Path) -> None:
    spark = session("1.2.0")
    try:
        # Each task of a bulk insert writes a file for each day of its rows: here for one day.
        files = DAYS * FILES_PER_COMMIT
        per_day = FILES_PER_COMMIT * ROWS_PER_FILE
        for i in range(COMMITS):
            first = i * DAYS * per_day
            day = f"concat('2026-01-0', cast((id - {first}) div {per_day} + 1 as string)) as day"
            frame = spark.range(first, first + DAYS * per_day, 1, files).selectExpr(*COLUMNS, day)
            frame.write.format("hudi").options(**OPTIONS).mode("append").save(str(table))
    finally:
        spark.stop()


def pack(table: Path) -> None:
    """Pack the table without Hadoop's checksum files, which nothing needs."""
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(table.rglob("*")):
            if not path.name.endswith(".crc"):
                archive.write(path, path.relative_to(table.parent))


if __name__ == "__main__":
    main()
