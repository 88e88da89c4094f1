"""`make demo`: small files, how they come about, and two ways out of them: file sizing and clustering.

python scripts/demo.py [FOLDER]      the tables are made in FOLDER (default: demo/); older ones there are deleted
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import hudi_services

BATCHES, ROWS, DAYS = 12, 6_000, 3
# Hudi's filter of record keys has room for 60,000 keys in each file, which is more bytes than such small files have.
OPTIONS = {"hoodie.parquet.bloom.filter.enabled": False}
NO_SIZING = {"hoodie.parquet.small.file.limit": 0}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
WIDTH = 48

console = Console(highlight=False, soft_wrap=True)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo").resolve()
    scattered, sized = make(folder / "scattered"), make(folder / "sized")

    say(f"1. {BATCHES} batches of {ROWS:,} trips, without file sizing (hoodie.parquet.small.file.limit=0).")
    for number in range(BATCHES):
        scattered.insert(batch(number), options=NO_SIZING)
    # The last table has the largest files: its batches come first, so that all pictures have one scale.
    for number in range(BATCHES):
        sized.insert(batch(number))
    largest = max(sized.slices()["size"].to_pylist())
    show(scattered, largest)
    wanted = content(scattered)

    say("2. The same batches with Hudi's default file sizing: new rows go into small files first.")
    show(sized, largest)
    check(sized, wanted)

    say("3. The first table is clustered, sorted by city (in Python: table.cluster()).")
    scattered.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "city"})
    show(scattered, largest)
    check(scattered, wanted)

    say("4. The files that clustering replaced are still on disk for older queries; a clean deletes them.")
    before = stored(scattered)
    scattered.clean(options=ONE_VERSION)
    console.print(f"  files on disk: {before} before, {stored(scattered)} after")
    check(scattered, wanted)

    say("5. The command line: the metadata table is compared with the files.")
    run("validate", scattered)

    say("The same rows in every step, in fewer files.")


def make(path: Path) -> hudi_services.Table:
    """A new table, in place of one of an earlier demo."""
    shutil.rmtree(path, ignore_errors=True)
    return hudi_services.create(
        path,
        name="trips",
        record_key="trip_id",
        partition_by="day",
        ordering="ts",
        engine="local",
        options={**OPTIONS, "hoodie.datasource.write.hive_style_partitioning": True},
    )


def batch(number: int) -> pa.Table:
    random = np.random.default_rng(number)
    ids = np.arange(number * ROWS, (number + 1) * ROWS)
    cities = pa.array(["Berlin", "Kyoto", "Lima", "Zürich"])
    return pa.table(
        {
            "trip_id": pa.array([f"trip-{one:07d}" for one in ids.tolist()]),
            "day": pa.array([f"2026-01-0{one % DAYS + 1}" for one in ids.tolist()]),
            "ts": pa.array(1_767_225_600_000 + ids * 977),
            "city": cities.take(pa.array(random.integers(0, len(cities), ROWS))),
            "fare": pa.array(random.integers(500, 9_500, ROWS) / 100),
        }
    )


def say(text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


def show(table: hudi_services.Table, largest: int) -> None:
    """A bar for each file that readers see; `largest` bytes are as wide as a bar can be."""
    slices = table.slices().select(["partition", "size"]).sort_by([("partition", "ascending"), ("size", "descending")])
    cell, seen = ("█", "") if console.is_terminal else ("#", "")
    for one in slices.to_pylist():
        name = "" if one["partition"] == seen else one["partition"]
        seen = one["partition"]
        bar = cell * max(1, round(one["size"] / largest * WIDTH))
        console.print(f"  {name:<15} [green]{bar:<{WIDTH}}[/green] {one['size'] / 1024:>6,.0f} KiB")
    rows, checksum = content(table)
    console.print(f"  {slices.num_rows} files, {rows:,} rows, checksum {checksum}")


def content(table: hudi_services.Table) -> tuple[int, str]:
    """The number of rows that readers see, and the checksum of their values, in whatever order the rows are."""
    names = batch(0).column_names
    files = [Path(table.url) / one for one in table.slices()["base_file"].to_pylist()]
    rows = pa.concat_tables(pq.ParquetFile(file).read(names) for file in files).sort_by("trip_id")
    digest = hashlib.sha256()
    for column in rows.combine_chunks().to_pydict().values():
        digest.update(repr(column).encode())
    return rows.num_rows, digest.hexdigest()[:16]


def check(table: hudi_services.Table, wanted: tuple[int, str]) -> None:
    found = content(table)
    if found != wanted:
        sys.exit(f"the rows differ: {wanted} at first, {found} now")


def stored(table: hudi_services.Table) -> int:
    return sum(1 for _ in Path(table.url).glob("day=*/*.parquet"))


def run(command: str, table: hudi_services.Table) -> None:
    line = [command, "--base-path", table.url]
    console.print(f"  [dim]$ hudi-services {' '.join(line)}[/dim]")
    sys.stdout.flush()
    subprocess.run([sys.executable, "-m", "hudi_services", *line], check=True)


if __name__ == "__main__":
    main()
