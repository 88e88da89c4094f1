"""Compaction of merge-on-read tables: real Hudi reads the same rows, executes our plans, and goes on writing."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.codecs.avro import read_container

from ..tiers import DEEP
from ..unit.histories import MadeHistory
from . import layout, ours
from .mdt_check import check_metadata
from .peer import EACH_DELTA_COMMIT, Peer
from .reading import METADATA_OFF, METADATA_ON, READ_OPTIMISED
from .test_merge_on_read import keyed, read_by_all, tables, texts

SOME = ("default_order", "log_only", "compaction", "indexed", "merge_into", "column_added", "log_compaction")
COUNTED = (
    "prevCommit",
    "prevBaseFile",
    "numWrites",
    "numInserts",
    "numUpdateWrites",
    "numDeletes",
    "totalLogFilesCompacted",
    "totalLogBlocks",
    "totalLogRecords",
    "totalUpdatedRecordsCompacted",
)
# Otherwise a write executes the pending compactions itself.
NOT_INLINE = {"hoodie.compact.inline": "false"}


def compact(path: Path, *flags: str, run: Callable[..., ours.Run] = ours.run) -> Mapping[str, Any]:
    """Plan and execute; the report."""
    return run("compact", path, "--mode", "scheduleAndExecute", *flags, options=EACH_DELTA_COMMIT).ok().report


def plan(path: Path) -> str:
    report = ours.run("schedule", path, "--service", "compaction", options=EACH_DELTA_COMMIT).ok().report
    return str(report["instant"])


def newer(rows: pa.Table, ts: int) -> pa.Table:
    """The rows with a new ordering value."""
    at = rows.column_names.index("ts")
    return rows.set_column(at, rows.schema.field("ts"), pa.array([ts] * len(rows), rows.schema.field("ts").type))


@pytest.mark.deep("0.15.0", "1.0.2", "1.2.0")
def test_the_rows_of_every_history_stay(peer: Peer, tmp_path: Path) -> None:
    """Snapshot and read-optimised queries, with the metadata table and without, and hudi-rs."""
    for number, (name, made) in enumerate(tables(peer.version, tmp_path)):
        wanted = made.steps[-1].rows
        # Every fifth by processes.
        done = compact(made.path, run=ours.run if number % 5 else ours.run_local)
        found = read_by_all(peer, made.path)
        for reader, rows in found.items():
            if wanted is not None:
                assert rows == texts(wanted), f"{name}, {reader}"
            assert rows == found["off"], f"{name}, {reader}"
        assert done["checks"][0]["result"] == "passed", name
        assert layout.pending(made.path) == [], name


@pytest.mark.deep("1.0.2", "1.2.0")
def test_plans_of_each_other(peer: Peer, tmp_path: Path) -> None:
    """Hudi executes our plan, and we execute Hudi's, after a write that came between."""
    for name, made in tables(peer.version, tmp_path):
        # The compaction of 1.0.2 gives a row of a partial update that came late another commit time than its queries.
        if (
            name not in (SOME if DEEP else SOME[2:5])
            or made.steps[-1].rows is None
            or (name, peer.version) == ("merge_into", "1.0.2")
        ):
            continue
        is_ours = name != "indexed"
        instant = plan(made.path) if is_ours else ""
        if not is_ours:
            peer.compact(made.path, "schedule")
        pending = keyed(peer.rows(made.path, METADATA_OFF))
        assert pending == texts(made.steps[-1].rows), name
        rows = peer.rows(made.path, METADATA_ON)
        # Hudi's usual indexes do not find keys that are in log files only.
        if name != "log_only":
            peer.upsert(made.path, newer(rows.slice(0, 1), 5000), **NOT_INLINE)
        wanted = keyed(peer.rows(made.path, METADATA_OFF))
        if is_ours:
            peer.compact(made.path, "execute", instant=instant)
        else:
            ours.run("compact", made.path).ok()
        assert layout.pending(made.path) == [], name
        for reader in (METADATA_OFF, METADATA_ON):
            assert keyed(peer.rows(made.path, reader)) == wanted, name


