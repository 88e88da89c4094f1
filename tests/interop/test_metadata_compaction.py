"""The metadata table compacted by us: real Hudi reads it, goes on with it, and completes what a kill left of it."""

import shutil
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering
from hudi_services.jobs.request import Mode

from ..unit.faulty_storage import FaultyStorage, Killed
from ..unit.tables import request
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .reading import METADATA_ON, Reading, newer
from .test_recover import long_ago

_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
_QUICK = {**_COMPACT, "hoodie.time.generator.max_expected_clock_skew_ms": "0"}
# Hudi archives little, and the metadata table keeps one more than the table.
_ARCHIVE = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}


def _compactions(path: Path, state: str = "commit") -> list[str]:
    found = (path / ".hoodie/metadata/.hoodie").rglob(f"*.{state}")
    return sorted(file.name.split(".")[0].split("_")[0] for file in found if "metadata" in file.parts)


def _is_true(peer: Peer, path: Path) -> None:
    assert check_metadata(peer, path) == []
    rows = peer.rows(path, METADATA_ON)
    key, name = rows["id"][0].as_py(), rows["name"][0].as_py()
    for options in (METADATA_ON, {**METADATA_ON, "hoodie.enable.data.skipping": "true"}):
        assert peer.rows(path, options, where=f"id = '{key}'").num_rows == 1
        named = peer.rows(path, options, where=f"name = '{name}'")
        assert named.num_rows == rows["name"].to_pylist().count(name)


def _hudi_goes_on(peer: Peer, path: Path) -> None:
    """It writes on top, compacts again, and cleans and archives the metadata table."""
    rows = peer.rows(path).sort_by("id")
    count, ours_were = rows.num_rows, _compactions(path)
    peer.upsert(path, newer(rows.slice(0, 5)))
    assert _compactions(path) == ours_were
    _is_true(peer, path)
    peer.delete(path, rows.slice(20, 3))
    for number in range(6):
        peer.upsert(path, newer(rows.slice(number, 4)), **_COMPACT, **_ARCHIVE)
    assert set(_compactions(path)) - set(ours_were), "Hudi did not compact the metadata table"
    assert peer.rows(path).num_rows == count - 3
    _is_true(peer, path)


def test_hudi_reads_and_goes_on(peer: Peer, table: Tables) -> None:
    path = table("keyed")
    before = Reading.of(peer, path)
    had = _compactions(path)
    ours.schedule(path, sort=("name",))
    report = ours.execute(path, options=_COMPACT).report
    (done,) = report["tables"]["metadata_compaction"]
    assert [done["instant"]] == sorted(set(_compactions(path)) - set(had)) and done["file_groups"] > 1
    assert before.differences(Reading.of(peer, path)) == []
    _is_true(peer, path)
    _hudi_goes_on(peer, path)
    old = [file for file in (path / ".hoodie/metadata").rglob("*.hfile") if done["instant"] in file.name]
    timeline = _compactions(path)
    assert not old or done["instant"] in timeline, "Hudi archived the compaction and left its files"


# With the plan alone, and when some files are there.
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_hudi_completes_what_a_kill_left(peer: Peer, table: Tables, share: float) -> None:
    path = table("keyed")
    before = Reading.of(peer, path)
    ours.schedule(path, sort=("name",))
    _killed_in_the_compaction(path, share)
    left = _compactions(path, "compaction.requested")[-1]
    assert left not in _compactions(path) and not layout.pending(path)
    long_ago(path)
    assert before.differences(Reading.of(peer, path)) == []
    _is_true(peer, path)
    rows = peer.rows(path).sort_by("id")
    peer.upsert(path, newer(rows.slice(0, 5)))
    peer.upsert(path, newer(rows.slice(3, 5)))
    assert left in _compactions(path), "Hudi did not complete it"
    assert peer.rows(path).num_rows == rows.num_rows
    _is_true(peer, path)
    _hudi_goes_on(peer, path)


def _killed_in_the_compaction(path: Path, share: float) -> None:
    whole = path.parent / f"whole-{share}"
    shutil.copytree(path, whole)
    counted = FaultyStorage(str(whole))
    clustering.execute(request(whole, Mode.EXECUTE, _QUICK), counted, LocalEngine())
    begun = next(i for i, one in enumerate(counted.log) if one.endswith("compaction.requested"))
    done = next(i for i, one in enumerate(counted.log) if one.startswith("create") and i > begun and _completes(one))
    survived = begun + 1 + int((done - begun - 1) * share)
    with pytest.raises(Killed):
        clustering.execute(request(path, Mode.EXECUTE, _QUICK), FaultyStorage(str(path), survived), LocalEngine())


def _completes(write: str) -> bool:
    return ".hoodie/metadata/.hoodie" in write and write.endswith(".commit")
