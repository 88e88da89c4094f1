"""Cleaning merge-on-read tables and taking writes back: real Hudi reads the same rows, and goes on writing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ..unit.histories import MadeHistory
from . import layout, ours
from .peer import Peer, metadata_options
from .reading import METADATA_OFF, METADATA_ON
from .test_merge_on_read import keyed
from .test_rollback import DEAD, fail_a_write

VERSIONS_1 = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
# A batch write compacts unless it is told otherwise.
NO_SERVICES = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}
ALL_KEYS = [f"key-{number:02d}" for number in range(60)] + ["new-0", "new-1"]
Rows = dict[str, dict[str, Any]]


def rows_of(peer: Peer, path: Path) -> Rows:
    """The rows by key, the same with the metadata table, without, and filtered; the indexes must be right."""
    on = peer.rows(path, METADATA_ON)
    found = keyed(on)
    assert keyed(peer.rows(path, METADATA_OFF)) == found
    filtered = keyed(peer.rows(path, METADATA_ON | {"hoodie.enable.data.skipping": "true"}, "ts between 40 and 60"))
    assert filtered == {key: row for key, row in found.items() if 40 <= int(row["ts"]) <= 60}
    assert peer.metadata(path, {})["files"]["p0"] == data_files(path)
    located = peer.record_locations(path, ALL_KEYS)
    names = {row["_hoodie_record_key"]: row["_hoodie_file_name"] for row in on.to_pylist()}
    # Of a row in a log file, Hudi shows the file id.
    assert {key: file_id for key, (_, file_id, _) in located.items()} == {k: n[:38] for k, n in names.items()}
    return found


def later(rows: pa.Table, ts: int, count: int) -> pa.Table:
    """Updates of some rows."""
    some = rows.slice(0, count)
    return some.set_column(some.column_names.index("ts"), some.schema.field("ts"), pa.array([ts] * count, pa.int64()))


def with_inserts(rows: pa.Table, ts: int) -> pa.Table:
    """Updates of some rows, and two new ones."""
    some = later(rows, ts, 6)
    ids = pa.array([*some.column("id").to_pylist()[:4], "new-0", "new-1"])
    return some.set_column(some.column_names.index("id"), some.schema.field("id"), ids)


@contextmanager
def options_of(peer: Peer, path: Path) -> Iterator[None]:
    """The procedures of Hudi keep the metadata table, and compact after each write."""
    options = {**metadata_options(path), "hoodie.compact.inline.max.delta.commits": "1"}
    for key, value in options.items():
        peer.sql(f"set {key}={value}")
    yield
    for key in options:
        peer.sql(f"reset {key}")


def compact(peer: Peer, path: Path, op: str = "scheduleandexecute") -> None:
    with options_of(peer, path):
        peer.sql(f"call run_compaction(op => '{op}', path => '{path}')")


def data_files(path: Path) -> dict[str, int]:
    files = (file for file in (path / "p0").iterdir() if file.suffix != ".crc" and "_partition_" not in file.name)
    return {file.name: file.stat().st_size for file in files}


@pytest.fixture
def table(peer: Peer, tmp_path: Path) -> Path:
    """A table with log files and all indexes."""
    path = MadeHistory(peer.version, "indexed", tmp_path).path
    # Hudi 1.0.2 itself cannot compact what the history has left: a delete, and a later value.
    ours.cluster(path)
    peer.upsert(path, later(peer.rows(path), 500, 7), **NO_SERVICES)
    return path


def goes_on(peer: Peer, path: Path, before: Rows) -> None:
    """Hudi updates, compacts and cleans, and the rows are right."""
    compact(peer, path, "run")
    assert layout.pending(path) == [] and rows_of(peer, path) == before
    peer.upsert(path, later(peer.rows(path), 6000, 3), **NO_SERVICES)
    peer.clean(path)
    after = rows_of(peer, path)
    assert after.keys() == before.keys()
    assert [row["ts"] for row in after.values()].count("6000") == 3


@pytest.mark.deep
def test_clean(peer: Peer, table: Path) -> None:
    """After a compaction of Hudi, and while one is pending."""
    compact(peer, table)
    peer.upsert(table, later(peer.rows(table), 2000, 5), **NO_SERVICES)
    compact(peer, table, "schedule")
    peer.upsert(table, later(peer.rows(table), 3000, 5), **NO_SERVICES)
    before, files = rows_of(peer, table), data_files(table)
    ours.run("clean", table, options=VERSIONS_1).ok()
    gone = files.keys() - data_files(table).keys()
    assert [name for name in gone if ".log." in name] and [name for name in gone if name.endswith(".parquet")]
    assert rows_of(peer, table) == before
    compact(peer, table, "run")
    assert layout.pending(table) == [] and rows_of(peer, table) == before


@pytest.mark.deep
def test_what_is_taken_back(peer: Peer, table: Path) -> None:
    """A failed write of Hudi, a completed write, a compaction, our clustering."""
    before, rows = rows_of(peer, table), peer.rows(table)
    ts = fail_a_write(peer, table, with_inserts(rows, 1000), **{"hoodie.write.markers.type": "DIRECT"})
    ours.run("rollback", table, "--instant", ts, options=DEAD).ok()
    assert rows_of(peer, table) == before and layout.pending(table) == []

    fail_a_write(peer, table, with_inserts(rows, 1000))
    ours.run("recover", table, "--apply", options=DEAD).ok()
    assert rows_of(peer, table) == before and layout.pending(table) == []

    peer.upsert(table, with_inserts(rows, 2000), **NO_SERVICES)
    peer.delete(table, rows.slice(8, 2), **NO_SERVICES)
    assert rows_of(peer, table).keys() != before.keys()
    for write in reversed(layout.writes(table)[-2:]):
        ours.run("rollback", table, "--instant", write.requested, "--completed").ok()
    assert rows_of(peer, table) == before

    ts = ours.cluster(table)
    assert rows_of(peer, table) == before
    ours.run("undo", table, "--instant", ts).ok()
    assert rows_of(peer, table) == before

    compact(peer, table)
    ts = layout.writes(table)[-1].requested
    ours.run("rollback", table, "--instant", ts, "--completed").ok()
    assert layout.pending(table) == [ts]
    assert rows_of(peer, table) == before
    goes_on(peer, table, before)
