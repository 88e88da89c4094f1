"""Makes tests/fixtures/event_logs: what real Spark 3.5 with real Hudi 1.2.0 logs of queries, in each of two codecs.

The table is written by this program; the queries are those of `QUERIES`, two of them run twice.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow as pa
import pyarrow.parquet

import hudi_services

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "event_logs"
QUERIES = (
    "fare > 20.5 AND fare <= 40",
    "city = 'Paris, (Texas)'",
    "city IN ('Oslo', 'Rome') OR day < DATE'2024-01-03'",
    "ts >= TIMESTAMP'2024-01-02 10:00:00' AND ts < TIMESTAMP'2024-01-03 00:00:00.5'",
    "region = 'north' AND riders BETWEEN 2 AND 3",
    "city LIKE 'Os%' AND price <> 12.50",
    "note IS NULL",
    "NOT (riders = 3) AND is_shared",
    "length(city) = 4 AND riders > 1",
)
CODECS = ("zstd", "lz4")
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.interop.peer_server import session
spark = session("1.2.0", memory="1g")
# Data skipping has jobs of its own, which would be most of the log.
rides = spark.read.format("hudi").option("hoodie.enable.data.skipping", "false").load(sys.argv[2])
other = spark.read.parquet(sys.argv[3])
for clause in sys.argv[4:]:
    rides.where(clause).select("id").collect()
rides.where(sys.argv[4]).select("id").collect()
rides.where(sys.argv[5]).join(other.where("riders > 3").select("id"), "id").select("id").collect()
spark.stop()
"""


def main() -> None:
    FIXTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        table = _table(Path(folder) / "rides")
        other = Path(folder) / "other"
        other.mkdir()
        pa.parquet.write_table(_rows(), other / "rows.parquet")
        for codec in CODECS:
            _log(codec, table, other, Path(folder) / f"log-{codec}")
        (FIXTURES / "table.txt").write_text(f"{table}\n")


def _rows() -> pa.Table:
    from datetime import date, datetime, timedelta, timezone
    from decimal import Decimal

    count = 60
    start = datetime(2024, 1, 1, tzinfo=timezone.utc)
    return pa.table(
        {
            "id": [f"r{n:03d}" for n in range(count)],
            "region": ["north" if n % 2 else "south" for n in range(count)],
            "city": [("Oslo", "Rome", "Paris, (Texas)")[n % 3] for n in range(count)],
            "fare": [n * 1.5 for n in range(count)],
            "price": pa.array([Decimal(n) / 4 for n in range(count)], pa.decimal128(8, 2)),
            "riders": pa.array([n % 5 for n in range(count)], pa.int32()),
            "is_shared": [n % 4 == 0 for n in range(count)],
            "day": [date(2024, 1, 1 + n % 5) for n in range(count)],
            "ts": pa.array([start + timedelta(hours=n) for n in range(count)], pa.timestamp("us", "UTC")),
            "note": [None if n % 7 == 0 else f"note {n}" for n in range(count)],
        }
    )


def _table(path: Path) -> Path:
    table = hudi_services.create(path, name="rides", record_key="id", partition_by="region", engine="local")
    table.bulk_insert(_rows())
    return path


def _log(codec: str, table: Path, other: Path, folder: Path) -> None:
    folder.mkdir()
    settings = {"enabled": "true", "dir": f"file://{folder}", "compress": str(codec != "none").lower()}
    settings |= {"compression.codec": codec} if codec != "none" else {}
    flags = [part for key, value in settings.items() for part in ("--conf", f"spark.eventLog.{key}={value}")]
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": " ".join([*flags, "pyspark-shell"])}
    root = str(Path(__file__).resolve().parents[1])
    subprocess.run([sys.executable, "-c", RUN, root, str(table), str(other), *QUERIES], check=True, env=environment)
    (written,) = [file for file in folder.rglob("*") if file.is_file() and file.name.startswith(("local-", "events_"))]
    name = "queries" + "".join(written.suffixes)
    shutil.copy(written, FIXTURES / name)
    print(FIXTURES / name, written.stat().st_size, "bytes, of the table", table)


if __name__ == "__main__":
    main()
