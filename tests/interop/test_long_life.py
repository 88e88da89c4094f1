"""After every command of ours real Hudi writes on for long: it archives, cleans, compacts; no row is lost or twice."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .reading import Reading, newer
from .test_rollback import fail_a_write

_COMMITS = 36
_SERVICES = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "3",
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
}
_DEAD = {"hudi.services.abandoned.after.minutes": "0"}


def _every_command(peer: Peer, path: Path, rows: pa.Table) -> None:
    # As an operator runs them, each in a process of its own.
    ours.run_process("schedule", path, options={"hoodie.clustering.plan.strategy.sort.columns": "name"}).ok()
    ours.execute_on_spark(path)
    peer.upsert(path, newer(rows.slice(0, 5)))
    ours.run_process("clean", path, options={"hoodie.clean.commits.retained": "1"}).ok()
    ts = fail_a_write(peer, path, newer(rows))
    ours.run_process("rollback", path, "--instant", ts, options=_DEAD).ok()
    peer.cluster(path)
    ours.run_process("undo", path, "--instant", layout.writes(path)[-1].requested).ok()
    fail_a_write(peer, path, newer(rows))
    ours.run_process("recover", path, "--apply", "--abandoned-after", "0").ok()
    assert not layout.pending(path)


def _let_go_of(held: str, peer: Peer, path: Path) -> None:
    """Hudi 0.15.0 left alone (also without any command of ours) lets rows come back that the savepoint had held."""
    peer.upsert(path, newer(peer.rows(path).slice(0, 1)))
    retained = {"hoodie.clean.commits.retained": "1"}
    run = ours.run("clean", path, options=retained).ok()
    warned = [warning for warning in run.report["warnings"] if f"the savepoint at {held} was deleted" in warning]
    assert bool(warned) == (peer.version == "0.15.0")
    for warning in warned:
        remedy = dict(pair.split("=") for pair in warning.split("--hoodie-conf ")[1:])
        ours.run("clean", path, options=retained | {key: value.strip() for key, value in remedy.items()}).ok()


@pytest.mark.deep
def test_hudi_writes_on_for_long(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("past"), known.rows("past").sort_by("id")
    _every_command(peer, path, before)
    # The archive never passes a savepoint.
    held = next(i.requested for i in layout.completed(path) if i.action == "savepoint")
    peer.procedure(path, "delete_savepoint", f"instant_time => '{held}'")
    _let_go_of(held, peer, path)
    for number in range(_COMMITS):
        rows = peer.rows(path).sort_by("id").slice(number % 20, 6)
        peer.upsert(path, newer(rows), **_SERVICES)
        if number % 9 == 8:
            peer.cluster(path)
            ours.run("clean", path, options={"hoodie.clean.commits.retained": "2"})
    assert len(layout.writes(path)) < 12, "nothing was archived"
    reading = Reading.of(peer, path)
    for rows in reading.rows.values():
        after = rows.sort_by("id")
        assert after["id"].to_pylist() == before["id"].to_pylist()
        assert _plain(after).equals(_plain(before))
    assert check_metadata(peer, path) == []
    compacted = list((path / ".hoodie/metadata/.hoodie").rglob("*.commit"))
    assert compacted or not (path / ".hoodie/metadata").exists()


def _plain(rows: pa.Table) -> pa.Table:
    """What no update changed: the values but for the ordering field, whichever types a reader gives them."""
    chosen = rows.select(["id", "name", "qty"])
    return pa.table({name: pc.cast(chosen[name], pa.string()) for name in chosen.column_names})
