import dataclasses
import random
from pathlib import Path

import pytest

from hudi_services.errors import NeedsRecovery
from hudi_services.log_files.log_blocks import BlockType, HeaderKey, LogBlock
from hudi_services.metadata.file_groups.blocks import BlockFilter
from hudi_services.metadata.metadata_table import MetadataLister, MetadataTable
from hudi_services.model import FileSlice, LogFile
from hudi_services.stores import open_storage
from hudi_services.table.log_naming import BySlice
from hudi_services.table.partitions import StorageLister
from hudi_services.table_config import TableConfig
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action, State

from .metadata_tables import files_by_partition, open_metadata, stats_of, unpack_compacted
from .tables import RELEASES, open_local, unpack


@pytest.mark.parametrize("release", RELEASES)
def test_the_listing_is_what_lies_in_storage(release: str, tmp_path: Path) -> None:
    table = open_local(unpack(release, tmp_path))
    assert table.metadata is not None
    stored = StorageLister(table.storage)
    lister = MetadataLister(table.metadata)
    assert lister.partitions() == stored.partitions()
    for partition in stored.partitions():
        data = {name: size for name, size in stored.files(partition).items() if name.endswith(".parquet")}
        assert lister.files(partition) == data == table.metadata.list_partition(partition)
    names = [*lister.partitions(), "nowhere"]
    assert dict(stored.each(names)) == {**{one: stored.files(one) for one in names}}
    for some in (names, [*names, *(f"z{i}" for i in range(9))]):
        assert [*lister.each(some)] == [(one, table.metadata.list_partition(one)) for one in some]
    for order in (names, names[::-1], names * 2):
        seen = [(one, view.latest_slices(one)) for one, view in table.view.each(order)]
        assert seen == [(one, table.view.latest_slices(one)) for one in order]
    assert lister.files("nowhere") == {} == table.metadata.list_partition("nowhere")


@pytest.mark.parametrize(("release", "compaction", "logs"), [("0.15.0", "20261121084848603001", 4), ("1.2.0", "", 6)])
def test_after_a_compaction_only_newer_log_files_are_merged(
    release: str, compaction: str, logs: int, tmp_path: Path
) -> None:
    metadata = open_metadata(unpack_compacted(release, tmp_path))
    compaction = compaction or metadata.timeline.completed({Action.COMMIT})[0].ts
    for partition in metadata.partitions:
        for group in metadata.file_groups(partition):
            assert group.base_instant == compaction
            assert group.base_file is not None
            assert len(group.log_files) == logs
    assert {p: len(files) for p, files in files_by_partition(metadata).items()} == {"p0": 13, "p1": 13, "p2": 13}


def test_records_are_merged_once_after_a_compaction(tmp_path: Path) -> None:
    metadata = open_metadata(unpack_compacted("1.2.0", tmp_path))
    ids = [r for r in stats_of(metadata, "column_stats") if r.column == "id"]
    assert len(ids) == 39
    assert sum(r.value_count for r in ids) == 260


def test_prefixes_find_what_a_scan_finds(tmp_path: Path) -> None:
    metadata = open_metadata(unpack_compacted("1.2.0", tmp_path))
    everything = {record.key: record for record in metadata.reader("column_stats").scan()}
    prefixes = {key[:24] for key in everything}
    reader = metadata.reader("column_stats")
    found = {prefix: list(records) for prefix, records in reader.scan_prefixes([*prefixes, "zz-no-such-key"])}
    assert found.pop("zz-no-such-key") == []
    assert {record.key: record for records in found.values() for record in records} == everything
    one = next(iter(everything))
    assert list(reader.scan(one[:24], lambda key: key == one)) == [everything[one]]
    stored = dict(reader.stored([one, "zz-no-such-key"]))
    assert stored["zz-no-such-key"].merged is None
    assert stored[one].merged == everything[one]


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_many_keys_in_one_pass_are_what_each_is_alone(release: str, tmp_path: Path) -> None:
    metadata, chance = open_metadata(unpack_compacted(release, tmp_path)), random.Random(44)
    for name in metadata.partitions:
        reader = metadata.reader(name)
        keys = [*(record.key for record in reader.scan()), "", "p0 ", "zz"]
        for _ in range(20):
            some = chance.sample(keys, chance.randrange(len(keys) + 1))
            assert [*reader.stored_in_order(some)] == [*reader.stored(some)]


