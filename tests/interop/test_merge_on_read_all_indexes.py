"""All indexes of one merge-on-read table: true after each of our commands, and used and kept by real Hudi.

The record index (of the table, or of each partition), a secondary index, an expression index, column and partition
statistics, and bloom filters; keys are updated, deleted and written again in log files between our commands.
"""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services

from . import layout, ours
from .peer import Peer, has_partitioned_index, table_properties
from .reading import METADATA_OFF, METADATA_ON
from .recipes import PARTITIONED_INDEX, SMALL_FILTERS, WRITE_DEFAULTS
from .test_rollback import DEAD, fail_a_write

pytestmark = pytest.mark.deep
_SECONDARY = "secondary_index_on_name"
# None with lower(name): 1.2.0 skips files by it for name = 'Name-1' too, after its own compaction as after ours.
_STATEMENTS = (
    "create index on_name on to_index (name)",
    "create index by_day on to_index using column_stats(ts) options(expr='from_unixtime', format='yyyy-MM-dd')",
)
_MAKE = """
from tests.interop.recipes import Writer
Writer(spark, version, path).indexes(*statements)
"""
_NO_COMPACTION = {"hoodie.compact.inline": "false"}
_OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.operation": "insert",
    **_NO_COMPACTION,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
_GLOBAL = {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
_SKIPPING = {**METADATA_ON, "hoodie.enable.data.skipping": "true"}
_EACH_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}
_DAY, _START = 86_400, 1_700_000_000
_QUERIES = (
    "name = 'Name-3'",
    "name = 'renamed'",
    "lower(name) = 'renamed'",
    "from_unixtime(ts, 'yyyy-MM-dd') >= '2023-11-30'",
    "part = 'b' and name = 'renamed'",
)


def rows_of(numbers: range, name: str = "", later: int = 0) -> pa.Table:
    """A row for each number; every second one in the other partition."""
    return pa.table(
        {
            "id": [f"k{n:03d}" for n in numbers],
            "ts": pa.array([_START + n * _DAY + later for n in numbers], pa.int64()),
            "name": [name or f"Name-{n % 7}" for n in numbers],
            "part": ["ab"[n % 2] for n in numbers],
        }
    )


class Trips:
    """The table; `live` are the rows that it should have."""

    def __init__(self, peer: Peer, path: Path, index: Mapping[str, str]) -> None:
        self._peer = peer
        self._own = {key: value for key, value in index.items() if key.startswith("hoodie.index.type")}
        self._later = 0
        self.path = path
        self._live: dict[str, str] = {}
        self._gone: set[str] = set()
        peer.write(path, rows_of(range(40)), {**WRITE_DEFAULTS, **SMALL_FILTERS, **_OPTIONS, **index})
        self._note(rows_of(range(40)))
        peer.eval(_MAKE, path=str(path), version=peer.version, statements=_STATEMENTS)

    def upsert(self, numbers: range, name: str = "", *, by_us: bool = False) -> None:
        self._later += 1
        rows = rows_of(numbers, name, self._later)
        if by_us:
            assert hudi_services.open(self.path, engine="local").upsert(rows, options=self._own).ok
        else:
            self._peer.upsert(self.path, rows, **_NO_COMPACTION)
        self._note(rows)

    def delete(self, numbers: range, *, by_us: bool = False) -> None:
        self._later += 1
        rows = rows_of(numbers, later=self._later)
        if by_us:
            assert hudi_services.open(self.path, engine="local").delete(rows, options=self._own).ok
        else:
            self._peer.delete(self.path, rows, **_NO_COMPACTION)
        for key in rows["id"].to_pylist():
            del self._live[key]
            self._gone.add(key)

    def fails(self, numbers: range) -> str:
        """A write that fails before its commit."""
        rows = rows_of(numbers, "failed", self._later + 1)
        return fail_a_write(self._peer, self.path, rows, **_NO_COMPACTION)

    def written_and_rolled_back(self, numbers: range) -> None:
        self._peer.upsert(self.path, rows_of(numbers, "taken back", self._later + 1), **_NO_COMPACTION)
        ours.run("rollback", self.path, "--instant", layout.writes(self.path)[-1].requested, "--completed").ok()

    def is_true(self, when: str) -> None:
        """The rows, and each index by Hudi's own readers; then by `validate`."""
        found = self._peer.rows(self.path, METADATA_OFF)
        assert dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True)) == self._live, when
        assert found.num_rows == len(self._live), when
        self._finds_keys(found, when)
        self._finds_names(when)
        for where in _QUERIES:
            wanted = sorted(self._peer.rows(self.path, METADATA_OFF, where=where)["id"].to_pylist())
            seen = sorted(self._peer.rows(self.path, _SKIPPING, where=where)["id"].to_pylist())
            assert seen == wanted, (when, where)
        run = ours.run("validate", self.path)
        assert (run.code, run.report["tables"]["unsure"]) == (0, []), (when, run.report["tables"])
        names = table_properties(self.path)["hoodie.table.metadata.partitions"].split(",")
        assert {_SECONDARY, "expr_index_by_day", "record_index"} <= {*names}, when

    def _finds_keys(self, found: pa.Table, when: str) -> None:
        columns = [found[name].to_pylist() for name in ("id", "part", "_hoodie_file_name")]
        asked = [*columns[0], *self._gone - set(columns[0]), "nobody"]
        for partition in ("a", "b") if has_partitioned_index(self.path) else (None,):
            files = {key: name for key, part, name in zip(*columns, strict=True) if partition in (None, part)}
            located = self._peer.record_locations(self.path, asked, partition)
            assert located.keys() == files.keys(), (when, partition)
            assert all(files[key].startswith(one[1]) for key, one in located.items()), (when, partition)

    def _finds_names(self, when: str) -> None:
        names = sorted({*self._live.values(), "failed", "taken back", "nobody", "renamed"})
        pairs = self._peer.secondary_keys(self.path, _SECONDARY, names)
        assert sorted(pairs) == sorted((name, key) for key, name in self._live.items()), when

    def _note(self, rows: pa.Table) -> None:
        self._live |= dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))


