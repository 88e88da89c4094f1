"""An execution on Spark that is killed when some groups are done: the next one does the rest, and real Hudi agrees."""

from pathlib import Path

import pytest

from ..spark.killed_execution import Executions
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer, PeerError
from .pristine import Pristine
from .reading import Reading
from .test_recover import long_ago
from .test_rollback import DEAD, files_of, goes_on

_TEN_GROUPS = {
    "hoodie.clustering.plan.strategy.class": "single_file",
    "hoodie.clustering.plan.strategy.max.num.groups": "10",
}
_NOBODY = {**DEAD, "hoodie.client.heartbeat.tolerable.misses": "0"}


def _killed(peer: Peer, path: Path, before: Reading, folder: Path, groups: int) -> tuple[str, Executions]:
    """Plan ten groups for a table, and be killed when so many are done."""
    ts = ours.schedule(path, sort=("at",), options=_TEN_GROUPS)
    executions = Executions(path, ts, folder, _NOBODY)
    executions.killed_after(groups)
    assert before.differences(Reading.of(peer, path)) == []
    return ts, executions


@pytest.mark.deep
def test_the_rest_is_done(peer: Peer, known: Pristine, table: Tables, tmp_path: Path) -> None:
    path, before = table("many"), known.reading("many")
    ts, executions = _killed(peer, path, before, tmp_path, 6)
    kept = set(files_of(path, ts))
    report, rewritten = executions.whole()
    assert (report["instant"], report["groups"], report["resumed_groups"], rewritten) == (ts, 10, 6, 4)
    # The one that was cut off is done anew under another name.
    assert len(kept & set(files_of(path, ts))) == 6 and len(files_of(path, ts)) == 10
    assert before.differences(Reading.of(peer, path)) == []
    assert layout.pending(path) == [] and check_metadata(peer, path) == []


# A clean of 0.15.0 leaves the statistics of what it deletes.
@pytest.mark.releases("1.0.2", "1.2.0")
@pytest.mark.deep
def test_hudi_goes_on_after_it(peer: Peer, known: Pristine, table: Tables, tmp_path: Path) -> None:
    path, before = table("many"), known.reading("many")
    _, executions = _killed(peer, path, before, tmp_path, 9)
    executions.whole()
    goes_on(peer, path, before.hudi)


@pytest.mark.deep
def test_hudi_rolls_it_back_and_dies(peer: Peer, known: Pristine, table: Tables, tmp_path: Path) -> None:
    """It begins the plan itself, and stumbles over a file: whatever we had finished is gone."""
    path, before = table("many"), known.reading("many")
    ts, executions = _killed(peer, path, before, tmp_path, 6)
    ours_were = set(files_of(path, ts))
    assert len(executions.notes()) == 6
    broken = next(file for file in path.glob("p0/*.parquet") if file.name not in {Path(f).name for f in ours_were})
    content = broken.read_bytes()
    broken.write_bytes(b"PAR1")
    with pytest.raises(PeerError):
        peer.cluster(path, "execute", instants=[ts])
    broken.write_bytes(content)
    assert ts in layout.pending(path) and ours_were.isdisjoint(files_of(path, ts))
    assert len(executions.notes()) == 6
    report, rewritten = executions.whole()
    assert (report["instant"], report["resumed_groups"], rewritten) == (ts, 0, 10)
    assert len(files_of(path, ts)) == 10
    assert before.differences(Reading.of(peer, path)) == []
    assert layout.pending(path) == [] and check_metadata(peer, path) == []


@pytest.mark.deep
def test_hudi_executes_it_instead(peer: Peer, known: Pristine, table: Tables, tmp_path: Path) -> None:
    path, before = table("many"), known.reading("many")
    ts, executions = _killed(peer, path, before, tmp_path, 6)
    peer.cluster(path, "execute", instants=[ts])
    assert before.differences(Reading.of(peer, path)) == []
    done = ours.run("execute", path, "--instant-time", ts)
    assert (done.code, done.report["state"]) == (0, "idle")
    long_ago(path)
    collected = ours.run("orphan-files", path, "--apply").ok()
    assert "checkpoints of an attempt that has ended" in {
        row["reason"] for row in collected.report["tables"]["attempts"]
    }
    assert executions.notes() == []
    assert before.differences(Reading.of(peer, path)) == [] and check_metadata(peer, path) == []
