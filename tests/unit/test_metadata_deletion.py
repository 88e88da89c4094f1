"""Deleting files from the metadata table: listings and statistics lose these files, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from hudi_services.log_files.delete_records import delete_block_keys
from hudi_services.log_files.log_blocks import BlockType, HeaderKey
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.records.keys import ALL_PARTITIONS_KEY, FILES, column_stats_key
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType
from hudi_services.metadata_updates.deletion import deletion_records
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.timeline.instant import Action, State
from hudi_services.versions import VERSIONS

from .corruptions import write_own
from .metadata_tables import compact, far_future, files_by_partition, open_metadata, stats_of, unpack_compacted
from .rides import create
from .tables import RELEASES, unpack
from .test_upserts import rows

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

T = "20980101000000000"
P = "day=2026-01-01"


def forget(path: Path, deleted: dict[str, list[str]], gone: tuple[str, ...] = ()) -> MetadataTable:
    """Delete the files from the metadata table, and complete the clean that did it on the table."""
    metadata = open_metadata(path)
    records, deletes = deletion_records(metadata, deleted, gone)
    write_delta_commit(metadata, T, records, far_future(), deletes=deletes)
    timeline = metadata.data_timeline
    for state in State:
        timeline.publish(T, Action.CLEAN, state, b"", "20990201000000000")
    return open_metadata(path)


@pytest.mark.parametrize("release", RELEASES)
def test_deleted_files_leave_the_listing(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = files_by_partition(open_metadata(path))
    first, *others = sorted(before[P])
    after = files_by_partition(forget(path, {P: [first]}))
    assert after == {**before, P: {name: before[P][name] for name in others}}


@pytest.mark.parametrize("release", RELEASES)
def test_a_partition_goes_with_its_last_file(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    before = files_by_partition(open_metadata(path))
    metadata = forget(path, {P: list(before[P])}, (P,))
    assert [*metadata.list_each(before)] == [(one, metadata.list_partition(one)) for one in sorted(before)]
    assert files_by_partition(metadata) == {partition: files for partition, files in before.items() if partition != P}
    assert metadata.list_partition(P) == {}


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_statistics_of_deleted_files_go(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    metadata = open_metadata(path)
    names = sorted(files_by_partition(metadata)[P])[:2]
    before, ranges = stats_of(metadata, "column_stats"), stats_of(metadata, "partition_stats")
    metadata = forget(path, {P: names})
    after = stats_of(metadata, "column_stats")
    assert {one.file_name for one in before} > set(names)
    assert after == [one for one in before if one.file_name not in names]
    assert stats_of(metadata, "partition_stats") == ranges


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_a_compacted_table_forgets_too(release: str, tmp_path: Path) -> None:
    """The entries lie in a base file, below the new blocks."""
    path = unpack_compacted(release, tmp_path)
    metadata = open_metadata(path)
    listing = files_by_partition(metadata)
    partition, name = next((p, n) for p, names in sorted(listing.items()) for n in sorted(names))
    before = stats_of(metadata, "column_stats") if "column_stats" in metadata.partitions else []
    metadata = forget(path, {partition: [name]})
    assert name not in files_by_partition(metadata)[partition]
    after = stats_of(metadata, "column_stats") if before else []
    assert after == [one for one in before if one.file_name != name]


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_what_base_file_and_log_files_list_goes_from_both(release: str, tmp_path: Path) -> None:
    """Every commit of Hudi lists its partitions again: in log files, one deletion takes back no more than that."""
    path = unpack_compacted(release, tmp_path)
    before = files_by_partition(open_metadata(path))
    partition = min(before)
    again = FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, {partition: FileEntry(0)})
    files = FilesRecord(partition, RecordType.FILES, {name: FileEntry(n) for name, n in before[partition].items()})
    write_own(path, {FILES: [again, files]})
    assert files_by_partition(open_metadata(path)) == before
    metadata = forget(path, {partition: list(before[partition])}, (partition,))
    assert files_by_partition(metadata) == {one: names for one, names in before.items() if one != partition}
    assert metadata.list_partition(partition) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_that_the_base_file_lists_goes_with_its_rows(version: int, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path, table_version=version)
    table.insert(rows(0, 30), options={"hoodie.clean.automatic": "false"})
    compact(path)
    table.insert(rows(30, 36, days=2), options={"hoodie.clean.automatic": "false"})
    (record,) = (one for one in _newest_records(path) if one.key == ALL_PARTITIONS_KEY)
    assert record.entries == {}, "both are listed"
    table.delete_partitions(["d0"], options={"hoodie.clean.automatic": "false"})
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert table.clean(options=options).ok
    assert not (path / "d0").exists()
    assert sorted(files_by_partition(open_metadata(path))) == ["d1", "d2"]
    assert table.validate(strict=True).ok
    table.insert(rows(0, 3), options={"hoodie.clean.automatic": "false"})
    assert sorted(files_by_partition(open_metadata(path))) == ["d0", "d1", "d2"]
    assert table.validate(strict=True).ok


def _newest_records(path: Path) -> list[FilesRecord]:
    """Those of the newest log file of the listing."""
    metadata = open_metadata(path)
    (group,) = metadata.file_groups(FILES)
    only = replace(group, base_file=None, log_files=group.log_files[-1:])
    return [one for one in metadata.open_group(only).scan() if isinstance(one, FilesRecord)]


def test_without_a_definition_the_schema_names_the_columns(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    metadata = open_metadata(path)
    metadata.storage.delete(metadata.table_config.index_defs_path)
    names = sorted(files_by_partition(metadata)[P])
    metadata = forget(path, {P: names})
    assert {one.file_name for one in stats_of(metadata, "column_stats")}.isdisjoint(names)


def test_one_log_file_holds_records_and_deletes(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    metadata = open_metadata(path)
    record = stats_of(metadata, "column_stats")[0]
    gone = [column_stats_key("ts", P, f"file-{i}") for i in range(300)]
    write_delta_commit(
        metadata, T, {"column_stats": [record]}, far_future(), deletes={"column_stats": [*gone, *gone[:9]]}
    )
    commit = open_metadata(path).timeline.find(T)
    assert commit is not None
    stats = metadata.timeline.read_commit(commit).stats["column_stats"]
    assert sum(stat.num_deletes for stat in stats) == len(gone)
    found: list[str] = []
    kinds = []
    for stat in stats:
        blocks = read_log_blocks((path / ".hoodie/metadata" / stat.path).read_bytes(), stat.path)
        kinds += [[block.type for block in blocks]]
        assert all({HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA} <= block.header.keys() for block in blocks)
        found += [key for block in blocks if block.type is BlockType.DELETE for key in delete_block_keys(block)]
    assert sorted(found) == sorted(gone)
    assert [BlockType.HFILE_DATA, BlockType.DELETE] in kinds
    assert len(kinds) == len(metadata.file_groups("column_stats"))
