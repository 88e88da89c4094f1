"""An execution that is killed: real Hudi reads the same rows, and the next run, ours or Hudi's, mends the table."""

import shutil
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering
from hudi_services.jobs.report import State
from hudi_services.jobs.request import Mode

from ..unit.faulty_storage import FaultyStorage, Killed
from ..unit.tables import request
from . import layout
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .reading import Reading

# tests/unit/test_crash.py tries every write with our own reader.
_SPREAD = (0.1, 0.3, 0.5, 0.65)
_SORT = {"hoodie.clustering.plan.strategy.sort.columns": "name,ts"}


def _scheduled(path: Path, copy: Path) -> str:
    """Copy the table and plan there: plans name full paths, and Hudi keeps what it has seen of a path."""
    shutil.copytree(path, copy)
    ts = clustering.schedule(request(copy, Mode.SCHEDULE, _SORT)).instant
    assert ts
    return ts


def _points(path: Path, scratch: Path) -> dict[str, int]:
    """How many writes to let through, by what comes next: a spread, and both sides of each atomic step."""
    _scheduled(path, scratch)
    storage = FaultyStorage(str(scratch))
    clustering.execute(request(scratch, Mode.EXECUTE), storage, LocalEngine())
    log = storage.log
    done = next(i for i, entry in enumerate(log) if entry.endswith(".replacecommit"))
    metadata = next(i for i, entry in enumerate(log) if "metadata" in entry and entry.endswith(".deltacommit"))
    points = {int(share * len(log)) for share in _SPREAD} | {metadata, metadata + 1, done}
    return {f"{n} of {len(log)}: {log[n]}": n for n in sorted(points)}


@pytest.mark.deep("1.0.2")
def test_killed_at_any_write(peer: Peer, table: Tables, tmp_path: Path) -> None:
    path = table("plain")
    before = Reading.of(peer, path)
    for number, (point, survived) in enumerate(_points(path, tmp_path / "whole").items()):
        copy = tmp_path / f"killed-{number}"
        ts = _scheduled(path, copy)
        with pytest.raises(Killed):
            clustering.execute(request(copy, Mode.EXECUTE), FaultyStorage(str(copy), survived), LocalEngine())
        assert before.differences(Reading.of(peer, copy)) == [], point
        if number % 2:
            peer.cluster(copy, "execute", instants=[ts])
        else:
            report = clustering.execute(request(copy, Mode.EXECUTE), engine=LocalEngine())
            assert (report.state, report.instant) == (State.COMPLETED, ts), point
        assert before.differences(Reading.of(peer, copy)) == [], f"mended after {point}"
        assert layout.pending(copy) == [], point
        assert check_metadata(peer, copy) == [], point
