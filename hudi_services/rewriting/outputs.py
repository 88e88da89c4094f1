"""The new files of one task: rows or row groups are put into them, and they are read back from storage.

Names of files, markers, record keys and footers are made here, whoever decides which rows go where.
"""

from contextlib import ExitStack
from types import TracebackType
from typing import Protocol

import pyarrow as pa

from ..base_files.base_file_slices import BaseFileSlices
from ..base_files.file_writer import BaseFileWriter
from ..base_files.memory_file import MemoryFile
from ..base_files.new_file import NewFile
from ..base_files.page_copy import Fingerprint, RowGroupCopier, row_group_fingerprint
from ..base_files.slices import SliceReader, StoredRowGroup
from ..errors import CheckFailed, CorruptFile
from ..file_names import parse_base_file
from ..model import FileSlice
from ..paths import bare_name
from ..rows.conservation import Checksum
from ..rows.file_output import CHECK, Form, Output, Stopwatch
from ..rows.memory import TaskMemory
from .columns import Columns


class OutputFile(Protocol):
    """A new file: a context that closes it at its end, and drops it after an error."""

    def __enter__(self) -> "OutputFile": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, rows: pa.Table) -> None:
        """Add rows in the raw form of the target; columns of strings may be dictionaries."""

    def checksum(self, reader: SliceReader) -> Checksum:
        """The checksum of the file as it is read back: of pages where row groups were copied, else of rows.

        Raises CheckFailed when a row has another file name.
        """


class Outputs:
    """Opens the new files of a task, which have one form; `files` are those that are closed."""

    def __init__(self, form: Form, columns: Columns, memory: TaskMemory, clock: Stopwatch) -> None:
        self.form = form
        self.columns = columns
        self.stored_bytes = memory.stored
        self.row_group_bytes = memory.row_group(form.settings.row_group_bytes)
        self.clock = clock
        self._closed: list[tuple[NewFile, OutputFile]] = []

    @property
    def files(self) -> list[NewFile]:
        return [new for new, _ in self._closed]

    def rows(self, file_id: str, rows: int) -> "RowFile":
        """A new file of about `rows` rows."""
        return RowFile(self, Output(self.form, file_id, rows))

    def copies(self, file_id: str, rows: int, created_by: str, codec: str | None) -> "CopyFile":
        """A new file of row groups with `rows` rows; `created_by` and `codec` as for `RowGroupCopier`."""
        return CopyFile(self, Output(self.form, file_id, rows), created_by, codec)

    def close(self, file: OutputFile, output: Output, writer: BaseFileWriter | RowGroupCopier) -> None:
        """Publish a file; to be called by the file."""
        with self.clock.phase("write"):
            self._closed.append((output.close(writer), file))

    def read_back(self, new: NewFile) -> SliceReader:
        """Open a new file from storage. Raises CheckFailed when its footer is not what was meant."""
        form = self.form
        one = new_slice(new.partition, form.instant, new.file_id, new.path, new.size)
        reader = BaseFileSlices(form.storage).open(one)
        if reader.schema != form.target:
            raise CheckFailed(f"{reader.path}: the schema that was written is not the one that was meant")
        if any(reader.key_values.get(key) != value for key, value in form.key_values.items()):
            raise CheckFailed(f"{reader.path}: the key-value metadata in its footer is not what was written")
        return reader

    def checksum(self, reader: SliceReader) -> Checksum:
        """The checksum of a new file that is read back (`OutputFile.checksum`)."""
        return next(file for new, file in self._closed if new.path == reader.path).checksum(reader)


class RowFile:
    """A new file of rows (`OutputFile`)."""

    def __init__(self, outputs: Outputs, output: Output) -> None:
        self._outputs = outputs
        self._output = output
        self.writer = output.row_writer(outputs.row_group_bytes, outputs.columns.plain_leaves)

    def __enter__(self) -> "RowFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._outputs.close(self, self._output, self.writer)
        else:
            self.writer.abort()

    def write(self, rows: pa.Table) -> None:
        with self._outputs.clock.phase("write"):
            self._output.add_keys(rows)
            self.writer.write(rows)

    def checksum(self, reader: SliceReader) -> Checksum:
        return self._outputs.columns.checksum(reader, reader.stored, self._outputs.stored_bytes)


