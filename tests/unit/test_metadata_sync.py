"""Writing to metadata tables: commits, rollbacks, and what a kill at any write leaves behind."""

import dataclasses
from pathlib import Path

import pytest

from hudi_services.base_files.new_file import NewFile
from hudi_services.errors import CheckFailed, UnsupportedTable
from hudi_services.log_files.log_blocks import BlockType
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.metadata_updates.sync import Change, sync_commit, sync_repair, sync_rollback
from hudi_services.parquet.chunk_stats import ColumnStats
from hudi_services.schema.column_type import ColumnType, Kind
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.table.log_naming import BySlice
from hudi_services.timeline.instant import Action, State

from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import far_future, files_by_partition, open_metadata, stats_of, unpack_compacted
from .tables import RELEASES, open_local, unpack

T = "20980101000000000"
FILE = f"11111111-1111-1111-1111-111111111111-0_0-1-0_{T}.parquet"
P = "day=2026-01-01"


def stats(name: str, kind: Kind, low: object, high: object) -> ColumnStats:
    return ColumnStats(name, ColumnType(kind, unit="micros", utc=True), low, high, 10, 0, 100, 200, True)


COLUMNS = (stats("_hoodie_record_key", Kind.STRING, "zz-1", "zz-9"), stats("unindexed", Kind.ENUM, "a", "b"))


def added(name: str, columns: tuple[ColumnStats, ...], size: int = 4711) -> NewFile:
    return NewFile.of(f"{P}/{name}", size, columns=columns)


def change(metadata: MetadataTable, path: Path) -> Change:
    view = open_local(path).view
    live = {P: [s.base_file.name for s in view.latest_slices(P) if s.base_file]}
    return Change(T, (added(FILE, COLUMNS),), live)


def complete_on_the_table(metadata: MetadataTable) -> None:
    timeline = metadata.data_timeline
    timeline.publish(T, Action.COMMIT, State.REQUESTED)
    timeline.publish(T, Action.COMMIT, State.INFLIGHT)
    timeline.publish(T, Action.COMMIT, State.COMPLETED, b"", "20990201000000000")


def committed(path: Path) -> MetadataTable:
    metadata = open_metadata(path)
    sync_commit(metadata, change(metadata, path), far_future())
    return open_metadata(path)


