"""Tables on which a process died: `recover --apply`, and real Hudi reads the same rows, writes, clusters and cleans."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from ..unit.faulty_storage import FaultyStorage, Killed
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, table_properties
from .pristine import Pristine
from .reading import Reading, newer
from .test_rollback import DEAD, fail_a_write, files_of, goes_on

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
        ours.execute(whole, options=_ALONE, storage=counted)
        done = next(n for n, entry in enumerate(counted.log) if entry.endswith(".replacecommit"))
        survived = int(done * share)
        with pytest.raises(Killed):
            ours.run("execute", path, options=_ALONE, storage=FaultyStorage(str(path), survived))

    return crash


def _killed_clean(peer: Peer, path: Path) -> None:
    _killed(path, 12, "clean", options={"hoodie.clean.commits.retained": "1"})


def _killed_rollback(peer: Peer, path: Path) -> None:
    _failed_upsert(peer, path)
    (ts,) = layout.pending(path)
    _killed(path, 9, "rollback", "--instant", ts, options=DEAD)


def _killed_undo(peer: Peer, path: Path) -> None:
    peer.cluster(path)
    _killed(path, 9, "undo", "--instant", layout.writes(path)[-1].requested)


def _killed(path: Path, survived: int, command: str, *flags: str, options: dict[str, str] | None = None) -> None:
    """One of our commands, killed half-way: after the plan and some of the files, before the metadata table."""
    with pytest.raises(Killed):
        ours.run(command, path, *flags, options=options, storage=FaultyStorage(str(path), survived))


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
    "clean": _killed_clean,
    "rollback": _killed_rollback,
    "undo": _killed_undo,
}


def _folder(path: Path) -> Path:
    return path / ".hoodie/timeline" if (path / ".hoodie/timeline").exists() else path / ".hoodie"


def long_ago(path: Path) -> None:
    """As if it had happened two hours ago, in a process that is gone: ours keeps the leases of what died in it."""
    for lease in path.glob(".hoodie/.locks/hudi_services/*.json"):
        lease.write_text(json.dumps({**json.loads(lease.read_text()), "validUntil": 0}))
    for file in path.rglob("*"):
        os.utime(file, (time.time() - 7200,) * 2)


def _is_recovered(peer: Peer, path: Path, before: Reading, crash: str) -> None:
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


@pytest.mark.deep("1.2.0")
def test_a_dead_writer(peer: Peer, known: Pristine, table: Tables) -> None:
    _is_recovered(peer, table("plain"), known.reading("plain"), "no markers")


# Versions 6, 8 and 9.
_RECIPES = {"0.15.0": ("plain",), "1.0.2": (), "1.2.0": ("plain8", "plain")}


@pytest.mark.deep
@pytest.mark.cases(lambda recipe, version: recipe in _RECIPES[version])
@pytest.mark.parametrize("recipe", ["plain", "plain8"])
@pytest.mark.parametrize("crash", sorted(_CRASHES))
def test_twelve_crashes(peer: Peer, known: Pristine, table: Tables, recipe: str, crash: str) -> None:
    _is_recovered(peer, table(recipe), known.reading(recipe), crash)


_OURS = ("plan left", "execution begun", "execution at its end", "clean", "rollback", "undo", "uncompleted")


@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.parametrize("crash", _OURS)
def test_hudi_comes_first(peer: Peer, known: Pristine, table: Tables, crash: str) -> None:
    """A writer that knows nothing of the crash: it adds rows, rolls back what it takes for failed, and cleans."""
    path, before = table("plain"), known.rows("plain")
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
    ours.run("orphan-files", path, "--apply")

    assert layout.pending(path) == [], crash
    assert since.differences(Reading.of(peer, path)) == [], crash
    goes_on(peer, path, since.hudi)
