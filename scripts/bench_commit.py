"""`make bench`: how long a clustering commit holds the table's lock: bench_commit.py [--groups 1 100 1000] ...

The tables are of real Apache Hudi 1.2.0: pairs of small base files, with a metadata table of files and statistics, and
once more with a record index. Each pair becomes a group of the plan. The clustering runs in this process, without
Spark: first published late in both ways, then by `schedule` and `execute`. A lock of this script notes from when to
when each lock is held, which action holds it, and the requests to the storage meanwhile.

The second storage takes 30 ms for each request, as an object store may: a move is three requests there (is the target
absent, copy, delete). It is as quick as the disk while the lock is not held, or the rewriting would take an hour.
`--rows` compares tables whose files differ in rows alone. The tables are kept in FOLDER for the next run.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import ROOT, VERSION, Bench

sys.path.insert(0, str(ROOT))

from hudi_services.engine import LocalEngine
from hudi_services.file_cache import shared_cache
from hudi_services.jobs import clustering
from hudi_services.locking.protocol import LockWait
from hudi_services.runs.request import Mode
from tests.interop.peer import Peer
from tests.unit.counting_storage import CountingStorage, kind_of, rounds
from tests.unit.tables import request

ROWS = 50
"""In each file."""
WAYS = ("staged", "reserved", "plan first")
STORAGES = {"disk": 0.0, "30 ms": 0.03}
_PARTS = {"move": 3}
"""Requests of a store that one call makes."""
_SKEW = "hoodie.time.generator.max_expected_clock_skew_ms"


@dataclass
class Hold:
    """One time that the lock was held: by which action, for how many seconds; the requests meanwhile."""

    action: str
    seconds: float = 0.0
    cpu: float = 0.0
    """Seconds of computing, of all threads of this process: on a busy machine they are less than `seconds`."""
    requests: int = 0
    rounds: int = 0
    """How many of the calls follow one another; on a disk this says little."""
    kinds: Counter[str] = field(default_factory=Counter)


class Meter:
    """What happens while the lock is held; a request takes `delay` seconds then."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.action = ""
        self.holds: list[Hold] = []
        self.storages: list[MeteredStorage] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        for storage in self.storages:
            storage.forget()
            storage.delay = self.delay
        began, computed = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            seconds, computed = time.perf_counter() - began, time.process_time() - computed
            made = [one for storage in self.storages for one in storage.requests]
            for storage in self.storages:
                storage.delay = 0.0
            kinds = Counter(f"{one.method} {kind_of(one.path)}" for one in made)
            count = sum(_PARTS.get(one.method, 1) for one in made)
            self.holds.append(Hold(self.action, seconds, computed, count, rounds(made), kinds))


class MeteredStorage(CountingStorage):
    """Tells its meter which action takes the lease of the table, which is taken right before the lock."""

    def __init__(self, url: str, meter: Meter) -> None:
        super().__init__(url)
        self.meter = meter
        meter.storages.append(self)

    def elsewhere(self, url: str) -> "MeteredStorage":
        return MeteredStorage(url, self.meter)

    def create(self, path: str, data: bytes) -> None:
        if "/.locks/hudi_services/table." in path:
            self.meter.action = json.loads(data)["action"].partition(" ")[0]
        super().create(path, data)

    def move(self, source: str, target: str) -> None:
        time.sleep((_PARTS["move"] - 1) * self.delay)
        super().move(source, target)


class TimedLock:
    """A lock for one process, as `hoodie.write.lock.provider` names it."""

    def __init__(self, options: Mapping[str, str], table: MeteredStorage, wait: LockWait) -> None:
        self._meter = table.meter

    def check(self) -> None:
        return None

    def __enter__(self) -> "TimedLock":
        self._held = self._meter.held()
        self._held.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._held.__exit__(None, None, None)


