"""The metadata table of merge-on-read tables: what is wrong is found and repaired, and a record index is built."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.engine import LocalEngine
from hudi_services.file_names import log_file_name
from hudi_services.file_records.doubts import Doubt
from hudi_services.jobs import clustering
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.index_lookup import index_lookup
from hudi_services.log_files.block_contents import delete_block_content
from hudi_services.log_files.log_blocks import BlockType, HeaderKey, LogBlock
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.log_files.log_writer import encode_block
from hudi_services.metadata.record_index.locations import Location
from hudi_services.metadata.records.keys import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX, column_stats_key
from hudi_services.metadata.records.model import FileEntry, FilesRecord, LocationRecord, RecordType, StatsRecord
from hudi_services.model import CommitMetadata, FileSlice, LogFile, WriteStat
from hudi_services.options import resolve
from hudi_services.runs.report import CheckResult, Report
from hudi_services.runs.report import RunState as Outcome
from hudi_services.runs.request import LookupRequest, Mode
from hudi_services.timeline.instant import Action
from hudi_services.validation.model import DifferenceKind

from . import histories
from .corruptions import GONE, metadata_of, write_own
from .faulty_storage import FaultyStorage, Killed
from .repairs import complete
from .shares import THREE_SHARES, places, share
from .tables import RELEASES, listed_view, open_local, request
from .test_index_bootstrap import indexed_locations, is_listed, wanted
from .test_merge_histories import comparable, merged_rows
from .test_validate import found, run, unsure

P = "p0"
TABLES = ("indexed", "listed_log_only", "listed_pending", "listed_rolled_back")
# While a compaction is pending, 1.0.2 takes the newest log files for the whole partition: it misses rows.
HIDDEN = {
    (PARTITION_STATS, DifferenceKind.NARROW_RANGE.value, P, None, name) for name in ("_hoodie_commit_time", "val", "ts")
}
EACH_TABLE = pytest.mark.parametrize(("release", "name"), [(r, name) for r in RELEASES for name in TABLES])
EACH_RELEASE = pytest.mark.parametrize("release", RELEASES)
MEMORY = 1 << 20


def made(release: str, folder: Path, name: str = "indexed") -> Path:
    return histories.MadeHistory(release, name, folder).path


def rows(path: Path) -> list[dict[str, Any]]:
    """What readers see, which is the same with the metadata table and without."""
    table = open_local(path)
    assert table.view.live_slices() == listed_view(table).live_slices()
    return comparable(merged_rows(table, MEMORY))


def logged(path: Path) -> FileSlice:
    return next(one for one in listed_view(open_local(path)).live_slices() if one.log_files)


def agrees(path: Path) -> Report:
    """The report of a run that finds nothing to complain about."""
    report = run(path)
    assert (report.exit_code, found(report), unsure(report)) == (0, set(), set()), report.tables
    assert all(check.result is CheckResult.PASSED for check in report.checks)
    return report


def is_repaired(path: Path) -> None:
    assert run(path, repair=True).state is Outcome.COMPLETED
    agrees(path)


@pytest.mark.thorough
@EACH_TABLE
def test_a_table_of_hudi_agrees(release: str, name: str, tmp_path: Path) -> None:
    path = made(release, tmp_path, name)
    before = rows(path)
    if (release, name) == ("1.0.2", "listed_pending"):
        assert found(run(path)) == HIDDEN
        is_repaired(path)
    agrees(path)
    assert rows(path) == before


@EACH_TABLE
def test_after_a_clustering(release: str, name: str, tmp_path: Path) -> None:
    path = made(release, tmp_path, name)
    if name != "listed_pending":
        clustering.schedule_and_execute(request(path, Mode.SCHEDULE_AND_EXECUTE), engine=LocalEngine())
        agrees(path)


def wrong_statistics(path: Path, logs: Sequence[LogFile]) -> set[Any]:
    missing, wrong = column_stats_key("ts", P, logs[0].name), column_stats_key("val", P, logs[1].name)
    (_, stored), *_ = metadata_of(open_local(path)).reader(COLUMN_STATS).stored([wrong])
    assert isinstance(stored.merged, StatsRecord)
    write_own(path, {}, {COLUMN_STATS: [missing, wrong]})
    write_own(path, {COLUMN_STATS: [replace(stored.merged, minimum="d")]})
    return {
        (COLUMN_STATS, DifferenceKind.STATISTICS_MISSING.value, P, logs[0].name, "ts"),
        (COLUMN_STATS, DifferenceKind.WRONG_MINIMUM.value, P, logs[1].name, "val"),
    }


def wrong_listing(path: Path, logs: Sequence[LogFile]) -> set[Any]:
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {logs[0].name: GONE})]})
    write_own(path, {FILES: [FilesRecord(P, RecordType.FILES, {logs[1].name: FileEntry(logs[1].size + 9)})]})
    return {
        (FILES, DifferenceKind.FILE_MISSING.value, P, logs[0].name, None),
        (FILES, DifferenceKind.WRONG_SIZE.value, P, logs[1].name, None),
    }


def wrong_keys(path: Path, logs: Sequence[LogFile]) -> set[Any]:
    """A key that log files update is gone; one that a log file deletes is back."""
    one = logged(path)
    assert one.base_file is not None
    dead = LocationRecord("key-23", Location(P, one.file_id, 0))
    write_own(path, {RECORD_INDEX: [dead]}, {RECORD_INDEX: ["key-00"]})
    return {
        (RECORD_INDEX, DifferenceKind.DEAD_KEY.value, P, None, None),
        (RECORD_INDEX, DifferenceKind.KEY_MISSING.value, P, one.base_file.name, None),
    }


def lost_log(path: Path, logs: Sequence[LogFile]) -> set[Any]:
    """A log file with deletes alone is lost: its keys come back."""
    (path / logs[2].path).unlink()
    return {(FILES, DifferenceKind.STALE_FILE.value, P, logs[2].name, None)}


@pytest.mark.thorough
@pytest.mark.spread(6)
@EACH_RELEASE
@pytest.mark.parametrize("wrong", [wrong_statistics, wrong_listing, wrong_keys, lost_log])
def test_what_is_wrong_is_found_and_repaired(
    release: str, wrong: Callable[[Path, Sequence[LogFile]], set[Any]], tmp_path: Path
) -> None:
    path = made(release, tmp_path)
    differences = wrong(path, logged(path).log_files)
    before = comparable(merged_rows(open_local(path), MEMORY))
    report = run(path)
    assert report.exit_code == 5
    assert differences <= found(report)
    if wrong is not lost_log:
        assert differences == found(report)
    is_repaired(path)
    assert rows(path) == before


@EACH_RELEASE
def test_a_torn_block_is_named_and_stays(release: str, tmp_path: Path) -> None:
    path = made(release, tmp_path)
    log = logged(path).log_files[1]
    (path / log.path).write_bytes((path / log.path).read_bytes()[:-20])
    report = run(path)
    lost = (FILES, DifferenceKind.LOST_RECORDS.value, P, log.name, None)
    assert found(report) == {lost, (FILES, DifferenceKind.WRONG_SIZE.value, P, log.name, None)}
    assert (P, log.name, Doubt.BROKEN_FILE.value) in unsure(report)
    (why,) = [check.detail for check in report.checks if check.name == RECORD_INDEX]
    assert "cannot be judged" in why
    index = indexed_locations(path)
    left = run(path, repair=True)
    assert left.state is Outcome.PARTLY_DONE
    assert found(left) == {lost} and indexed_locations(path) == index


def test_a_rule_that_is_not_supported_is_not_compared(tmp_path: Path) -> None:
    path = made("1.0.2", tmp_path)
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("EVENT_TIME_ORDERING", "CUSTOM"))
    report = run(path, repair=True)
    assert found(report) == set() and {reason for _, _, reason in unsure(report)} == {Doubt.NOT_MERGED.value}
    (check,) = [one for one in report.checks if one.name == RECORD_INDEX]
    assert check.result is CheckResult.SKIPPED and Doubt.NOT_MERGED.value in check.detail
    assert report.instant is None


@EACH_RELEASE
def test_a_block_of_another_kind_is_not_compared(release: str, tmp_path: Path) -> None:
    """Hudi may read it: it is no difference."""
    path = made(release, tmp_path)
    log = logged(path).log_files[1]
    data = b"".join(
        encode_block(LogBlock(BlockType.HFILE_DATA, block.header, block.content))
        for block in read_log_blocks((path / log.path).read_bytes(), log.name)
    )
    (path / log.path).write_bytes(data)
    report = run(path, repair=True)
    assert found(report) == set()
    assert (P, log.name, Doubt.NOT_MERGED.value) in unsure(report)


# ---- the record index


def append_log(path: Path, ts: str, deletes: Sequence[str], alike: tuple[str, str] | None = None) -> None:
    """A delta commit of another writer, which the listing knows: deletes, and the newest records under another key."""
    table, one = open_local(path), logged(path)
    newest = max(one.log_files, key=lambda log: log.version)
    instant = table.log_naming.instant_for(lambda: one.base_instant, ts)
    name = log_file_name(one.file_id, instant, newest.version + 1, "9-9-9")
    blocks = [b for b in read_log_blocks((path / one.log_files[0].path).read_bytes(), "f") if alike]
    header = {HeaderKey.INSTANT_TIME: ts}
    data = b""
    for block in (one for one in blocks if one.type is BlockType.AVRO_DATA):
        content = block.content.replace(alike[0].encode(), alike[1].encode()) if alike else b""
        data += encode_block(LogBlock(block.type, {**block.header, **header}, content))
    if deletes:
        content = delete_block_content([*deletes], one.partition)
        data += encode_block(LogBlock(BlockType.DELETE, header, content))
    (path / one.partition / name).write_bytes(data)
    stat = WriteStat(one.partition, one.file_id, f"{one.partition}/{name}", num_writes=1, file_size=len(data))
    complete(path, ts, CommitMetadata("UPSERT", {one.partition: (stat,)}), Action.DELTA_COMMIT)
    write_own(path, {FILES: [FilesRecord(one.partition, RecordType.FILES, {name: FileEntry(len(data))})]})


def real_locations(path: Path) -> dict[str, tuple[str, str]]:
    """Partition and file id of every key that readers see."""
    table = open_local(path)
    return {
        key: (one.partition, one.file_id)
        for one in listed_view(table).live_slices()
        for keys in table.slices.open(one).record_keys()
        for key in keys.to_pylist()
    }


@EACH_RELEASE
def test_keys_in_log_files_alone_are_indexed(release: str, tmp_path: Path) -> None:
    path = made(release, tmp_path, "listed_log_only")
    assert all(one.base_file is None for one in listed_view(open_local(path)).live_slices())
    keys = {row["id"] for row in rows(path)}
    report = index_bootstrap(wanted(path), engine=LocalEngine())
    assert report.state is Outcome.COMPLETED
    assert indexed_locations(path) == real_locations(path) and real_locations(path).keys() == keys
    agrees(path)
    asked = pa.array([*sorted(keys), "b", "nobody"])
    looked = index_lookup(LookupRequest(base_path=str(path), options=resolve([]), keys=asked))
    assert [row["key"] for row in looked.tables["locations"]] == sorted(keys)
    # A stale key, and one that is missing.
    (partition, file_id), gone = real_locations(path)["a"], sorted(keys)[-1]
    write_own(path, {RECORD_INDEX: [LocationRecord("b", Location(partition, file_id, 0))]}, {RECORD_INDEX: [gone]})
    name = logged(path).log_files[0].name
    assert found(run(path)) == {
        (RECORD_INDEX, DifferenceKind.DEAD_KEY.value, P, None, None),
        (RECORD_INDEX, DifferenceKind.KEY_MISSING.value, P, name, None),
    }
    is_repaired(path)
    assert indexed_locations(path) == real_locations(path)


class Meanwhile(LocalEngine):
    """Delta commits complete while the index is built."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._steps = {
            "read record keys": lambda ts: append_log(path, ts, ["d"], ("a", "f")),
            "write the record index": lambda ts: append_log(path, ts, ["f"]),
            "follow the table": lambda ts: append_log(path, ts, [], ("a", "g")),
        }

    def map(self, function: Any, tasks: Any, what: str, progress: Any) -> Any:
        found = super().map(function, tasks, what, progress)
        if step := self._steps.pop(what, None):
            step(next_instant(self._path))
        return found


