"""`make bench`: real Apache Hudi 1.2.0 and this tool build the record index of copies of one table, in one run.

The table is that of bench.py. Hudi runs warm, in a session that was started and has built such an index before the
clock; ours is a whole process, and `job` is that without starting and stopping Spark. Then keys are looked up, in this
process on one core. The index is validated by a whole process, in comparison with Spark that reads the table twice: in
a whole process, and in a process that has read it before.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from bench import ROOT, VERSION, Bench, command, job_seconds

from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.record_index.lookup import Access, AccessRule, look_up
from hudi_services.metadata.record_index.shard_entries import LocationNumbers, ShardEntries
from hudi_services.metadata.records.keys import RECORD_INDEX

sys.path.insert(0, str(ROOT))

from tests.interop.peer import Peer, table_properties
from tests.unit.tables import open_local


@dataclass(frozen=True)
class Times:
    """Seconds of one build, those without Spark's start and stop, bytes of the index for a key, seconds of validate."""

    whole: float
    job: float
    bytes_per_key: float
    validate: float = 0.0


def main() -> None:
    arguments, bench = table_arguments(
        "Building the record index: Apache Hudi 1.2.0 against hudi-services.", rows=6_000_000
    )
    table = bench.table(arguments.rows, arguments.partitions, arguments.files)
    mine = ours(bench, table, arguments.rows)
    theirs = hudi(bench, table, arguments.rows, arguments.memory)
    cold, warm = read_twice(table, arguments.memory)
    print(f"\n{arguments.rows:,} keys in {arguments.partitions * arguments.files} files; seconds\n")
    print(f"| | Hudi {VERSION}, warm | our job | | our whole process | |")
    print("|---|---|---|---|---|---|")
    faster = f"{mine.job:.1f} | {theirs.job / mine.job:.1f}x | {mine.whole:.1f} | {theirs.job / mine.whole:.1f}x"
    print(f"| build | {theirs.job:.1f} | {faster} |")
    print(f"| bytes per key | {theirs.bytes_per_key:.1f} | {mine.bytes_per_key:.1f} | | | |")
    checked = mine.validate
    for how, seconds in (("warm", warm), ("as a whole process", cold)):
        print(
            f"| validate; Spark reads all twice, {how} | {seconds:.1f} | | | {checked:.1f} | {seconds / checked:.1f}x |"
        )
    look_ups(bench)


def table_arguments(description: str, rows: int) -> tuple[argparse.Namespace, Bench]:
    """The arguments of a bench on one table, of `rows` rows by default, and the bench in its folder."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--files", type=int, default=25, help="files per partition")
    parser.add_argument("--memory", default="8g", help="of Hudi's JVM")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    return arguments, Bench(arguments.folder.resolve(), arguments.memory)


def ours(bench: Bench, table: Path, keys: int) -> Times:
    with bench.copy(table) as path:
        whole, seconds = command("index-bootstrap", path)
        job = job_seconds(seconds)
        print(f"ours: {whole:.1f} s, {seconds}", file=sys.stderr)
        checked, _ = command("validate", path)
        return Times(whole, job, _bytes(path) / keys, checked)


def hudi(bench: Bench, table: Path, keys: int, memory: str) -> Times:
    peer = Peer(VERSION, table.parent / "hudi.log", "--memory", memory, "--java-options", "")
    try:
        _build(peer, bench, bench.table(10_000, 1, 2), 10_000)
        return _build(peer, bench, table, keys)
    finally:
        peer.close()


def read_twice(table: Path, memory: str) -> tuple[float, float]:
    """The seconds in which Spark reads all rows twice: in a whole process with its start, and again when warm."""
    start = time.perf_counter()
    peer = Peer(VERSION, table.parent / "hudi.log", "--memory", memory, "--java-options", "")
    try:
        _read_twice(peer, table)
        cold = time.perf_counter() - start
        start = time.perf_counter()
        _read_twice(peer, table)
        return cold, time.perf_counter() - start
    finally:
        peer.close()


def _read_twice(peer: Peer, table: Path) -> None:
    for _ in range(2):
        peer.eval("spark.read.format('hudi').load(path).write.format('noop').mode('overwrite').save()", path=str(table))


def _build(peer: Peer, bench: Bench, table: Path, keys: int) -> Times:
    with bench.copy(table) as path:
        name = f"built_{keys}"
        # Hudi builds the index as if writers were at work, and requires a lock.
        peer.sql("set hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
        peer.sql(f"create table {name} using hudi location '{path}'")
        start = time.perf_counter()
        peer.sql(f"create index record_index on {name} ({table_properties(path)['hoodie.table.recordkey.fields']})")
        seconds = time.perf_counter() - start
        peer.sql(f"drop table {name}")
        print(f"Hudi: {seconds:.1f} s", file=sys.stderr)
        return Times(seconds, seconds, _bytes(path) / keys)


def look_ups(bench: Bench, keys: int = 1_000_000) -> None:
    """Print how fast 100 to 300,000 keys are looked up in an index with a million."""
    print(f"\n{keys:,} keys in the index; keys per second on one core\n")
    print("| wanted | seek | scan | auto |\n|---|---|---|---|")
    with bench.copy(bench.table(keys, 4, 5)) as path:
        command("index-bootstrap", path)
        metadata = open_local(path).metadata
        assert metadata is not None
        groups = [metadata.open_group(group) for group in metadata.file_groups(RECORD_INDEX)]
        entries = [some.keys for group in groups for some in ShardEntries(group, LocationNumbers()).read()]
        there = pa.concat_arrays(entries).cast(pa.string())
        for wanted in (100, 1_000, 10_000, 100_000, 300_000):
            picked = there.take(pa.array(np.random.default_rng(7).choice(len(there), wanted, replace=False)))
            speeds = [f"{_speed(metadata, picked, access):,.0f}" for access in (Access.SEEK, Access.SCAN, Access.AUTO)]
            print(f"| {wanted:,} | {' | '.join(speeds)} |")


def _speed(metadata: MetadataTable, keys: pa.Array, access: Access) -> float:
    start = time.process_time()
    found = look_up(metadata, keys, AccessRule(access))
    seconds = time.process_time() - start
    assert (found.positions >= 0).all(), "all keys are in the index"
    return len(keys) / seconds


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path / ".hoodie/metadata/record_index").glob("*.hfile"))


if __name__ == "__main__":
    main()
