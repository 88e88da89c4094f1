"""Rolling back and undoing: what real Hudi left is deleted as Hudi would delete it, and Hudi continues to work."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_services.clock import SystemClock
from hudi_services.codecs.rollback_plan import RollbackMetadata, RollbackPlan
from hudi_services.snapshot import open_snapshot
from hudi_services.stores import open_storage
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, PeerError
from .pristine import Pristine
from .reading import Reading, newer

_MARKERS = {"0.15.0": "TIMELINE_SERVER_BASED", "1.0.2": "DIRECT", "1.2.0": "TIMELINE_SERVER_BASED"}
DEAD = {"hudi.services.abandoned.after.minutes": "0"}
# Fails when all files are written and nothing is committed.
_VALIDATOR = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}


def timeline(path: Path) -> Timeline:
    return open_snapshot(open_storage(str(path)), SystemClock()).timeline


def fail_a_write(peer: Peer, path: Path, rows: pa.Table, **options: str) -> str:
    """A real upsert of Hudi's that fails just before its commit; its instant."""
    with pytest.raises(PeerError, match="Validation"):
        peer.upsert(path, rows, **_VALIDATOR, **options)
    (ts,) = layout.pending(path)
    return ts


def files_of(path: Path, ts: str) -> list[str]:
    return sorted(str(f.relative_to(path)) for f in path.rglob(f"*_{ts}.parquet") if ".hoodie" not in f.parts)


def last_rollback(path: Path) -> tuple[RollbackPlan, RollbackMetadata]:
    found = timeline(path).completed({Action.ROLLBACK})[-1]
    return timeline(path).read_rollback_plan(found), timeline(path).read_rollback(found)


def goes_on(peer: Peer, path: Path, before: pa.Table) -> None:
    """Hudi updates, clusters and cleans, and the rows are right, with a metadata table that knows every file."""
    assert check_metadata(peer, path) == []
    peer.upsert(path, newer(before.slice(0, 4)))
    peer.cluster(path)
    after = Reading.of(peer, path)
    assert {rows.num_rows for rows in after.rows.values()} == {before.num_rows}
    peer.clean(path)
    assert after.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []


def test_a_failed_write(peer: Peer, known: Pristine, table: Tables, tmp_path: Path) -> None:
    path, kind = table("plain"), _MARKERS[peer.version]
    before = known.reading("plain")
    ts = fail_a_write(peer, path, newer(before.hudi), **{"hoodie.write.markers.type": kind})
    left = files_of(path, ts)
    assert left
    assert (path / f".hoodie/.temp/{ts}/MARKERS.type").exists() == (kind == "TIMELINE_SERVER_BASED")
    theirs = tmp_path / "theirs"
    shutil.copytree(path, theirs)

    assert ours.run("rollback", path, "--instant", ts).code == 4
    run = ours.run("rollback", path, "--instant", ts, options=DEAD).ok()

    assert sum(row["files"] for row in run.report["tables"]["partitions"]) >= len(left)
    assert files_of(path, ts) == [] == layout.pending(path)
    assert not (path / f".hoodie/.temp/{ts}").exists()
    assert before.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    peer.upsert(theirs, newer(before.hudi.slice(0, 1)))
    assert files_of(theirs, ts) == []
    for mine, other in zip(last_rollback(path), last_rollback(theirs), strict=True):
        assert plain(mine, path) == plain(other, theirs)
    peer.upsert(path, newer(before.hudi.slice(0, 4)))
    assert peer.rows(path).num_rows == before.hudi.num_rows


def plain(rollback: RollbackPlan | RollbackMetadata, path: Path) -> object:
    """What two rollbacks have in common when they did the same: no times of their own, no base path, any order."""
    if isinstance(rollback, RollbackPlan):
        requests = [
            (r.partition, r.file_id, r.base_instant, sorted(strip(f, path) for f in r.files), dict(r.log_blocks))
            for r in rollback.requests
        ]
        return (rollback.ts, rollback.action, sorted(requests, key=str))
    done = {
        partition: (sorted(strip(f, path) for f in (*one.deleted, *one.failed)), dict(one.command_logs))
        for partition, one in rollback.partitions.items()
    }
    return (rollback.target_ts, rollback.target_action, done)