@dataclass(frozen=True)
class Table:
    """A table of `groups` pairs of files, with `rows` in each file."""

    groups: int
    rows: int
    indexed: bool

    @property
    def name(self) -> str:
        return f"pairs-{self.groups}-{self.rows}-{'indexed' if self.indexed else 'plain'}"

    @property
    def title(self) -> str:
        return "files, statistics, record index" if self.indexed else "files, statistics"


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds under the table's lock of a clustering commit.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--rows", type=int, nargs="+", default=[ROWS, 100 * ROWS], help="in each file, of 100 groups")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--storages", nargs="+", choices=list(STORAGES), default=list(STORAGES))
    parser.add_argument("--only", choices=("plain", "indexed"), help="the tables without a record index, or with one")
    parser.add_argument("--kinds", action="store_true", help="print the requests under the lock by kind, too")
    parser.add_argument("--memory", default="4g", help="of Hudi's JVM")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(folder, arguments.memory)
    indexes = [False, True] if arguments.only is None else [arguments.only == "indexed"]
    sizes = [Table(groups, ROWS, indexed) for indexed in indexes for groups in arguments.groups]
    rows = [Table(100, count, indexed) for indexed in indexes for count in arguments.rows]
    if len(arguments.rows) < 2:
        rows = []
    make(folder, arguments.memory, dict.fromkeys([*sizes, *rows]))
    titles = ["metadata table", "way", "groups", "rows", "storage", "longest hold, s", "all holds, s", "of them CPU"]
    titles += ["requests", "rounds"]
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    for table in dict.fromkeys([*sizes, *rows]):
        for way in arguments.ways:
            for storage in arguments.storages:
                tell(table, way, storage, run(bench, folder / table.name, table, way, storage), kinds=arguments.kinds)
    print(f"\nwith {_SKEW}=200, Hudi's default, {sizes[0].groups} groups, {sizes[0].title}, disk:")
    for way in arguments.ways:
        seconds = [_seconds(run(bench, folder / sizes[0].name, sizes[0], way, "disk", skew=skew)) for skew in (0, 200)]
        print(f"    {way}: {seconds[0]:.2f} s, and {seconds[1]:.2f} s", flush=True)


def tell(table: Table, way: str, storage: str, holds: list[Hold], *, kinds: bool) -> None:
    longest = max(holds, key=lambda one: one.seconds)
    cells = [table.title, way, f"{table.groups:,}", f"{2 * table.groups * table.rows:,}", storage]
    cells += [
        f"{longest.seconds:.2f} ({longest.action})",
        f"{_seconds(holds):.2f}",
        f"{sum(one.cpu for one in holds):.2f}",
    ]
    cells += [
        f"{sum(one.requests for one in holds):,}",
        f"{sum(one.rounds for one in holds):,}" if STORAGES[storage] else "–",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)
    for one in holds if kinds else ():
        print(f"    {one.action}: {one.seconds:.2f} s, {one.requests} requests, {one.rounds} rounds")
        for kind, count in one.kinds.most_common():
            print(f"        {count:6} {kind}", flush=True)


def _seconds(holds: list[Hold]) -> float:
    return sum(one.seconds for one in holds)


def run(bench: Bench, source: Path, table: Table, way: str, storage: str, *, skew: int = 0) -> list[Hold]:
    """Cluster a copy of the table; how the lock was held."""
    options = {
        _SKEW: str(skew),
        "hoodie.write.lock.provider": f"{__name__}:{TimedLock.__name__}",
        "hoodie.clustering.plan.strategy.max.num.groups": str(table.groups),
    }
    with bench.copy(source) as path:
        sizes = [file.stat().st_size for file in path.glob("p*/*.parquet")]
        assert len(sizes) == 2 * table.groups and 3 * min(sizes) > 2 * max(sizes), "pairs of files are groups"
        options["hoodie.clustering.plan.strategy.max.bytes.per.group"] = str(2 * max(sizes))
        meter = Meter(STORAGES[storage])
        slow = MeteredStorage(str(path), meter)
        shared_cache().forget()
        if way == "plan first":
            clustering.schedule(request(path, Mode.SCHEDULE, options), slow)
            report = clustering.execute(request(path, Mode.EXECUTE, options), slow, LocalEngine())
        else:
            options["hudi.services.publish.late"] = way
            wanted = request(path, Mode.SCHEDULE_AND_EXECUTE, options, publish_late=True)
            report = clustering.schedule_and_execute(wanted, slow, LocalEngine())
    assert report.groups == table.groups and report.files.after == table.groups, f"{report.groups} groups"
    return meter.holds


def make(folder: Path, memory: str, tables: Mapping[Table, None]) -> None:
    """Make the tables that do not exist, with real Hudi: one task of the write is one file."""
    missing = [table for table in tables if not (folder / table.name).exists()]
    if not missing:
        return
    peer = Peer(VERSION, folder / "hudi.log", "--memory", memory, "--java-options", "")
    try:
        for table in missing:
            part = (folder / table.name).with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            index = str(table.indexed).lower()
            files, partitions = 2 * table.groups, min(10, table.groups)
            peer.eval(_WRITE, path=str(part), files=files, rows=table.rows, partitions=partitions, index=index)
            part.rename(folder / table.name)
            print(f"made {folder / table.name} with Hudi {VERSION}", file=sys.stderr)
    finally:
        peer.close()


_WRITE = """
options = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.record.index.enable": index,
}
columns = (
    "concat('ride-', lpad(cast(id as string), 12, '0')) as id",
    "id * 7 as ts",
    "id % 977 as driver",
    "cast(id % 5 as int) as passengers",
    "id * 0.25 as fare",
    f"concat('p', lpad(cast(id div {rows * files // partitions} as string), 4, '0')) as part",
)
frame = spark.range(0, rows * files, 1, files).selectExpr(*columns)
frame.write.format("hudi").options(**options).mode("append").save(path)
"""


if __name__ == "__main__":
    main()
