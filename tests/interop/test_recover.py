"""Tables that something died on: `recover --apply`, and real Hudi reads the same rows, writes, clusters and cleans."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clean, clustering, rollback, undo
from hudi_services.jobs.request import CleanRequest, Mode
from hudi_services.options import resolve

from ..unit.faulty_storage import FaultyStorage, Killed
from ..unit.repairs import DEAD_AT_ONCE, repair
from ..unit.tables import request
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, table_properties
from .reading import Reading, newer
from .test_rollback import fail_a_write, files_of, goes_on

_Crash = Callable[[Peer, Path], None]


def _failed_upsert(peer: Peer, path: Path) -> None:
    fail_a_write(peer, path, newer(peer.rows(path)), **{"hoodie.write.markers.type": "DIRECT"})


def _failed_insert(peer: Peer, path: Path) -> None:
    """New file groups, markers kept by the timeline server, and a heartbeat that ended: a LAZY writer."""
    rows = newer(peer.rows(path).slice(0, 30))
    lazy = {"hoodie.clean.failed.writes.policy": "LAZY", "hoodie.cleaner.policy.failed.writes": "LAZY"}
    markers = {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED", "hoodie.datasource.write.operation": "insert"}
    fail_a_write(peer, path, rows, **lazy, **markers)


def _requested_write(peer: Peer, path: Path) -> None:
    """Died while it looked up its keys."""
    _failed_upsert(peer, path)
    (ts,) = layout.pending(path)
    for file in path.rglob(f"*{ts}*.parquet"):
        file.unlink()
    shutil.rmtree(path / f".hoodie/.temp/{ts}")
    (_folder(path) / f"{ts}.inflight").unlink()


def _without_markers(peer: Peer, path: Path) -> None:
    """Somebody emptied the folder of markers: Hudi's own rollback would leave the files."""
    _failed_upsert(peer, path)
    (ts,) = layout.pending(path)
    shutil.rmtree(path / f".hoodie/.temp/{ts}")


def _uncompleted(peer: Peer, path: Path) -> None:
    """Died over the completed file: the metadata table knows the commit already."""
    peer.upsert(path, newer(peer.rows(path)))
    last = layout.writes(path)[-1]
    (done,) = _folder(path).glob(f"{last.requested}*.commit")
    done.unlink()


def _clustering_of_hudi(peer: Peer, path: Path) -> None:
    peer.cluster(path)
    last = layout.writes(path)[-1]
    (done,) = _folder(path).glob(f"{last.requested}*.replacecommit")
    done.unlink()


def _plan_left(peer: Peer, path: Path) -> None:
    ours.schedule(path)


# Without the writes of a compaction of the metadata table behind the commit.
_ALONE = {"hoodie.metadata.compact.max.delta.commits": "1000"}


def killed_execution(share: float) -> _Crash:
    """Killed after that share of its writes before the completed file."""

    def crash(peer: Peer, path: Path) -> None:
        ours.schedule(path, sort=("name",))
        whole = path.parent / f"whole-{share}"
        shutil.copytree(path, whole)
        counted = FaultyStorage(str(whole))
        # A plan names full paths, but the inputs are found by partition and name.
        clustering.execute(request(whole, Mode.EXECUTE, _ALONE), counted, LocalEngine())
        done = next(n for n, entry in enumerate(counted.log) if entry.endswith(".replacecommit"))
        survived = int(done * share)
        with pytest.raises(Killed):
            clustering.execute(request(path, Mode.EXECUTE, _ALONE), FaultyStorage(str(path), survived), LocalEngine())

    return crash


def _killed(command: str) -> _Crash:
    """One of our commands, killed half-way."""

    def crash(peer: Peer, path: Path) -> None:
        run = _COMMANDS[command](peer, path)
        with pytest.raises(Killed):
            run(FaultyStorage(str(path), _HALF[command]))

    return crash


_Run = Callable[[FaultyStorage], object]


def _clean(peer: Peer, path: Path) -> _Run:
    quick = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.clean.commits.retained": "1"}
    wanted = CleanRequest(base_path=str(path), options=resolve([("test", quick)]))
    return lambda storage: clean.clean(wanted, storage)


def _rollback(peer: Peer, path: Path) -> _Run:
    _failed_upsert(peer, path)
    (ts,) = layout.pending(path)
    return lambda storage: rollback.rollback(repair(path, "rollback", ts, DEAD_AT_ONCE), storage)


def _undo(peer: Peer, path: Path) -> _Run:
    peer.cluster(path)
    last = layout.writes(path)[-1].requested
    return lambda storage: undo.undo(repair(path, "undo", last), storage)


