"""Rewriting one clustering group: base files in, sorted or not, base files of even row counts out.

Runs inside one Spark task. Unsorted groups stream row group by row group; sorted ones are held in memory as Arrow.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..codecs.table_schema import for_files, parse_table_schema
from ..commit.markers import create_marker
from ..errors import CheckFailed
from ..files.bloom import BloomFilter
from ..files.calendar import FileNotes, calendar_notes
from ..files.names import base_file_name
from ..files.parquet_evolution import SourceSchema, agrees, resolve_target
from ..files.parquet_reader import BaseFileReader, open_base_file, shared_dictionary_columns, shared_plain_leaves
from ..files.parquet_schema import FileSchema
from ..files.parquet_writer import BaseFileWriter, WrittenFile
from ..files.record_keys import AVRO_SCHEMA, WRITER_MODEL, RecordKeys
from ..storage import Storage
from .proof import FILE_NAME_FIELD, Checksum, checksum
from .settings import FileSettings
from .sort_order import SortColumn
from .sorting import sorted_rows

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
    table_schema: str | None
    """The table's Avro schema as JSON, without meta columns; None lets the newest file decide."""
    dropped_columns: tuple[str, ...]
    """Partition columns that base files need not have (hoodie.datasource.write.drop.partition.columns)."""
    meta_fields: bool
    settings: FileSettings


@dataclass(frozen=True, slots=True)
class NewFile:
    file_id: str
    file: WrittenFile
    millis: int


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """What became of a task; `seconds` by phase, of this task alone."""

    partition: str
    files: tuple[NewFile, ...]
    rows_in: int
    bytes_in: int
    before: Checksum
    after: Checksum
    seconds: Mapping[str, float]


@dataclass(slots=True)
class _Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def rewrite_group(task: RewriteTask, write_token: str) -> RewriteResult:
    """Rewrite the group, read the new files back and compare the rows.

    Raises CheckFailed when a row was lost, doubled or changed, or a schema differs; the files are then left to the
    rollback of the attempt. Raises CorruptFile, UnsupportedTable and StorageError for inputs that cannot be read.
    """
    clock = _Stopwatch()
    with clock.phase("read"):
        readers = [open_base_file(task.storage, path) for path in task.inputs]
        avro_schema = _file_schema(task, readers)
        target = resolve_target([SourceSchema(r.path, r.schema) for r in readers], avro_schema)
        notes = calendar_notes([FileNotes(r.path, r.key_values) for r in readers], target)
    # A reader that trusts the note would take millis for micros; without it, it asks the parquet schema.
    if avro_schema is not None and agrees(target, avro_schema):
        notes |= {AVRO_SCHEMA: json.dumps(avro_schema), WRITER_MODEL: "avro"}
    form = _Form(task, write_token, target, shared_plain_leaves(readers), notes)
    group = _Group(form, readers, clock)
    tables = group.sorted_tables() if task.sort else group.tables()
    files = group.write(tables)
    after = group.read_back(files)
    if group.before != after:
        raise CheckFailed(
            f"{task.storage.full_path(task.partition)}: the rewrite of {len(readers)} files does not hold the same "
            f"rows ({group.before} before, {after} after)",
            hint="nothing was committed; please report this with the plan and the files",
        )
    return RewriteResult(
        task.partition,
        tuple(files),
        sum(r.num_rows for r in readers),
        sum(r.size for r in readers),
        group.before,
        after,
        clock.seconds,
    )


def _file_schema(task: RewriteTask, readers: list[BaseFileReader]) -> dict[str, Any] | None:
    if task.table_schema is None:
        return None
    columns = {column for reader in readers for column in reader.schema.columns}
    schema = parse_table_schema(task.table_schema, task.storage.root)
    return for_files(schema, columns, task.dropped_columns)


@dataclass(frozen=True, slots=True)
class _Form:
    """What all new files of a group have in common."""

    task: RewriteTask
    token: str
    target: FileSchema
    plain_leaves: frozenset[str]
    notes: Mapping[str, str]
    """Key/value metadata that says nothing of single rows."""