def test_a_table_without_a_metadata_table_has_none(tmp_path: Path) -> None:
    path = unpack_compacted("1.2.0", tmp_path)
    storage = open_storage(str(path))
    config = TableConfig.load(storage)
    raw = {key: value for key, value in config.raw.items() if key != "hoodie.table.metadata.partitions"}
    without = dataclasses.replace(config, raw=raw)
    assert MetadataTable.open(storage, without, Timeline.open(storage, config)) is None


def test_a_missing_metadata_table_needs_recovery(tmp_path: Path) -> None:
    path = unpack_compacted("0.15.0", tmp_path)
    (path / ".hoodie" / "metadata").rename(path / "elsewhere")
    with pytest.raises(NeedsRecovery, match=r"metadata is missing"):
        open_metadata(path)


def test_a_partition_without_file_groups_needs_recovery(tmp_path: Path) -> None:
    path = unpack_compacted("1.2.0", tmp_path)
    for file in (path / ".hoodie" / "metadata" / "files").iterdir():
        file.unlink()
    with pytest.raises(NeedsRecovery, match=r"files holds no file group"):
        files_by_partition(open_metadata(path))


def test_a_pending_compaction_splits_a_slice_that_is_read_as_one(tmp_path: Path) -> None:
    metadata = open_metadata(unpack_compacted("0.15.0", tmp_path))
    (group,) = metadata.file_groups("files")
    before = files_by_partition(metadata)
    folder = tmp_path / ".hoodie" / "metadata" / "files"
    newest = group.log_files[-1]
    # As if a compaction had been planned before the last delta commit.
    planned = ".files-0000-0_20990101000000000001.log.1_0-1-1"
    (folder / newest.name).rename(folder / planned)
    for commit in (tmp_path / ".hoodie" / "metadata" / ".hoodie").glob("*.deltacommit"):
        commit.write_text(commit.read_text().replace(newest.name, planned))
    (pending,) = open_metadata(tmp_path).file_groups("files")
    assert pending.base_instant == "20990101000000000001"
    assert pending.base_file == group.base_file
    assert len(pending.log_files) == len(group.log_files)
    assert files_by_partition(open_metadata(tmp_path)) == before


def block(instant: str, kind: BlockType = BlockType.DELETE) -> LogBlock:
    return LogBlock(kind, {HeaderKey.INSTANT_TIME: instant}, b"")


def command(target: str) -> LogBlock:
    header = {HeaderKey.INSTANT_TIME: "9", HeaderKey.TARGET_INSTANT_TIME: target, HeaderKey.COMMAND_BLOCK_TYPE: "0"}
    return LogBlock(BlockType.COMMAND, header, b"")


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_blocks_of_commits_that_the_table_does_not_know_do_not_count(release: str, tmp_path: Path) -> None:
    metadata = open_metadata(unpack_compacted(release, tmp_path))
    known = metadata.data_timeline.completed()[-1].ts
    blocks = BlockFilter(metadata.data_timeline, metadata.ledger, metadata.log_naming)
    assert blocks.counts(known)
    assert blocks.counts("00000000000000010" if isinstance(metadata.log_naming, BySlice) else "00000000000000000")
    assert not blocks.counts("20990101000000000")
    pending = dataclasses.replace(
        metadata.data_timeline,
        instants=tuple(
            dataclasses.replace(i, state=State.INFLIGHT) if i.ts == known else i
            for i in metadata.data_timeline.instants
        ),
    )
    assert not BlockFilter(pending, metadata.ledger, metadata.log_naming).counts(known)


def test_a_command_block_cancels_what_stands_before_it(tmp_path: Path) -> None:
    metadata = open_metadata(unpack_compacted("0.15.0", tmp_path))
    blocks = BlockFilter(metadata.data_timeline, metadata.ledger, BySlice())
    first, second = (i.ts for i in metadata.data_timeline.completed()[-2:])
    mixed = [block(first), block(second), block("20990101000000000"), command(second), block(second)]
    assert [b.instant for b in blocks.surviving(mixed)] == [first, second]
    assert blocks.surviving([LogBlock(BlockType.CORRUPT, {}, b"")]) == []


def test_file_slices_keep_their_log_files_in_order(tmp_path: Path) -> None:
    (group,) = open_metadata(unpack_compacted("0.15.0", tmp_path)).file_groups("files")
    assert isinstance(group, FileSlice)
    assert [log.version for log in group.log_files if isinstance(log, LogFile)] == [1, 2, 3, 4]
