"""The rows of a data frame, which a bulk insert writes in one job of the frame's engine.

Each task keeps the rows of one partition of the frame by their partition paths, and writes the files of each path: no
row passes through the driver. Source: BulkInsertDataInternalWriterHelper of Apache Hudi, sort mode NONE.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from ..engine import Frame
from ..files.slices import SliceSource
from ..options import Options, writing_keys
from ..rows.memory import TaskMemory
from ..rows.settings import FileSettings
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.partition_metafile import create_metafiles
from ..writing.base_files import InsertTask
from ..writing.kept_rows import KeptRows
from ..writing.keys import KeyMaker
from ..writing.row_store import RowStore
from ..writing.schema import WriterSchema
from .settings import file_settings
from .write_tasks import Written, inserted, ranged_columns

_MOST_PATHS = 1 << 20
"""Partition paths of one task: the numbers of its files are those of no other task."""


@dataclass(frozen=True, slots=True)
class FrameTask:
    """What the tasks of one bulk insert have in common."""

    storage: Storage
    instant: str
    maker: KeyMaker
    schema: WriterSchema
    source: SliceSource
    dropped_columns: tuple[str, ...]
    metafiles_in_base_format: bool
    settings: FileSettings
    ranged: frozenset[str]
    memory: TaskMemory


@dataclass(frozen=True, slots=True)
class FrameRows:
    """The rows of `frame`, with the maker of their keys, and the schema of their write."""

    frame: Frame
    maker: KeyMaker
    schema: WriterSchema
    options: Options
    memory: TaskMemory
    progress: Callable[[str, int, int], None]

    def write(self, table: Snapshot, ts: str) -> list[Written]:
        """Write all rows into new file groups, for the instant `ts`. Raises the errors of the tasks."""
        config = table.config
        task = FrameTask(
            storage=table.storage,
            instant=ts,
            maker=self.maker,
            schema=self.schema,
            source=table.slices,
            dropped_columns=config.dropped_columns,
            metafiles_in_base_format=config.partition_metafile_in_base_format,
            settings=replace(file_settings(self.options, config), file_bytes=self.options[writing_keys.MAX_FILE_BYTES]),
            ranged=ranged_columns(table, self.schema),
            memory=self.memory,
        )
        return self.frame.map(write_partition, task, "write", lambda done, total: self.progress("write", done, total))


def write_partition(task: FrameTask, batches: Iterator[pa.RecordBatch], token: str) -> Iterator[Written]:
    """Write the rows of one partition of a data frame.

    Raises ConfigError for rows that the table cannot take, CheckFailed for files that do not hold them, StorageError.
    """
    with RowStore(task.memory.limit // 4) as store:
        kept = KeptRows(task.schema, store)
        for batch in batches:
            kept.add([batch], task.maker)
        first = int(token.partition("-")[0]) * _MOST_PATHS
        for number, (place, count) in enumerate(sorted(store.counts.items(), key=lambda item: item[0].partition)):
            create_metafiles(
                task.storage, [place.partition], task.instant, in_base_format=task.metafiles_in_base_format
            )
            insert = InsertTask(
                storage=task.storage,
                instant=task.instant,
                partition=place.partition,
                number=first + number,
                rows=count,
                filled=None,
                source=task.source,
                schema=task.schema,
                dropped_columns=task.dropped_columns,
                settings=task.settings,
                ranged=task.ranged,
                memory=task.memory,
            )
            yield inserted(insert, store.read(place), token, 0 if number else store.spilled_bytes)
