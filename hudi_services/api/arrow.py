"""What readers see of a table, as Arrow: file slices, files, the timeline."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from ..errors import ConfigError
from ..model import BaseFile, FileSlice
from ..snapshot import Snapshot
from ..timeline.instant import Instant

_SLICES = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("base_instant", pa.string(), nullable=False),
        pa.field("base_file", pa.string()),
        pa.field("base_size", pa.int64()),
        pa.field("log_files", pa.list_(pa.field("item", pa.string(), nullable=False)), nullable=False),
        pa.field("log_size", pa.int64(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
    ]
)
_FILES = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("base_instant", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("instant", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
    ]
)
_TIMELINE = pa.schema(
    [
        pa.field("instant", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("completion_time", pa.string()),
    ]
)


def slices_table(slices: Sequence[FileSlice]) -> pa.Table:
    """A row for each file slice; paths are relative to the table."""
    bases = [one.base_file for one in slices]
    columns = {
        "partition": [one.partition for one in slices],
        "file_id": [one.file_id for one in slices],
        "base_instant": [one.base_instant for one in slices],
        "base_file": [base.path if base else None for base in bases],
        "base_size": [base.size if base else None for base in bases],
        "log_files": [[log.path for log in one.log_files] for one in slices],
        "log_size": [one.log_bytes for one in slices],
        "size": [one.size for one in slices],
    }
    return pa.table(columns, schema=_SLICES)


def files_table(slices: Iterable[FileSlice]) -> pa.Table:
    """A row for each file of the slices, the base file of each first; paths are relative to the table."""
    found = [(one, file) for one in slices for file in one.files]
    columns = {
        "partition": [one.partition for one, _ in found],
        "file_id": [one.file_id for one, _ in found],
        "base_instant": [one.base_instant for one, _ in found],
        "path": [file.path for _, file in found],
        "kind": ["base" if isinstance(file, BaseFile) else "log" for _, file in found],
        "instant": [file.instant for _, file in found],
        "size": [file.size for _, file in found],
    }
    return pa.table(columns, schema=_FILES)


def timeline_table(instants: Iterable[Instant]) -> pa.Table:
    """A row for each instant, in timeline order."""
    found = list(instants)
    columns = {
        "instant": [one.ts for one in found],
        "action": [one.action.value for one in found],
        "state": [one.state.name.lower() for one in found],
        "completion_time": [one.completion_time for one in found],
    }
    return pa.table(columns, schema=_TIMELINE)


def seen_slices(table: Snapshot, partition: str | None) -> list[FileSlice]:
    """The latest file slice of each live file group. Raises ConfigError for a partition that does not exist."""
    partitions = table.view.partitions()
    if partition is not None:
        if partition not in partitions:
            raise ConfigError(
                f"{table.storage.root} has no partition {partition!r}",
                hint="give the path of its folder, relative to the table; '' where there are no partitions",
            )
        partitions = [partition]
    return table.view.latest_slices_of(partitions)