@pytest.mark.deep
def test_queries_of_the_past(peer: Peer, tmp_path: Path) -> None:
    """Time travel gives the same rows before, while a plan is pending, and afterwards; an incremental query gives those
    that it gives after Hudi's own compaction (of fewer rows: not those whose log records have lost)."""
    # 1.0.2 cannot compact a delete without an ordering value that data follows.
    for name in ("overwrite_latest", "indexed") if peer.version != "1.0.2" else ("overwrite_latest",):
        made = MadeHistory(peer.version, name, tmp_path / name)
        theirs = MadeHistory(peer.version, name, tmp_path / "theirs" / name)
        instants = layout.writes(made.path)

        def past(path: Path = made.path, times: list[layout.Instant] = instants) -> list[Any]:
            return [keyed(peer.as_of(path, one.requested)) for one in times]

        def since(path: Path, begin: str = instants[0].completed) -> dict[str, Any]:
            return keyed(peer.incremental(path, begin))

        before, new = past(), since(made.path)
        plan(made.path)
        assert (past(), since(made.path)) == (before, new), name
        ours.run("compact", made.path).ok()
        peer.compact(theirs.path)
        compacted = since(theirs.path)
        assert (past(), since(made.path)) == (before, compacted), name
        ours.cluster(made.path)
        assert (past(), since(made.path)) == (before, compacted), name


@pytest.mark.deep
@pytest.mark.releases("1.2.0")
def test_the_commit_counts_what_was_merged(peer: Peer, tmp_path: Path) -> None:
    """As a compaction of 1.2.0 does. 0.15.0 does not count deletes as records, and counts rows that stay as updates."""
    for name in ("default_order", "log_only", "indexed", "log_compaction", "parquet_blocks"):
        theirs = MadeHistory(peer.version, name, tmp_path / "theirs" / name)
        made = MadeHistory(peer.version, name, tmp_path / name)
        peer.compact(theirs.path)
        compact(made.path)
        assert _counts(made.path) == _counts(theirs.path), name


def _counts(path: Path) -> dict[str, dict[str, Any]]:
    """The counts in the write stats of the newest compaction, by file id."""
    file = max((path / ".hoodie" / "timeline").glob("*.commit"))
    stats = read_container(file.read_bytes(), file.name)["partitionToWriteStats"]
    return {one["fileId"]: {name: one[name] for name in COUNTED} for some in stats.values() for one in some}


@pytest.mark.deep
def test_hudi_goes_on(peer: Peer, tmp_path: Path) -> None:
    """Keys stay where the record index has them; upserts, another compaction and a clean by Hudi follow."""
    made = MadeHistory(peer.version, "indexed", tmp_path)
    located = peer.record_locations(made.path, [f"key-{number:02d}" for number in range(60)])
    compact(made.path)
    # It knows nothing of the statistics of log files, which stay until a clean takes the files.
    assert [text for text in check_metadata(peer, made.path) if ".log." not in text] == []
    assert peer.record_locations(made.path, [f"key-{number:02d}" for number in range(60)]) == located
    rows = peer.rows(made.path, METADATA_ON)
    peer.upsert(made.path, newer(rows.slice(0, 5), 1000), **NOT_INLINE)
    peer.compact(made.path)
    peer.upsert(made.path, newer(rows.slice(5, 5), 1001), **NOT_INLINE)
    compact(made.path)
    peer.clean(made.path)
    for reader in (METADATA_OFF, METADATA_ON, READ_OPTIMISED):
        after = keyed(peer.rows(made.path, reader))
        assert after.keys() == keyed(rows).keys()
        found = [row["ts"] for row in after.values()]
        assert (found.count("1000"), found.count("1001")) == (5, 5)


@pytest.mark.deep
def test_every_row_is_deleted(peer: Peer, tmp_path: Path) -> None:
    """The new base files are empty, and the file groups live on."""
    made = MadeHistory(peer.version, "indexed", tmp_path)
    rows = peer.rows(made.path, METADATA_ON)
    peer.delete(made.path, rows, **NOT_INLINE)
    done = compact(made.path)
    assert done["rows"] == {"in": 0, "out": 0}
    for reader in (METADATA_OFF, METADATA_ON, READ_OPTIMISED):
        assert peer.rows(made.path, reader).num_rows == 0
    peer.upsert(made.path, rows.slice(0, 7))
    assert keyed(peer.rows(made.path, METADATA_ON)).keys() == keyed(rows.slice(0, 7)).keys()
    assert keyed(peer.rows(made.path, METADATA_OFF)).keys() == keyed(rows.slice(0, 7)).keys()
