"""`make bench`: real Apache Hudi 1.2.0 and this tool cluster copies of one table, in one run: bench.py [--rows N] ...

Hudi runs in a session that is started and warmed up before the clock; our times are those of whole processes, from the
shell's point of view, so that they include the start of Python and Spark. `job` is our execute without starting and
stopping Spark. The table is kept in FOLDER for the next run.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from process_memory import PeakMemory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.interop.peer import Peer  # noqa: E402

VERSION = "1.2.0"
CODEC = "hoodie.parquet.compression.codec"
SORT = "hoodie.clustering.plan.strategy.sort.columns"


@dataclass(frozen=True)
class Times:
    """Seconds of one clustering; `job`: our execute without starting and stopping Spark."""

    schedule: float
    execute: float
    job: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description="Real Apache Hudi 1.2.0 against hudi-services.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--files", type=int, default=25, help="files per partition")
    parser.add_argument("--sort", default="driver,pickup_at", help="the columns of the sorted runs")
    parser.add_argument("--memory", default="8g", help="of Hudi's JVM")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.folder.resolve(), arguments.memory)
    table = bench.table(arguments.rows, arguments.partitions, arguments.files)
    sorts = {"unsorted": "", f"sorted by {arguments.sort}": arguments.sort}
    hudi = bench.hudi(table, [(sort, codec) for sort in sorts.values() for codec in ("zstd", "gzip")])
    ours = {sort: bench.ours(table, sort) for sort in sorts.values()}
    print(f"\n{arguments.rows:,} rows, {arguments.partitions * arguments.files} files; Hudi {VERSION}, warm; seconds\n")
    for line in table_lines(sorts, hudi, ours):
        print(line)


class Bench:
    """The runs, on copies of one table below `folder`."""

    def __init__(self, folder: Path, memory: str) -> None:
        self._folder = folder
        self._memory = memory

    def table(self, rows: int, partitions: int, files: int) -> Path:
        path = self._folder / f"rides-{rows}-{partitions}-{files}"
        if not path.exists():
            sizes = ["--rows", str(rows), "--partitions", str(partitions), "--files", str(files)]
            part = path.with_suffix(".part")
            make = [sys.executable, str(ROOT / "scripts/make_bench_table.py"), str(part), "--memory", self._memory]
            subprocess.run([*make, *sizes], check=True)
            part.rename(path)
        return path

    def hudi(self, table: Path, cases: list[tuple[str, str]]) -> dict[tuple[str, str], Times]:
        """Hudi's times by sort columns and codec."""
        warm_up = self.table(10_000, 1, 2)
        peer = Peer(VERSION, self._folder / "hudi.log", "--memory", self._memory, "--java-options", "")
        try:
            self._hudi_case(peer, warm_up, "ts", "zstd")
            return {case: self._hudi_case(peer, table, *case) for case in cases}
        finally:
            peer.close()

    def _hudi_case(self, peer: Peer, table: Path, sort: str, codec: str) -> Times:
        options = {
            CODEC: codec,
            # Hudi's procedure takes the two newest partitions unless it is told otherwise.
            "hoodie.clustering.plan.strategy.daybased.lookback.partitions": "1000",
            "hoodie.clustering.plan.strategy.max.num.groups": "1000",
        }
        with self.copy(table) as path:
            start = time.perf_counter()
            peer.cluster(path, "schedule", order=sort or None, options=options)
            middle = time.perf_counter()
            peer.cluster(path, "execute", options=options)
            return _told(f"Hudi  {codec:<5} {sort}", Times(middle - start, time.perf_counter() - middle))

    def ours(self, table: Path, sort: str) -> Times:
        """Our times with our default codec."""
        with self.copy(table) as path:
            planned, _ = command("schedule", path, *(["--hoodie-conf", f"{SORT}={sort}"] if sort else []))
            done, seconds = command("execute", path)
            return _told(f"ours  zstd  {sort}", Times(planned, done, job_seconds(seconds)))

    @contextmanager
    def copy(self, table: Path) -> Iterator[Path]:
        path = self._folder / "copy"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(table, path)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def command(name: str, path: Path, *flags: str, memory: PeakMemory | None = None) -> tuple[float, dict[str, float]]:
    """The seconds of a whole process, and those of its phases; `memory` watches it."""
    line = [sys.executable, "-m", "hudi_services", name, "--base-path", str(path), "--format", "json", *flags]
    start = time.perf_counter()
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with nullcontext() if memory is None else memory.watching(process.pid):
        output, _ = process.communicate()
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{name} ended with {process.returncode}")
    return seconds, json.loads(output)["seconds"]


def job_seconds(phases: dict[str, float]) -> float:
    """Of a process without starting and stopping Spark, if it did."""
    return phases["total"] - phases.get("start spark", 0.0) - phases.get("stop spark", 0.0)


def _told(what: str, times: Times) -> Times:
    print(f"{what}: schedule {times.schedule:.1f} s, execute {times.execute:.1f} s", file=sys.stderr)
    return times


def table_lines(sorts: dict[str, str], hudi: dict[tuple[str, str], Times], ours: dict[str, Times]) -> Iterator[str]:
    """The comparison, as a Markdown table."""
    yield "| run | codec of Hudi | of ours | execute: Hudi | ours | times faster | job | schedule: Hudi | ours |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for title, sort in sorts.items():
        for kind, codec in (("same codec", "zstd"), ("defaults", "gzip")):
            theirs, mine = hudi[sort, codec], ours[sort]
            ratio, job = theirs.execute / mine.execute, theirs.execute / (mine.job or mine.execute)
            yield (
                f"| {title}, {kind} | {codec} | zstd | {theirs.execute:.1f} | {mine.execute:.1f} | {ratio:.1f}x"
                f" | {mine.job:.1f} ({job:.1f}x) | {theirs.schedule:.1f} | {mine.schedule:.2f} |"
            )


if __name__ == "__main__":
    main()
