"""New base files: their common form, names, markers, record keys and footers."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import pyarrow as pa

from ..base_files.bloom import BloomFilter
from ..base_files.file_writer import BaseFileWriter
from ..base_files.new_file import NewFile
from ..base_files.record_keys import RecordKeys
from ..base_files.slices import RECORD_KEY
from ..clock import counted
from ..commit.markers import create_marker
from ..file_names import base_file_name
from ..model import path_in
from ..parquet.file_schema import FileSchema
from ..storage import FileWrites, Storage
from .settings import FileSettings

CHECK = "row conservation check"
"""The phase of a task in which rows are compared."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Form:
    """The common form of all new files of one task: where and how they are written."""

    storage: Storage
    instant: str
    partition: str
    token: str
    target: FileSchema
    key_values: Mapping[str, str]
    """Key/value metadata for every footer, independent of the rows of the file."""
    meta_fields: bool
    settings: FileSettings
    ranged: frozenset[str] = frozenset()
    """Columns (dotted paths) whose ranges are needed, whether footers have them or not."""
    has_markers: bool = True
    """Whether a file needs a marker: not where no reader looks for files."""


@dataclass(slots=True)
class Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        with counted(self.seconds, name):
            yield

    def each(self, name: str, items: Iterator[Item]) -> Iterator[Item]:
        """`items`; the time that they take counts for a phase."""
        while True:
            with self.phase(name):
                item = next(items, None)
            if item is None:
                return
            yield item

    def move(self, of: str, to: str, seconds: float) -> None:
        """Move `seconds` from the phase `of` to the phase `to`, which ran inside it."""
        self.seconds[of] -= seconds
        self.seconds[to] = self.seconds.get(to, 0.0) + seconds


class Writer(Protocol):
    """The writer of a file's rows: `BaseFileWriter` or `RowGroupCopier`."""

    def close(self, key_values: Mapping[str, str]) -> NewFile: ...


class Output:
    """One new base file: creates the marker, collects the record keys, and writes the footer at the end."""

    def __init__(self, form: Form, file_id: str, rows: int) -> None:
        self._form = form
        self._file_id = file_id
        self._start = time.perf_counter()
        name = base_file_name(file_id, form.token, form.instant)
        self.path = path_in(form.partition, name)
        self.file_name = name if form.meta_fields else None
        """The value of `_hoodie_file_name`; None in tables without meta fields."""
        self._keys = RecordKeys(_bloom_filter(form.settings, rows)) if form.meta_fields else None
        if form.has_markers:
            create_marker(form.storage, form.instant, self.path)

    @property
    def wants_keys(self) -> bool:
        return self._keys is not None

    def add_key_range(self, bounds: tuple[str, str] | None) -> bool:
        """Add record keys by their least and greatest key; False when the keys themselves are needed."""
        return self._keys is not None and bounds is not None and self._keys.add_range(*bounds)

    def add_keys(self, table: pa.Table) -> None:
        """Add the record keys of rows that are written to the file; without meta fields there are none."""
        if self._keys is not None:
            self._keys.add(table.column(RECORD_KEY))

    def row_writer(
        self, row_group_bytes: int, plain_leaves: Collection[str], storage: FileWrites | None = None
    ) -> BaseFileWriter:
        """The writer of the file's rows, in row groups of `row_group_bytes` in memory; `close` takes it at the end.

        `storage`: where it writes; None for the table.
        """
        form = self._form
        return BaseFileWriter(
            form.storage if storage is None else storage,
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
        """Write the footer, and publish the file that `writer` wrote."""
        keys = self._keys.footer() if self._keys is not None else {}
        new = writer.close({**self._form.key_values, **keys})
        millis = round((time.perf_counter() - self._start) * 1000)
        return replace(new, stat=replace(new.stat, file_id=self._file_id, create_millis=millis))


def _bloom_filter(settings: FileSettings, rows: int) -> BloomFilter | None:
    return None if settings.bloom is None else settings.bloom.new_filter(rows)
