"""Orphan files of a failed write of real Hudi are found, quarantined and restored; no row is ever read twice."""

import os
import shutil
import time
from pathlib import Path

import pytest

from ..unit.test_orphan_file_crashes import begin, live
from . import layout, ours
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import Pristine
from .reading import METADATA_OFF, Reading, newer
from .test_recover import long_ago
from .test_rollback import fail_a_write, files_of, goes_on

# Soon archived, and cleaned by every commit.
_SHORT_MEMORY = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


def _leave_orphans(peer: Peer, path: Path) -> list[str]:
    """A write of Hudi's fails, its markers get lost, and Hudi's rollback then leaves the files."""
    ts = fail_a_write(peer, path, newer(peer.rows(path)))
    shutil.rmtree(path / f".hoodie/.temp/{ts}")
    peer.upsert(path, newer(peer.rows(path).slice(0, 1)))
    assert not layout.pending(path)
    left = files_of(path, ts)
    assert left
    return left


def _age(path: Path, names: list[str]) -> None:
    for name in names:
        os.utime(path / name, (time.time() - 7200,) * 2)


# 1.0.2 itself writes ranges of partitions that are narrower than the rows when orphans lie beside its files.
@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
def test_orphans(peer: Peer, table: Tables) -> None:
    path = table("plain")
    left = _leave_orphans(peer, path)
    before = Reading.of(peer, path)
    young = ours.run("orphan-files", path)
    assert young.report["files"]["in"] in (0, None)
    _age(path, left)

    looked = ours.run("orphan-files", path)
    assert looked.code == 0 and looked.report["files"]["in"] == len(left)
    assert all((path / name).exists() for name in left)
    moved = ours.run("orphan-files", path, "--apply").ok()
    assert moved.report["files"]["in"] == len(left)
    assert not any((path / name).exists() for name in left)
    assert before.differences(Reading.of(peer, path)) == []
    (quarantine,) = (path / ".hoodie/.hudi_services/quarantine").iterdir()
    goes_on(peer, path, before.hudi.sort_by("id"))

    again = Reading.of(peer, path)
    ours.run("orphan-files", path, "--apply", "--restore", quarantine.name).ok()
    assert all((path / name).exists() for name in left)
    assert again.differences(Reading.of(peer, path)) == []
    _age(path, left)
    ours.run("orphan-files", path, "--apply").ok()
    ours.run("orphan-files", path, "--apply", "--delete-older-than", "0").ok()
    assert not list((path / ".hoodie/.hudi_services/quarantine").glob("*"))
    assert check_metadata(peer, path) == []


@pytest.mark.deep
@pytest.mark.releases("0.15.0", "1.2.0")
@pytest.mark.parametrize("collected", [True, False])
def test_orphans_come_back_when_the_archive_passes_them(
    peer: Peer, known: Pristine, table: Tables, collected: bool
) -> None:
    """Why orphan files matter: without a metadata table, their rows are read again once the archive has passed them."""
    path, rows = table("no_mdt"), known.rows("no_mdt").sort_by("id")
    # New file groups, so that nobody's clean takes the files for old slices.
    failed = {"hoodie.datasource.write.operation": "insert"}
    ts = fail_a_write(peer, path, newer(rows.slice(0, 20)), **failed)
    shutil.rmtree(path / f".hoodie/.temp/{ts}")
    peer.upsert(path, newer(rows.slice(50, 1)))
    left = files_of(path, ts)
    assert left
    if collected:
        _age(path, left)
        ours.run("orphan-files", path, "--apply").ok()
    for number in range(8):
        peer.upsert(path, newer(rows.slice(60 + number, 1)), **_SHORT_MEMORY)
    assert min(i.requested for i in layout.writes(path)) > ts
    assert peer.rows(path, METADATA_OFF).num_rows == rows.num_rows + (0 if collected else 20)


@pytest.mark.deep
def test_a_sample_of_the_random_lives(peer: Peer, tmp_path: Path) -> None:
    """Of those in tests/unit/test_orphan_file_crashes.py: real Hudi reads the same rows after each, and writes on."""
    made = begin(peer.version, tmp_path)
    before = Reading.of(peer, made)
    # 1.0.2 itself made this table with ranges of partitions that are too narrow.
    wrong = set(check_metadata(peer, made))
    assert not wrong or peer.version == "1.0.2"
    for number in range(4):
        path = tmp_path / f"life-{number}"
        live(peer.version, number, made, path, keep=True)
        assert before.differences(Reading.of(peer, path)) == [], number
        long_ago(path)
        ours.run("recover", path, "--apply")
        assert layout.pending(path) == []
        assert before.differences(Reading.of(peer, path)) == [], number
        peer.upsert(path, newer(before.hudi.slice(0, 3)))
        assert peer.rows(path).num_rows == before.hudi.num_rows
        assert set(check_metadata(peer, path)) <= wrong
