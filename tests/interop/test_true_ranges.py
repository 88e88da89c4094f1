"""What Hudi left in the metadata table, or in the properties, that would hide rows: after our commits real Hudi reads
what is true."""

from pathlib import Path

import pyarrow as pa
import pytest

from ..unit import histories
from ..unit.metadata_tables import compact
from . import ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer

_SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
_LISTED = {"hoodie.metadata.enable": "false"}
_ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


@pytest.mark.thorough
@pytest.mark.releases("1.0.2")
def test_a_range_that_was_too_narrow_beside_a_compaction(peer: Peer, tmp_path: Path) -> None:
    """Hudi 1.0.2 wrote beside the compaction plan; the ranges that a compaction of Hudi itself writes do not count."""
    path = histories.MadeHistory("1.0.2", "listed_pending", tmp_path).path
    oldest = min(peer.rows(path, _LISTED).column("ts").to_pylist())
    where = f"ts <= {oldest}"
    right = peer.rows(path, _LISTED, where).num_rows
    assert peer.rows(path, _SKIPPING, where).num_rows < right
    ours.run("compact", path).ok()
    right = peer.rows(path, _LISTED, where).num_rows
    assert peer.rows(path, _SKIPPING, where).num_rows == right
    assert ours.run("validate", path).code == 0
    # Hudi goes on from there.
    peer.upsert(path, peer.rows(path, _LISTED).slice(0, 1))
    assert peer.rows(path, _SKIPPING, where).num_rows == peer.rows(path, _LISTED, where).num_rows
    assert ours.run("validate", path).code == 0


def test_a_deleted_partition_that_was_listed_twice(peer: Peer, table: Tables) -> None:
    """By the base file of the listing, and by Hudi's commit in its log files: Hudi's own clean leaves it there."""
    path = table("plain")
    compact(path)
    rows = peer.rows(path, _LISTED)
    partition = rows.column("_hoodie_partition_path")[0].as_py()
    peer.upsert(path, rows.slice(0, 1))
    assert check_metadata(peer, path) == []
    ours.run("write", path, "--operation", "delete_partition", "--partitions", partition).ok()
    ours.run("clean", path, options=_ONE_VERSION)
    assert not (path / partition).exists()
    found = peer.metadata(path, {})["files"]
    assert partition not in found and len(found) > 0
    assert check_metadata(peer, path) == []


@pytest.mark.releases("1.2.0")
@pytest.mark.deep
def test_late_rows_after_an_upgrade(peer: Peer, tmp_path: Path) -> None:
    """A merge-on-read table of 0.15.0, whose payload class is the default."""
    path = histories.MadeHistory("0.15.0", "overwrite_latest", tmp_path).path
    rows = peer.rows(path, _LISTED).slice(0, 1)
    assert ours.run("recover", path).report["warnings"] == []
    peer.upsert(path, rows)
    (warning,) = ours.run("recover", path).report["warnings"]
    assert (
        "since Hudi's upgrade to version 9 an upsert leaves a row as it is where its value of ts is greater" in warning
    )
    at, (newest,) = rows.schema.get_field_index("ts"), rows.column("ts").to_pylist()
    late = rows.set_column(at, rows.schema.field(at), pa.array([newest - 1], rows.schema.field(at).type))
    peer.upsert(path, late)
    key = rows.column("_hoodie_record_key")[0].as_py()
    (kept,) = peer.rows(path, _LISTED, f"_hoodie_record_key = '{key}'").column("ts").to_pylist()
    assert kept == newest
