"""Compares this working tree with another one of this project: python scripts/bench_trees.py --other FOLDER [--runs N]

Each case is a command line as an operator runs it, timed as a whole process, on a copy of a table of `make bench`. Both
trees run each case in turns, so that a noisy machine slows both; the ratio is the median of the ratios of the pairs.
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from compileall import compile_dir
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import bench_merge
import bench_write
import pyarrow.parquet as pq
from bench import CODEC, ROOT, SORT, Bench, conf, run
from bench_clean import make, start

from tests.interop.peer import EACH_DELTA_COMMIT


@dataclass(frozen=True)
class Case:
    """A command on a copy of a table; `before` are the commands that prepare the copy, by this tree for both.

    `table` makes the table where it is not kept yet; None: the command makes one.
    """

    name: str
    table: Callable[[], Path | None]
    command: Sequence[str]
    before: Sequence[Sequence[str]] = ()


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds of this tree and of another one.")
    parser.add_argument("--other", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--only", action="append", help="cases whose name contains this; may be repeated")
    arguments = parser.parse_args()
    folder, trees = arguments.folder.resolve(), (arguments.other.resolve(), ROOT)
    folder.mkdir(parents=True, exist_ok=True)
    for tree in trees:
        # As pip does: modules that are compiled at each start hide what the start costs a user.
        compile_dir(tree / "hudi_services", quiet=1)
    bench = Bench(folder, "8g")
    print("| case | other | this | this / other |\n|---|---|---|---|", flush=True)
    for case in cases(bench, folder, arguments.rows):
        if any(text in case.name for text in arguments.only or [""]):
            pairs = [[timed(bench, tree, case) for tree in trees] for _ in range(arguments.runs)]
            other, this = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
            ratio = statistics.median(mine / theirs for theirs, mine in pairs)
            print(f"| {case.name} | {other:.2f} | {this:.2f} | {ratio:.2f} |", flush=True)


def cases(bench: Bench, folder: Path, rows: int) -> list[Case]:
    keys = folder / "some-keys.txt"

    @cache
    def rides() -> Path:
        """The table of bench.py; some of its keys go to `keys`."""
        path = bench.table(rows, 4, 25)
        found = [pq.read_table(file, columns=["ride_id"]).column(0) for file in sorted(path.glob("day=*/*.parquet"))]
        keys.write_text("\n".join(key for column in found for key in column.slice(0, 1000).to_pylist()))
        return path

    @cache
    def slices() -> Path:
        """A table of very small files in five slices of each file group."""
        peer = start(folder, "8g")
        try:
            return make(peer, folder, 50, 20, 5)
        finally:
            peer.close()

    @cache
    def logs() -> Path:
        """The table of bench_merge.py."""
        return bench_merge.made(folder / f"merge-{rows}", rows, 4, 25, "8g", bench_merge.COMMITS)

    index = ["index-bootstrap"]
    planned = ["schedule"]
    by_size = ["schedule", *conf({SORT: "driver,pickup_at"})]
    compaction = ["schedule", "--service", "compaction", *conf(EACH_DELTA_COMMIT)]
    zstd = conf({CODEC: "zstd"})
    return [
        Case("schedule", rides, planned),
        Case("schedule --dry-run", rides, [*planned, "--dry-run"]),
        Case("execute, copied", rides, ["execute", *conf({CODEC: "gzip"})], [planned]),
        Case("execute, recoded", rides, ["execute", *zstd], [planned]),
        Case("execute, sorted", rides, ["execute", *zstd], [by_size]),
        Case("execute, with a record index", rides, ["execute", *conf({CODEC: "gzip"})], [index, planned]),
        Case("index-bootstrap", rides, index),
        Case("index-lookup", rides, ["index-lookup", "--keys-file", str(keys)], [index]),
        Case("validate", rides, ["validate"]),
        Case("validate, with a record index", rides, ["validate"], [index]),
        Case("recover", rides, ["recover"], [planned]),
        Case("clean", slices, ["clean", *conf({"hoodie.clean.commits.retained": "1"})]),
        Case("orphan-files", slices, ["orphan-files"]),
        Case("execute, merged", logs, ["execute", *zstd], [planned]),
        Case("execute, merged and sorted", logs, ["execute", *zstd], [by_size]),
        Case("schedule, compaction", logs, compaction),
        Case("compact", logs, ["compact", *zstd], [compaction]),
        *writes(folder / f"write-{rows}", rows),
    ]


def writes(folder: Path, rows: int) -> list[Case]:
    """The cases of bench_write.py."""

    @cache
    def made() -> None:
        folder.mkdir(exist_ok=True)
        bench_write.make_rows(folder, rows)
        runs = bench_write.Runs(folder, "8g")
        peer = runs.peer()
        try:
            runs.make_tables(peer)
        finally:
            peer.close()

    def base(name: str) -> Path | None:
        made()
        return folder / name if name else None

    return [
        Case(f"write: {one.name}", partial(base, one.base), ["write", *one.flags(folder)]) for one in bench_write.CASES
    ]


def timed(bench: Bench, tree: Path, case: Case) -> float:
    """The seconds of the command, as a whole process of `tree`."""
    with bench.copy(case.table()) as path:
        for name, *flags in case.before:
            run(name, path, *flags)
        name, *flags = case.command
        return run(name, path, *flags, tree=tree)[0]


if __name__ == "__main__":
    main()
