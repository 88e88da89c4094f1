"""Rewriting a group by copying row groups into the new files as they are; rows that log records touch are merged.

Merged rows are encoded in memory, one row group at a time, and these row groups are then copied, too.
"""

from collections.abc import Sequence

import pyarrow as pa

from ..base_files.memory_file import MemoryFile
from ..base_files.new_file import NewFile
from ..base_files.page_copy import RowGroupCopier, needs_recoding, row_group_fingerprint
from ..base_files.slices import CheckedTables, Segment, SliceReader, StoredRowGroup
from ..errors import CheckFailed
from ..parquet.chunk_stats import column_stats
from ..rows.conservation import Checksum
from ..rows.output import CHECK, RECORD_KEY_FIELD, Form, Output, Stopwatch
from .columns import Columns
from .copy_plan import CopyPlan
from .task import RewriteTask


def _key_range(source: StoredRowGroup) -> tuple[str, str] | None:
    """The least and the greatest record key of a row group, by the footer; None when the footer does not have them."""
    for leaf, chunk in enumerate(source.facts.columns):
        if chunk.path == (RECORD_KEY_FIELD,) and leaf in source.reader.ordered_leaves and chunk.exact:
            found = column_stats(source.reader.schema, [source.facts])[leaf]
            if found.null_count == 0 and isinstance(found.min, str) and isinstance(found.max, str):
                return found.min, found.max
    return None


class CopiedGroup:
    """The state of one rewrite that copies."""

    spilled_bytes = 0

    def __init__(
        self, task: RewriteTask, form: Form, readers: Sequence[SliceReader], plan: CopyPlan, clock: Stopwatch
    ) -> None:
        self._task = task
        self._form = form
        self._readers = readers
        self._plan = plan
        self._clock = clock
        self._columns = Columns.of(form, readers)
        segments = [segment for file in plan.files for segment in file]
        codec = form.settings.codec
        stored = {one.stored.reader for one in segments if one.stored is not None}
        self._codec = codec if any(needs_recoding(reader, codec) for reader in stored) else None
        self._last = {one.slice: one for one in segments}
        """The last segment of each slice."""
        self._checked: dict[SliceReader, CheckedTables | None] = {}
        self._encoded: dict[str, list[bool]] = {}
        """Which row groups of each new file have merged rows."""
        self.before = Checksum()

    def write(self) -> list[NewFile]:
        """Write all rows, and add copied row groups, and what merged rows must be, to the checksum `before`."""
        files = self._plan.files
        pairs = zip(self._task.ids_of(len(files)), files, strict=True)
        written = [self._write_file(file_id, segments) for file_id, segments in pairs]
        for reader in self._readers:
            if reader not in self._last:
                # No rows, says the merge: other code must say so, too.
                self._end(reader, self._checked_tables(reader))
        return written

    def _write_file(self, file_id: str, segments: Sequence[Segment]) -> NewFile:
        output = Output(self._form, file_id, sum(one.rows for one in segments))
        with RowGroupCopier(
            self._form.storage,
            output.path,
            self._form.target,
            file_name=output.file_name,
            codec=self._codec,
            created_by=self._plan.created_by,
            ranged=self._form.ranged,
        ) as copier:
            merged = _MergedRows(self._task, output, copier, self._columns)
            for one in segments:
                checked = self._checked_tables(one.slice)
                if one.stored is not None:
                    with self._clock.phase("write"):
                        merged.keep_order(one.slice)
                    self._copy(one, one.stored, checked, output, copier)
                    merged.is_encoded.append(False)
                elif checked is not None:
                    for _, rows in self._clock.each("read", checked.rows(one)):
                        with self._clock.phase("write"):
                            merged.add(rows, one.slice)
                if one is self._last[one.slice]:
                    self._end(one.slice, checked)
            with self._clock.phase("write"):
                merged.flush()
                self._encoded[output.path] = merged.is_encoded
                return output.close(copier)

    def _checked_tables(self, reader: SliceReader) -> CheckedTables | None:
        if reader not in self._checked:
            with self._clock.phase(CHECK):
                self._checked[reader] = reader.checked_tables(
                    self._columns.kept, self._form.target, self._columns.dictionary, at_once=self._task.memory.stored
                )
        return self._checked[reader]

    def _end(self, reader: SliceReader, checked: CheckedTables | None) -> None:
        if checked is not None:
            with self._clock.phase(CHECK):
                self.before += Checksum(*checked.expected())
        self._checked[reader] = None
        reader.release()

    def _copy(
        self,
        one: Segment,
        source: StoredRowGroup,
        checked: CheckedTables | None,
        output: Output,
        copier: RowGroupCopier,
    ) -> None:
        with source.reader.held(source.index, page_indexes=True):
            with self._clock.phase("copy"):
                fingerprint = copier.append(source.reader, source.index)
            self._clock.move("copy", CHECK, fingerprint.seconds)
            self.before += Checksum(source.rows, int(fingerprint))
            if checked is not None:
                for keys in self._clock.each(CHECK, checked.stored(one)):
                    with self._clock.phase("keys"):
                        output.add_keys(keys)
            elif output.wants_keys and not output.add_key_range(_key_range(source)):
                with self._clock.phase("keys"):
                    output.add_keys(source.reader.read_row_group(source.index, [RECORD_KEY_FIELD]))

    def checksum_of(self, new: SliceReader) -> Checksum:
        """The checksum of the row groups of a new file; of its rows where they were merged."""
        name = new.path.rpartition("/")[2] if self._form.meta_fields else None
        is_encoded = self._encoded[new.path]
        if len(new.stored) != len(is_encoded):
            raise CheckFailed(f"{new.full_path} has {len(new.stored)} row groups, and {len(is_encoded)} were written")
        merged = [one for one, encoded in zip(new.stored, is_encoded, strict=True) if encoded]
        result = self._columns.checksum(new, merged, self._task.memory.stored)
        for one, encoded in zip(new.stored, is_encoded, strict=True):
            if not encoded:
                found = row_group_fingerprint(one.reader, one.index, file_name=name, recoded=self._codec is not None)
                result += Checksum(one.rows, found)
        return result


