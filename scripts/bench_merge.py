"""Merge-on-read: real Apache Hudi 1.2.0 and this tool cluster and compact copies of one table, in one run.

The table is that of bench.py as merge-on-read; delta commits then update 2 % of its rows and delete 0.2 % each, so that
ten of them touch a fifth of the rows. Our jobs run twice: as processes of their own, from the shell's point of view,
and as Hudi's jobs run, in a Spark session that is there and has run the same job on a small table. `--memory-limit`
measures our execute with so many bytes for each task, on a table of one file group whose log files hold `--records`
records. The tables are kept in FOLDER for the next run.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
from bench import CODEC, SORT, VERSION, Bench, Case, run
from make_bench_table import OPTIONS, rides
from process_memory import PeakMemory

from tests.interop.peer import EACH_DELTA_COMMIT

MERGE_ON_READ = {
    **OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
}
COMMITS = 10
UPDATES, DELETES = 50, 500
"""One row of so many is updated, or deleted, by each delta commit."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Clustering a merge-on-read table: Apache Hudi against hudi-services.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--sort", default="driver,pickup_at")
    parser.add_argument("--memory", default="8g", help="of Hudi's JVM")
    parser.add_argument("--memory-limit", default="", help="measure this limit alone, for example 512m")
    parser.add_argument("--records", type=int, default=5_000_000, help="log records of the table for --memory-limit")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(folder, arguments.memory)
    if arguments.memory_limit:
        limited(bench, folder, arguments.records, arguments.memory, arguments.memory_limit)
    else:
        compared(bench, folder, arguments.rows, arguments.memory, arguments.sort)


def compared(bench: Bench, folder: Path, rows: int, memory: str, sort: str) -> None:
    small = made(folder / "merge-10000", 10_000, 1, 2, memory, COMMITS)
    table = made(folder / f"merge-{rows}", rows, 4, 25, memory, COMMITS)
    cases = [Case(), Case(sort)]
    hudi = bench.hudi(table, cases, warm_up=small)
    theirs = [*(hudi[case].execute for case in cases), bench.hudi_compaction(table, small)]
    ours = {case: bench.ours(table, case) for case in cases}
    whole = [*(ours[case].execute for case in cases), bench.our_compaction(table)[1]]
    warm = in_warm_session(bench, table, small, cases, memory)
    print(f"\n{rows:,} rows with {COMMITS} delta commits; Hudi {VERSION}, warm; seconds\n")
    print("| | Hudi | ours, warm | | ours, process | | rows/s and core, warm |\n|---|---|---|---|---|---|---|")
    titles = [*(f"cluster, {'sorted' if case.sort else 'unsorted'}" for case in cases), "compact"]
    for title, one, two, three in zip(titles, theirs, warm, whole, strict=True):
        ratios = f"{two:.1f} | {one / two:.1f}x | {three:.1f} | {one / three:.1f}x"
        print(f"| {title} | {one:.1f} | {ratios} | {rows / two / (os.cpu_count() or 1):,.0f} |")


def in_warm_session(bench: Bench, table: Path, warm_up: Path, cases: Sequence[Case], memory: str) -> list[float]:
    """The seconds in which our jobs, the cases and then a compaction, run in a Spark session of this process."""
    from pyspark.sql import SparkSession

    import hudi_services

    def seconds(at: Path, case: Case | None) -> float:
        with bench.copy(at) as path:
            one = hudi_services.open(path, options={CODEC: "zstd", **({SORT: case.sort} if case and case.sort else {})})
            if case is None:
                one.plan_compaction(options=EACH_DELTA_COMMIT)
            else:
                one.plan_clustering()
            start = time.perf_counter()
            done = one.execute_compaction() if case is None else one.execute_clustering()
            if done.state != "completed":
                sys.exit(f"our job ended as {done.state}")
            return time.perf_counter() - start

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]").config("spark.driver.memory", memory)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    try:
        every = [*cases, None]
        for case in every:
            seconds(warm_up, case)
        return [seconds(table, case) for case in every]
    finally:
        spark.stop()


def limited(bench: Bench, folder: Path, records: int, memory: str, limit: str) -> None:
    table = made(folder / f"merge-one-{records}", records, 1, 1, memory, 0)
    logs = sum(file.stat().st_size for file in table.rglob(".*.log.*") if file.suffix != ".crc")
    peak = PeakMemory()
    with bench.copy(table) as path:
        before = sum(pq.read_metadata(file).num_rows for file in path.glob("day=*/*.parquet"))
        run("schedule", path)
        seconds, report = run("execute", path, "--memory-per-task", limit, memory=peak)
    print(f"{records:,} log records of {logs >> 20} MiB on {before:,} rows, {limit} for each task: {seconds:.1f} s")
    print(f"rows {report['rows']}, memory {report['tables']['memory']}, largest process {peak.largest}")
    print(report["seconds"], file=sys.stderr)


def made(path: Path, rows: int, partitions: int, files: int, memory: str, commits: int) -> Path:
    """The table, which real Hudi makes unless it is there; without `commits`, one delta commit updates every row."""
    if path.exists():
        return path
    from tests.interop.peer_server import session

    part, start = path.with_suffix(".part"), time.perf_counter()
    spark = session(VERSION, memory=memory, java_options="")

    def write(where: str, operation: str, later: int, tasks: int) -> None:
        options = MERGE_ON_READ | {"hoodie.datasource.write.operation": operation}
        frame = rides(spark, rows, partitions, tasks, where, later)
        frame.write.format("hudi").options(**options).mode("append").save(str(part))

    try:
        write("true", "bulk_insert", 0, partitions * files)
        for number in range(commits):
            write(f"id % {UPDATES} = {number}", "upsert", 1 + number % 3, 4)
            write(f"id % {DELETES} = {number + UPDATES}", "delete", 1, 4)
        if not commits:
            write("true", "upsert", 1, 4)
    finally:
        spark.stop()
    part.rename(path)
    print(f"made {path} with Hudi {VERSION} in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return path


if __name__ == "__main__":
    main()
