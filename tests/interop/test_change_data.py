"""Change data capture in turns: Hudi's query of changes over its commits and ours gives those of a model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_services

from ..unit.change_reader import Change, Row
from ..unit.tables import open_local
from ..unit.test_change_logs import CAPTURED, MODE, MODES, difference
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import ALL
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS

_WRITE = "hoodie.datasource.write."
_QUERY = """
reader = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
reader = reader.option("hoodie.datasource.query.incremental.format", "cdc")
frame = reader.option("hoodie.datasource.read.begin.instanttime", "20200101000000000").load(path)
result = [[row.op, row.ts_ms, row.before, row.after] for row in frame.collect()]
"""
_PAYLOAD = {f"{_WRITE}payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
# A query of changes needs the files of all commits.
_KEEP = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
_FILL = {"hoodie.parquet.small.file.limit": "100000000"}


def rows(numbers: Sequence[int], text: str, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([f"k{n:02d}" for n in numbers], pa.string()),
            "part": pa.array([f"p{n % 2}" for n in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "name": pa.array([f"{text} {n}" if n % 5 else None for n in numbers], pa.string()),
            "amount": pa.array([ts + n / 4 for n in numbers], pa.float64()),
        }
    )


class Turns:
    """A table that two write to, and what each write must have changed."""

    def __init__(self, peer: Peer, path: Path, kind: str, mode: str) -> None:
        self.peer, self.path = peer, path
        version = peer.table_version.number
        self.options = {CAPTURED: "true", MODE: mode, **(_PAYLOAD if version == 6 else {})}
        self.table = hudi_services.create(
            path,
            name="trips",
            record_key="id",
            partition_by="part",
            ordering="ts",
            table_type=kind,
            table_version=version,
            options={**self.options, **SMALL_FILTERS, **_KEEP},
            engine="local",
        )
        # Hudi compacts after each fifth delta commit, otherwise.
        self.theirs = {**self.options, f"{_WRITE}table.type": kind, "hoodie.compact.inline.max.delta.commits": "100"}
        self.rows: dict[str, Row] = {}
        self.changes: dict[str, list[Change]] = {}

    def write(self, who: str, operation: str, new: pa.Table, **options: str) -> None:
        before = dict(self.rows)
        more = {**_FILL} if options.pop("fill", "") else {}
        if who == "ours":
            assert getattr(self.table, operation)(new, options=more).ok
        else:
            getattr(self.peer, operation)(self.path, new, **{**self.theirs, **more})
        if operation == "insert_overwrite":
            parts = {*new.column("part").to_pylist()}
            self.rows = {key: row for key, row in self.rows.items() if row["part"] not in parts}
        for row in new.to_pylist():
            old = self.rows.get(row["id"])
            if operation == "delete":
                self.rows.pop(row["id"], None)
            elif old is None or row["ts"] >= old["ts"]:
                self.rows[row["id"]] = row
        last = open_local(self.path).timeline.completed_writes()[-1]
        assert last.ts not in self.changes
        self.changes[last.ts] = difference(before, self.rows)

    def check(self) -> None:
        found: dict[str, list[Change]] = {ts: [] for ts in self.changes}
        for op, ts, before, after in self.peer.eval(_QUERY, path=str(self.path)):
            images = [_image(before), _image(after)]
            row = images[1] or images[0]
            assert row is not None
            found[ts].append(Change(op, row["id"], *images))
        for ts, expected in self.changes.items():
            assert sorted(found[ts], key=lambda one: one.key) == expected, ts
        for options in (METADATA_ON, METADATA_OFF):
            read = self.peer.rows(self.path, options).select(["id", "part", "ts", "name", "amount"])
            assert {row["id"]: row for row in read.to_pylist()} == self.rows
            assert read.num_rows == len(self.rows)
        assert hudi_services.open(self.path, engine="local").validate(strict=True).exit_code == 0


def _image(text: str | None) -> Row | None:
    found: Any = json.loads(text) if text is not None else None
    names = ("id", "part", "ts", "name", "amount")
    # Rows as JSON leave nulls out.
    return None if found is None else {name: found.get(name) for name in names}


@pytest.mark.deep
@pytest.mark.releases(*ALL)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_in_turns(peer: Peer, tmp_path: Path, kind: str, mode: str) -> None:
    turns = Turns(peer, tmp_path / "trips", kind, mode)
    turns.write("ours", "insert", rows(range(12), "first", 1))
    turns.write("theirs", "upsert", rows([0, 1, 2, 3, 20, 21], "theirs", 2))
    turns.write("ours", "upsert", rows([2, 3, 4, 5, 30, 31], "ours", 3))
    turns.write("theirs", "delete", rows([1, 6], "", 4))
    turns.write("ours", "delete", rows([2, 7, 20, 98], "", 5))
    turns.check()
    if kind == "COPY_ON_WRITE" or peer.version != "1.0.2":
        # 1.0.2 lets a log record with a lower ordering value win.
        turns.write("ours", "upsert", rows([3, 4, 5], "late", 0))
        turns.write("theirs", "upsert", rows([3, 4], "late", 0))
    # Where inserts fill a small file, Hudi's own writers log changes only by an upsert.
    turns.write("ours", "insert", rows(range(40, 44), "filled", 5), fill="true")
    turns.write("theirs", "upsert", rows([50, 51, 52, 53], "filled", 6), fill="true")
    turns.write("ours", "upsert", rows([40, 41, 50, 54, 55], "filled", 7), fill="true")
    turns.write("ours", "bulk_insert", rows([60, 61], "bulk", 8))
    turns.write("theirs", "upsert", rows([60, 0, 41], "theirs", 9))
    turns.check()
    if kind == "MERGE_ON_READ":
        assert turns.table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"}).ok
    else:
        assert turns.table.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": "100000000"}).ok
    turns.write("ours", "upsert", rows([0, 3, 70, 71], "after", 10))
    turns.write("theirs", "upsert", rows([4, 5, 70], "after", 11))
    if peer.version == "1.2.0":
        # Before, Hudi's own query repeats the last row of a file group that was replaced.
        turns.write("ours", "insert_overwrite", rows([80, 82], "over", 12))
        turns.write("theirs", "upsert", rows([80, 84], "over", 13))
        turns.write("ours", "delete", rows([80, 82, 84], "", 14))
    turns.check()
    if all(".hoodie" in file.parts for file in turns.path.rglob(".*.log.*")):
        assert check_metadata(peer, turns.path) == []


@pytest.mark.deep
@pytest.mark.releases(*ALL)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tables_are_made_as_by_hudi(peer: Peer, tmp_path: Path, kind: str) -> None:
    """A first write by Hudi to our empty table keeps what we stored of change data capture."""
    turns = Turns(peer, tmp_path / "trips", kind, "DATA_BEFORE")
    made = dict(turns.table.config)
    turns.write("theirs", "insert", rows(range(6), "first", 1))
    turns.write("ours", "upsert", rows([1, 2, 9], "ours", 2))
    assert {key: text for key, text in hudi_services.open(turns.path).config.items() if ".cdc." in key} == {
        key: text for key, text in made.items() if ".cdc." in key
    }
    turns.check()
