"""Make tests/fixtures/timelines.zip with real Apache Hudi: only the timelines and properties of small tables.

    python scripts/make_fixture_timelines.py 0.15.0 1.0.2 1.2.0

Needs pyspark 3.5 and Java 17; one JVM per release. Each release gives three tables: `cow` (savepoint, clustering,
insert_overwrite, clean, pending clustering), `mor` (compaction, archived instants, pending clustering) and `rolled`
(a rolled back deltacommit).
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "timelines.zip"
BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"
KEEP = ("timeline/", "hoodie.properties")
CLEANING = {"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "1"}
ARCHIVING = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.table.timeline.timezone": "UTC",
}


class Writer:
    """Writes rows of one table."""

    def __init__(self, spark: Any, path: Path, table_type: str) -> None:
        self.spark, self.path, self.table_type = spark, path, table_type

    def write(self, start: int, end: int, operation: str = "upsert", *more: dict[str, str]) -> None:
        columns = ["cast(id as string) id", "id ts", "concat('p', id % 2) part", "'x' v"]
        writer = self.spark.range(start, end, 1, 1).selectExpr(*columns).write.format("hudi").options(**OPTIONS)
        for options in more:
            writer = writer.options(**options)
        writer = writer.option("hoodie.table.name", self.path.name).option(
            "hoodie.datasource.write.table.type", self.table_type
        )
        first = not self.path.exists()
        writer = writer.option("hoodie.datasource.write.operation", operation)
        writer.mode("overwrite" if first else "append").save(str(self.path))

    def call(self, procedure: str, argument: str) -> None:
        self.spark.sql(f"call {procedure}(path => '{self.path}', {argument})").collect()

    def last_commit(self) -> str:
        rows = self.spark.read.format("hudi").load(str(self.path))
        return str(rows.selectExpr("max(_hoodie_commit_time)").first()[0])


def make_tables(release: str, folder: Path) -> None:
    """Run in a process of its own: one Hudi release per JVM."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.jars.packages", f"{BUNDLE}:{release}")
    builder = builder.config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    builder = builder.config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    builder = builder.config("spark.driver.memory", "2g").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    _copy_on_write(Writer(spark, folder / "cow", "COPY_ON_WRITE"))
    _merge_on_read(Writer(spark, folder / "mor", "MERGE_ON_READ"))
    _rolled_back(Writer(spark, folder / "rolled", "MERGE_ON_READ"))


def _copy_on_write(table: Writer) -> None:
    table.write(0, 10, "bulk_insert")
    table.write(0, 4)
    table.call("create_savepoint", f"commit_time => '{table.last_commit()}'")
    table.write(10, 20, "insert")
    table.call("run_clustering", "op => 'scheduleAndExecute'")
    table.write(20, 24, "insert_overwrite")
    table.write(2, 6, "upsert", CLEANING)
    table.write(30, 40, "insert")
    table.call("run_clustering", "op => 'schedule'")


def _merge_on_read(table: Writer) -> None:
    table.write(0, 10, "bulk_insert")
    for _ in range(9):
        table.write(0, 4, "upsert", CLEANING, ARCHIVING, {"hoodie.compact.inline": "true"})
    table.write(30, 40, "insert")
    table.call("run_clustering", "op => 'schedule'")


def _rolled_back(table: Writer) -> None:
    table.write(0, 10, "bulk_insert")
    table.write(0, 4)
    commits = [p for p in (table.path / ".hoodie").rglob("*.deltacommit") if "metadata" not in p.parts]
    last = max(commits, key=lambda p: p.name)
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    table.write(2, 6)


def _add(archive: zipfile.ZipFile, release: str, folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        table, *rest = path.relative_to(folder).parts
        if not path.is_file() or path.suffix == ".crc" or rest[0] != ".hoodie" or rest[1] in ("metadata", "archived"):
            continue
        name = "/".join(rest[1:])
        if name.startswith(KEEP) or ("/" not in name and name[0].isdigit()):
            archive.write(path, f"{release}/{table}/.hoodie/{name}")


def main(releases: list[str]) -> None:
    with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_DEFLATED) as archive:
        for release in releases:
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([sys.executable, __file__, "--one", release, folder], check=True)
                _add(archive, release, Path(folder))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        make_tables(sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1:])
