"""`make bench`: real Apache Hudi 1.2.0 and this tool build the record index of copies of one table, in one run.

The table is that of bench.py. Hudi runs warm, in a session that was started and has built such an index before the
clock; ours is a whole process, and `job` is that without starting and stopping Spark.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench import ROOT, VERSION, Bench, command

sys.path.insert(0, str(ROOT))

from tests.interop.peer import Peer, table_properties


@dataclass(frozen=True)
class Times:
    """Seconds of one build, those without Spark's start and stop, and bytes of the index for a key."""

    whole: float
    job: float
    bytes_per_key: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Building the record index: Apache Hudi 1.2.0 against hudi-services.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--files", type=int, default=25, help="files per partition")
    parser.add_argument("--memory", default="8g", help="of Hudi's JVM")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.folder.resolve(), arguments.memory)
    table = bench.table(arguments.rows, arguments.partitions, arguments.files)
    mine = ours(bench, table, arguments.rows)
    theirs = hudi(bench, table, arguments.rows, arguments.memory)
    print(f"\n{arguments.rows:,} keys in {arguments.partitions * arguments.files} files; seconds\n")
    print(f"| | Hudi {VERSION}, warm | our job | | our whole process | |")
    print("|---|---|---|---|---|---|")
    faster = f"{mine.job:.1f} | {theirs.job / mine.job:.1f}x | {mine.whole:.1f} | {theirs.job / mine.whole:.1f}x"
    print(f"| build | {theirs.job:.1f} | {faster} |")
    print(f"| bytes per key | {theirs.bytes_per_key:.1f} | {mine.bytes_per_key:.1f} | | | |")


def ours(bench: Bench, table: Path, keys: int) -> Times:
    with bench.copy(table) as path:
        whole, seconds = command("index-bootstrap", path)
        job = seconds["total"] - seconds["start spark"] - seconds["stop spark"]
        print(f"ours: {whole:.1f} s, {seconds}", file=sys.stderr)
        return Times(whole, job, _bytes(path) / keys)


def hudi(bench: Bench, table: Path, keys: int, memory: str) -> Times:
    peer = Peer(VERSION, table.parent / "hudi.log", "--memory", memory, "--java-options", "")
    try:
        _build(peer, bench, bench.table(10_000, 1, 2), 10_000)
        return _build(peer, bench, table, keys)
    finally:
        peer.close()


def _build(peer: Peer, bench: Bench, table: Path, keys: int) -> Times:
    with bench.copy(table) as path:
        name = f"built_{keys}"
        # Hudi builds it as if beside writers, and asks for a lock.
        peer.sql("set hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
        peer.sql(f"create table {name} using hudi location '{path}'")
        start = time.perf_counter()
        peer.sql(f"create index record_index on {name} ({table_properties(path)['hoodie.table.recordkey.fields']})")
        seconds = time.perf_counter() - start
        peer.sql(f"drop table {name}")
        print(f"Hudi: {seconds:.1f} s", file=sys.stderr)
        return Times(seconds, seconds, _bytes(path) / keys)


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path / ".hoodie/metadata/record_index").glob("*.hfile"))


if __name__ == "__main__":
    main()
