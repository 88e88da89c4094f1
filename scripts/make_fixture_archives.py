"""Make tests/fixtures/archives.tar.xz with real Apache Hudi: small tables whose first instants were archived.

    python scripts/make_fixture_archives.py 0.15.0 1.0.2 1.2.0

Needs pyspark 3.5 and Java 17; one JVM per release. Each release gives two tables, `plain` without and `listed` with a
metadata table: a bulk insert; then in turn a good commit and a commit that was rolled back, whose files stay because it
had no markers any more; then commits that archive.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from make_fixture_timelines import ARCHIVING, BUNDLE, CLEANING, Writer

TARGET = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "archives.tar.xz"
ROUNDS = 5
FINAL = 3
# A bloom filter for ten keys: a larger one would be nearly the whole file.
SMALL = {"hoodie.index.bloom.num_entries": "10", "hoodie.bloom.index.filter.dynamic.max.entries": "10"}


def make_tables(release: str, folder: Path) -> None:
    """Run in a process of its own: one Hudi release per JVM."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.jars.packages", f"{BUNDLE}:{release}")
    builder = builder.config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    builder = builder.config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    builder = builder.config("spark.driver.memory", "2g").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    for name, metadata in (("plain", "false"), ("listed", "true")):
        _rounds(Writer(spark, folder / name, "COPY_ON_WRITE"), {**SMALL, "hoodie.metadata.enable": metadata})


def _rounds(table: Writer, options: dict[str, str]) -> None:
    # A metadata table that was compacted since cannot drop a commit; one that was not compacted holds back the archive.
    waiting = {**options, "hoodie.metadata.compact.max.delta.commits": "100"}
    table.write(0, 10, "bulk_insert", waiting)
    for number in range(ROUNDS):
        table.write(10 + number * 2, 12 + number * 2, "insert", waiting)
        table.write(0, 2, "upsert", waiting)
        _fail(table.path)
    archiving = {**options, **CLEANING, **ARCHIVING, "hoodie.metadata.compact.max.delta.commits": "1"}
    for number in range(FINAL):
        table.write(40 + number * 2, 42 + number * 2, "insert", archiving)


def _fail(path: Path) -> None:
    """Make the newest commit one that was not completed; the next write rolls it back."""
    commits = [p for p in (path / ".hoodie").rglob("*.commit") if "metadata" not in p.parts]
    last = max(commits, key=lambda p: p.name)
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()


def _add(archive: tarfile.TarFile, release: str, folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".crc":
            archive.add(path, f"{release}/{path.relative_to(folder)}")


def main(releases: list[str]) -> None:
    with tarfile.open(TARGET, "w:xz") as archive:
        for release in releases:
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([sys.executable, __file__, "--one", release, folder], check=True)
                _add(archive, release, Path(folder))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        make_tables(sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1:])
