"""`make bench-growth`: building and validating the record index of 1, 10 and 50 million keys, under one memory limit.

The tables have few columns and are made by real Apache Hudi; they are kept below FOLDER for the next run. Seconds are
those of whole processes; memory is the peak of a process, and of all together.
"""

import argparse
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench import ROOT, VERSION, command, job_seconds
from process_memory import PeakMemory

sys.path.insert(0, str(ROOT))

from tests.interop.peer_server import session

_KEYS_PER_FILE = 500_000
OPTIONS = {
    "hoodie.table.name": "keys",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
}


@dataclass(frozen=True)
class Run:
    """One command: seconds of the process, of its job, and the memory of its processes."""

    seconds: float
    job: float
    memory: PeakMemory


def main() -> None:
    parser = argparse.ArgumentParser(description="The record index of growing tables, under one memory limit.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--memory", default="1g", help="--spark-memory of the build")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for millions in arguments.millions:
        table = _table(folder, millions * 1_000_000)
        copy = folder / "growth-copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(table, copy)
        built = _run("index-bootstrap", copy, "--spark-memory", arguments.memory)
        checked = _run("validate", copy)
        shutil.rmtree(copy)
        lines.append(f"| {millions} | {_cells(built, millions)} | {_cells(checked, millions)} |")
        print(lines[-1], file=sys.stderr)
    print(f"\nindex-bootstrap with --spark-memory {arguments.memory}, and validate; seconds, MiB\n")
    print("| million keys | build | per million | worker | JVM | all | validate | per million | worker | JVM | all |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    print("\n".join(lines))


def _table(folder: Path, rows: int) -> Path:
    path = folder / f"keys-{rows}"
    if not path.exists():
        part = path.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        start = time.perf_counter()
        spark = session(VERSION, memory="6g", java_options="")
        try:
            frame = spark.range(0, rows, 1, max(1, rows // _KEYS_PER_FILE))
            key = "concat('key-', lower(hex(xxhash64(id))), '-', lpad(cast(id as string), 10, '0')) as id"
            frame.selectExpr(key, "id as ts").write.format("hudi").options(**OPTIONS).mode("overwrite").save(str(part))
        finally:
            spark.stop()
        part.rename(path)
        print(f"made {path} with Hudi {VERSION} in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return path


def _run(name: str, path: Path, *flags: str) -> Run:
    memory = PeakMemory()
    seconds, phases = command(name, path, *flags, memory=memory)
    return Run(seconds, job_seconds(phases), memory)


def _cells(run: Run, millions: int) -> str:
    python, java = (run.memory.largest.get(name, 0) for name in ("python", "java"))
    return f"{run.seconds:.1f} | {run.job / millions:.2f} | {python} | {java} | {run.memory.together}"


if __name__ == "__main__":
    main()