class CopyFile:
    """A new file of row groups that are copied, and of rows between them (`OutputFile`).

    Rows are gathered until they fill a row group, which is encoded in memory, and then appended to the file.
    """

    def __init__(self, outputs: Outputs, output: Output, created_by: str, codec: str | None) -> None:
        form = outputs.form
        self._outputs = outputs
        self.output = output
        self._is_recoded = codec is not None
        self._copier = RowGroupCopier(
            form.storage,
            output.path,
            form.target,
            file_name=output.file_name,
            codec=codec,
            created_by=created_by,
            ranged=form.ranged,
        )
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._slices: set[SliceReader | None] = set()
        """The slices of the pending rows."""
        self._is_encoded: list[bool] = []
        """For each row group of the file, whether its rows were written."""

    def __enter__(self) -> "CopyFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as after_error:
            after_error.callback(self._copier.abort)
            if kind is None:
                with self._outputs.clock.phase("write"):
                    self._flush()
                self._outputs.close(self, self.output, self._copier)
                after_error.pop_all()

    def write(self, rows: pa.Table, of: SliceReader | None = None) -> None:
        """Add rows, those of the slice `of`."""
        with self._outputs.clock.phase("write"):
            self.output.add_keys(rows)
            while rows.num_rows:
                room = self._outputs.row_group_bytes - self._pending_bytes
                fitting = rows.num_rows if rows.nbytes <= room else int(rows.num_rows * room / rows.nbytes)
                if not (fitting or self._pending):
                    fitting = 1
                self._pending.append(rows.slice(0, fitting))
                self._pending_bytes += self._pending[-1].nbytes
                self._slices.add(of)
                rows = rows.slice(fitting)
                if rows.num_rows:
                    self._flush()

    def copy(self, source: StoredRowGroup, of: SliceReader) -> Fingerprint:
        """Copy a row group of the slice `of`, without its record keys. Raises as `RowGroupCopier.append`."""
        clock = self._outputs.clock
        if of in self._slices:
            # The rows of a slice stay in order: of rows with one key, updates change the first.
            with clock.phase("write"):
                self._flush()
        with clock.phase("copy"):
            fingerprint = self._copier.append(source.reader, source.index)
        clock.move("copy", CHECK, fingerprint.seconds)
        self._is_encoded.append(False)
        return fingerprint

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        self._slices.clear()
        if not sum(rows.num_rows for rows in pending):
            return
        outputs = self._outputs
        file = MemoryFile(outputs.form.storage.full_path(self.output.path))
        # The writer adds the file names: without room for them it would begin another row group.
        with self.output.row_writer(2 * outputs.row_group_bytes, outputs.columns.plain_leaves, file) as writer:
            while pending:
                writer.write(pending.pop(0))
            writer.close({})
        encoded = file.open(self.output.path)
        for index in range(len(encoded.row_groups)):
            self._copier.append(encoded, index)
            self._is_encoded.append(True)

    def checksum(self, reader: SliceReader) -> Checksum:
        outputs, flags = self._outputs, self._is_encoded
        if len(reader.stored) != len(flags):
            raise CheckFailed(f"{reader.full_path} has {len(reader.stored)} row groups, and {len(flags)} were written")
        name = bare_name(reader.path) if outputs.form.meta_fields else None
        written = [one for one, is_encoded in zip(reader.stored, flags, strict=True) if is_encoded]
        result = outputs.columns.checksum(reader, written, outputs.stored_bytes)
        for one, is_encoded in zip(reader.stored, flags, strict=True):
            if not is_encoded:
                found = row_group_fingerprint(one.reader, one.index, file_name=name, recoded=self._is_recoded)
                result += Checksum(one.rows, found)
        return result


def new_slice(partition: str, instant: str, file_id: str, path: str, size: int = 0) -> FileSlice:
    """The slice of a new file; without a `size`, that is read from storage. Raises CorruptFile."""
    file = parse_base_file(partition, bare_name(path), size)
    if file is None or (file.instant, file.file_id, file.path) != (instant, file_id, path):
        raise CorruptFile(f"{path} is no new file of {instant}")
    return FileSlice.of_base(file)
