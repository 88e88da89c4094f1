"""Metadata tables that real Apache Hudi wrote, and writing to copies of them."""

import itertools
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from hudi_services.commit.times import Times
from hudi_services.metadata import compaction
from hudi_services.metadata.merged_base import MergedBase, MergeTask, write_merged_base
from hudi_services.metadata.records import StatsRecord
from hudi_services.metadata.table import MetadataTable
from hudi_services.storage import ObjectStorage, Storage
from hudi_services.table_config import TableConfig
from hudi_services.timeline.active import Timeline

from .tables import open_local

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "mdt"


def unpack_compacted(release: str, folder: Path) -> Path:
    """A table without its data files, whose metadata table was compacted."""
    with tarfile.open(FIXTURES / f"many_{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def open_metadata(path: Path, storage: Storage | None = None) -> MetadataTable:
    storage = storage or ObjectStorage(str(path))
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

    assert compaction.compact(open_metadata(path), 1, Times(open_local(path), 0).next, run) is not None
