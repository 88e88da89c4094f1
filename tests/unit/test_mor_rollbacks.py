"""Rollbacks of appends to log files (table version 6), compared with those of real Hudi 0.15.0 on the same tables."""

import re
import zipfile
from pathlib import Path

import pytest

from hudi_services.clock import SystemClock
from hudi_services.codecs.rollback_plan import RollbackMetadata, RollbackPlan
from hudi_services.commit.newest_files import check_superseded
from hudi_services.commit.timeline_copies import remove_instant
from hudi_services.commit.times import Times
from hudi_services.errors import CheckFailed
from hudi_services.log_files.log_blocks import BlockType, HeaderKey
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.rollback.execution import (
    is_still_completed,
    pending_rollback,
    resume_rollback,
    roll_back,
)
from hudi_services.snapshot import open_snapshot, refresh
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.timeline.instant import Action

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import files_by_partition
from .tables import FIXTURES, open_local

PAIRS = ["failed", "completed"]


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A table with something to roll back, and the same where Hudi has done it."""
    return unpack(request.param, tmp_path)


def unpack(name: str, folder: Path) -> tuple[Path, Path]:
    with zipfile.ZipFile(FIXTURES.parent / "rollbacks_0.15.0.zip") as archive:
        archive.extractall(folder, [one for one in archive.namelist() if one.startswith(name)])
    return folder / name, folder / f"{name}_by_hudi"


def target_of(by_hudi: Path) -> str:
    return made(by_hudi)[0].ts


def made(path: Path) -> tuple[RollbackPlan, RollbackMetadata]:
    timeline = open_local(path).timeline
    (found,) = timeline.completed({Action.ROLLBACK})
    return timeline.read_rollback_plan(found), timeline.read_rollback(found)


def roll_back_instant(path: Path, ts: str, storage: Storage | None = None) -> str:
    """Below `check_config`, which refuses merge-on-read tables so far."""
    table = open_snapshot(storage or open_storage(str(path)), SystemClock())
    begun = pending_rollback(table, ts)
    if begun is not None:
        if not is_still_completed(table, table.timeline.read_rollback_plan(begun)):
            return resume_rollback(table, begun, Times(table, 0))
        remove_instant(table, begun)
        table = refresh(table)
    target = table.timeline.find(ts)
    assert target
    return roll_back(table, target, Times(table, 0), keep_plan=False, checked=lambda _: None)


def name(path: str) -> str:
    return path.rpartition("/")[2]


def described(plan: RollbackPlan, done: RollbackMetadata) -> object:
    """What two rollbacks of the same instant have in common: names, not base paths and not times."""
    requests = [
        (r.partition, r.file_id, r.base_instant, r.files, sorted(map(name, r.log_blocks))) for r in plan.requests
    ]
    partitions = {
        partition: (
            [name(path) for path in (*one.deleted, *one.failed)],
            {name(path): size for path, size in one.command_logs.items()},
            sorted(map(name, one.failed_commit_logs)),
        )
        for partition, one in done.partitions.items()
    }
    return (plan.ts, plan.action, sorted(requests), done.target_ts, done.target_action, partitions)


def command_blocks(path: Path, plan: RollbackPlan, ts: str) -> list[tuple[str, bytes]]:
    """The log files with command blocks, whole, with the rollback's own instant blanked."""
    found = []
    for request in plan.requests:
        for file in sorted((path / request.partition).glob(f".{request.file_id}_*.log.*_1-0-1")):
            (block,) = read_log_blocks(file.read_bytes(), file.name)
            assert (block.type, block.header[HeaderKey.INSTANT_TIME]) == (BlockType.COMMAND, ts)
            found.append((file.name, file.read_bytes().replace(ts.encode(), b"*")))
    return sorted(found)


def test_the_same_as_hudi(pair: tuple[Path, Path]) -> None:
    path, by_hudi = pair
    ts = target_of(by_hudi)
    sizes = {name(str(log)): log.stat().st_size for log in path.glob("p*/.*.log.*")}
    roll_back_instant(path, ts)
    (plan, done), theirs = made(path), made(by_hudi)
    assert described(plan, done) == described(*theirs)
    assert command_blocks(path, plan, done.ts) == command_blocks(by_hudi, theirs[0], theirs[1].ts)
    assert all(sizes[name(log)] == size for request in plan.requests for log, size in request.log_blocks.items())
    assert open_local(path).timeline.find(ts) is None


def test_the_metadata_table_knows_the_log_files(pair: tuple[Path, Path]) -> None:
    path, by_hudi = pair
    roll_back_instant(path, target_of(by_hudi))
    metadata = open_local(path).metadata
    assert metadata is not None and not metadata.timeline.pending()
    for partition, listed in files_by_partition(metadata).items():
        stored = {file.name: file.stat().st_size for file in (path / partition).iterdir()}
        del stored[".hoodie_partition_metadata"]
        assert listed == stored


@pytest.mark.parametrize("kind", PAIRS)
def test_every_write_may_be_the_last(kind: str, tmp_path: Path) -> None:
    path, by_hudi = unpack(kind, tmp_path / "whole")
    ts = target_of(by_hudi)
    storage = FaultyStorage(str(path))
    roll_back_instant(path, ts, storage)
    whole = described(*made(path))
    # What follows the completed rollback is not taken up again: markers and heartbeat.
    last = next(i for i, entry in enumerate(storage.log) if entry.endswith(".rollback"))
    for survived in range(last):
        path, _ = unpack(kind, tmp_path / str(survived))
        with pytest.raises(Killed):
            roll_back_instant(path, ts, FaultyStorage(str(path), survived))
        roll_back_instant(path, ts)
        assert described(*made(path)) == whole, f"after {survived} writes"
        table = open_local(path)
        assert not table.timeline.pending() and table.metadata is not None and not table.metadata.timeline.pending()
        assert len(list(path.glob("p*/.*_1-0-1"))) == len(list(by_hudi.glob("p*/.*_1-0-1")))


def test_a_clean_of_log_files_that_readers_need(pair: tuple[Path, Path]) -> None:
    table = open_local(pair[0])
    slices = [one for partition in table.view.partitions() for one in table.view.latest_slices(partition)]
    needed = next(log for one in slices for log in one.log_files)
    with pytest.raises(CheckFailed, match=f"{re.escape(needed.path)} is to be deleted, and readers need it"):
        check_superseded(table, {needed.partition: [needed.name]})
    old = needed.name.replace(needed.instant, "20200101000000000")
    check_superseded(table, {needed.partition: [old]})
