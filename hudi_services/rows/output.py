"""The new base files of a clustering group: what they have in common, their names, markers, keys and footers."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from ..clock import counted
from ..commit.markers import create_marker
from ..files.bloom import BloomFilter
from ..files.names import base_file_name, new_file_id
from ..files.parquet_schema import FileSchema
from ..files.parquet_writer import WrittenFile
from ..files.record_keys import RecordKeys
from ..model import path_in
from ..storage import Storage
from .memory import TaskMemory
from .settings import FileSettings
from .sort_order import SortColumn

RECORD_KEY_FIELD = "_hoodie_record_key"


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """One group. `inputs` are base-file paths, newest first; `file_ids` names the new file groups."""

    storage: Storage
    instant: str
    partition: str
    inputs: tuple[str, ...]
    file_ids: tuple[str, ...]
    sort: tuple[SortColumn, ...]
    layout: str
    """How the sort columns order the rows, see `row_order`."""
    table_schema: str | None
    """The table's Avro schema as JSON, without meta columns; None lets the newest file decide."""
    dropped_columns: tuple[str, ...]
    """Partition columns that base files need not have (hoodie.datasource.write.drop.partition.columns)."""
    meta_fields: bool
    settings: FileSettings
    memory: TaskMemory = field(default_factory=TaskMemory)
    indexed: tuple[str, ...] = ()
    """Columns (dotted paths) of which the commit needs the ranges, whether footers tell them or not."""

    @property
    def ranged(self) -> frozenset[str]:
        """Columns whose ranges in the new files are wanted: the report tells those of the sort columns."""
        return frozenset(self.indexed).union(column.name for column in self.sort)

    def ids_of(self, files: int) -> list[str]:
        """File ids for so many new files; the group may need more than were planned."""
        return [*self.file_ids[:files], *(new_file_id() for _ in range(files - len(self.file_ids)))]


@dataclass(frozen=True, slots=True)
class Form:
    """What all new files of a group have in common."""

    task: RewriteTask
    token: str
    target: FileSchema
    notes: Mapping[str, str]
    """Key/value metadata that says nothing of single rows."""


@dataclass(frozen=True, slots=True)
class NewFile:
    file_id: str
    file: WrittenFile
    millis: int


@dataclass(slots=True)
class Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        with counted(self.seconds, name):
            yield

    def move(self, of: str, to: str, seconds: float) -> None:
        """Count `seconds` of the phase `of` for `to`, which was inside it."""
        self.seconds[of] -= seconds
        self.seconds[to] = self.seconds.get(to, 0.0) + seconds


class Writer(Protocol):
    """What puts the rows into a file: `BaseFileWriter` or `RowGroupCopier`."""

    def close(self, key_values: Mapping[str, str]) -> WrittenFile: ...


class Output:
    """One new base file: creates its marker, collects its record keys, and gives it its footer at the end."""

    def __init__(self, form: Form, file_id: str, rows: int) -> None:
        task = form.task
        self._form = form
        self._file_id = file_id
        self._start = time.perf_counter()
        name = base_file_name(file_id, form.token, task.instant)
        self.path = path_in(task.partition, name)
        self.file_name = name if task.meta_fields else None
        """The value of `_hoodie_file_name`; None in tables without meta fields."""
        self._keys = RecordKeys(_bloom_filter(task.settings, rows)) if task.meta_fields else None
        create_marker(task.storage, task.instant, self.path)

    @property
    def wants_keys(self) -> bool:
        return self._keys is not None

    def add_key_range(self, bounds: tuple[str, str] | None) -> bool:
        """Count the record keys of rows by their least and greatest one; False when that is not enough."""
        return self._keys is not None and bounds is not None and self._keys.add_range(*bounds)

    def add_keys(self, table: pa.Table) -> None:
        """Count the record keys of rows that go into the file; without meta fields there are none."""
        if self._keys is not None:
            self._keys.add(table.column(RECORD_KEY_FIELD))

    def close(self, writer: Writer) -> NewFile:
        """Publish what `writer` wrote."""
        keys = self._keys.footer() if self._keys is not None else {}
        file = writer.close({**self._form.notes, **keys})
        return NewFile(self._file_id, file, round((time.perf_counter() - self._start) * 1000))


def _bloom_filter(settings: FileSettings, rows: int) -> BloomFilter | None:
    return None if settings.bloom is None else settings.bloom.new_filter(rows)
