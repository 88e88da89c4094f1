"""An execution that is killed: real Hudi reads the same rows, and the next run, ours or Hudi's, repairs the table."""

import shutil
from pathlib import Path

import pytest

from ..tiers import DEEP
from ..unit.faulty_storage import FaultyStorage, Killed
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .reading import Reading

# tests/unit/test_crash.py tries every write with our own reader.
_SPREAD = (0.1, 0.3, 0.5, 0.65) if DEEP else (0.3,)


def _scheduled(path: Path, copy: Path) -> str:
    """Copy the table and plan there: plans name full paths, and Hudi keeps what it has seen of a path."""
    shutil.copytree(path, copy)
    return ours.schedule(copy, sort=("name", "ts"))


def _points(path: Path, scratch: Path) -> dict[str, int]:
    """How many writes to let through, by what comes next: a spread, and both sides of each atomic step."""
    _scheduled(path, scratch)
    storage = FaultyStorage(str(scratch))
    ours.execute(scratch, storage=storage)
    log = storage.log
    done = next(i for i, entry in enumerate(log) if entry.endswith(".replacecommit"))
    metadata = next(i for i, entry in enumerate(log) if "metadata" in entry and entry.endswith(".deltacommit"))
    points = {int(share * len(log)) for share in _SPREAD} | {metadata + 1, done} | ({metadata} if DEEP else set())
    return {f"{n} of {len(log)}: {log[n]}": n for n in sorted(points)}


@pytest.mark.deep
def test_killed_at_any_write(peer: Peer, known: Pristine, table: Tables, tmp_path: Path) -> None:
    path, before = table("plain"), known.reading("plain")
    for number, (point, survived) in enumerate(_points(path, tmp_path / "whole").items()):
        copy = tmp_path / f"killed-{number}"
        ts = _scheduled(path, copy)
        with pytest.raises(Killed):
            ours.run("execute", copy, storage=FaultyStorage(str(copy), survived))
        assert before.differences(Reading.of(peer, copy)) == [], point
        if number % 2:
            peer.cluster(copy, "execute", instants=[ts])
        else:
            assert ours.execute(copy).report["instant"] == ts, point
        assert before.differences(Reading.of(peer, copy)) == [], f"mended after {point}"
        assert layout.pending(copy) == [], point
        assert check_metadata(peer, copy) == [], point
