"""Consistent hashing in turns with real Hudi: its writers, its plans and its executions beside ours."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import UnsupportedTable
from hudi_services.options.clustering_keys import BUCKET_EXECUTIONS

from ..unit.tables import open_local
from ..unit.test_consistent_hashing import buckets_are_right
from .meetings import SPLIT
from .peer import Peer
from .pristine import ALL
from .reading import METADATA_OFF, METADATA_ON

_WRITE = "hoodie.datasource.write."
_OPTIONS = {
    "hoodie.table.name": "t",
    f"{_WRITE}recordkey.field": "id",
    f"{_WRITE}precombine.field": "ts",
    f"{_WRITE}partitionpath.field": "part",
    f"{_WRITE}table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "4",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}
_MERGE = {
    "hoodie.parquet.max.file.size": "100000000",
    "hoodie.bucket.index.split.threshold": "1.0",
    "hoodie.bucket.index.merge.threshold": "0.5",
}
_FRAME = """
rows = [(f"k{n:03d}", f"p{n % 2}", ts, f"batch {ts} row {n}") for n in range(first, end)]
frame = spark.createDataFrame(rows, "id string, part string, ts int, text string").coalesce(1)
frame.write.format("hudi").options(**options).mode("append").save(path)
"""
_CALL = """
text = ",".join(f"{key}={value}" for key, value in options.items())
result = len(spark.sql(f"call {name}(path => '{path}', op => '{op}', options => '{text}')").collect())
"""
_TAKE_BACK = """
spark.sql("drop table if exists taken")
spark.sql(f"create table taken using hudi location '{path}'")
result = spark.sql(f"call rollback_to_instant(table => 'taken', instant_time => '{instant}')").collect()[0][0]
spark.sql("drop table taken")
assert result
"""
Model = dict[str, tuple[str, int, str]]


class Turns:
    """Each step is done by Hudi (`theirs`) or by this program, and told to a model."""

    def __init__(self, peer: Peer, path: Path) -> None:
        self._peer, self._path, self._model = peer, path, Model()
        self._ts = 0

    @property
    def _table(self) -> hudi_services.Table:
        return hudi_services.open(self._path, engine="local")

    def write(self, operation: str, first: int, end: int, *, theirs: bool, in_buckets: bool = True) -> None:
        self._ts += 1
        if theirs:
            options = {**_OPTIONS, f"{_WRITE}operation": operation}
            self._peer.eval(_FRAME, path=str(self._path), options=options, first=first, end=end, ts=self._ts)
        else:
            numbers = range(first, end)
            rows = pa.table({
                "id": [f"k{n:03d}" for n in numbers], "part": [f"p{n % 2}" for n in numbers],
                "ts": pa.array([self._ts] * len(numbers), pa.int32()),
                "text": [f"batch {self._ts} row {n}" for n in numbers],
            })  # fmt: skip
            write = {"insert": self._table.insert, "upsert": self._table.upsert, "delete": self._table.delete}
            assert write[operation](rows, options=_OPTIONS).ok
        for n in range(first, end):
            if operation == "delete":
                self._model.pop(f"k{n:03d}", None)
            else:
                self._model[f"k{n:03d}"] = (f"p{n % 2}", self._ts, f"batch {self._ts} row {n}")
        self.is_right(in_buckets=in_buckets)

    def cluster(self, rules: Mapping[str, str], *, planned_by_them: bool, executed_by_them: bool) -> None:
        if planned_by_them:
            self._call("run_clustering", "schedule", rules)
        else:
            assert self._table.plan_clustering(options={**_OPTIONS, **rules}).ok
        (plan,) = open_local(self._path).timeline.pending_clusterings()
        self.is_right()
        if executed_by_them:
            # By its default class, 1.0.2 brings back rows that log files have deleted.
            self._call(
                "run_clustering", "execute", {"hoodie.clustering.execution.strategy.class": BUCKET_EXECUTIONS[0]}
            )
        else:
            assert self._table.execute_clustering(plan.ts).ok
        assert not open_local(self._path).timeline.pending_clusterings()
        self.is_right()

    def take_back(self, instant: str, first: int, end: int) -> None:
        """Hudi takes back its last write, at `instant`, of the rows `first` up to `end`."""
        self._peer.eval(_TAKE_BACK, path=str(self._path), instant=instant)
        for n in range(first, end):
            self._model.pop(f"k{n:03d}")
        self.is_right()

    def compact(self, *, theirs: bool) -> None:
        due = {"hoodie.compact.inline.max.delta.commits": "1"}
        if theirs:
            for step in ("schedule", "run"):
                self._call("run_compaction", step, due)
        else:
            assert self._table.compact(options=due).ok
        self.is_right()

    def _call(self, name: str, op: str, more: Mapping[str, str]) -> None:
        options = {key: value for key, value in {**_OPTIONS, **more}.items() if not key.startswith(_WRITE)}
        options |= {key: _OPTIONS[key] for key in (f"{_WRITE}recordkey.field", f"{_WRITE}precombine.field")}
        self._peer.eval(_CALL, path=str(self._path), name=name, op=op, options=options)

    def is_right(self, *, in_buckets: bool = True) -> None:
        for options in (METADATA_ON, METADATA_OFF):
            found = self._peer.rows(self._path, options).to_pylist()
            assert {row["id"]: (row["part"], row["ts"], row["text"]) for row in found} == self._model
            assert len(found) == len(self._model), "no key is twice"
        if in_buckets:
            buckets_are_right(self._path)
        assert self._table.validate().ok


@pytest.mark.deep
@pytest.mark.releases(*ALL)
def test_in_turns(peer: Peer, tmp_path: Path) -> None:
    turns = Turns(peer, tmp_path / "table")
    turns.write("insert", 0, 24, theirs=True)
    turns.write("upsert", 12, 36, theirs=False)
    turns.write("delete", 0, 3, theirs=False)
    turns.write("upsert", 20, 44, theirs=True)
    turns.cluster(SPLIT, planned_by_them=False, executed_by_them=True)
    turns.write("upsert", 30, 50, theirs=True)
    turns.write("delete", 40, 45, theirs=False)
    turns.cluster(_MERGE, planned_by_them=True, executed_by_them=False)
    turns.write("upsert", 35, 55, theirs=True)
    turns.compact(theirs=False)
    turns.write("upsert", 50, 60, theirs=False)
    turns.cluster(SPLIT, planned_by_them=False, executed_by_them=False)
    turns.write("upsert", 45, 65, theirs=True)
    turns.compact(theirs=True)
    turns.write("delete", 10, 20, theirs=True)
    turns.write("insert", 5, 15, theirs=False)


@pytest.mark.deep
def test_a_table_that_begins_here(peer: Peer, tmp_path: Path) -> None:
    """Its rings are those that Hudi's writers make, with the same number of buckets or another one."""
    path = tmp_path / "table"
    version = {"0.15.0": 6, "1.0.2": 8}.get(peer.version, 9)
    hudi_services.create(
        path, name="t", record_key="id", partition_by="part", ordering="ts", table_type="MERGE_ON_READ",
        table_version=version, engine="local",
    )  # fmt: skip
    turns = Turns(peer, path)
    turns.write("upsert", 0, 20, theirs=False)
    turns.write("upsert", 10, 30, theirs=True)
    turns.cluster(SPLIT, planned_by_them=False, executed_by_them=False)
    turns.write("upsert", 20, 40, theirs=True)


@pytest.mark.deep
def test_a_bulk_insert_into_a_bucket_that_comes(peer: Peer, tmp_path: Path) -> None:
    """Executed, such a plan hides rows (by Hudi it does): it is refused until the bulk insert is taken back."""
    path = tmp_path / "table"
    turns = Turns(peer, path)
    turns.write("insert", 0, 24, theirs=True)
    table = hudi_services.open(path, engine="local")
    assert table.plan_clustering(options={**_OPTIONS, **SPLIT}).ok
    (plan,) = open_local(path).timeline.pending_clusterings()
    # The model has these rows until they are taken back.
    turns.write("bulk_insert", 100, 102, theirs=True, in_buckets=False)
    written = open_local(path).timeline.completed_writes()[-1].ts
    for act in (lambda: table.execute_clustering(plan.ts), lambda: table.rollback(plan.ts)):
        with pytest.raises(UnsupportedTable, match=written):
            act()
        turns.is_right(in_buckets=False)
    turns.take_back(written, 100, 102)
    assert table.execute_clustering(plan.ts).ok
    turns.is_right()
    turns.write("upsert", 100, 102, theirs=True)
    turns.write("upsert", 0, 24, theirs=True)
