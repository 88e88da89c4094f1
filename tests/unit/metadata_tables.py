"""Metadata tables that real Apache Hudi wrote, and writing to copies of them."""

import itertools
import tarfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from hudi_services.clock import SystemClock
from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.commit.times import Times
from hudi_services.file_names import log_file_name
from hudi_services.log_files.block_contents import delete_block_content
from hudi_services.log_files.log_blocks import BlockType, HeaderKey, LogBlock
from hudi_services.log_files.log_writer import encode_block
from hudi_services.metadata.file_groups import compaction
from hudi_services.metadata.file_groups.merged_base import MergedBase, MergeTask, write_merged_base
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.records.keys import FILES
from hudi_services.metadata.records.model import StatsRecord
from hudi_services.model import CommitMetadata
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.table.log_naming import BySlice
from hudi_services.table_config import TableConfig
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.compaction_trigger import Trigger
from hudi_services.timeline.instant import Action, State

from .faulty_storage import Killed
from .tables import open_local

CLEANS_OF_OURS = {"hudi.services.clean": "metadata"}
TABLES_OF_PARTITIONS = {
    "downgraded": ("1.2.0", "9_to_6", ""),
    "downgraded_and_written": ("1.2.0", "9_to_6_and_a_write", "2"),
    "rebuilt_6": ("0.15.0", "record_index_off_and_on_6", "2"),
    "rebuilt_9": ("1.2.0", "stats_off_and_on_9", "2"),
}
"""Release, change (tests/interop/metadata_changes.py) and `hoodie.metadata.compact.max.delta.commits` of each."""
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "mdt"


def files_by_partition(metadata: MetadataTable) -> dict[str, dict[str, int]]:
    """The whole listing: data partition -> file name -> size in bytes."""
    return dict(metadata.list_each(metadata.listed_partitions()))


def unpack_compacted(release: str, folder: Path) -> Path:
    """A table without its data files, whose metadata table was compacted."""
    with tarfile.open(FIXTURES / f"many_{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def unpack_partitions(kind: str, folder: Path) -> Path:
    """A whole table, a partition of whose metadata table was dropped and built anew; files have their times."""
    with tarfile.open(FIXTURES / f"partitions_{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "table"


def open_metadata(path: Path, storage: Storage | None = None) -> MetadataTable:
    storage = storage or open_storage(str(path))
    config = TableConfig.load(storage)
    metadata = MetadataTable.open(storage, config, Timeline.open(storage, config))
    assert metadata is not None
    return metadata


def far_future(start: int = 0) -> Callable[[], str]:
    """Instants after everything that the fixtures know."""
    numbers = itertools.count(start)
    return lambda: f"20990101{next(numbers):09d}"


def stats_of(metadata: MetadataTable, partition: str) -> list[StatsRecord]:
    return [record for record in metadata.reader(partition).scan() if isinstance(record, StatsRecord)]


def compact(path: Path) -> None:
    """Merge the log files of every file group into a base file."""

    def run(tasks: Sequence[MergeTask]) -> list[MergedBase]:
        return [write_merged_base(task, "0-0-0") for task in tasks]

    metadata, times = open_metadata(path), Times(open_local(path), 0).next
    assert compaction.compact(metadata, Trigger(commits=1), SystemClock().now(), times, run) is not None


def begin_compaction(path: Path) -> None:
    """The plan of a compaction of the metadata table that a killed process has begun."""

    def dies(tasks: Sequence[MergeTask]) -> list[MergedBase]:
        raise Killed("before the first file")

    metadata, times = open_metadata(path), Times(open_local(path), 0).next
    with suppress(Killed):
        compaction.compact(metadata, Trigger(commits=1), SystemClock().now(), times, dies)


def begin_metadata_clean(path: Path, *names: str) -> None:
    """The plan of a clean of ours that a killed process left, for these files of the listing."""
    metadata = open_metadata(path)
    plan = CleanerPlan("KEEP_LATEST_COMMITS", "", "", {FILES: names} if names else {}, extra=CLEANS_OF_OURS)
    data = encode_cleaner_plan(plan, metadata.config.version.release)
    metadata.timeline.publish(Times(open_local(path), 0).next(), Action.CLEAN, State.REQUESTED, data)


def build_anew(path: Path) -> None:
    """What is left when Hudi builds the metadata table anew: base files of what is true now, and one delta commit."""
    if any(
        group.log_files for name in open_metadata(path).partitions for group in open_metadata(path).file_groups(name)
    ):
        compact(path)
    metadata = open_metadata(path)
    # Version 6: behind the newest instant of the table; later versions count from zero.
    newest = metadata.data_timeline.completed()[-1].ts
    first = f"{newest}010" if isinstance(metadata.log_naming, BySlice) else "0" * 17
    for partition in metadata.partitions:
        groups = metadata.file_groups(partition)
        for name in metadata.stored_files(partition):
            file = path / metadata.path(partition, name)
            if any(group.base_file and group.base_file.name == name for group in groups):
                file.rename(file.with_name(name.replace(name.rpartition("_")[2], f"{first}.hfile")))
            elif name.endswith(".hfile") or ".log." in name:
                file.unlink()
        for group in groups:
            if group.base_file is None:
                block = LogBlock(BlockType.DELETE, {HeaderKey.INSTANT_TIME: first}, delete_block_content([]))
                log = log_file_name(group.file_id, first, 1, "0-0-0")
                (path / metadata.path(partition, log)).write_bytes(encode_block(block))
    completion = Times(open_local(path), 0).next()
    for name in metadata.timeline.sizes:
        (path / metadata.timeline.path(name)).unlink()
    data = metadata.timeline.layout.encode_commit(CommitMetadata("BULK_INSERT", {}), metadata.config.version.release)
    for state in State:
        done = state is State.COMPLETED
        metadata.timeline.publish(first, Action.DELTA_COMMIT, state, data if done else b"", completion)
