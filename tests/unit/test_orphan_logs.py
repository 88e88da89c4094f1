"""Orphan log files: those of no instant; what a rollback command, a plan or a completed write needs stays."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from hudi_services.file_names import log_file_name
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.log_files.log_blocks import ROLLBACK_COMMAND, BlockType, HeaderKey, LogBlock
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.log_files.log_writer import encode_block
from hudi_services.orphan_files.model import OrphanKind, ReasonToStay
from hudi_services.runs.request import OrphanFilesMode

from . import histories
from .repairs import hide_metadata
from .tables import RELEASES, digest, listed_view, open_local
from .test_merge_on_read_indexes import TABLES, P, logged, made, rows
from .test_orphan_files import found, kept, look, request_for

DAY = 24 * 3600
GONE = "20260101000000000"
EACH_RELEASE = pytest.mark.parametrize("release", RELEASES)
LISTED = pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])


def put_log(path: Path, instants: Sequence[str], *, suffix: str = "", version: int = 0, cancels: str = "") -> str:
    """A log file with the blocks of another one as those of these instants, and a command; its path."""
    one = logged(path)
    naming = open_local(path).log_naming
    newest = one.log_files[-1]
    named = naming.instant_for(lambda: one.base_instant, instants[-1])
    name = log_file_name(one.file_id, named, version or newest.version + 1, "7-7-7") + suffix
    blocks = read_log_blocks((path / one.log_files[0].path).read_bytes(), "f")
    data = b""
    for ts in instants:
        for block in blocks:
            data += encode_block(LogBlock(block.type, {**block.header, HeaderKey.INSTANT_TIME: ts}, block.content))
    if cancels:
        header = {
            HeaderKey.INSTANT_TIME: instants[-1],
            HeaderKey.TARGET_INSTANT_TIME: cancels,
            HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
        }
        data = encode_block(LogBlock(BlockType.COMMAND, header, b""))
    file = path / one.partition / name
    file.write_bytes(data)
    os.utime(file, (time.time() - DAY,) * 2)
    return f"{one.partition}/{name}"


def files(path: Path) -> dict[str, str]:
    """The files outside of the folder of locks."""
    return {name: content for name, content in digest(path).items() if ".locks/" not in name}


def newest(path: Path) -> str:
    return open_local(path).timeline.completed_writes()[-1].ts


@pytest.mark.parametrize("name", TABLES)
@EACH_RELEASE
def test_a_healthy_table_has_none(release: str, name: str, tmp_path: Path) -> None:
    """With the metadata table and without; whatever a rollback left."""
    path = made(release, tmp_path, name)
    for is_listed in (True, False):
        if not is_listed:
            hide_metadata(path)
        findings = look(path)
        assert findings.items == () and findings.warnings == ()
        assert set(findings.kept) <= {ReasonToStay.CANCELLED}


@LISTED
@EACH_RELEASE
def test_a_log_file_of_nobody_goes_and_comes_back(release: str, listed: bool, tmp_path: Path) -> None:
    path = made(release, tmp_path)
    if not listed:
        hide_metadata(path)
    before, ts = rows(path) if listed else None, str(int(newest(path)) - 1)
    orphan = put_log(path, [ts])
    whole = files(path)
    findings = look(path)
    assert [(one.path, one.attempt, one.reason) for one in findings.items] == [(orphan, ts, OrphanKind.DEAD_ATTEMPT)]
    assert manage_orphan_files(request_for(path, OrphanFilesMode.QUARANTINE)).exit_code == 0
    assert not (path / orphan).exists() and not found(path)
    if listed:
        assert rows(path) == before
    (quarantine,) = (path / ".hoodie/.hudi_services/quarantine").iterdir()
    manage_orphan_files(request_for(path, OrphanFilesMode.RESTORE, quarantine=quarantine.name))
    assert files(path) == whole and found(path) == {orphan: OrphanKind.DEAD_ATTEMPT}


@LISTED
def test_blocks_that_somebody_needs_keep_their_file(listed: bool, tmp_path: Path) -> None:
    """Version 6: the name of a log file says nothing."""
    path = made("0.15.0", tmp_path)
    if not listed:
        hide_metadata(path)
    done, gone = newest(path), str(int(newest(path)) - 1)
    put_log(path, [gone, done])
    assert not found(path) and kept(path) == ({ReasonToStay.LOG_OF_SLICE: 1} if listed else {})
    cancelled = put_log(path, [gone], version=50)
    assert found(path).keys() == {cancelled}
    put_log(path, [done], version=51, cancels=gone)
    assert not found(path) and kept(path)[ReasonToStay.CANCELLED] >= 2
    # A task that outlived the rollback.
    late = put_log(path, [gone], version=52)
    assert found(path) == {late: OrphanKind.DEAD_ATTEMPT}
    torn = path / put_log(path, [gone], version=53)
    torn.write_bytes(torn.read_bytes()[:40])
    os.utime(torn, (time.time() - DAY,) * 2)
    assert found(path) == {late: OrphanKind.DEAD_ATTEMPT}


@EACH_RELEASE
def test_pending_writes_and_plans_keep_their_files(release: str, tmp_path: Path) -> None:
    path = made(release, tmp_path, "listed_pending")
    put_log(path, [str(int(newest(path)) - 1)])
    assert not found(path) and set(kept(path)) == {ReasonToStay.IN_PLAN}
    path = histories.MadeHistory(release, "uncommitted", tmp_path / "uncommitted").path
    assert not found(path) and set(kept(path)) == {ReasonToStay.PENDING}


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_change_data_of_a_commit_stays(release: str, tmp_path: Path) -> None:
    path = made(release, tmp_path)
    log = logged(path).log_files[-1]
    put_log(path, [log.instant], suffix=".cdc")
    assert not found(path) and not kept(path)
    stray = put_log(path, [log.instant], version=9)
    assert found(path) == {stray: OrphanKind.STRAY}


def test_a_log_file_that_would_be_seen_does_not_come_back(tmp_path: Path) -> None:
    """Version 6 without a metadata table: once the timeline begins after a block, readers see the block."""
    path = made("0.15.0", tmp_path)
    hide_metadata(path)
    ts = str(int(newest(path)) - 1)
    put_log(path, [ts])
    manage_orphan_files(request_for(path, OrphanFilesMode.QUARANTINE))
    timeline = open_local(path).timeline
    later = newest(path)
    for name in timeline.sizes:
        if name[:17] < later:
            (path / timeline.path(name)).unlink()
    (quarantine,) = (path / ".hoodie/.hudi_services/quarantine").iterdir()
    with pytest.raises(Exception, match="readers would take them for"):
        manage_orphan_files(request_for(path, OrphanFilesMode.RESTORE, quarantine=quarantine.name))
    assert listed_view(open_local(path)).partitions() == [P]
