"""`make bench`: real Apache Hudi 1.2.0 and this tool cluster copies of one table, in one run: bench.py [--rows N] ...

Six comparisons, each of which `--only` runs by itself: *rewrite*, unsorted and sorted; *copy*, Hudi's stream copy
against our copying; *curve*, what Z-order costs above a linear order; *group*, one group of `--group-rows` rows (2 GiB)
on one core and on two; *store*, services on a store that takes 30 ms for each request (`bench_store`); *engines*, the
same rows by DuckDB and delta-rs (`bench_engines`).

Hudi runs in a session that is started and warmed up before the clock; our times are those of whole processes, from the
shell's point of view, so that they include the start of Python and Spark. `job` is our execute without starting and
stopping Spark. The table is kept in FOLDER for the next run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from process_memory import PeakMemory
from simulated_cores import MeasuredTasks, event_log, measured

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.interop.peer import EACH_DELTA_COMMIT, Peer  # noqa: E402

VERSION = "1.2.0"
CODEC = "hoodie.parquet.compression.codec"
SORT = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"
EXECUTION = "hoodie.clustering.execution.strategy.class"
STREAM_COPY = "org.apache.hudi.client.clustering.run.strategy.SparkStreamCopyClusteringExecutionStrategy"
TARGET = "hoodie.clustering.plan.strategy.target.file.max.bytes"
GROUP_BYTES = "hoodie.clustering.plan.strategy.max.bytes.per.group"
_SIMULATED = (4, 8, 16, 32, 64)
_OWN_TABLES = ("group", "store", "engines")
"""The sets that have tables of their own."""
COPIERS_NOTE = b"original.created.by"
"""The key in the footers of files that Hudi copied."""


@dataclass(frozen=True)
class Case:
    """One clustering. `copying`: Hudi uses its stream copy; our tool copies without an option."""

    sort: str = ""
    codec: str = "zstd"
    layout: str = "LINEAR"
    copying: bool = False
    cores: int | None = None
    """Of our session; None for all."""
    group: bool = False
    """Whether all files of a partition are one group, which becomes files of 128 MiB."""

    @property
    def options(self) -> dict[str, str]:
        """All but the sort columns."""
        return {
            CODEC: self.codec,
            LAYOUT: self.layout,
            **({EXECUTION: STREAM_COPY} if self.copying else {}),
            **self.plan,
        }

    @property
    def plan(self) -> dict[str, str]:
        """The sizes of the plan, where they are not the default."""
        return {TARGET: str(128 << 20), GROUP_BYTES: str(8 << 30)} if self.group else {}


@dataclass(frozen=True)
class Comparison:
    """One line of a table."""

    title: str
    hudi: Case
    ours: Case


@dataclass(frozen=True)
class Times:
    """Seconds of one clustering; `job`: our execute without starting and stopping Spark.

    `decoded`: why ours did not copy, empty where it did.
    """

    schedule: float
    execute: float
    job: float | None = None
    decoded: str = ""


def comparisons(sort: str) -> dict[str, list[Comparison]]:
    """The comparisons by the name of their set. The files of the table are in gzip, Hudi's default; ours is zstd."""
    rewrites = {"unsorted": "", f"sorted by {sort}": sort}
    return {
        "rewrite": [
            Comparison(f"{title}, {kind}", Case(columns, codec), Case(columns))
            for title, columns in rewrites.items()
            for kind, codec in (("same codec", "zstd"), ("defaults", "gzip"))
        ],
        "copy": [
            Comparison(f"stream copy, {kind}", Case(codec=theirs, copying=True), Case(codec=mine))
            for kind, theirs, mine in (
                ("codec kept", "gzip", "gzip"),
                ("recoded", "zstd", "zstd"),
                ("defaults", "gzip", "zstd"),
            )
        ],
        "curve": [
            Comparison(layout, Case(sort, layout=layout), Case(sort, layout=layout)) for layout in ("LINEAR", "ZORDER")
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Real Apache Hudi 1.2.0 against hudi-services.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--files", type=int, default=25, help="files per partition")
    parser.add_argument("--sort", default="driver,pickup_at", help="the columns of the sorted runs")
    parser.add_argument(
        "--only", action="append", choices=[*comparisons(""), *_OWN_TABLES], help="this set alone; may be repeated"
    )
    parser.add_argument("--memory", default="8g", help="of Hudi's JVM")
    parser.add_argument("--group-rows", type=int, default=27_000_000, help="of the set group")
    parser.add_argument("--runs", type=int, default=3, help="of the set engines")
    parser.add_argument("--store-partitions", type=int, default=20, help="of the set store")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.folder.resolve(), arguments.memory)
    sets_of_own = {
        "group": lambda: bench.group_lines(arguments.group_rows, arguments.sort),
        "store": lambda: bench.store_lines(arguments.store_partitions),
        "engines": lambda: bench.engine_lines(arguments.sort, arguments.runs),
    }
    for name in _OWN_TABLES:
        if name in (arguments.only or [name]):
            for line in sets_of_own[name]():
                print(line, flush=True)
    if arguments.only and {*arguments.only} <= {*_OWN_TABLES}:
        return
    table = bench.table(arguments.rows, arguments.partitions, arguments.files)
    sets = {n: some for n, some in comparisons(arguments.sort).items() if n in (arguments.only or [n])}
    wanted = [one for some in sets.values() for one in some]
    # Sets share some of their cases: each is run once.
    hudi = bench.hudi(table, dict.fromkeys(one.hudi for one in wanted))
    ours = {case: bench.ours(table, case) for case in dict.fromkeys(one.ours for one in wanted)}
    print(f"\n{arguments.rows:,} rows, {arguments.partitions * arguments.files} files; Hudi {VERSION}, warm; seconds")
    for name, some in sets.items():
        print()
        for line in curve_lines(arguments.sort, some, hudi, ours) if name == "curve" else table_lines(some, hudi, ours):
            print(line)
        as_processes = {"rewrite": [one for one in some if one.hudi.codec == one.ours.codec], "copy": some[:1]}
        for one in as_processes.get(name, ()):
            whole, mine = bench.hudi_process(table, one.hudi), ours[one.ours].execute
            print(f"\nHudi as a whole process, {one.title}: {whole:.1f} s, {whole / mine:.1f} times ours")
        if name == "copy":
            print(f"\nA copy of all files of the table by cp, in the page cache: {bench.cp(table):.2f} s")


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

    def hudi(self, table: Path, cases: Collection[Case], warm_up: Path | None = None) -> dict[Case, Times]:
        """Hudi's times; before, each case runs on a small table."""
        warm_up = warm_up or self.table(10_000, 1, 2)
        with self._peer() as peer:
            for case in cases:
                self._hudi_case(peer, warm_up, case)
            return {case: _told("Hudi", case, self._hudi_case(peer, table, case)) for case in cases}

    def group_lines(self, rows: int, sort: str) -> Iterator[str]:
        """One large group: Hudi on two cores, ours on one and two."""
        table = self.table(rows, 1, 100)
        size = sum(file.stat().st_size for file in table.glob("day=*/*.parquet"))
        cases = [Case(columns, group=True) for columns in ("", sort)]
        hudi = self.hudi(table, cases)
        yield f"\n{rows:,} rows, 100 files, {size / (1 << 30):.2f} GiB, one group; Hudi {VERSION}, warm; seconds"
        tasks: list[tuple[Case, MeasuredTasks]] = []
        yield "\n| one group | Hudi, 2 cores | our job, 1 core | 2 cores | | whole process, 1 core | 2 cores | |"
        yield "|---|---|---|---|---|---|---|---|"
        for case in cases:
            with event_log() as (variables, log):
                one, two = self.ours(table, replace(case, cores=1)), self.ours(table, replace(case, cores=2), variables)
                tasks.append((case, measured(log, 2)))
            assert one.job and two.job, "both are measured"
            yield (
                f"| {_title(case)} | {hudi[case].execute:.1f} | {one.job:.1f} | {two.job:.1f} "
                f"| {two.job / one.job:.2f} | {one.execute:.1f} | {two.execute:.1f} | {two.execute / one.execute:.2f} |"
            )
        yield "\nIts tasks on more cores: seconds (share of linear; seconds with the start of workers and the driver)"
        yield f"\n| one group | tasks | seconds together | {' | '.join(f'{cores} cores' for cores in _SIMULATED)} |"
        yield f"|---|---|---|{'---|' * len(_SIMULATED)}"
        for case, of in tasks:
            yield of.line(_title(case), _SIMULATED)

    def store_lines(self, partitions: int) -> Iterator[str]:
        """Services on a slow store."""
        # Imported here: it needs a store's server, and this module.
        from bench_store import store_lines

        return store_lines(self._folder, self._memory, partitions)

    def engine_lines(self, sort: str, runs: int) -> Iterator[str]:
        """1.5 million rows in 48 files, by other engines and by both of ours."""
        # Imported here, too.
        from bench_engines import engine_lines

        return engine_lines(self, self.table(1_500_000, 4, 12), sort, runs)

    def hudi_process(self, table: Path, case: Case) -> float:
        """The seconds of an execution by Hudi with the start and the end of its Spark, as ours are measured."""
        with self.copy(table) as path:
            with self._peer() as peer:
                peer.cluster(path, "schedule", order=case.sort or None, options=_in_hudi(case))
            start = time.perf_counter()
            with self._peer() as peer:
                peer.cluster(path, "execute", order=case.sort or None, options=_in_hudi(case))
            seconds = time.perf_counter() - start
            if case.copying:
                check_copied(table, path, case.codec)
            return seconds

    def cp(self, table: Path) -> float:
        """The seconds in which cp copies the table."""
        with self.copy(None) as path:
            start = time.perf_counter()
            subprocess.run(["cp", "-r", str(table), str(path)], check=True)
            return time.perf_counter() - start

    @contextmanager
    def _peer(self) -> Iterator[Peer]:
        peer = Peer(VERSION, self._folder / "hudi.log", "--memory", self._memory, "--java-options", "")
        try:
            yield peer
        finally:
            peer.close()

    def _hudi_case(self, peer: Peer, table: Path, case: Case) -> Times:
        options = _in_hudi(case)
        with self.copy(table) as path:
            start = time.perf_counter()
            # Hudi takes the columns from the plan, but those of a curve from its options.
            order = case.sort or None
            peer.cluster(path, "schedule", order=order, options=options)
            middle = time.perf_counter()
            peer.cluster(path, "execute", order=order, options=options)
            times = Times(middle - start, time.perf_counter() - middle)
            if case.copying:
                check_copied(table, path, case.codec)
            return times

    def hudi_compaction(self, table: Path, warm_up: Path) -> float:
        """The seconds in which Hudi executes a compaction, after one of the table `warm_up`."""
        with self._peer() as peer:
            for one in (warm_up, table):
                with self.copy(one) as path:
                    peer.compact(path, "schedule")
                    start = time.perf_counter()
                    peer.compact(path, "execute", options={CODEC: "zstd"})
                    seconds = time.perf_counter() - start
            return seconds

    def our_compaction(self, table: Path) -> tuple[float, float]:
        """The seconds of our compaction: of the job, and of the whole process."""
        with self.copy(table) as path:
            run("schedule", path, "--service", "compaction", *conf(EACH_DELTA_COMMIT))
            whole, report = run("compact", path, *conf({CODEC: "zstd"}))
            return job_seconds(report["seconds"]), whole

    def ours(self, table: Path, case: Case, variables: Mapping[str, str] | None = None) -> Times:
        sort = {SORT: case.sort} if case.sort else {}
        with self.copy(table) as path:
            planned, _ = run("schedule", path, *conf({**sort, LAYOUT: case.layout, **case.plan}))
            master = ["--spark-master", f"local[{case.cores}]"] if case.cores else []
            done, report = run("execute", path, *conf({CODEC: case.codec}), *master, variables=variables)
            return _told(
                "ours", case, Times(planned, done, job_seconds(report["seconds"]), ", ".join(report["decoded"]))
            )

    @contextmanager
    def copy(self, table: Path | None) -> Iterator[Path]:
        """A copy of the table, or a path where there is no table yet; it is deleted at the end."""
        path = self._folder / "copy"
        shutil.rmtree(path, ignore_errors=True)
        if table is not None:
            shutil.copytree(table, path)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def _in_hudi(case: Case) -> dict[str, str]:
    return {
        **case.options,
        # Hudi's procedure takes the two newest partitions unless it is told otherwise.
        "hoodie.clustering.plan.strategy.daybased.lookback.partitions": "1000",
        "hoodie.clustering.plan.strategy.max.num.groups": "1000",
    }


def command(name: str, path: Path, *flags: str, memory: PeakMemory | None = None) -> tuple[float, dict[str, float]]:
    """The seconds of a whole process, and those of its phases; `memory` watches it."""
    seconds, report = run(name, path, *flags, memory=memory)
    return seconds, report["seconds"]


def run(
    name: str,
    path: Path | str,
    *flags: str,
    memory: PeakMemory | None = None,
    tree: Path = ROOT,
    variables: Mapping[str, str] | None = None,
) -> tuple[float, dict[str, Any]]:
    """The seconds of a whole process with these environment `variables`, and its report."""
    line = [sys.executable, "-m", "hudi_services", name, "--base-path", str(path), "--format", "json", *flags]
    start = time.perf_counter()
    # `-m` takes the package of the folder that it starts in.
    environment = {**os.environ, **(variables or {})}
    process = subprocess.Popen(line, cwd=tree, stdout=subprocess.PIPE, text=True, env=environment)
    with nullcontext() if memory is None else memory.watching(process.pid):
        output, _ = process.communicate()
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{name} ended with {process.returncode}")
    return seconds, json.loads(output)


def conf(options: Mapping[str, str]) -> list[str]:
    return [word for key, value in options.items() for word in ("--hoodie-conf", f"{key}={value}")]


def check_copied(table: Path, path: Path, codec: str) -> None:
    """End the run when Hudi did not copy: it falls back without an error. `path` is the clustered copy of `table`."""
    old = {file.relative_to(table) for file in table.glob("day=*/*.parquet")}
    new = [file for file in path.glob("day=*/*.parquet") if file.relative_to(path) not in old]
    footers = [pq.read_metadata(file) for file in new]
    codecs = {footer.row_group(0).column(0).compression.lower() for footer in footers}
    if codecs != {codec} or not all(COPIERS_NOTE in footer.metadata for footer in footers):
        sys.exit(f"Hudi {VERSION} did not copy: {len(new)} new files, in {codecs}")


def job_seconds(phases: dict[str, float]) -> float:
    """The seconds of a process without starting and stopping Spark."""
    return phases["total"] - phases.get("start spark", 0.0) - phases.get("stop spark", 0.0)


def _title(case: Case) -> str:
    return f"sorted by {case.sort}" if case.sort else "unsorted"


def _told(who: str, case: Case, times: Times) -> Times:
    how = f"{case.layout.lower()} by {case.sort}" if case.sort else "copying" if case.copying else "unsorted"
    seconds = f"schedule {times.schedule:.1f} s, execute {times.execute:.1f} s"
    print(f"{who} {case.codec} {how}: {seconds} {times.decoded and f'({times.decoded})'}", file=sys.stderr)
    return times


def table_lines(some: Sequence[Comparison], hudi: Mapping[Case, Times], ours: Mapping[Case, Times]) -> Iterator[str]:
    """The comparison, as a Markdown table."""
    yield "| run | codec of Hudi | of ours | execute: Hudi | ours | times faster | job | schedule: Hudi | ours |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in some:
        theirs, mine = hudi[one.hudi], ours[one.ours]
        ratio, job = theirs.execute / mine.execute, theirs.execute / (mine.job or mine.execute)
        yield (
            f"| {one.title} | {one.hudi.codec} | {one.ours.codec} | {theirs.execute:.1f} | {mine.execute:.1f} "
            f"| {ratio:.1f}x | {mine.job:.1f} ({job:.1f}x) | {theirs.schedule:.1f} | {mine.schedule:.2f} |"
        )
    decoded = {mine.decoded for one in some if one.hudi.copying and (mine := ours[one.ours]).decoded}
    if decoded:
        yield f"\nOurs decoded the rows of some groups: {', '.join(decoded)}"


def curve_lines(
    sort: str, some: Sequence[Comparison], hudi: Mapping[Case, Times], ours: Mapping[Case, Times]
) -> Iterator[str]:
    """Seconds by layout, and how many times as long the second one takes."""
    rows = {
        "Hudi": [hudi[one.hudi].execute for one in some],
        "our job": [ours[one.ours].job or 0.0 for one in some],
        "our whole process": [ours[one.ours].execute for one in some],
    }
    yield f"| execute, sorted by {sort} | {' | '.join(one.title for one in some)} | |"
    yield "|---|---|---|---|"
    for title, (first, second) in rows.items():
        yield f"| {title} | {first:.1f} | {second:.1f} | {second / first:.2f}x |"


if __name__ == "__main__":
    main()
