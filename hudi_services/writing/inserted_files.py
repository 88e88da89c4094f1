"""Writes the base files of new file groups.

A file is closed when its stored bytes reach the largest size: the next file of the same task begins a file group with
the same uuid and the next number. A file may be a little larger where this takes the last rows of the task: then an
average record size that is a little too small leaves no tiny file behind each bucket. Every new file is read back, and
its rows compared with those that were to be written.
Source: HoodieCreateHandle, HoodieBaseParquetWriter, HoodiePartitionMetadata of Apache Hudi.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from ..base_files.file_writer import BaseFileWriter
from ..base_files.footer_entries import footer_entries
from ..base_files.new_file import NewFile
from ..errors import CheckFailed
from ..file_names import new_prefix
from ..process import peak_bytes, reset_peak
from ..rewriting.columns import Columns
from ..rewriting.outputs import Outputs
from ..rows.conservation import Checksum, checksum
from ..rows.file_output import CHECK, Form, Stopwatch
from .new_rows import data_alone, new_rows
from .sorted_rows import SortedRows
from .write_form import WriteForm

_ROOM = 0.02
"""The share of the file size that may be left."""
_TOLERANCE = 0.08
"""The share of the file size that the last rows of a task may add to it. Hudi lets any file be a tenth larger; what
rows take here is an estimate, which is some percent off."""


@dataclass(frozen=True, slots=True)
class InsertTask:
    """`rows` rows for new file groups of a partition. `number` is that of the task in the write."""

    form: WriteForm
    partition: str
    number: int
    rows: int
    bucket: int | None = None
    """Of a bucket index: the new group is named after it, and is one file, whatever its size."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a task wrote, and what it took; `seconds` by phase."""

    files: tuple[NewFile, ...]
    checked: Checksum
    """Of all rows of the new files."""
    seconds: dict[str, float]
    peak: int
    spilled: int = 0
    """Bytes of rows that were sorted, or waited, on the local disk."""


def write_inserts(task: InsertTask, rows: Iterable[pa.Table], token: str) -> Written:
    """Write the rows, which have the data columns of the writer's schema, and with meta fields the record key.

    Raises CheckFailed when a new file does not hold exactly the rows that were to be written, and StorageError.
    """
    reset_peak()
    return _NewFiles(task, token).write(rows)


class _NewFiles:
    """The state of one task."""

    def __init__(self, task: InsertTask, token: str) -> None:
        self._task = task
        self._form = task.form
        self._clock = Stopwatch()
        schema, settings = task.form.schema, task.form.settings
        self._file_bytes = sys.maxsize if task.bucket is not None else settings.file_bytes
        settings = replace(settings, row_group_bytes=min(settings.row_group_bytes, self._file_bytes))
        # New rows are Gregorian, as files without a note are.
        entries = footer_entries([], schema.target, schema.table.for_files(schema.target.columns))
        where = (task.form.storage, task.form.instant, task.partition, token)
        form = Form(*where, schema.target, entries, schema.has_meta, settings, task.form.ranged)
        self._columns = Columns.of(schema.target, [], meta_fields=schema.has_meta)
        self._outputs = Outputs(form, self._columns, task.form.memory, self._clock)
        self._prefix = new_prefix(task.bucket)

    def write(self, rows: Iterable[pa.Table]) -> Written:
        form, clock, outputs, spilled = self._form, self._clock, self._outputs, 0
        if form.sort:
            plain = data_alone(form.schema, rows)
            ordered = SortedRows(form.schema, form.sort, plain, self._task.rows, form.memory)
            meant, spilled = self._new_files(ordered), ordered.spilled_bytes
        else:
            meant = self._new_files(rows)
        checked = Checksum()
        with clock.phase(CHECK):
            for new, wanted in zip(outputs.files, meant, strict=True):
                reader = outputs.read_back(new)
                found = outputs.checksum(reader)
                if found != wanted:
                    raise CheckFailed(
                        f"{reader.full_path} does not hold the rows that were to be written ({found} are in it, "
                        f"{wanted} were to be)",
                        hint="nothing was committed; please report this with the input",
                    )
                checked += found
        return Written(tuple(outputs.files), checked, clock.seconds, peak_bytes(), spilled)

    def _new_files(self, rows: Iterable[pa.Table]) -> list[Checksum]:
        """Write the files; the checksums of the rows that each of them is to hold."""
        task, schema, found = self._task, self._form.schema, list[Checksum]()
        meta = self._form.meta(task.partition, task.number)
        waiting = new_rows(schema, meta, rows, schema.target, self._columns.kept)
        limit = max(self._file_bytes - self._overhead(), self._file_bytes // 2)
        table, left = next(waiting, None), task.rows
        while table is not None:
            meant = Checksum()
            with self._outputs.rows(f"{self._prefix}-{len(found)}", max(1, left)) as file:
                while table is not None:
                    part = table.slice(0, _fitting(file.writer, table, limit, left))
                    with self._clock.phase(CHECK):
                        meant += checksum(part)
                    file.write(part)
                    left -= part.num_rows
                    table = table.slice(part.num_rows) if part.num_rows < table.num_rows else next(waiting, None)
                    if table is not None and not _fitting(file.writer, table, limit, left):
                        break
            found.append(meant)
        return found

    def _overhead(self) -> int:
        bloom = self._form.settings.bloom
        return 0 if bloom is None else bloom.new_filter(0).serialized_bytes(self._task.rows)


def _fitting(writer: BaseFileWriter, table: pa.Table, limit: int, left: int) -> int:
    """How many rows of `table` still fit into the file, by bytes as stored; at least 1 into an empty file.

    `left` rows of the task are not written yet; `table` has the first ones.
    """
    each = table.nbytes / table.num_rows
    if writer.expected_bytes + table.nbytes * writer.stored_share > limit:
        writer.settle()
    room = limit - writer.expected_bytes
    if left * each * writer.stored_share <= room + limit * _TOLERANCE:
        return int(table.num_rows)
    fitting = min(int(room / max(each * writer.stored_share, 1e-9)), int(table.num_rows))
    if not writer.expected_bytes:
        return max(1, fitting)
    # No row group for a few rows that the estimate left room for.
    return fitting if fitting == table.num_rows or room > limit * _ROOM else 0
