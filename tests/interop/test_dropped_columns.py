"""Tables whose files do not have the partition columns, in turns with Hudi, which reads the columns from the paths."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services

from ..unit.tables import open_local
from ..unit.test_dropped_columns import DROPPED
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import ALL
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS

_WRITE = "hoodie.datasource.write."
_CLUSTER = {"hoodie.clustering.plan.strategy.small.file.limit": "100000000"}
Rows = dict[str, tuple[str, str, int, str]]


def rows(numbers: Sequence[int], text: str, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([f"k{n:02d}" for n in numbers], pa.string()),
            "part": pa.array([f"p{n % 2}" for n in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "day": pa.array([1 + n % 2 for n in numbers], pa.int32()),
            "name": pa.array([f"{text} {n}" for n in numbers], pa.string()),
        }
    )


class Turns:
    def __init__(self, peer: Peer, path: Path, kind: str, *, hive_style: bool) -> None:
        self.peer, self.path = peer, path
        version = peer.table_version.number
        known = {DROPPED: "true", f"{_WRITE}hive_style_partitioning": str(hive_style).lower()}
        self.table = hudi_services.create(
            path,
            name="trips",
            record_key="id",
            partition_by=["part", "day"],
            ordering="ts",
            table_version=version,
            table_type=kind,
            options={**known, **SMALL_FILTERS, "hoodie.clean.automatic": "false"},
            engine="local",
        )
        self.theirs = {
            **known,
            f"{_WRITE}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            f"{_WRITE}partitionpath.field": "part,day",
            "hoodie.parquet.small.file.limit": "100000000",
        }
        self.rows: Rows = {}

    def write(self, who: str, operation: str, new: pa.Table) -> None:
        if who == "ours":
            assert getattr(self.table, operation)(new).ok
            schema = open_local(self.path).schema
            assert schema is not None and schema.names == ("id", "ts", "name")
        else:
            getattr(self.peer, operation)(self.path, new, **self.theirs)
        for row in new.to_pylist():
            if operation == "delete":
                self.rows.pop(row["id"], None)
            else:
                self.rows[row["id"]] = row["part"], str(row["day"]), row["ts"], row["name"]
        self.check(f"{who} {operation}")

    def check(self, where: str) -> None:
        for options in (METADATA_ON, METADATA_OFF):
            read = self.peer.rows(self.path, options)
            found = {row["id"]: (row["part"], str(row["day"]), row["ts"], row["name"]) for row in read.to_pylist()}
            assert found == self.rows, where
            assert read.num_rows == len(self.rows), where
        filtered = self.peer.rows(self.path, METADATA_ON, where="part = 'p1' and day = '2'")
        assert filtered.num_rows == sum(row[0] == "p1" for row in self.rows.values()), where


@pytest.mark.deep
@pytest.mark.releases(*ALL)
@pytest.mark.parametrize("hive_style", [True, False])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_in_turns(peer: Peer, tmp_path: Path, kind: str, hive_style: bool) -> None:
    turns = Turns(peer, tmp_path / "trips", kind, hive_style=hive_style)
    turns.write("ours", "insert", rows(range(10), "first", 1))
    turns.write("theirs", "upsert", rows([0, 1, 20, 21], "theirs", 2))
    turns.write("ours", "upsert", rows([1, 2, 3, 20, 30], "ours", 3))
    turns.write("theirs", "delete", rows([4, 5], "", 4))
    turns.write("ours", "delete", rows([6, 7], "", 5))
    turns.write("ours", "upsert", rows([1, 2, 40, 41], "ours", 7))
    assert turns.table.cluster(options=_CLUSTER).ok
    turns.check("our clustering")
    turns.write("theirs", "upsert", rows([2, 3, 41], "theirs", 8))
    turns.peer.cluster(turns.path)
    turns.check("their clustering")
    turns.write("ours", "upsert", rows([3, 8, 50], "ours", 9))
    if kind == "MERGE_ON_READ":
        assert turns.table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"}).ok
        turns.check("our compaction")
        turns.write("theirs", "upsert", rows([3, 8, 51], "theirs", 9))
        turns.peer.compact(turns.path)
        turns.check("their compaction")
        turns.write("ours", "upsert", rows([3, 8, 52], "ours", 9))
    turns.write("ours", "bulk_insert", rows([60, 61], "ours", 9))
    turns.write("theirs", "upsert", rows([8, 9, 60], "theirs", 10))
    assert hudi_services.open(turns.path, engine="local").validate(strict=True).exit_code == 0
    if all(".hoodie" in file.parts for file in turns.path.rglob(".*.log.*")):
        assert check_metadata(peer, turns.path) == []
