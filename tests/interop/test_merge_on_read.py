"""Clustering merge-on-read tables: real Hudi reads the same rows afterwards, and goes on writing."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ..unit import histories
from ..unit.histories import MadeHistory
from . import layout, ours
from .histories import BUCKETS
from .mdt_check import check_metadata
from .peer import Peer
from .readers import Refused, hudi_rs_rows
from .reading import METADATA_OFF, METADATA_ON, READ_OPTIMISED

# The merge mode CUSTOM of version 8, damage, failed writes: see tests/unit/test_merge_on_read.py.
CUSTOM = {"event_time_payload", "first_value", "partial_update", "non_defaults", "aws_dms", "postgres", "mysql"}
_OTHERS = {"listed_pending", "null_in_base", "null_in_log", "null_int", "of_date", "torn_tail", "uncommitted"}


def tables(release: str, folder: Path) -> Iterator[tuple[str, MadeHistory]]:
    """The histories of a release that can be clustered, each with its name."""
    for name in histories.names(release):
        if name not in _OTHERS and not (release == "1.0.2" and name in CUSTOM):
            yield name, MadeHistory(release, name, folder / name)


def keyed(rows: pa.Table) -> dict[str, dict[str, Any]]:
    """The rows by key, without the file name; everything as text, as the histories have it."""
    found = {}
    for row in rows.to_pylist():
        key = row["_hoodie_record_key"]
        assert key not in found, f"{key} is there twice"
        found[key] = {name: str(value) for name, value in row.items() if name != "_hoodie_file_name"}
    return found


def texts(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        row["_hoodie_record_key"]: {n: str(value) for n, value in row.items() if n != "_hoodie_file_name"}
        for row in rows
    }


def read_by_all(peer: Peer, path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The rows by reader: snapshot queries without and with the metadata table, read-optimised ones, and hudi-rs."""
    found = {
        "off": keyed(peer.rows(path, METADATA_OFF)),
        "on": keyed(peer.rows(path, METADATA_ON)),
        "read-optimised": keyed(peer.rows(path, READ_OPTIMISED)),
    }
    # It refuses tables with several ordering fields.
    with contextlib.suppress(Refused):
        found["hudi-rs"] = keyed(hudi_rs_rows(path))
    return found


@pytest.mark.deep("0.15.0", "1.0.2", "1.2.0")
def test_the_rows_of_every_history_stay(peer: Peer, tmp_path: Path) -> None:
    """Snapshot and read-optimised queries, with the metadata table and without, and hudi-rs."""
    for name, made in tables(peer.version, tmp_path):
        wanted = made.steps[-1].rows
        done = ours.clustered(made.path)
        found = read_by_all(peer, made.path)
        for reader, rows in found.items():
            # Where 1.0.2 could not read the log files, it reads the rows that 1.2.0 reads.
            if wanted is not None:
                assert rows == texts(wanted), f"{name}, {reader}"
            assert rows == found["off"], f"{name}, {reader}"
        assert done["rows"]["out"] == len(found["off"]), name
        assert layout.pending(made.path) == [], name


@pytest.mark.deep("0.15.0", "1.2.0")
def test_hudi_executes_our_plans(peer: Peer, tmp_path: Path) -> None:
    for name, made in tables(peer.version, tmp_path):
        wanted = made.steps[-1].rows
        if name in ("default_order", "log_only", "compaction", "indexed", "merge_into") and wanted is not None:
            instant = ours.schedule(made.path)
            peer.cluster(made.path, "execute", instants=[instant])
            assert layout.pending(made.path) == [], name
            assert keyed(peer.rows(made.path, METADATA_OFF)) == texts(wanted), name


@pytest.mark.deep("1.0.2", "1.2.0")
def test_we_execute_plans_of_hudi(peer: Peer, tmp_path: Path) -> None:
    for name, made in tables(peer.version, tmp_path):
        wanted = made.steps[-1].rows
        if name in ("default_order", "log_only", "compaction", "indexed", "merge_into") and wanted is not None:
            peer.cluster(made.path, "schedule")
            ours.execute(made.path)
            assert layout.pending(made.path) == [], name
            assert keyed(peer.rows(made.path, METADATA_OFF)) == texts(wanted), name


@pytest.mark.deep("1.0.2")
def test_buckets_go_on(peer: Peer, tmp_path: Path) -> None:
    """Hudi's bucket index finds the keys after our clustering, in the one file group of the table."""
    made = MadeHistory(peer.version, "bucket", tmp_path)
    ours.cluster(made.path, sort=("val",))
    rows = peer.rows(made.path, METADATA_OFF)
    newer = rows.set_column(
        rows.column_names.index("ts"), rows.schema.field("ts"), pa.array([1000] * len(rows), pa.int64())
    )
    peer.upsert(made.path, newer, **BUCKETS, **{"hoodie.compact.inline": "false"})
    after = keyed(peer.rows(made.path, METADATA_OFF))
    assert after.keys() == keyed(rows).keys() and {row["ts"] for row in after.values()} == {"1000"}
    assert len({row["_hoodie_file_name"].partition("_")[0] for row in rows.to_pylist()}) == 1


def test_hudi_goes_on(peer: Peer, tmp_path: Path) -> None:
    """The indexes are right; upserts into the new file groups become log files, and Hudi compacts them."""
    made = MadeHistory(peer.version, "indexed", tmp_path)
    ours.cluster(made.path)
    assert ours.run("validate", made.path).code == 0
    # It knows nothing of the statistics of log files, which stay until a clean takes the files.
    assert [text for text in check_metadata(peer, made.path) if ".log." not in text] == []
    rows = peer.rows(made.path, METADATA_ON)
    files = {row["_hoodie_record_key"]: row["_hoodie_file_name"].partition("_")[0] for row in rows.to_pylist()}
    everything = [f"key-{number:02d}" for number in range(60)]
    located = peer.record_locations(made.path, everything)
    assert {key: file_id for key, (_, file_id, _) in located.items()} == files
    newer = rows.slice(0, 5).set_column(
        rows.column_names.index("ts"), rows.schema.field("ts"), pa.array([1000] * 5, pa.int64())
    )
    peer.upsert(made.path, newer)
    peer.sql(f"call run_compaction(op => 'scheduleandexecute', path => '{made.path}')")
    after = keyed(peer.rows(made.path, METADATA_ON))
    assert after.keys() == keyed(rows).keys()
    assert sorted(row["ts"] for row in after.values())[:5].count("1000") == 5