def next_instant(path: Path) -> str:
    return str(int(max(one.ts for one in open_local(path).timeline.instants)) + 10)


@EACH_RELEASE
def test_delta_commits_are_followed(release: str, tmp_path: Path) -> None:
    path = made(release, tmp_path, "listed_log_only")
    before = real_locations(path)
    index_bootstrap(wanted(path), engine=Meanwhile(path))
    after = real_locations(path)
    assert "d" in before and "g" in after and after.keys().isdisjoint("df")
    assert indexed_locations(path) == after


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize(("release", "number"), THREE_SHARES)
def test_a_build_is_killed_at_any_write(release: str, number: int, tmp_path: Path) -> None:
    """A delta commit is completed before the build is resumed."""
    before = made(release, tmp_path / "made", "listed_log_only")
    whole = tmp_path / "whole"
    shutil.copytree(before, whole)
    counted = FaultyStorage(str(whole))
    index_bootstrap(wanted(whole), counted, LocalEngine())
    for survived in share(places(counted.log), number, 3):
        path = tmp_path / "killed"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(before, path)
        with pytest.raises(Killed):
            index_bootstrap(wanted(path), FaultyStorage(str(path), survived), LocalEngine())
        if not is_listed(path):
            append_log(path, next_instant(path), ["d"], ("a", "f"))
            assert index_bootstrap(wanted(path, resume=True), engine=LocalEngine()).state is Outcome.COMPLETED
        assert indexed_locations(path) == real_locations(path), survived
