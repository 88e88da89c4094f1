"""`bench.py --only store`: real Apache Hudi and this tool on a store that takes 30 ms for each request, in one run.

The store is versitygw, with Toxiproxy before it, which delays all that the store sends; Hudi reaches it by Hadoop's s3a
(hadoop-aws 3.3.4). The table is merge-on-read: `--store-partitions` partitions of five files, a log file for each. Each
case has an upload of its own, and comes twice, of which the second counts: Hudi in a session that has done it before,
ours as whole processes. Requests are those of our reports. At the end both tables have the same rows, as Hudi reads
them.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import ROOT, VERSION, conf, job_seconds, run

sys.path.insert(0, str(ROOT))

from hudi_services.concurrency import at_once
from hudi_services.stores import open_storage
from tests.interop.peer import EACH_DELTA_COMMIT, Peer, metadata_options
from tests.servers.bucket import Bucket
from tests.servers.hadoop_settings import settings_folder
from tests.servers.s3 import KEY, REGION, SECRET
from tests.servers.s3a import class_path, settings_at
from tests.servers.toxiproxy import Toxiproxy, toxiproxy
from tests.servers.versitygw import versitygw

MILLIS = 30
_FILES = 5
_ROWS = 2_000
"""Of a file."""
_TABLE = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.index.bloom.num_entries": "2000",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.metadata.index.column.stats.enable": "false",
}
_MAKE = """
for number in range(files):
    frame = spark.range(number * rows * partitions, (number + 1) * rows * partitions).selectExpr(
        "concat('k', lpad(cast(id as string), 9, '0')) as id", f"concat('d', id % {partitions}) as day",
        "0L as ts", "cast(id as double) as fare",
    ).repartition(1)
    frame.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", "bulk_insert").mode(
        "append").save(path)
frame = spark.range(rows * partitions * files).where(f"id % {rows} < {partitions}").selectExpr(
    "concat('k', lpad(cast(id as string), 9, '0')) as id", f"concat('d', id % {partitions}) as day",
    "1L as ts", "-1.0D as fare",
)
frame.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", "upsert").mode(
    "append").save(path)
"""
_ONE = {"id": "k000000001", "day": "d1", "ts": 9, "fare": 9.0}
_UPSERT = """
spark.createDataFrame([row]).selectExpr("id", "day", "ts", "cast(fare as double) as fare").write.format("hudi").options(
    **options).option("hoodie.datasource.write.operation", "upsert").mode("append").save(path)
