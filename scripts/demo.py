"""`make demo`: a small table that real Apache Hudi 1.2.0 wrote, before and after clustering.

python scripts/demo.py [FOLDER]      the table is unpacked into FOLDER (default: demo/), which is emptied first
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet as pq

from hudi_services.clock import SystemClock
from hudi_services.object_storage import ObjectStorage
from hudi_services.snapshot import open_snapshot

ARCHIVE = Path(__file__).resolve().parent / "demo_table.zip"
TABLE = "demo_table"
# The column that a rewrite may change: the file of a row.
FILE_NAME = "_hoodie_file_name"


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo").resolve()
    table = unpack(folder)
    before = show(table, "The table as Apache Hudi wrote it")
    run("schedule", table, "--hoodie-conf", f"hoodie.clustering.plan.strategy.sort.columns={sort_column(table)}")
    run("execute", table)
    after = show(table, "The table now")
    if before != after:
        sys.exit(f"the rows changed: {before} before, {after} after")
    print("\nThe same rows, in fewer files.")


def unpack(folder: Path) -> Path:
    table = folder / TABLE
    shutil.rmtree(table, ignore_errors=True)
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return table


def live_files(table: Path) -> list[Path]:
    """The base files that a reader sees now; replaced ones stay on disk until Hudi cleans them."""
    view = open_snapshot(ObjectStorage(str(table)), SystemClock()).view
    slices = (one for partition in view.partitions() for one in view.latest_slices(partition))
    return sorted(table / one.base_file.path for one in slices if one.base_file)


def show(table: Path, title: str) -> tuple[int, str]:
    """Print the files of the table, and give its number of rows and their checksum."""
    print(f"\n{title}")
    rows: list[str] = []
    folders: dict[Path, list[int]] = {}
    for file in live_files(table):
        content = pq.ParquetFile(file).read()
        rows += map(repr, content.drop_columns([FILE_NAME]).to_pylist())
        folders.setdefault(file.parent.relative_to(table), []).append(file.stat().st_size)
    for name, sizes in sorted(folders.items()):
        print(f"  {name!s:<20} {len(sizes):>4} files  {sum(sizes):>10,} bytes")
    # Sorted, because the order of rows is what clustering may change.
    checksum = hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()[:16]
    print(f"  {sum(map(len, folders.values()))} files, {len(rows)} rows, checksum {checksum}")
    return len(rows), checksum


def sort_column(table: Path) -> str:
    """The first column that is not Hudi's own."""
    names = pq.read_schema(live_files(table)[0]).names
    return next(name for name in names if not name.startswith("_hoodie_"))


def run(command: str, table: Path, *flags: str) -> None:
    line = [command, "--base-path", str(table), *flags]
    print(f"\n$ hudi-services {' '.join(line)}", flush=True)
    subprocess.run([sys.executable, "-m", "hudi_services", *line], check=True)


if __name__ == "__main__":
    main()
