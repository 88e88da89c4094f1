"""`make bench-clean`: real Apache Hudi 1.2.0 and this tool clean copies of one table, in one run.

The table has PARTITIONS x GROUPS file groups, each with VERSIONS slices; the clean deletes all but the two newest. Hudi
runs twice: warm, in a session that was started and used before the clock, and as a whole process, which starts Spark,
cleans and ends. Our times are those of whole processes. The second clean of each finds nothing to do. The table is kept
in FOLDER for the next run.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import ROOT, VERSION, Bench, command

sys.path.insert(0, str(ROOT))

from tests.interop.peer import Peer

RETAIN = 1


@dataclass(frozen=True)
class Times:
    """Seconds of a clean, and of a clean with nothing to do right after it; the number of deleted files."""

    clean: float
    idle: float
    deleted: int


def main() -> None:
    parser = argparse.ArgumentParser(description="Cleaning: real Apache Hudi 1.2.0 against hudi-services.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--groups", type=int, default=20, help="file groups per partition")
    parser.add_argument("--versions", type=int, default=5, help="file slices per file group")
    parser.add_argument("--memory", default="8g", help="of Hudi's JVM")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.folder.resolve(), arguments.memory)
    shape = (arguments.partitions, arguments.groups, arguments.versions)
    peer = start(arguments.folder, arguments.memory)
    try:
        table = make(peer, arguments.folder.resolve(), *shape)
        warm_up(peer, bench, arguments.folder.resolve())
        warm = of_hudi(peer, bench, table)
    finally:
        peer.close()
    whole = of_hudi_whole(arguments.folder, arguments.memory, bench, table)
    ours = of_ours(bench, table)
    assert ours.deleted == warm.deleted == whole.deleted, f"{ours.deleted}, {warm.deleted}, {whole.deleted} files went"
    slices = arguments.partitions * arguments.groups * arguments.versions
    print(f"\nclean of {slices:,} file slices in {shape[0]} partitions; Hudi {VERSION}; seconds\n")
    print("| run | ours | Hudi, whole process | | Hudi, warm session | |\n|---|---|---|---|---|---|")
    print(line(f"{ours.deleted:,} files deleted", ours.clean, whole.clean, warm.clean))
    print(line("nothing to do", ours.idle, whole.idle, warm.idle))


def line(run: str, ours: float, whole: float, warm: float) -> str:
    return f"| {run} | {ours:.1f} | {whole:.1f} | {whole / ours:.1f}x | {warm:.1f} | {warm / ours:.1f}x |"


def start(folder: Path, memory: str) -> Peer:
    return Peer(VERSION, folder / "hudi.log", "--memory", memory, "--java-options", "")


def make(peer: Peer, folder: Path, partitions: int, groups: int, versions: int) -> Path:
    """Make the table, with tiny files: a clean reads only names."""
    path = folder / f"slices-{partitions}-{groups}-{versions}"
    if not path.exists():
        part = path.with_suffix(".part")
        peer.eval(_WRITE, path=str(part), partitions=partitions, groups=groups, versions=versions)
        part.rename(path)
    return path


_WRITE = """
options = {
    "hoodie.table.name": "slices",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.type": "SIMPLE",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
}
rows = spark.range(0, partitions * groups, 1, groups).selectExpr(
    "cast(id as string) as id", f"concat('p', lpad(cast(id % {partitions} as string), 4, '0')) as part", "0L as ts"
)
for version in range(versions):
    operation = "upsert" if version else "bulk_insert"
    frame = rows.selectExpr("id", "part", f"{version}L as ts")
    frame.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", operation).mode(
        "append"
    ).save(path)
"""


def warm_up(peer: Peer, bench: Bench, folder: Path) -> None:
    with bench.copy(make(peer, folder, 2, 2, 3)) as path:
        clean_with_hudi(peer, path)


def of_hudi(peer: Peer, bench: Bench, table: Path) -> Times:
    with bench.copy(table) as path:
        start = time.perf_counter()
        clean_with_hudi(peer, path)
        middle = time.perf_counter()
        deleted = count(table) - count(path)
        before_idle = time.perf_counter()
        clean_with_hudi(peer, path)
        return Times(middle - start, time.perf_counter() - before_idle, deleted)


def of_hudi_whole(folder: Path, memory: str, bench: Bench, table: Path) -> Times:
    """Hudi's times, with the start and the end of a session for each of the two cleans."""
    seconds = []
    with bench.copy(table) as path:
        for _ in range(2):
            begun = time.perf_counter()
            peer = start(folder, memory)
            try:
                clean_with_hudi(peer, path)
            finally:
                peer.close()
            seconds.append(time.perf_counter() - begun)
        return Times(seconds[0], seconds[1], count(table) - count(path))


def clean_with_hudi(peer: Peer, path: Path) -> list[dict[str, Any]]:
    return peer.clean(path, retain=RETAIN)


def of_ours(bench: Bench, table: Path) -> Times:
    flags = ("--hoodie-conf", f"hoodie.clean.commits.retained={RETAIN}")
    with bench.copy(table) as path:
        clean, _ = command("clean", path, *flags)
        deleted = count(table) - count(path)
        idle, _ = command("clean", path, *flags)
        return Times(clean, idle, deleted)


def count(path: Path) -> int:
    """The number of base files."""
    return sum(1 for _ in path.glob("p*/*.parquet"))


if __name__ == "__main__":
    main()