class _Group:
    """The state of one rewrite."""

    def __init__(self, form: _Form, readers: list[BaseFileReader], clock: _Stopwatch) -> None:
        self._form = form
        self._task = form.task
        self._target = form.target
        self._readers = readers
        self._clock = clock
        # The one column that is made anew; without meta fields the row writer leaves it empty, and so it stays.
        made = {FILE_NAME_FIELD} if form.task.meta_fields else set()
        self._columns = [name for name in form.target.columns if name not in made]
        self._dictionary = shared_dictionary_columns(readers)
        self.before = Checksum()

    def tables(self) -> Iterator[pa.Table]:
        """Every row group of every input in the form of the target; counts them into `before`."""
        for reader in self._readers:
            for i in range(len(reader.row_groups)):
                with self._clock.phase("read"):
                    table = reader.read_row_group(i, self._columns, target=self._target, dictionary=self._dictionary)
                with self._clock.phase("proof"):
                    self.before += checksum(table)
                yield table

    def sorted_tables(self) -> Iterator[pa.Table]:
        tables = list(self.tables())
        if not tables:
            return
        with self._clock.phase("sort"):
            ordered = sorted_rows(self._target, tables, self._task.sort)
        yield ordered

    def write(self, tables: Iterator[pa.Table]) -> list[NewFile]:
        """Cut the rows into as many files as planned, each with the same number of rows."""
        total = sum(reader.num_rows for reader in self._readers)
        count = min(len(self._task.file_ids), total)
        files: list[NewFile] = []
        rest: pa.Table | None = None
        for i in range(count):
            wanted = total * (i + 1) // count - total * i // count
            output = _Output(self._form, self._task.file_ids[i], wanted)
            while wanted:
                if rest is None or rest.num_rows == 0:
                    rest = next(tables, None)
                if rest is None:
                    # Fewer rows than the footers promised: the comparison of the checksums will tell.
                    break
                part, rest = rest.slice(0, wanted), rest.slice(wanted)
                wanted -= part.num_rows
                with self._clock.phase("write"):
                    output.write(part)
            with self._clock.phase("write"):
                files.append(output.close())
        # More rows than promised: the comparison must see them, too.
        for _ in tables:
            pass
        return files

    def read_back(self, files: list[NewFile]) -> Checksum:
        """The checksum of what storage now holds."""
        with self._clock.phase("proof"):
            result = Checksum()
            for new in files:
                reader = open_base_file(self._task.storage, new.file.path)
                if reader.schema != self._target:
                    raise CheckFailed(f"{reader.path}: the schema that was written is not the one that was meant")
                dictionary = self._dictionary & reader.dictionary_columns
                for i in range(len(reader.row_groups)):
                    table = reader.read_row_group(i, self._columns, dictionary=dictionary)
                    result += checksum(table)
            return result


class _Output:
    """One new base file with its marker, key range and bloom filter."""

    def __init__(self, form: _Form, file_id: str, rows: int) -> None:
        task = form.task
        self._form = form
        self._file_id = file_id
        self._start = time.perf_counter()
        name = base_file_name(file_id, form.token, task.instant)
        path = f"{task.partition}/{name}" if task.partition else name
        create_marker(task.storage, task.instant, path)
        self._keys = RecordKeys(_bloom_filter(task.settings, rows)) if task.meta_fields else None
        self._writer = BaseFileWriter(
            task.storage,
            path,
            form.target,
            file_name=name if task.meta_fields else None,
            codec=task.settings.codec,
            row_group_bytes=task.settings.row_group_bytes,
            page_bytes=task.settings.page_bytes,
            plain_leaves=form.plain_leaves,
        )

    def write(self, table: pa.Table) -> None:
        try:
            if self._keys is not None:
                self._keys.add(table.column(RECORD_KEY_FIELD))
            self._writer.write(table)
        except BaseException:
            self._writer.abort()
            raise

    def close(self) -> NewFile:
        keys = self._keys.footer() if self._keys is not None else {}
        file = self._writer.close({**self._form.notes, **keys})
        return NewFile(self._file_id, file, round((time.perf_counter() - self._start) * 1000))


def _bloom_filter(settings: FileSettings, rows: int) -> BloomFilter | None:
    bloom = settings.bloom
    if bloom is None:
        return None
    return BloomFilter.for_config(
        bloom.entries, bloom.false_positive_rate, bloom.max_entries, bloom.filter_type, expected_keys=rows
    )
