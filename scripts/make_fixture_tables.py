"""Make tests/fixtures/tables/*.zip with real Apache Hudi: make_fixture_tables.py VERSION...

Small copy-on-write tables for the unit tests, which start no JVM: two partitions, four commits of inserts and one of
updates, with the metadata table that the release turns on by default. The bloom filters are sized for 100 keys, to
keep the archives small.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "tables"
BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"


def main(versions: list[str]) -> None:
    if len(versions) > 1:
        # One Hudi version per JVM.
        for version in versions:
            subprocess.run([sys.executable, __file__, version], check=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        make(versions[0], f"{folder}/table")
        for twin in Path(folder).rglob(".*.crc"):
            twin.unlink()
        TARGET.mkdir(parents=True, exist_ok=True)
        shutil.make_archive(str(TARGET / f"cow_{versions[0]}"), "zip", folder)


def make(version: str, path: str) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", f"{BUNDLE}:{version}")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )

    def rows(start: int, stop: int, label: str):  # type: ignore[no-untyped-def]
        number = f.col("id")
        return spark.range(start, stop, 1, 1).select(
            f.format_string("key-%06d", number).alias("key"),
            (number * 10).alias("ts"),
            f.lit(label).alias("label"),
            f.when(number % 3 == 0, None).otherwise(number * 1.5).alias("amount"),
            number.cast("decimal(12,2)").alias("price"),
            f.timestamp_millis(number * 1000).alias("at"),
            f.array(number.cast("string"), f.lit("x")).alias("tags"),
            f.format_string("2026-01-%02d", number % 2 + 1).alias("day"),
        )

    def write(frame, operation: str, mode: str) -> None:  # type: ignore[no-untyped-def]
        (
            frame.write.format("hudi")
            .option("hoodie.table.name", "fixture")
            .option("hoodie.datasource.write.recordkey.field", "key")
            .option("hoodie.datasource.write.precombine.field", "ts")
            .option("hoodie.datasource.write.partitionpath.field", "day")
            .option("hoodie.datasource.write.hive_style_partitioning", "true")
            .option("hoodie.datasource.write.operation", operation)
            .option("hoodie.parquet.small.file.limit", "0")
            .option("hoodie.index.bloom.num_entries", "100")
            .option("hoodie.bloom.index.filter.dynamic.max.entries", "200")
            .option("hoodie.metadata.enable", "true")
            .mode(mode)
            .save(path)
        )

    for i in range(4):
        write(
            rows(i * 100, i * 100 + 100, f"insert {i}"),
            "bulk_insert" if i % 2 else "insert",
            "append" if i else "overwrite",
        )
    write(rows(0, 40, "update"), "upsert", "append")


if __name__ == "__main__":
    main(sys.argv[1:])