def strip(full_path: str, path: Path) -> str:
    return full_path.removeprefix("file:").removeprefix(f"{path}/")


@pytest.mark.releases("0.15.0")
def test_a_completed_write(peer: Peer, known: Pristine, table: Tables, tmp_path: Path) -> None:
    path, before = table("plain"), known.reading("plain")
    peer.upsert(path, newer(before.hudi.slice(0, 30)))
    ts = layout.writes(path)[-1].requested
    theirs = tmp_path / "theirs"
    shutil.copytree(path, theirs)
    assert ours.run("rollback", path, "--instant", ts).code == 2
    ours.run("rollback", path, "--instant", ts, "--completed").ok()
    assert files_of(path, ts) == []
    assert before.differences(Reading.of(peer, path)) == []
    name = f"theirs_{peer.version.replace('.', '_')}"
    peer.sql(f"create table {name} using hudi location '{theirs}'")
    peer.sql(f"call rollback_to_instant(table => '{name}', instant_time => '{ts}')")
    peer.sql(f"drop table {name}")
    for mine, other in zip(last_rollback(path), last_rollback(theirs), strict=True):
        assert plain(mine, path) == plain(other, theirs)
    assert check_metadata(peer, path) == []


@pytest.mark.deep
def test_undo_of_a_clustering_of_hudi(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("plain"), known.reading("plain")
    peer.cluster(path, order="name")
    ts = layout.writes(path)[-1].requested
    added = newer(before.hudi.slice(0, 5))
    ids = pa.array([f"new-{i}" for i in range(5)])
    peer.insert(path, added.set_column(added.column_names.index("id"), added.schema.field("id"), ids))
    since = Reading.of(peer, path)

    ours.run("undo", path, "--instant", ts).ok()

    assert files_of(path, ts) == []
    assert since.differences(Reading.of(peer, path)) == []
    assert since.hudi.num_rows == before.hudi.num_rows + 5
    goes_on(peer, path, since.hudi)


@pytest.mark.deep
def test_undo_of_ours_after_the_metadata_table_was_compacted(peer: Peer, known: Pristine, table: Tables) -> None:
    """What the clustering told it is in base files by then: Hudi itself would refuse."""
    path, before = table("many"), known.rows("many")
    ts = ours.cluster(path, sort=("at",))
    options = {"hoodie.metadata.compact.max.delta.commits": "1"}
    for i in range(2):
        ids = pa.array([f"new-{i}-{j}" for j in range(3)])
        added = newer(before.slice(0, 3))
        peer.insert(path, added.set_column(added.column_names.index("id"), added.schema.field("id"), ids), **options)
    compactions = [file.name for file in (path / ".hoodie/metadata/.hoodie").rglob("*.commit")]
    assert max(compactions) > ts
    since = Reading.of(peer, path)

    ours.run("undo", path, "--instant", ts).ok()

    assert files_of(path, ts) == []
    assert since.differences(Reading.of(peer, path)) == []
    assert check_metadata(peer, path) == []
    peer.upsert(path, newer(since.hudi.slice(0, 4)))
    assert peer.rows(path).num_rows == since.hudi.num_rows
    assert check_metadata(peer, path) == []


@pytest.mark.releases("1.2.0")
def test_a_heartbeat_is_respected(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("plain"), known.reading("plain")
    lazy = {"hoodie.clean.failed.writes.policy": "LAZY"}
    ts = fail_a_write(peer, path, newer(before.hudi), **lazy)
    beat = path / ".hoodie/.heartbeat" / ts
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    run = ours.run("rollback", path, "--instant", ts, options=DEAD)
    assert run.code == 4 and "another process is at work" in run.stderr
    run = ours.run("schedule", path)
    assert run.code == 4, run.stderr
    beat.unlink()
    run = ours.run("schedule", path, options=DEAD)
    assert run.code == 6 and f"run: hudi-services recover --base-path {path}" in run.stderr
    ours.run("rollback", path, "--instant", ts, options=DEAD).ok()
    assert before.differences(Reading.of(peer, path)) == []
