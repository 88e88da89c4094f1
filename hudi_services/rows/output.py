"""New base files: what those of one task have in common, their names, markers, record keys and footers."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from ..clock import counted
from ..commit.markers import create_marker
from ..files.bloom import BloomFilter
from ..files.names import base_file_name
from ..files.parquet_schema import FileSchema
from ..files.parquet_writer import BaseFileWriter, WrittenFile
from ..files.record_keys import RecordKeys
from ..model import path_in
from ..storage import Storage
from .settings import FileSettings

RECORD_KEY_FIELD = "_hoodie_record_key"


@dataclass(frozen=True, slots=True)
class Form:
    """What all new files of one task have in common: where they go, and how they are written."""

    storage: Storage
    instant: str
    partition: str
    token: str
    target: FileSchema
    notes: Mapping[str, str]
    """Key/value metadata that says nothing of single rows."""
    meta_fields: bool
    settings: FileSettings
    ranged: frozenset[str] = frozenset()
    """Columns (dotted paths) whose ranges are wanted, whether footers tell them or not."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A base file that was written, of the new file group `file_id`; `millis` is how long that took."""

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
        self._form = form
        self._file_id = file_id
        self._start = time.perf_counter()
        name = base_file_name(file_id, form.token, form.instant)
        self.path = path_in(form.partition, name)
        self.file_name = name if form.meta_fields else None
        """The value of `_hoodie_file_name`; None in tables without meta fields."""
        self._keys = RecordKeys(_bloom_filter(form.settings, rows)) if form.meta_fields else None
        create_marker(form.storage, form.instant, self.path)

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

    def row_writer(self, row_group_bytes: int, plain_leaves: Collection[str]) -> BaseFileWriter:
        """What writes rows into the file, in row groups of so many bytes in memory; close it by `close`."""
        form = self._form
        return BaseFileWriter(
            form.storage,
            self.path,
            form.target,
            file_name=self.file_name,
            codec=form.settings.codec,
            row_group_bytes=row_group_bytes,
            page_bytes=form.settings.page_bytes,
            plain_leaves=plain_leaves,
            ranged=form.ranged,
        )

    def close(self, writer: Writer) -> NewFile:
        """Publish what `writer` wrote."""
        keys = self._keys.footer() if self._keys is not None else {}
        file = writer.close({**self._form.notes, **keys})
        return NewFile(self._file_id, file, round((time.perf_counter() - self._start) * 1000))


def _bloom_filter(settings: FileSettings, rows: int) -> BloomFilter | None:
    return None if settings.bloom is None else settings.bloom.new_filter(rows)
