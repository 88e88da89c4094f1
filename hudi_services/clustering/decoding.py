"""Rewriting a group by decoding it: row group by row group, or, to be sorted, all of it as Arrow in memory."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..files.parquet_reader import BaseFileReader, shared_dictionary_columns, shared_plain_leaves
from ..files.parquet_writer import FILE_NAME_COLUMN, BaseFileWriter
from .cuts import even_cuts, weighed, weighed_row_groups
from .output import Form, NewFile, Output, Stopwatch
from .proof import Checksum, checksum
from .sorting import sorted_rows


class DecodedGroup:
    """The state of one rewrite that decodes."""

    def __init__(self, form: Form, readers: Sequence[BaseFileReader], clock: Stopwatch) -> None:
        self._form = form
        self._task = form.task
        self._target = form.target
        self._readers = readers
        self._clock = clock
        # The one column that is made anew; without meta fields the row writer leaves it empty, and so it stays.
        made = {FILE_NAME_COLUMN} if form.task.meta_fields else set()
        self._columns = [name for name in form.target.columns if name not in made]
        self._dictionary = shared_dictionary_columns(readers)
        self._plain_leaves = shared_plain_leaves(readers)
        self.before = Checksum()

    def write(self) -> list[NewFile]:
        """Write every row of every input; counts them into `before`."""
        count = len(self._task.file_ids)
        if self._task.sort:
            ordered = self._sorted()
            with self._clock.phase("cut"):
                pieces = weighed(ordered, count, self._task.settings.codec)
            return self._write(iter([ordered]), even_cuts(pieces, count))
        with self._clock.phase("cut"):
            pieces = weighed_row_groups(self._readers, count, self._task.settings.codec)
        return self._write(self._tables(), even_cuts(pieces, count))

    def _tables(self) -> Iterator[pa.Table]:
        """Every row group of every input in the form of the target; counts them into `before`."""
        for reader in self._readers:
            for i in range(len(reader.row_groups)):
                with self._clock.phase("read"):
                    table = reader.read_row_group(i, self._columns, target=self._target, dictionary=self._dictionary)
                with self._clock.phase("proof"):
                    self.before += checksum(table)
                yield table

    def _sorted(self) -> pa.Table:
        tables = list(self._tables())
        if not tables:
            return pa.table({})
        with self._clock.phase("sort"):
            return sorted_rows(self._target, tables, self._task.sort, self._task.layout)

    def _write(self, tables: Iterator[pa.Table], cuts: Sequence[int]) -> list[NewFile]:
        """Write files of so many rows each."""
        files: list[NewFile] = []
        rest: pa.Table | None = None
        # A group without rows gets no file.
        for file_id, wanted in zip(self._task.file_ids, cuts, strict=False):
            output = Output(self._form, file_id, wanted)
            with self._open(output) as writer:
                while wanted:
                    if rest is None or rest.num_rows == 0:
                        rest = next(tables, None)
                    if rest is None:
                        # Fewer rows than the footers promised: the comparison of the checksums will tell.
                        break
                    part, rest = rest.slice(0, wanted), rest.slice(wanted)
                    wanted -= part.num_rows
                    with self._clock.phase("write"):
                        output.add_keys(part)
                        writer.write(part)
                with self._clock.phase("write"):
                    files.append(output.close(writer))
        # More rows than promised: the comparison must see them, too.
        for _ in tables:
            pass
        return files

    def _open(self, output: Output) -> BaseFileWriter:
        settings = self._task.settings
        return BaseFileWriter(
            self._task.storage,
            output.path,
            self._target,
            file_name=output.file_name,
            codec=settings.codec,
            row_group_bytes=settings.row_group_bytes,
            page_bytes=settings.page_bytes,
            plain_leaves=self._plain_leaves,
        )

    def checksum_of(self, new: BaseFileReader) -> Checksum:
        """The checksum of the rows of a new file."""
        dictionary = self._dictionary & new.dictionary_columns
        tables = (new.read_row_group(i, self._columns, dictionary=dictionary) for i in range(len(new.row_groups)))
        return sum(map(checksum, tables), start=Checksum())
