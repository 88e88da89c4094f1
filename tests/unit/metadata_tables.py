"""Metadata tables that real Apache Hudi wrote, and writing to copies of them."""

import itertools
import tarfile
from collections.abc import Callable
from pathlib import Path

from hudi_services.commit.times import Times
from hudi_services.files.hfile_writer import write_hfile
from hudi_services.files.names import base_file_name
from hudi_services.metadata.index_columns import typed_among
from hudi_services.metadata.record_codec import encode_record
from hudi_services.metadata.records import StatsRecord
from hudi_services.metadata.table import MetadataTable
from hudi_services.model import CommitMetadata
from hudi_services.storage import ObjectStorage, Storage
from hudi_services.table_config import TableConfig
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action, State

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
    """Merge the log files of every file group into a base file, as Hudi's compaction does."""
    table = open_local(path)
    metadata = open_metadata(path)
    schema = metadata.writer_schema
    ts = metadata.timeline.latest_time() + "001" if metadata.logs_by_name else Times(table, 0).next()
    for partition in metadata.partitions:
        readers, typed = metadata.reader(partition).groups, bool(typed_among(metadata, [partition]))
        for group, reader in zip(metadata.file_groups(partition), readers, strict=True):
            rows = [(one.key.encode(), encode_record(one, schema, typed=typed)) for one in reader.scan()]
            name = base_file_name(group.file_id, "0-0-0", ts, ".hfile")
            metadata.storage.create(metadata.path(partition, name), write_hfile(rows, schema.text))
    data = metadata.timeline.layout.encode_commit(CommitMetadata("COMPACT", {}), metadata.config.version.release)
    for state in State:
        metadata.timeline.publish(ts, Action.COMPACTION, state, data, Times(table, 0).next())