"""
_SUM = """
found = spark.read.format("hudi").load(path).selectExpr("count(1)", "sum(xxhash64(id, day, ts, fare))").collect()[0]
result = [found[0], str(found[1])]
"""


@dataclass(frozen=True)
class Done:
    """Seconds of a case; ours: also those of the job, without starting Python and Spark, and the requests."""

    seconds: float
    job: float = 0.0
    requests: int = 0


class Store:
    """A store of 30 ms, an uploaded table for each case, and both programs on it."""

    def __init__(self, table: Path, bucket: Bucket, proxy: Toxiproxy, peer: Peer, folder: Path) -> None:
        self._table = table
        self._bucket = bucket
        self._proxy = proxy
        self._peer = peer
        self._row = folder / "one.json"
        self._row.write_text(json.dumps(_ONE) + "\n")
        self._options = {**metadata_options(table), "hoodie.clean.automatic": "false"}
        self._count = 0

    def upload(self) -> str:
        """The name of a new copy of the table in the bucket."""
        self._count += 1
        name = f"table{self._count}"
        storage = open_storage(f"{self._bucket.url}/{name}", self._bucket.options)
        files = [file for file in self._table.rglob("*") if file.is_file() and not file.name.endswith(".crc")]
        at_once(lambda file: storage.put(str(file.relative_to(self._table)), file.read_bytes()), files)
        return name

    @contextmanager
    def slow(self) -> Iterator[None]:
        """A context in which each request takes 30 ms."""
        self._proxy.add("latency", latency=MILLIS)
        try:
            yield
        finally:
            self._proxy.remove("latency")

    def rows(self, name: str) -> Any:
        return self._peer.eval(_SUM, path=f"s3a://lake/{name}")

    # ---- Hudi

    def hudi_cluster(self, name: str) -> None:
        more = {"hoodie.clustering.plan.strategy.daybased.lookback.partitions": "1000"}
        self._call("run_clustering", name, op="schedule", options=_text(self._options | more))
        self._call("run_clustering", name, op="execute", options=_text(self._options | more))

    def hudi_compact(self, name: str) -> None:
        self._call("run_compaction", name, op="scheduleAndExecute", options=_text(self._options | EACH_DELTA_COMMIT))

    def hudi_clean(self, name: str) -> None:
        self._peer.sql(f"create table {name} using hudi location 's3a://lake/{name}'")
        self._peer.sql(
            f"call run_clean(table => '{name}', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', "
            f"file_versions_retained => 1, options => '{_text(self._options)}')"
        )

    def hudi_upsert(self, name: str) -> None:
        self._peer.eval(_UPSERT, path=f"s3a://lake/{name}", row=_ONE, options=_TABLE | self._options)

    def _call(self, procedure: str, name: str, **arguments: str) -> None:
        given = ", ".join(f"{key} => '{value}'" for key, value in arguments.items())
        self._peer.sql(f"call {procedure}(path => 's3a://lake/{name}', {given})")

    # ---- ours

    def our_cluster(self, name: str) -> Done:
        return _sum(self._run("schedule", name), self._run("execute", name))

    def our_compact(self, name: str) -> Done:
        planned = self._run("schedule", name, "--service", "compaction", *conf(EACH_DELTA_COMMIT))
        return _sum(planned, self._run("compact", name))

    def our_clean(self, name: str) -> Done:
        kept = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
        return self._run("clean", name, *conf(kept))

    def our_upsert(self, name: str) -> Done:
        alone = {"hoodie.table.services.enabled": "false"}
        return self._run("write", name, "--operation", "upsert", "--input", str(self._row), *conf(alone))

    def _run(self, command: str, name: str, *flags: str) -> Done:
        seconds, report = run(command, f"s3://lake/{name}", *flags)
        asked = sum(count for of in report["requests"].values() for kind, count in of.items() if kind != "retry")
        return Done(seconds, job_seconds(report["seconds"]), asked)


def _sum(one: Done, other: Done) -> Done:
    return Done(one.seconds + other.seconds, one.job + other.job, one.requests + other.requests)


def _text(options: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in options.items())


def store_lines(folder: Path, memory: str, partitions: int) -> Iterator[str]:
    """The comparison, as a Markdown table."""
    with ExitStack() as stack:
        work = folder / "store"
        work.mkdir(exist_ok=True)
        shutil.rmtree(work / "files", ignore_errors=True)
        bucket = stack.enter_context(versitygw(work))
        proxy = stack.enter_context(toxiproxy(bucket.endpoint, work))
        settings = settings_folder(work / "settings", settings_at(proxy.endpoint))
        peer = Peer(
            VERSION, folder / "hudi.log", "--memory", memory, "--java-options", "", "--class-path", class_path(settings)
        )
        stack.callback(peer.close)
        os.environ |= {
            "AWS_ENDPOINT": proxy.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
        }
        store = Store(_made(peer, folder, partitions), bucket, proxy, peer, work)
        yield (
            f"\n{MILLIS} ms a request, {partitions * _FILES} file slices with log files, "
            f"{partitions * _FILES * _ROWS:,} rows; Hudi {VERSION} by s3a, warm; seconds"
        )
        yield "\n| at 30 ms a request | Hudi | our job | times faster | whole process | times faster | our requests |"
        yield "|---|---|---|---|---|---|---|"
        yield from _cases(store)


def _made(peer: Peer, folder: Path, partitions: int) -> Path:
    path = folder / f"store-{partitions}"
    if not path.exists():
        part = path.with_suffix(".part")
        peer.eval(_MAKE, path=str(part), files=_FILES, rows=_ROWS, partitions=partitions, options=_TABLE)
        part.rename(path)
    return path


def _cases(store: Store) -> Iterator[str]:
    cases: dict[str, tuple[Callable[[str], None], Callable[[str], Done], Callable[[str], object]]] = {
        "schedule and execute a clustering": (store.hudi_cluster, store.our_cluster, lambda name: None),
        "schedule and execute a compaction": (store.hudi_compact, store.our_compact, lambda name: None),
        "clean": (store.hudi_clean, store.our_clean, store.hudi_compact),
        "upsert of one key": (store.hudi_upsert, store.our_upsert, lambda name: None),
    }
    for title, (by_hudi, by_us, before) in cases.items():
        for _ in range(2):
            theirs, ours = store.upload(), store.upload()
            for name in (theirs, ours):
                before(name)
            with store.slow():
                start = time.perf_counter()
                by_hudi(theirs)
                hudi = time.perf_counter() - start
                mine = by_us(ours)
            assert store.rows(theirs) == store.rows(ours), title
        yield (
            f"| {title} | {hudi:.1f} | {mine.job:.1f} | {hudi / mine.job:.1f}x | {mine.seconds:.1f} "
            f"| {hudi / mine.seconds:.1f}x | {mine.requests} |"
        )