class _MergedRows:
    """Gathers merged rows of one new file until they fill a row group, which is then appended to the file."""

    def __init__(self, task: RewriteTask, output: Output, copier: RowGroupCopier, columns: Columns) -> None:
        self._full_path = task.output.full_path(output.path)
        self._row_group_bytes = task.memory.row_group(task.settings.row_group_bytes)
        self._output = output
        self._copier = copier
        self._columns = columns
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._slices: set[SliceReader] = set()
        """The slices of the pending rows."""
        self.is_encoded: list[bool] = []
        """For each row group of the file, whether it has merged rows."""

    def add(self, rows: pa.Table, of: SliceReader) -> None:
        if self._pending_bytes + rows.nbytes > self._row_group_bytes:
            self.flush()
        self._output.add_keys(rows)
        self._pending.append(rows)
        self._pending_bytes += rows.nbytes
        self._slices.add(of)

    def keep_order(self, of: SliceReader) -> None:
        """To be called before a row group of this slice is copied: of rows with one key, updates change the first."""
        if of in self._slices:
            self.flush()

    def flush(self) -> None:
        """Append the rows so far."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        self._slices.clear()
        if not sum(rows.num_rows for rows in pending):
            return
        file = MemoryFile(self._full_path)
        # The writer adds the file names: without room for them it would begin another row group.
        with self._output.row_writer(2 * self._row_group_bytes, self._columns.plain_leaves, file) as writer:
            while pending:
                writer.write(pending.pop(0))
            writer.close({})
        encoded = file.open(self._output.path)
        for index in range(len(encoded.row_groups)):
            self._copier.append(encoded, index)
            self.is_encoded.append(True)