_COMMANDS: dict[str, Callable[[Peer, Path], _Run]] = {"clean": _clean, "rollback": _rollback, "undo": _undo}
# Writes to let through: after the plan and some of the files, before the metadata table.
_HALF = {"clean": 12, "rollback": 9, "undo": 9}

_CRASHES: dict[str, _Crash] = {
    "upsert": _failed_upsert,
    "insert": _failed_insert,
    "requested": _requested_write,
    "no markers": _without_markers,
    "uncompleted": _uncompleted,
    "clustering of Hudi": _clustering_of_hudi,
    "plan left": _plan_left,
    "execution begun": killed_execution(0.35),
    "execution at its end": killed_execution(1),
    "clean": _killed("clean"),
    "rollback": _killed("rollback"),
    "undo": _killed("undo"),
}


def _folder(path: Path) -> Path:
    return path / ".hoodie/timeline" if (path / ".hoodie/timeline").exists() else path / ".hoodie"


def long_ago(path: Path) -> None:
    """As if it had happened two hours ago, in a process that is gone: ours keeps the leases of what died in it."""
    for lease in path.glob(".hoodie/.locks/hudi_services/*.json"):
        lease.write_text(json.dumps({**json.loads(lease.read_text()), "validUntil": 0}))
    for file in path.rglob("*"):
        os.utime(file, (time.time() - 7200,) * 2)


def _is_recovered(peer: Peer, path: Path, crash: str) -> None:
    before = Reading.of(peer, path)
    _CRASHES[crash](peer, path)
    long_ago(path)
    assert before.differences(Reading.of(peer, path)) == [], crash
    assert layout.pending(path), crash
    looked = ours.run("recover", path)
    assert (looked.code, looked.report["reason"]) == (
        0,
        "dry run: nothing was changed; add --apply to carry out the decisions",
    )
    dead = [row["instant"] for row in looked.report["tables"]["instants"] if row["action"] in ("commit", "clustering")]
    run = ours.run("recover", path, "--apply").ok()
    assert {row["decision"] for row in run.report["tables"]["instants"]} <= {"resume", "roll back", "drop the plan"}
    assert layout.pending(path) == [], crash
    assert [file for ts in dead for file in files_of(path, ts)] == [], crash
    assert before.differences(Reading.of(peer, path)) == [], crash
    if "files" in table_properties(path).get("hoodie.table.metadata.partitions", ""):
        assert check_metadata(peer, path) == [], crash
    goes_on(peer, path, before.hudi)


@pytest.mark.deep("1.0.2")
def test_a_dead_writer(peer: Peer, table: Tables) -> None:
    _is_recovered(peer, table("plain"), "no markers")


# Versions 6, 8 and 9.
_RECIPES = {"0.15.0": ("plain",), "1.0.2": (), "1.2.0": ("plain8", "plain")}


@pytest.mark.deep
@pytest.mark.cases(lambda recipe, version: recipe in _RECIPES[version])
@pytest.mark.parametrize("recipe", ["plain", "plain8"])
@pytest.mark.parametrize("crash", sorted(_CRASHES))
def test_twelve_crashes(peer: Peer, table: Tables, recipe: str, crash: str) -> None:
    _is_recovered(peer, table(recipe), crash)


_OURS = ("plan left", "execution begun", "execution at its end", "clean", "rollback", "undo", "uncompleted")


@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.parametrize("crash", _OURS)
def test_hudi_comes_first(peer: Peer, table: Tables, crash: str) -> None:
    """A writer that knows nothing of the crash: it adds rows, rolls back what it takes for failed, and cleans."""
    path = table("plain")
    before = peer.rows(path)
    _CRASHES[crash](peer, path)
    long_ago(path)
    added = newer(before.slice(0, 5))
    ids = pa.array([f"new-{i}" for i in range(5)])
    added = added.set_column(added.column_names.index("id"), added.schema.field("id"), ids)
    peer.insert(path, added, **{"hoodie.clean.automatic": "true"})
    since = Reading.of(peer, path)
    assert {rows.num_rows for rows in since.rows.values()} == {before.num_rows + 5}, crash

    ours.run("recover", path, "--apply", "--abandoned-after", "0")
    # What Hudi's rollback left of a write whose markers were gone.
    ours.run("clean", path, "--garbage", "--apply")

    assert layout.pending(path) == [], crash
    assert since.differences(Reading.of(peer, path)) == [], crash
    goes_on(peer, path, since.hudi)
