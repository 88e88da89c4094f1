"""Rewriting a group by decoding it, a piece of a row group at a time; a sort may spill rows to the local disk."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..base_files.file_writer import writer_options
from ..base_files.new_file import NewFile
from ..base_files.slices import SliceReader
from ..rows.conservation import Checksum, checksum
from ..rows.conversion_check import ConversionCheck
from ..rows.external_sort import ExternalSort
from ..rows.file_sizing import Piece, even_cuts, files_needed, needs_no_cut, weighed
from ..rows.ordering import SAMPLE_ROWS
from ..rows.output import CHECK, Form, Output, Stopwatch
from ..rows.sorting import RowSorter
from .columns import Columns
from .task import RewriteTask


class DecodedGroup:
    """The state of one rewrite that decodes; `pieces` are the weighed row groups, [] when the rewrite sorts."""

    def __init__(
        self,
        task: RewriteTask,
        form: Form,
        readers: Sequence[SliceReader],
        pieces: Sequence[Piece],
        clock: Stopwatch,
    ) -> None:
        self._form = form
        self._task = task
        self._target = form.target
        self._readers = readers
        self._pieces = pieces
        self._clock = clock
        self._columns = Columns.of(form, readers)
        self.before = Checksum()
        self.spilled_bytes = 0
        """Bytes of rows that were written to local disk, because they did not fit into memory."""

    def write(self) -> list[NewFile]:
        """Write every row of every input, and add the rows to the checksum `before`."""
        if not self._task.sort:
            return self._write(self._tables(), self._cuts(self._pieces))
        with ExternalSort(self._sorter(), sum(reader.num_rows for reader in self._readers), self._task.memory) as sort:
            for table in self._tables():
                with self._clock.phase("sort"):
                    sort.add(table)
            with self._clock.phase("sort"):
                sort.complete()
            cuts = self._cuts(self._weighed(sort))
            self.spilled_bytes = sort.spilled_bytes
            return self._write(self._in_order(sort), cuts)

    def _cuts(self, pieces: Sequence[Piece]) -> list[int]:
        count = files_needed(len(self._task.file_ids), pieces, self._readers, self._task.settings)
        return even_cuts(pieces, count) or [0] * self._task.keeps_group

    def _tables(self) -> Iterator[pa.Table]:
        """Every row of every input, in the raw form of the target; adds the rows to the checksum `before`."""
        columns = self._columns
        for reader in self._readers:
            stored = reader.schema.columns_of(columns.kept)
            check = ConversionCheck(reader.full_path, reader.schema, self._target, stored)
            with self._clock.phase(CHECK):
                checked = reader.checked_tables(
                    columns.kept, self._target, columns.dictionary, at_once=self._task.memory.stored
                )
            pieces = self._read(reader, columns.kept) if checked is None else self._clock.each("read", iter(checked))
            for read, table in pieces:
                with self._clock.phase(CHECK):
                    rows = check.rows(read, table)
                    # Rows that were merged are counted by other code than that which merged them.
                    self.before += checksum(rows) if checked is None else Checksum()
                yield table
            if checked is not None:
                with self._clock.phase(CHECK):
                    self.before += Checksum(*checked.expected())
                reader.release()

    def _read(self, reader: SliceReader, columns: Sequence[str]) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Every row of a file, as it was read and in the raw form of the target."""
        dictionary, at_once = self._columns.dictionary.intersection(columns), self._task.memory.stored
        yield from self._clock.each("read", reader.tables(columns, self._target, dictionary, at_once=at_once))
        reader.release()

    def _sorter(self) -> RowSorter:
        sorter = RowSorter(self._target, self._task.sort, self._task.layout)
        if sorter.needs_sample:
            rows = sum(reader.num_rows for reader in self._readers)
            step, seen, parts = max(1, rows // SAMPLE_ROWS), 0, []
            for _, table in (piece for reader in self._readers for piece in self._read(reader, sorter.columns)):
                parts.append(table.take(pa.array(np.arange(-seen % step, table.num_rows, step))))
                seen += table.num_rows
                while sum(part.nbytes for part in parts) > self._task.memory.sample and step < rows:
                    # Long texts: keep every second row of the sample.
                    parts, step = [part.take(pa.array(range(0, part.num_rows, 2))) for part in parts], 2 * step
            if parts:
                with self._clock.phase("sort"):
                    sorter.learn(pa.concat_tables(parts).unify_dictionaries())
        return sorter

    def _weighed(self, sort: ExternalSort) -> list[Piece]:
        count = len(self._task.file_ids)
        if needs_no_cut(self._readers, count, self._task.settings):
            return [(sort.rows, 1.0)]
        path = self._task.storage.full_path(self._task.partition)
        with self._clock.phase("cut"):
            options = writer_options(self._target, path, self._task.settings.codec, self._columns.plain_leaves)
            return weighed(sort.sections(), sort.rows, count, options)

    def _in_order(self, sort: ExternalSort) -> Iterator[pa.Table]:
        for section in self._clock.each("sort", sort.sections()):
            with self._clock.phase("sort"):
                table = section.rows(0, section.num_rows)
            yield table

    def _write(self, tables: Iterator[pa.Table], cuts: Sequence[int]) -> list[NewFile]:
        """Write the files; `cuts` are the numbers of their rows."""
        files: list[NewFile] = []
        row_group = self._task.memory.row_group(self._task.settings.row_group_bytes)
        rest: pa.Table | None = None
        for file_id, wanted in zip(self._task.ids_of(len(cuts)), cuts, strict=True):
            output = Output(self._form, file_id, wanted)
            with output.row_writer(row_group, self._columns.plain_leaves) as writer:
                while wanted:
                    if rest is None or rest.num_rows == 0:
                        rest = next(tables, None)
                    if rest is None:
                        # Fewer rows than the footers say: the comparison of the checksums will fail.
                        break
                    part, rest = rest.slice(0, wanted), rest.slice(wanted)
                    wanted -= part.num_rows
                    with self._clock.phase("write"):
                        output.add_keys(part)
                        writer.write(part)
                with self._clock.phase("write"):
                    files.append(output.close(writer))
        # More rows than the footers say must also be in the checksum `before`.
        for _ in tables:
            pass
        return files

    def checksum_of(self, new: SliceReader) -> Checksum:
        """The checksum of the rows of a new file. Raises CheckFailed when a row has another file name."""
        return self._columns.checksum(new, new.stored, self._task.memory.stored)
