"""Compares this working tree with another one of this project: python scripts/bench_trees.py --other FOLDER [--runs N]

Each case is a command line as an operator runs it, timed as a whole process, on a copy of a table of `make bench`. Both
trees run each case in turns, so that a noisy machine slows both; the ratio is the median of the ratios of the pairs.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from bench import CODEC, ROOT, SORT, Bench, conf
from bench_clean import make, start


@dataclass(frozen=True)
class Case:
    """A command on a copy of a table; `before` are the commands that prepare the copy, by this tree for both."""

    name: str
    table: Path
    command: Sequence[str]
    before: Sequence[Sequence[str]] = ()


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds of this tree and of another one.")
    parser.add_argument("--other", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--only", action="append", default=[], help="cases whose name contains this; may be repeated")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(folder, "8g")
    wanted = on_rides(bench.table(arguments.rows, 4, 25), folder)
    if not arguments.only or any(text in "clean --garbage" for text in arguments.only):
        wanted += on_slices(folder)
    print("| case | other | this | this / other |\n|---|---|---|---|", flush=True)
    for case in wanted:
        if not arguments.only or any(text in case.name for text in arguments.only):
            pairs = [(timed(arguments.other.resolve(), case), timed(ROOT, case)) for _ in range(arguments.runs)]
            other, this = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
            ratio = statistics.median(mine / theirs for theirs, mine in pairs)
            print(f"| {case.name} | {other:.2f} | {this:.2f} | {ratio:.2f} |", flush=True)


def on_slices(folder: Path) -> list[Case]:
    """On a table of very small files in five slices of each file group."""
    peer = start(folder, "8g")
    try:
        slices = make(peer, folder, 50, 20, 5)
    finally:
        peer.close()
    return [
        Case("clean", slices, ["clean", *conf({"hoodie.clean.commits.retained": "1"})]),
        Case("clean --garbage", slices, ["clean", "--garbage"]),
    ]


def on_rides(rides: Path, folder: Path) -> list[Case]:
    """On the table of bench.py."""
    keys = folder / "some-keys.txt"
    found = [pq.read_table(file, columns=["ride_id"]).column(0) for file in sorted(rides.glob("day=*/*.parquet"))]
    keys.write_text("\n".join(key for column in found for key in column.slice(0, 1000).to_pylist()))
    index = ["index-bootstrap"]
    planned = ["schedule"]
    by_size = ["schedule", *conf({SORT: "driver,pickup_at"})]
    return [
        Case("schedule", rides, planned),
        Case("schedule --dry-run", rides, [*planned, "--dry-run"]),
        Case("execute, copied", rides, ["execute", *conf({CODEC: "gzip"})], [planned]),
        Case("execute, recoded", rides, ["execute", *conf({CODEC: "zstd"})], [planned]),
        Case("execute, sorted", rides, ["execute", *conf({CODEC: "zstd"})], [by_size]),
        Case("execute, with a record index", rides, ["execute", *conf({CODEC: "gzip"})], [index, planned]),
        Case("index-bootstrap", rides, index),
        Case("index-lookup", rides, ["index-lookup", "--keys-file", str(keys)], [index]),
        Case("validate", rides, ["validate"]),
        Case("validate, with a record index", rides, ["validate"], [index]),
        Case("recover", rides, ["recover"], [planned]),
    ]


def timed(tree: Path, case: Case) -> float:
    """The seconds of the command, as a whole process of `tree`."""
    path = case.table.with_name("copy")
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(case.table, path)
    try:
        for words in case.before:
            _run(ROOT, words, path)
        begun = time.perf_counter()
        _run(tree, case.command, path)
        return time.perf_counter() - begun
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _run(tree: Path, words: Sequence[str], path: Path) -> None:
    line = [sys.executable, "-m", "hudi_services", words[0], "--base-path", str(path), "--format", "json", *words[1:]]
    done = subprocess.run(
        line, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} of {tree} ended with {done.returncode}: {done.stderr[-1000:]}")


if __name__ == "__main__":
    main()
