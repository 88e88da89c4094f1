"""`bench.py --only engines`: the same rows through DuckDB, delta-rs, real Apache Hudi and this tool, in one run.

DuckDB, delta-rs and this tool are whole processes, Hudi is a warm session. Each partition becomes one file. DuckDB
reads the files of a partition, orders the rows, and writes a file; delta-rs compacts or z-orders a Delta table with the
same files. Neither writes a bloom filter, keeps a metadata table, or compares a row. Seconds are medians.
"""

import importlib.metadata
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import CODEC, SORT, VERSION, Bench, Case, conf, run

_CASES = (("sorted, zstd", True, "zstd"), ("unsorted, zstd", False, "zstd"), ("unsorted, gzip", False, "gzip"))
_COLUMNS = (
    *("the same rows", "DuckDB", "delta-rs", "Hudi, warm", "ours, Spark", "ours, local"),
    *("local / DuckDB", "memory, Spark", "local"),
)
_DUCKDB = """
import os, sys
import duckdb
table, out, order, codec = sys.argv[1:]
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
for day in sorted(os.listdir(table)):
    if day.startswith("day="):
        rows = f"SELECT * FROM read_parquet('{table}/{day}/*.parquet')" + (f" ORDER BY {order}" if order else "")
        connection.execute(f"COPY ({rows}) TO '{out}/{day}.parquet' (FORMAT parquet, COMPRESSION {codec})")
"""
_MAKE_DELTA = """
import pathlib, sys
import pyarrow.parquet as pq
from deltalake import write_deltalake
table, out = sys.argv[1:]
for file in sorted(pathlib.Path(table).glob("day=*/*.parquet")):
    write_deltalake(out, pq.read_table(file, partitioning=None), mode="append", partition_by=["day"])
"""
_DELTA = """
import sys
from deltalake import DeltaTable, WriterProperties
out, order, codec = sys.argv[1:]
optimize = DeltaTable(out).optimize
options = {"writer_properties": WriterProperties(compression=codec.upper()), "target_size": 1 << 30}
optimize.z_order(order.split(","), **options) if order else optimize.compact(**options)
"""


def engine_lines(bench: Bench, table: Path, sort: str, runs: int) -> Iterator[str]:
    """The comparison as a Markdown table."""
    folder = table.parent
    delta = folder / f"delta-{table.name}"
    if not delta.exists():
        part = delta.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        _process(_MAKE_DELTA, str(table), str(part))
        part.rename(delta)
    cases = [Case(sort if is_sorted else "", codec) for _, is_sorted, codec in _CASES]
    hudi = bench.hudi(table, cases)
    versions = " and ".join(f"{name} {importlib.metadata.version(name)}" for name in ("duckdb", "deltalake"))
    yield f"\n{versions}; Hudi {VERSION}, warm; seconds, medians of {runs} runs; memory of all processes of a run"
    yield f"\n| {' | '.join(_COLUMNS)} |"
    yield f"|{'---|' * len(_COLUMNS)}"
    for (title, is_sorted, codec), case in zip(_CASES, cases, strict=True):
        order = sort if is_sorted else ""
        found: dict[str, list[float]] = {}
        memory: dict[str, int] = {}
        for _ in range(runs):
            found.setdefault("duckdb", []).append(_duckdb(folder, table, order, codec))
            found.setdefault("delta", []).append(_delta(bench, delta, order, codec))
            for engine in ("spark", "local"):
                seconds, memory[engine] = _ours(bench, table, order, codec, engine)
                found.setdefault(engine, []).append(seconds)
        middle = {name: statistics.median(seconds) for name, seconds in found.items()}
        seconds = (middle["duckdb"], middle["delta"], hudi[case].execute, middle["spark"], middle["local"])
        yield (
            f"| {title} | {' | '.join(f'{one:.1f}' for one in seconds)} | {middle['local'] / middle['duckdb']:.2f} "
            f"| {memory['spark'] >> 20} MiB | {memory['local'] >> 20} MiB |"
        )


def _duckdb(folder: Path, table: Path, order: str, codec: str) -> float:
    out = folder / "duckdb"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    return _timed(lambda: _process(_DUCKDB, str(table), str(out), order, codec))


def _delta(bench: Bench, delta: Path, order: str, codec: str) -> float:
    with bench.copy(delta) as path:
        return _timed(lambda: _process(_DELTA, str(path), order, codec))


def _ours(bench: Bench, table: Path, order: str, codec: str, engine: str) -> tuple[float, int]:
    sort = {SORT: order} if order else {}
    with bench.copy(table) as path:
        flags: Sequence[str] = ["--mode", "scheduleAndExecute", "--engine", engine, *conf({**sort, CODEC: codec})]
        seconds, report = run("execute", path, *flags)
        return seconds, report["peak_bytes"]


def _process(program: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", program, *arguments], check=True)


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
