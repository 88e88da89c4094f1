"""Rollbacks and repairs of merge-on-read tables that real Hudi wrote, against the tables as they were before."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_services.commit.markers import marker_folder
from hudi_services.commit.times import Times
from hudi_services.errors import ConfigError, ConflictError, NothingToDo
from hudi_services.file_names import log_file_name
from hudi_services.jobs import recover, rollback, undo
from hudi_services.log_files.log_blocks import HeaderKey, LogBlock
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.log_files.log_writer import encode_block
from hudi_services.metadata.records.keys import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX, column_stats_key
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType
from hudi_services.metadata.statistics.indexed_columns import described_columns
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.metadata_updates.rollback.lasting import lasting_in
from hudi_services.metadata_updates.sync import sync_repair
from hudi_services.model import CommitMetadata
from hudi_services.rollback.earlier import Earlier
from hudi_services.rollback.restored_keys import restored_keys
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action, Instant
from hudi_services.timeline.instant import State as Progress

from . import histories
from .corruptions import write_own
from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import far_future
from .repairs import DEAD_AT_ONCE, LATER, NO_HEARTBEAT, complete, hide_metadata, repair
from .shares import places, share
from .tables import RELEASES, digest, open_local
from .test_merge_histories import CUSTOM, comparable, merged_rows
from .test_merge_on_read_clean import MEMORY, P, both_rows, clustered, listed, stored
from .test_recover import wanted

STEPS = [1, 2, 3, 4]


def names_of(commit: CommitMetadata) -> set[str]:
    """The names of the files that a commit wrote."""
    return {stat.path.rpartition("/")[2] for stats in commit.stats.values() for stat in stats}


def forget(path: Path, ts: str) -> None:
    """Take the newest commit out of the table and of its metadata table, as if it had never been."""
    table = open_local(path)
    metadata = table.metadata
    timelines: list[tuple[Timeline, Path]] = [(table.timeline, path)]
    timelines += [(metadata.timeline, path / ".hoodie/metadata")] if metadata else []
    for timeline, root in timelines:
        found = timeline.find(ts)
        assert found
        for partition, stats in timeline.read_commit(found).stats.items():
            for stat in stats:
                (root / partition / stat.path.rpartition("/")[2]).unlink()
        for name in [name for name in timeline.sizes if name.startswith(ts)]:
            (path / timeline.path(name)).unlink()


def at_step(release: str, step: int, folder: Path) -> Path:
    """A table with a metadata table, as it was after a step of its history."""
    path = histories.MadeHistory(release, "indexed", folder).path
    for write in reversed(open_local(path).timeline.completed_writes()[step + 1 :]):
        forget(path, write.ts)
    return path


def before_newest(path: Path, folder: Path) -> Path:
    """A copy of the table without its newest commit."""
    shutil.copytree(path, folder)
    forget(folder, open_local(path).timeline.completed_writes()[-1].ts)
    return folder


def fail_newest(path: Path, *, markers: bool) -> str:
    """Make the newest commit one whose writer was killed just before it completed it; its instant."""
    table = open_local(path)
    target = table.timeline.completed_writes()[-1]
    for stats in table.timeline.read_commit(target).stats.values():
        for stat in stats if markers else ():
            appends = ".log." in stat.path and not table.log_naming.tells_writers
            updates = ".log." not in stat.path and stat.prev_commit != "null"
            kind = "APPEND" if appends else "MERGE" if updates else "CREATE"
            marker = path / marker_folder(target.ts) / f"{stat.path}.marker.{kind}"
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
    (path / table.timeline.path(target.file_name)).unlink()
    return target.ts


def indexes(path: Path) -> dict[str, Any]:
    """All records of the metadata table, but for the listing."""
    metadata = open_local(path).metadata
    assert metadata is not None
    return {
        name: {key: found.merged for key, found in scanned(metadata, name) if found.merged is not None}
        for name in metadata.partitions
        if name != FILES
    }


def scanned(metadata: Any, name: str) -> Any:
    return (item for group in metadata.reader(name).groups for item in group.stored())


def is_as_before(path: Path, before: Path, *, but: str = "") -> None:
    """The rows, the indexes and the files are those from before; version 6 also has files that do not count.

    `but` is an index that may differ.
    """
    assert both_rows(path) == both_rows(before)
    found, expected = indexes(path), indexes(before)
    assert {n: one for n, one in found.items() if n != but} == {n: one for n, one in expected.items() if n != but}
    assert listed(path) == stored(path) >= stored(before)
    table = open_local(path)
    if table.log_naming.tells_writers:
        assert stored(path) == stored(before)
    assert not table.timeline.pending()


def passed_by(path: Path) -> Path:
    """The table when its timeline begins later than everything that was written."""
    table = open_local(path)
    complete(path, LATER, CommitMetadata("UPSERT", {}), Action.DELTA_COMMIT)
    for name in table.timeline.sizes:
        (path / table.timeline.path(name)).unlink()
    return path


def rows_listed(path: Path) -> list[dict[str, Any]]:
    """The rows without the metadata table."""
    return comparable(merged_rows(open_local(path), MEMORY))


def rolled_back(path: Path, ts: str, storage: FaultyStorage | None = None, **more: bool) -> Any:
    return rollback.rollback(repair(path, "rollback", ts, DEAD_AT_ONCE, **more), storage)


def recovered(path: Path, storage: FaultyStorage | None = None) -> Any:
    return recover.recover(wanted(path, after="0"), storage)


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize(("step", "markers"), [(1, True), (2, False), (3, False), (4, True)])
@pytest.mark.parametrize("release", RELEASES)
def test_a_failed_delta_commit(release: str, step: int, markers: bool, tmp_path: Path) -> None:
    path = at_step(release, step, tmp_path)
    before = before_newest(path, tmp_path / "before")
    ts = fail_newest(path, markers=markers)
    if step % 2:
        rolled_back(path, ts)
    else:
        (row,) = recovered(path).tables["instants"]
        assert row["decision"] == "roll back"
    is_as_before(path, before)
    if not open_local(path).log_naming.tells_writers:
        # On version 6, the command block alone hides the blocks when the instant is archived.
        assert rows_listed(passed_by(path)) == rows_listed(passed_by(before))


def test_a_command_block_hides_the_blocks_of_an_archived_instant(tmp_path: Path) -> None:
    """On version 6 nothing else does."""
    path = at_step("0.15.0", 1, tmp_path)
    before = before_newest(path, tmp_path / "before")
    rolled_back(path, fail_newest(path, markers=True))
    assert rows_listed(passed_by(path)) == rows_listed(passed_by(before))


def begun(
    release: str, name: str, step: int, folder: Path, kind: Action = Action.DELTA_COMMIT
) -> tuple[Path, Instant, list[dict[str, Any]]]:
    """A table at a step, where the newest instant of this kind was killed just before it was completed."""
    made = histories.MadeHistory(release, name, folder)
    assert made.rewind(made.steps[step])
    table = open_local(made.path)
    newest = [one for one in table.timeline.completed_writes() if table.timeline.began_as(one) is kind][-1]
    rows = both_rows(made.path)
    (made.path / table.timeline.path(newest.file_name)).unlink()
    return made.path, newest, rows


@pytest.mark.parametrize("command", ["recover", "rollback"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_dead_compaction_is_planned_again(release: str, command: str, tmp_path: Path) -> None:
    """Its base files go, and its plan stays: on version 6 there are log files with its time, which stay, too."""
    path, newest, _ = begun(release, "compaction", -2, tmp_path, Action.COMPACTION)
    before, files = both_rows(path), stored(path)
    if command == "recover":
        (row,) = recovered(path).tables["instants"]
        assert (row["decision"], row["action"]) == ("roll back", "compaction")
    else:
        rolled_back(path, newest.ts)
    (pending,) = open_local(path).timeline.pending()
    assert (pending.ts, pending.action, pending.state) == (newest.ts, Action.COMPACTION, Progress.REQUESTED)
    assert both_rows(path) == before
    (gone,) = files - stored(path)
    assert gone.endswith(f"_{newest.ts}.parquet")
    with pytest.raises(NothingToDo, match="every pending instant must wait"):
        recovered(path)
    with pytest.raises(ConfigError, match="is the plan of a compaction, and nothing of it was begun"):
        rolled_back(path, newest.ts)


@pytest.mark.parametrize("release", RELEASES)
def test_a_dead_log_compaction(release: str, tmp_path: Path) -> None:
    path, newest, rows = begun(release, "log_compaction", 4, tmp_path, Action.LOG_COMPACTION)
    (pending,) = open_local(path).timeline.pending()
    assert pending.action is Action.LOG_COMPACTION
    (row,) = recovered(path).tables["instants"]
    assert row["decision"] == "roll back"
    assert not open_local(path).timeline.find(newest.ts)
    values = [{name: one[name] for name in ("id", "val", "num", "ts")} for one in rows]
    assert [{name: one[name] for name in ("id", "val", "num", "ts")} for one in rows_listed(path)] == values
    if not open_local(path).log_naming.tells_writers:
        assert rows_listed(passed_by(path)) == rows_listed(path)
    else:
        assert not [name for name in stored(path) if f"_{newest.ts}.log" in name]


@pytest.mark.parametrize("release", RELEASES)
def test_a_failed_write_into_the_slice_of_a_pending_compaction(release: str, tmp_path: Path) -> None:
    """Without markers: on version 6 the command block must be in the slice that the compaction has begun."""
    path, newest, _ = begun(release, "compaction", -3, tmp_path)
    made = histories.MadeHistory(release, "compaction", tmp_path / "before")
    assert made.rewind(made.steps[-4])
    rolled_back(path, newest.ts)
    assert both_rows(path) == both_rows(made.path)
    (pending,) = open_local(path).timeline.pending()
    assert pending.action is Action.COMPACTION
    # The write need not be on the timeline for its blocks to stay hidden.
    commands = [name for name in stored(path) if name.endswith("_1-0-1")]
    assert [pending.ts in name for name in commands] == ([] if open_local(path).log_naming.tells_writers else [True])


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize("release", RELEASES)
def test_every_write_of_a_rollback_may_be_the_last(release: str, tmp_path: Path) -> None:
    made = at_step(release, 4, tmp_path / "made")
    before = before_newest(made, tmp_path / "before")
    ts = fail_newest(made, markers=True)
    killed_anywhere(made, before, tmp_path / "table", lambda path, storage: rolled_back(path, ts, storage))


def killed_anywhere(
    made: Path, before: Path, path: Path, run: Callable[[Path, FaultyStorage], object], *, but: str = ""
) -> None:
    """Killed at any write, readers see the rows from before or after, and recover or the next run mends the table."""

    def killed(writes: int | None) -> list[str]:
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(made, path)
        storage = FaultyStorage(str(path), writes)
        with suppress(Killed):
            run(path, storage)
        return storage.log

    either = (both_rows(before), both_rows(made))
    log = killed(None)
    is_as_before(path, before, but=but)
    for survived in share(places(log), 3, 10):
        killed(survived)
        assert both_rows(path) in either, f"after {survived} writes: {log[survived]}"
        with suppress(NothingToDo):
            recovered(path)
        with suppress(NothingToDo):
            run(path, FaultyStorage(str(path)))
        is_as_before(path, before, but=but)


def taken_back(path: Path, ts: str, storage: FaultyStorage | None = None) -> Any:
    """The rollback of a completed write."""
    return rollback.rollback(repair(path, "rollback", ts, NO_HEARTBEAT, completed=True), storage)


def undone(path: Path, ts: str, storage: FaultyStorage | None = None) -> Any:
    return undo.undo(repair(path, "undo", ts, NO_HEARTBEAT), storage)


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_completed_delta_commit(release: str, step: int, tmp_path: Path) -> None:
    path = at_step(release, step, tmp_path)
    before = before_newest(path, tmp_path / "before")
    earlier, newest = (one.ts for one in open_local(path).timeline.completed_writes()[-2:])
    untouched = digest(path)
    with pytest.raises(ConflictError, match=f"{newest} .completed. is later than {earlier}"):
        taken_back(path, earlier)
    assert {name: one for name, one in digest(path).items() if ".locks" not in name} == untouched
    taken_back(path, newest)
    is_as_before(path, before)
    if not open_local(path).log_naming.tells_writers:
        assert rows_listed(passed_by(path)) == rows_listed(passed_by(before))


@pytest.mark.parametrize("release", RELEASES)
def test_a_completed_compaction_is_planned_again(release: str, tmp_path: Path) -> None:
    made = histories.MadeHistory(release, "compaction", tmp_path)
    path, timeline = made.path, open_local(made.path).timeline
    compaction = next(one for one in timeline.completed_writes() if timeline.began_as(one) is Action.COMPACTION)
    for later in [one for one in timeline.completed_writes() if one.ts > compaction.ts]:
        with pytest.raises(ConflictError, match="is later than"):
            taken_back(path, compaction.ts)
        forget(path, later.ts)
    expected = histories.MadeHistory(release, "compaction", tmp_path / "before")
    assert expected.rewind(expected.steps[2])
    old = next(file for file in (path / P).iterdir() if ".log." in file.name)
    kept = old.rename(path / "kept")
    with pytest.raises(ConflictError, match="were cleaned, so that their rows would be lost"):
        taken_back(path, compaction.ts)
    kept.rename(old)
    taken_back(path, compaction.ts)
    (pending,) = open_local(path).timeline.pending()
    assert (pending.ts, pending.action, pending.state) == (compaction.ts, Action.COMPACTION, Progress.REQUESTED)
    assert both_rows(path) == both_rows(expected.path)
    # A write that the plan reads cannot be rolled back any more.
    write = open_local(path).timeline.completed_writes()[-1]
    with pytest.raises(ConflictError, match="is later than") as refused:
        taken_back(path, write.ts)
    assert "the plan of a compaction cannot be taken back" in refused.value.hint


def located(path: Path) -> dict[str, str]:
    """The file group of each key in the record index."""
    metadata = open_local(path).metadata
    assert metadata is not None
    found = scanned(metadata, RECORD_INDEX)
    return {key: one.merged.location.file_id for key, one in found if one.merged is not None}


def really_located(path: Path) -> dict[str, str]:
    """The file group of each key by the rows."""
    table = open_local(path)
    slices = table.view.live_slices()
    return {
        key: one.file_id for one in slices for keys in table.slices.open(one).record_keys() for key in keys.to_pylist()
    }


def repair_record_index(path: Path, ts: str) -> None:
    """A repair of the record index after the instant `ts`, which brings all its keys up to date."""
    table = open_local(path)
    target = table.timeline.find(ts)
    assert target and table.metadata
    before = list(Earlier(table, target, table.view.partitions()).slices.values())
    earlier = table.slices.as_of(f"{int(ts) - 1}", MEMORY)
    moved = restored_keys(table, LATER, table.view.live_slices(), before, earlier)
    sync_repair(table.metadata, {}, Times(table, 0).next, moved)
    shutil.rmtree(path / marker_folder(LATER))


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize("step", [3, 4])
@pytest.mark.parametrize("release", RELEASES)
def test_a_record_index_that_keeps_a_completed_delta_commit(release: str, step: int, tmp_path: Path) -> None:
    """Keys that are in log files alone, and keys that log files delete, are put in and taken out."""
    path = at_step(release, step, tmp_path)
    ts = open_local(path).timeline.completed_writes()[-1].ts
    repair_record_index(path, ts)
    now = really_located(path)
    assert located(path) == now
    metadata = open_local(path).metadata
    assert metadata and RECORD_INDEX in lasting_in(metadata, ts)
    taken_back(path, ts)
    assert really_located(path) != now
    assert located(path) == really_located(path)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_a_clustering(release: str, tmp_path: Path) -> None:
    made = clustered(release, tmp_path)
    before = histories.MadeHistory(release, "indexed", tmp_path / "before").path
    ts = open_local(made).timeline.completed_writes()[-1].ts
    path = Path(shutil.copytree(made, tmp_path / "copy"))
    undone(path, ts)
    # The ranges of partitions may stay, because the rows are the same: the metadata table was compacted since.
    is_as_before(path, before, but=PARTITION_STATS)
    # A log file in a new file group, or one more in an old one, forbids it: their rows would be lost or come in.
    for number, one in enumerate((open_local(made).view.live_slices()[0], *open_local(before).view.live_slices()[:1])):
        path = Path(shutil.copytree(made, tmp_path / str(number)))
        table = open_local(path)
        instant = table.log_naming.instant_for(lambda one=one: one.base_instant, f"{int(ts) + 1}")
        log = next(iter((before / P).glob(".*.log.*")))
        shutil.copy(log, path / P / f".{one.file_id}_{instant}.log.7_0-0-0")
        commit = CommitMetadata("UPSERT", {})
        complete(path, f"{int(ts) + 1}", commit, Action.DELTA_COMMIT)
        hide_metadata(path)
        with pytest.raises(ConflictError, match="got log files since" if not number else "was superseded by .*log.7"):
            undone(path, ts)


@pytest.mark.parametrize("release", RELEASES)
def test_a_clustering_of_hudi(release: str, tmp_path: Path) -> None:
    made = histories.MadeHistory(release, "clustering", tmp_path)
    clusterings = open_local(made.path).timeline.completed({Action.REPLACE_COMMIT})
    with pytest.raises(ConflictError, match="got log files since"):
        undone(made.path, clusterings[-1].ts)
    assert made.rewind(made.steps[-2])
    forget_files = [file for file in (made.path / P).glob(".*.log.*") if clusterings[-1].ts in file.name]
    for file in forget_files:
        file.unlink()
    undone(made.path, clusterings[-1].ts)
    expected = histories.MadeHistory(release, "clustering", tmp_path / "before")
    assert expected.rewind(expected.steps[2])
    assert both_rows(made.path) == both_rows(expected.path)


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.sweep
@pytest.mark.parametrize("command", [taken_back, undone])
@pytest.mark.parametrize("release", RELEASES)
def test_every_write_of_taking_back_may_be_the_last(
    release: str, command: Callable[[Path, str, FaultyStorage], Any], tmp_path: Path
) -> None:
    made = clustered(release, tmp_path / "made") if command is undone else at_step(release, 4, tmp_path / "made")
    before = histories.MadeHistory(release, "indexed", tmp_path / "before").path
    if command is taken_back:
        before = before_newest(made, tmp_path / "earlier")
    ts = open_local(made).timeline.completed_writes()[-1].ts
    but = PARTITION_STATS if command is undone else ""
    killed_anywhere(made, before, tmp_path / "table", lambda path, storage: command(path, ts, storage), but=but)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_statistics_of_log_files_that_come_back(release: str, tmp_path: Path) -> None:
    """Where ranges of partitions are made from statistics, log files need theirs."""
    path = clustered(release, tmp_path)
    table = open_local(path)
    assert table.metadata is not None
    ts = table.timeline.completed_writes()[-1].ts
    logs = [file.name for file in (path / P).glob(".*.log.*")]
    keys = [column_stats_key(column, P, name) for name in logs for column in described_columns(table.metadata)]
    write_own(path, {FILES: []}, {COLUMN_STATS: keys})
    before = {name: one for name, one in digest(path).items() if ".locks" not in name}
    if PARTITION_STATS in table.metadata.partitions:
        with pytest.raises(ConflictError, match=rf"index column_stats was built .* no record of {P}/.*\.log\."):
            undone(path, ts)
        assert {name: one for name, one in digest(path).items() if ".locks" not in name} == before
    else:
        undone(path, ts)
        assert both_rows(path) == both_rows(histories.MadeHistory(release, "indexed", tmp_path / "before").path)


@pytest.mark.parametrize("release", RELEASES)
def test_replaced_file_groups_with_log_files(release: str, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, "indexed", tmp_path).path
    hide_metadata(path)
    before = rows_listed(path)
    live = open_local(path).view.live_slices()
    ids = tuple(one.file_id for one in live)
    ts = f"{int(open_local(path).timeline.latest_time()) + 1}"
    complete(path, ts, CommitMetadata("delete_partition", {}, {}, {P: ids}), Action.REPLACE_COMMIT)
    assert rows_listed(path) == []
    report = rollback.rollback(repair(path, "rollback", ts, NO_HEARTBEAT, completed=True, dry_run=True))
    assert report.tables["visible_again"][0]["files"] == sum(len(one.files) for one in live)
    taken_back(path, ts)
    assert rows_listed(path) == before


def write_again(path: Path, whole: Path, number: int) -> str:
    """A write of the same log records as one of the whole history, in a log file and the listing alone; its instant."""
    timeline = open_local(whole).timeline
    commit = timeline.read_commit(timeline.completed_writes()[number])
    (stat,) = (one for one in commit.stats[P] if ".log." in one.path)
    table = open_local(path)
    assert table.metadata is not None
    group = next(one for one in table.view.live_slices() if one.file_id == stat.file_id)
    blocks = read_log_blocks((whole / stat.path).read_bytes(), stat.path)
    again = (LogBlock(one.type, {**one.header, HeaderKey.INSTANT_TIME: LATER}, one.content) for one in blocks)
    data = b"".join(map(encode_block, again))
    instant = table.log_naming.instant_for(lambda: group.base_instant, LATER)
    name = log_file_name(stat.file_id, instant, 9, "9-9-9")
    (path / P / name).write_bytes(data)
    listing = FilesRecord(P, RecordType.FILES, {name: FileEntry(len(data))})
    write_delta_commit(table.metadata, LATER, {FILES: [listing]}, far_future())
    new = replace(stat, path=f"{P}/{name}", file_size=len(data), prev_commit=group.base_instant, log_files=None)
    complete(path, LATER, CommitMetadata("UPSERT", {P: (new,)}), Action.DELTA_COMMIT)
    return LATER


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize(("step", "number", "more"), [(3, 1, True), (2, 3, False)], ids=["keys come", "keys go"])
@pytest.mark.parametrize("release", RELEASES)
def test_keys_of_log_files_alone(release: str, step: int, number: int, more: bool, tmp_path: Path) -> None:
    """Updates that bring deleted keys back, and deletes: the record index has neither after the rollback."""
    path = at_step(release, step, tmp_path)
    before = really_located(path)
    ts = write_again(path, histories.MadeHistory(release, "indexed", tmp_path / "whole").path, number)
    now = really_located(path)
    assert now.keys() > before.keys() if more else now.keys() < before.keys()
    repair_record_index(path, ts)
    assert located(path) == now
    taken_back(path, ts)
    assert located(path) == really_located(path) == before


@pytest.mark.parametrize("release", RELEASES)
def test_the_newest_write_of_every_history(release: str, tmp_path: Path) -> None:
    """Readers see what Hudi read before it, whether it failed or is taken back."""
    tried = 0
    for number, name in enumerate(share(histories.names(release), RELEASES.index(release), 3)):
        made = histories.MadeHistory(release, name, tmp_path / name)
        expected = made.steps[-2].rows
        table = open_local(made.path)
        if made.steps[-1].operation not in ("upsert", "delete") or expected is None or table.timeline.pending():
            continue
        if name == "torn_tail" or (release == "1.0.2" and name in CUSTOM):
            continue
        newest = table.timeline.completed_writes()[-1]
        if number % 2:
            taken_back(made.path, newest.ts)
        else:
            fail_newest(made.path, markers=number % 4 == 0)
            rolled_back(made.path, newest.ts)
        assert not open_local(made.path).timeline.pending()
        found = merged_rows(open_local(made.path), MEMORY)
        assert comparable(found) == comparable(expected), name
        tried += 1
    assert tried > 1