@pytest.mark.parametrize("release", RELEASES)
def test_a_commit_is_seen_when_the_table_completes_it(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = files_by_partition(open_metadata(path))
    timeline = open_metadata(path).data_timeline
    timeline.publish(T, Action.COMMIT, State.REQUESTED)
    metadata = committed(path)
    assert metadata.timeline.find(T, Action.DELTA_COMMIT) is not None
    assert files_by_partition(metadata) == before
    timeline.publish(T, Action.COMMIT, State.INFLIGHT)
    timeline.publish(T, Action.COMMIT, State.COMPLETED, b"", "20990201000000000")
    after = files_by_partition(open_metadata(path))
    assert after == {**before, P: {**before[P], FILE: 4711}}


@pytest.mark.parametrize("release", RELEASES[1:])
def test_ranges_beside_a_write_that_ends_later(release: str, tmp_path: Path) -> None:
    """Its instant is the earlier one, and readers take its records for the older ones."""
    path = unpack(release, tmp_path)
    metadata = open_metadata(path)
    ours = dataclasses.replace(change(metadata, path), beside_writes=True)
    sync_commit(metadata, ours, far_future())
    complete_on_the_table(metadata)
    earlier = T.replace("2098", "2097")
    theirs = FILE.replace(T, earlier).replace("1111", "2222")
    keys = stats("_hoodie_record_key", Kind.STRING, "", "zz-2")
    live = {P: [*ours.live_files[P], FILE]}
    sync_commit(open_metadata(path), Change(earlier, (added(theirs, (keys,)),), live), far_future())
    timeline = metadata.data_timeline
    for state in (State.REQUESTED, State.INFLIGHT):
        timeline.publish(earlier, Action.COMMIT, state)
    timeline.publish(earlier, Action.COMMIT, State.COMPLETED, b"", "20990301000000000")
    found = [r for r in stats_of(open_metadata(path), "partition_stats") if r.column == "_hoodie_record_key"]
    assert [(r.minimum, r.maximum) for r in found if r.file_name == P] == [("", "zz-9")]


@pytest.mark.parametrize("release", RELEASES[1:])
def test_ranges_of_a_write_that_ends_behind_a_later_one(release: str, tmp_path: Path) -> None:
    """The later instant's record, which knows nothing of the earlier write, counts for the newer one."""
    path = unpack(release, tmp_path)
    theirs = change(open_metadata(path), path)
    sync_commit(open_metadata(path), theirs, far_future())
    complete_on_the_table(open_metadata(path))
    earlier = T.replace("2098", "2097")
    file = FILE.replace(T, earlier).replace("1111", "2222")
    keys = stats("_hoodie_record_key", Kind.STRING, "a", "zzz")
    live = {P: [*theirs.live_files[P], FILE]}
    timeline = open_metadata(path).data_timeline
    for state in (State.REQUESTED, State.INFLIGHT):
        timeline.publish(earlier, Action.COMMIT, state)
    sync_commit(open_metadata(path), Change(earlier, (added(file, (keys,)),), live), far_future(100))
    timeline.publish(earlier, Action.COMMIT, State.COMPLETED, b"", "20990301000000000")
    found = [r for r in stats_of(open_metadata(path), "partition_stats") if r.column == "_hoodie_record_key"]
    assert [(r.minimum, r.maximum) for r in found if r.file_name == P] == [("a", "zzz")]


def test_ranges_of_texts_hold_for_java_and_for_spark(tmp_path: Path) -> None:
    """Emoji come before fullwidth forms in Java, which merges ranges, and after them in Spark, which goes by them."""
    metadata = open_metadata(unpack("1.2.0", tmp_path))
    keys = stats("_hoodie_record_key", Kind.STRING, "k\uff71", "k\U0001f600")
    sync_commit(metadata, Change(T, (added(FILE, (keys,)),), {P: []}), far_future())
    complete_on_the_table(metadata)
    for index in ("column_stats", "partition_stats"):
        found = [r for r in stats_of(open_metadata(tmp_path / "table"), index) if r.column == "_hoodie_record_key"]
        (new,) = [r for r in found if r.file_name == FILE or (index == "partition_stats" and r.file_name == P)]
        assert (new.minimum, new.maximum) == ("k", "l")


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_a_range_is_tight_where_every_file_has_a_record_of_the_column(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    metadata = open_metadata(path)
    new = change(metadata, path)
    of_ts = [one for one in stats_of(metadata, "column_stats") if one.column == "ts"]
    lacks = next(one for one in of_ts if one.file_name in new.live_files[P])
    write_delta_commit(metadata, "20970101000000000", {}, far_future(), deletes={"column_stats": [lacks.key]})
    metadata = metadata.reload()
    columns = (*COLUMNS, dataclasses.replace(stats("ts", Kind.LONG, 1, 2), type=ColumnType(Kind.LONG)))
    file = dataclasses.replace(new.new_files[0], columns=columns)
    sync_commit(metadata, dataclasses.replace(new, new_files=(file,)), far_future(9))
    complete_on_the_table(open_metadata(path))
    ranges = {one.column: one for one in stats_of(open_metadata(path), "partition_stats") if one.file_name == P}
    assert ranges["_hoodie_record_key"].tight and not ranges["ts"].tight
    assert ranges["ts"].minimum <= lacks.minimum and lacks.maximum <= ranges["ts"].maximum


@pytest.mark.parametrize("release", RELEASES)
def test_a_commit_that_does_not_know_a_range_is_refused(release: str, tmp_path: Path) -> None:
    """An index that came while the files were written: without a record readers would take them for empty."""
    metadata = open_metadata(unpack(release, tmp_path))
    columns = (dataclasses.replace(COLUMNS[0], has_range=False, min=None, max=None),)
    wanted = Change(T, (added(FILE, columns),), {P: []})
    before = metadata.timeline.instants
    if release == "0.15.0":
        sync_commit(metadata, wanted, far_future())
        return
    with pytest.raises(CheckFailed, match="_hoodie_record_key"):
        sync_commit(metadata, wanted, far_future())
    assert metadata.reload().timeline.instants == before


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_statistics_of_the_new_file_and_its_partition(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    old = {r.column: r for r in stats_of(open_metadata(path), "partition_stats") if r.file_name == P}
    metadata = committed(path)
    complete_on_the_table(metadata)
    metadata = open_metadata(path)
    (found,) = [r for r in stats_of(metadata, "column_stats") if r.file_name == FILE]
    assert (found.column, found.minimum, found.maximum, found.tight) == ("_hoodie_record_key", "zz-1", "zz-9", False)
    new = {r.column: r for r in stats_of(metadata, "partition_stats") if r.file_name == P}
    key = new.pop("_hoodie_record_key")
    before = old.pop("_hoodie_record_key")
    assert new == old
    assert (key.minimum, key.maximum, key.tight) == (before.minimum, "zz-9", True)
    assert key.value_count == before.value_count + 10


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_replaced_files_leave_the_range(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    metadata = open_metadata(path)
    sync_commit(metadata, dataclasses.replace(change(metadata, path), live_files={P: []}), far_future())
    complete_on_the_table(metadata)
    (key,) = [
        r
        for r in stats_of(open_metadata(path), "partition_stats")
        if (r.file_name, r.column) == (P, "_hoodie_record_key")
    ]
    assert (key.minimum, key.maximum, key.value_count, key.tight) == ("zz-1", "zz-9", 10, True)


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_a_live_file_without_statistics_keeps_the_older_range(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    metadata = open_metadata(path)
    foreign = dataclasses.replace(change(metadata, path), live_files={P: ["foreign-0_0-0-0_20970101000000000.parquet"]})
    old = {r.column: r for r in stats_of(metadata, "partition_stats") if r.file_name == P}["_hoodie_record_key"]
    sync_commit(metadata, foreign, far_future())
    complete_on_the_table(metadata)
    new = {r.column: r for r in stats_of(open_metadata(path), "partition_stats") if r.file_name == P}
    assert (new["_hoodie_record_key"].minimum, new["_hoodie_record_key"].maximum) == (old.minimum, "zz-9")


@pytest.mark.parametrize("release", RELEASES)
def test_a_repeated_commit_replaces_the_first_attempt(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    metadata = committed(path)
    second = Change(T, (added(FILE.replace("1111", "2222"), COLUMNS, 4712),), change(metadata, path).live_files)
    sync_commit(metadata, second, far_future(100))
    complete_on_the_table(metadata)
    listing = files_by_partition(open_metadata(path))[P]
    assert FILE not in listing
    assert listing[FILE.replace("1111", "2222")] == 4712


@pytest.mark.parametrize("release", RELEASES)
def test_a_rolled_back_commit_is_gone(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = open_metadata(path)
    listing, ranges = files_by_partition(before), [list(before.reader(p).scan()) for p in before.partitions]
    metadata = committed(path)
    sync_rollback(metadata, T, "20990301000000000", far_future(100))
    after = open_metadata(path)
    assert after.timeline.find(T) is None
    assert after.timeline.pending() == ()
    # Even if the table had completed it, nothing of it is left.
    complete_on_the_table(after)
    after = open_metadata(path)
    assert files_by_partition(after) == listing
    assert [list(after.reader(p).scan()) for p in after.partitions] == ranges


@pytest.mark.parametrize("release", RELEASES)
def test_a_rolled_back_commit_is_gone_although_a_repair_had_listed_its_file_again(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = files_by_partition(open_metadata(path))
    complete_on_the_table(committed(path))
    times = far_future(500)
    for entry in (FileEntry(0, deleted=True), FileEntry(4711)):
        sync_repair(open_metadata(path), {"files": {P: FilesRecord(P, RecordType.FILES, {FILE: entry})}}, times)
        assert (FILE in files_by_partition(open_metadata(path))[P]) is not entry.deleted
    metadata = open_metadata(path)
    done = metadata.data_timeline.find(T, Action.COMMIT)
    assert done is not None
    metadata.storage.delete(metadata.data_timeline.path(done.file_name))
    rollback = "20990301000000000"
    sync_rollback(open_metadata(path), T, rollback, far_future(900), deleted={P: [FILE]})
    timeline = open_metadata(path).data_timeline
    for state in State:
        timeline.publish(rollback, Action.ROLLBACK, state, b"x", "20990302000000000")
    after = open_metadata(path)
    assert files_by_partition(after) == before
    assert after.timeline.find(T) is None and not after.timeline.pending()


@pytest.mark.parametrize("release", RELEASES)
def test_records_of_one_key_are_merged_in_their_order(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    metadata = open_metadata(path)
    gone, alive = ({FILE: entry} for entry in (FileEntry(0, deleted=True), FileEntry(5)))
    records = [FilesRecord(P, RecordType.FILES, entries) for entries in (alive, gone, alive)]
    own = T + ("010" if isinstance(metadata.log_naming, BySlice) else "")
    write_delta_commit(metadata, own, {"files": records}, far_future())
    assert files_by_partition(open_metadata(path))[P][FILE] == 5


def test_version_6_rolls_back_with_command_blocks_under_a_delta_commit(tmp_path: Path) -> None:
    path = unpack("0.15.0", tmp_path)
    logs = {p: {".f_1.log.2_1-0-1": 105} for p in (P,)}
    sync_rollback(committed(path), T, "20990301000000000", far_future(100), logs)
    metadata = open_metadata(path)
    done = [(i.ts, i.action) for i in metadata.timeline.completed()][-2:]
    assert done == [("20990301000000000", Action.DELTA_COMMIT), ("20990301000000000006", Action.ROLLBACK)]
    (group,) = metadata.file_groups("files")
    blocks = read_log_blocks((path / ".hoodie/metadata" / group.log_files[-1].path).read_bytes(), "f")
    assert [(b.type, b.instant, b.rolled_back_instant) for b in blocks] == [
        (BlockType.COMMAND, "20990301000000000006", T)
    ]
    timeline = metadata.data_timeline
    assert ".f_1.log.2_1-0-1" not in files_by_partition(metadata)[P]
    for state in State:
        timeline.publish("20990301000000000", Action.ROLLBACK, state, b"x", "20990302000000000")
    assert files_by_partition(open_metadata(path))[P][".f_1.log.2_1-0-1"] == 105


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_later_versions_roll_back_nothing_that_is_not_there(release: str, tmp_path: Path) -> None:
    metadata = open_metadata(unpack(release, tmp_path))
    sync_rollback(metadata, T, "20990301000000000", far_future())
    assert metadata.reload().timeline.instants == metadata.timeline.instants


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_a_commit_that_was_compacted_is_taken_out_by_deletions(release: str, tmp_path: Path) -> None:
    """Its delta commit cannot be undone: its records are in base files by now. Killed anywhere, that is repeated."""

    def act(path: Path, start: int, storage: Storage | None = None) -> None:
        sync_rollback(
            open_metadata(path, storage), target, "20990301000000000", far_future(start), deleted={partition: [name]}
        )

    def complete_rollback(path: Path) -> MetadataTable:
        timeline = open_metadata(path).data_timeline
        for state in State:
            timeline.publish("20990301000000000", Action.ROLLBACK, state, b"x", "20990302000000000")
        return open_metadata(path)

    whole = unpack_compacted(release, tmp_path / "whole")
    metadata = open_metadata(whole)
    before = files_by_partition(metadata)
    compaction = max(i.ts for i in metadata.timeline.instants if i.action is Action.COMMIT)
    known = {i.ts for i in metadata.timeline.completed({Action.DELTA_COMMIT})}
    partition, name, target = next(
        (p, n, t)
        for p, names in sorted(before.items())
        for n in sorted(names)
        if (t := n.rpartition("_")[2].split(".")[0]) < compaction and t in known
    )
    storage = FaultyStorage(str(whole))
    act(whole, 0, storage)
    after = complete_rollback(whole)
    assert files_by_partition(after) == {**before, partition: {n: s for n, s in before[partition].items() if n != name}}
    assert after.timeline.find(target) is not None
    for survived in range(len(storage.log)):
        path = unpack_compacted(release, tmp_path / str(survived))
        with pytest.raises(Killed):
            act(path, 0, FaultyStorage(str(path), survived))
        assert files_by_partition(open_metadata(path)) == before
        act(path, 100)
        mended = complete_rollback(path)
        assert files_by_partition(mended) == files_by_partition(after)
        assert not mended.timeline.pending()


def commit_with(storage: Storage, path: Path, start: int) -> None:
    metadata = open_metadata(path, storage)
    sync_commit(metadata, change(metadata, path), far_future(start))


def listing_while_pending(path: Path) -> dict[str, dict[str, int]]:
    """What readers see before the table completes the commit."""
    timeline = open_metadata(path).data_timeline
    requested = timeline.publish(T, Action.COMMIT, State.REQUESTED)
    listing = files_by_partition(open_metadata(path))
    timeline.storage.delete(timeline.path(requested.file_name))
    return listing


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_killed_at_any_write_the_next_commit_mends_it(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path / "whole")
    before = files_by_partition(open_metadata(path))
    storage = FaultyStorage(str(path))
    commit_with(storage, path, 0)
    complete_on_the_table(open_metadata(path))
    expected = everything(path)
    for survived in range(len(storage.log)):
        path = unpack(release, tmp_path / str(survived))
        with pytest.raises(Killed):
            commit_with(FaultyStorage(str(path), survived), path, 0)
        assert listing_while_pending(path) == before
        commit_with(open_storage(str(path)), path, 100)
        complete_on_the_table(open_metadata(path))
        assert everything(path) == expected
        assert open_metadata(path).timeline.pending() == ()


def everything(path: Path) -> list[list[str]]:
    metadata = open_metadata(path)
    return [sorted(map(repr, metadata.reader(partition).scan())) for partition in metadata.partitions]


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_killed_at_any_write_a_rollback_goes_on(release: str, tmp_path: Path) -> None:
    def act(storage: Storage, path: Path, start: int) -> None:
        sync_rollback(open_metadata(path, storage), T, "20990301000000000", far_future(start))

    path = unpack(release, tmp_path / "all")
    committed(path)
    before = files_by_partition(open_metadata(unpack(release, tmp_path / "untouched")))
    storage = FaultyStorage(str(path))
    act(storage, path, 100)
    for survived in range(len(storage.log)):
        path = unpack(release, tmp_path / str(survived))
        committed(path)
        with pytest.raises(Killed):
            act(FaultyStorage(str(path), survived), path, 100)
        act(open_storage(str(path)), path, 200)
        complete_on_the_table(open_metadata(path))
        metadata = open_metadata(path)
        assert files_by_partition(metadata) == before
        assert metadata.timeline.pending() == ()


def test_version_6_undoes_what_other_killed_writers_left(tmp_path: Path) -> None:
    path = unpack("0.15.0", tmp_path)
    metadata = open_metadata(path)
    other = "20985001000000000"
    storage = FaultyStorage(str(path), 3)
    with pytest.raises(Killed):
        sync_commit(
            open_metadata(path, storage), dataclasses.replace(change(metadata, path), instant=other), far_future()
        )
    assert [i.ts for i in open_metadata(path).timeline.pending()] == [other]
    metadata = committed(path)
    assert metadata.timeline.find(other) is None
    assert metadata.timeline.completed({Action.ROLLBACK})


def test_partitions_that_we_cannot_keep_in_step_are_refused_before_any_write(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    storage = FaultyStorage(str(path))
    metadata = open_metadata(path, storage)
    raw = dict(metadata.table_config.raw) | {"hoodie.table.metadata.partitions.inflight": "expr_index_x"}
    metadata = dataclasses.replace(metadata, table_config=dataclasses.replace(metadata.table_config, raw=raw))
    with pytest.raises(UnsupportedTable, match="expr_index_x"):
        sync_commit(metadata, Change(T, (), {}), far_future())
    assert storage.log == []


def test_version_6_names_log_files_after_a_pending_compaction(tmp_path: Path) -> None:
    path = unpack_compacted("0.15.0", tmp_path)
    compaction = "20261121084848603001"
    (path / ".hoodie/metadata/.hoodie" / f"{compaction}.commit").unlink()
    for file in (path / ".hoodie/metadata/files").glob(f"*{compaction}*"):
        file.unlink()
    for commit in (path / ".hoodie/metadata/.hoodie").glob("*.deltacommit*"):
        if commit.name > compaction:
            commit.unlink()
    metadata = open_metadata(path)
    assert metadata.timeline.pending({Action.COMPACTION})
    sync_commit(metadata, Change(T, (NewFile.of(f"p0/{FILE}", 7),), {}), far_future())
    complete_on_the_table(metadata)
    (group,) = open_metadata(path).file_groups("files")
    assert group.log_files[-1].name == f".files-0000-0_{compaction}.log.1_1-0-1"
    assert files_by_partition(open_metadata(path))["p0"][FILE] == 7
