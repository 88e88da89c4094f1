"""Writes of real Hudi that meet a clustering of ours: tiny tables, a writer that can be held before its commit, rows as
a model of key and value.

Two partitions, a and b, with two file groups of two rows each: the writes are about partition a, so that a plan has a
group that they change and one that they leave alone.
"""

import contextlib
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from . import layout, ours
from .peer import Peer, PeerError, write_options
from .readers import Refused, hudi_rs_rows
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

# The first character of a key is its partition.
Model = Mapping[str, str]
OLD: Model = {f"{part}{number}": "old" for part in "ab" for number in range(4)}

COW, MOR, BUCKETS = "COPY_ON_WRITE", "MERGE_ON_READ", "consistent hashing"

ALLOW = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
}
ROLL_BACK = {"hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"}
LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    # Hudi waits for us for as long as a test may take.
    "hoodie.write.lock.num_retries": "60",
    "hoodie.write.lock.client.num_retries": "60",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.wait_time_ms": "2000",
}
SIMPLE = {
    **LOCK,
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
PREFER_WRITER = {
    **SIMPLE,
    "hoodie.write.lock.conflict.resolution.strategy": "org.apache.hudi.client.transaction"
    ".PreferWriterConflictResolutionStrategy",
}
# Where there is room, inserts go into the small files that are there.
PAD = {"hoodie.parquet.small.file.limit": "104857600"}
BUCKET_INDEX = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
}
SPLIT = {
    "hoodie.bucket.index.max.num.buckets": "4",
    "hoodie.parquet.max.file.size": "100",
    "hoodie.bucket.index.split.threshold": "1.0",
    "hoodie.bucket.index.merge.threshold": "0.0",
}


@dataclass(frozen=True)
class Write:
    """A write of Hudi's about the rows `keys`, whose values become `value`."""

    operation: str
    keys: tuple[str, ...]
    value: str = "new"
    options: Mapping[str, str] = field(default_factory=dict)

    def of(self, model: Model) -> Model:
        """The rows after it."""
        rows = dict.fromkeys(self.keys, self.value)
        parts = {key[0] for key in self.keys}
        others = {key: value for key, value in model.items() if key[0] not in parts}
        match self.operation:
            case "delete":
                return {key: value for key, value in model.items() if key not in rows}
            case "insert_overwrite":
                return {**others, **rows}
            case "insert_overwrite_table":
                return rows
            case "delete_partition":
                return others
            case _:
                return {**model, **rows}

    def rows(self, ts: int) -> pa.Table:
        """The rows as the data source takes them."""
        count = len(self.keys)
        columns = [list(self.keys), [self.value] * count, [key[0] for key in self.keys], [ts] * count]
        return pa.table(dict(zip(("id", "v", "part", "ts"), columns, strict=True)))

    def all_options(self, path: Path) -> dict[str, str]:
        operation = {"hoodie.datasource.write.operation": self.operation}
        return write_options(path) | SMALL_FILTERS | operation | dict(self.options)


class Templates:
    """The tables as they are before a test, made once for each kind."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self._peer = peer
        self._folder = folder

    def copy(self, kind: str, path: Path) -> Path:
        """Before any plan: plans hold full paths."""
        template = self._folder / kind.replace(" ", "_")
        if not template.exists():
            self._make(kind, template)
        shutil.copytree(template, path)
        return path

    def _make(self, kind: str, path: Path) -> None:
        known = WRITE_DEFAULTS | SMALL_FILTERS | {
            "hoodie.table.name": "meeting",
            "hoodie.datasource.write.table.type": COW if kind == COW else MOR,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            **(BUCKET_INDEX if kind == BUCKETS else {}),
        }  # fmt: skip
        first = "insert" if kind == BUCKETS else "bulk_insert"
        for number in range(0, 4, 2):
            keys = tuple(key for key in OLD if int(key[1]) // 2 == number // 2)
            some = Write(first, keys, "older" if kind == MOR else "old")
            self._peer.write(path, some.rows(1), known | {"hoodie.datasource.write.operation": first})
        if kind == MOR:
            # A log file in each of the file groups.
            all_of_them = Write("upsert", tuple(OLD), "old")
            self._peer.write(path, all_of_them.rows(2), known | {"hoodie.datasource.write.operation": "upsert"})


_HELD = """
import os, time

def held(where):
    open(where + "/here", "w").close()
    while not os.path.exists(where + "/go"):
        time.sleep(0.02)
    return "ok"

spark.udf.register("held", held)
frame = spark.read.parquet(rows)
if looks_up:
    frame = frame.selectExpr(f"if(held('{where}') = 'ok', id, null) as id", "v", "part", "ts")
frame.write.format("hudi").options(**options).mode("append").save(path)
"""


class Held:
    """A write in a thread of its own: its data files are there, its commit waits for `go`. A context manager.

    A write that `looks_up` its keys has only begun: it has written no file yet.
    """

    def __init__(self, peer: Peer, path: Path, write: Write, folder: Path, *, looks_up: bool = False) -> None:
        folder.mkdir()
        self._path = path
        self._here, self._go = folder / "here", folder / "go"
        pq.write_table(write.rows(20), folder / "rows.parquet")
        validator = "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator"
        before_commit = {
            "hoodie.precommit.validators": validator,
            "hoodie.precommit.validators.single.value.sql.queries": f"select held('{folder}')#ok",
        }
        options = write.all_options(path) | ({} if looks_up else before_commit)
        rows, where = str(folder / "rows.parquet"), str(folder)
        arguments = {"path": str(path), "rows": rows, "options": options, "where": where, "looks_up": looks_up}
        self._failed = ""
        self._thread = threading.Thread(target=self._run, args=(lambda: peer.eval(_HELD, **arguments),))

    def __enter__(self) -> "Held":
        self._thread.start()
        for _ in range(6000):
            if self._here.exists() or not self._thread.is_alive():
                break
            self._thread.join(0.02)
        assert self._here.exists() and layout.pending(self._path), self._failed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def is_held(self) -> bool:
        return self._thread.is_alive() and not self._go.exists()

    def go(self) -> None:
        self._go.touch()

    def end(self) -> str:
        """Let it go; why it failed, "" when it is complete."""
        self.go()
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self._failed

    def _run(self, write: Callable[[], object]) -> None:
        try:
            write()
        except PeerError as error:
            self._failed = str(error)


def attempt(peer: Peer, path: Path, write: Write, ts: int = 20) -> str:
    """Why Hudi's write failed, "" when it is complete."""
    try:
        peer.write(path, write.rows(ts), write.all_options(path))
    except PeerError as error:
        return str(error)
    return ""


_READ = """
result = {}
for metadata in ("true", "false"):
    frame = spark.read.format("hudi").option("hoodie.metadata.enable", metadata).load(path)
    result[f"Hudi, metadata {metadata}"] = [[row.id, row.v] for row in frame.select("id", "v").collect()]
"""


def check(peer: Peer, path: Path, wanted: Model, *, hudi_rs: bool = True) -> None:
    """Every reader sees the rows of the model, and our own check of the whole table finds nothing."""
    found = peer.eval(_READ, path=str(path))
    if hudi_rs:
        with contextlib.suppress(Refused):
            rows = hudi_rs_rows(path)
            found["hudi-rs"] = list(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
    for reader, pairs in found.items():
        assert sorted(map(tuple, pairs)) == sorted(wanted.items()), (reader, {*map(tuple, pairs)} ^ {*wanted.items()})
    run = ours.run("validate", path)
    assert run.code == 0, (run.report["tables"].get("differences"), run.stderr)