@pytest.mark.releases("1.0.2", "1.2.0")
def test_every_index_stays_true(peer: Peer, tmp_path: Path) -> None:
    stays_true(peer, Trips(peer, tmp_path / "table", _GLOBAL))


@pytest.mark.releases("1.2.0")
def test_with_a_record_index_of_each_partition(peer: Peer, tmp_path: Path) -> None:
    stays_true(peer, Trips(peer, tmp_path / "table", PARTITIONED_INDEX))


@pytest.mark.releases("1.0.2", "1.2.0")
def test_we_write_in_turns(peer: Peer, tmp_path: Path) -> None:
    trips = Trips(peer, tmp_path / "table", _GLOBAL)
    trips.upsert(range(12), "renamed")
    trips.upsert(range(8, 46), by_us=True)
    trips.is_true("we wrote")
    trips.upsert(range(20, 26), "renamed")
    trips.delete(range(10, 24, 2), by_us=True)
    trips.upsert(range(16, 19), "renamed", by_us=True)
    trips.is_true("we deleted and wrote again")
    trips.delete(range(30, 34))
    trips.upsert(range(32, 50), by_us=True)
    peer.compact(trips.path)
    trips.is_true("Hudi compacted")
    trips.upsert(range(5, 60, 5), "renamed", by_us=True)
    ours.run("compact", trips.path, "--mode", "scheduleAndExecute", options=_EACH_COMMIT).ok()
    trips.upsert(range(55, 62))
    trips.is_true("we compacted")


def stays_true(peer: Peer, trips: Trips) -> None:
    path = trips.path
    trips.upsert(range(12), "renamed")
    trips.delete(range(8, 16))
    trips.is_true("as Hudi left it")

    ours.run("compact", path, "--mode", "scheduleAndExecute", options=_EACH_COMMIT).ok()
    trips.is_true("compacted")
    trips.upsert(range(2, 10))
    trips.delete(range(20, 24))
    trips.upsert(range(21, 23), "renamed")
    trips.is_true("Hudi wrote on")

    ours.cluster(path, sort=("name",))
    trips.is_true("clustered")
    trips.upsert(range(4, 30, 3), "renamed")
    ours.run("clean", path, options={"hoodie.clean.commits.retained": "1"}).ok()
    trips.is_true("cleaned")

    failed = trips.fails(range(6))
    ours.run("rollback", path, "--instant", failed, options=DEAD).ok()
    trips.is_true("a failed write rolled back")
    trips.written_and_rolled_back(range(24, 30))
    trips.is_true("a completed write rolled back")

    trips.upsert(range(8, 44))
    trips.delete(range(30, 34))
    peer.compact(path)
    trips.is_true("Hudi compacted")
