"""Base files of tables without meta fields: they store no record keys, which are made of the columns of each row.

Such a file may have the meta columns nevertheless, with nulls or empty texts, as releases of Hudi write them: they are
never read here.
"""

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from ..errors import CorruptFile
from ..model import FileSlice
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..parquet.footer import Footer, read_footer
from ..schema.table_schema import META_COLUMNS
from ..small_files import FileRanges
from .base_file_slice import BaseFileSlice
from .base_file_slices import BaseFileSlices
from .slices import RECORD_KEY


class RowKeys(Protocol):
    """Makes the record keys of rows that are stored; a plain value, which is sent to the executors."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns that keys are made of."""

    @property
    def schema(self) -> FileSchema:
        """The schema in whose raw form they are."""

    def of(self, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
        """The key of each row; null where it has none."""


def without_meta_columns(schema: FileSchema) -> FileSchema:
    return schema.select([name for name in schema.columns if name not in META_COLUMNS])


class KeyedBaseSlice(BaseFileSlice):
    """A base file that has a column of record keys for those who read it, and no meta columns."""

    makes_keys = True

    def __init__(self, path: str, ranges: FileRanges, footer: Footer, keys: RowKeys) -> None:
        super().__init__(path, ranges, footer)
        self._keys = keys

    def pieces_as_read(
        self,
        index: int,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> Generator[tuple[pa.Table, pa.Table], None, None]:
        target = without_meta_columns(self.schema) if target is None else target
        names = list(target.columns if columns is None else columns)
        if RECORD_KEY not in names:
            yield from super().pieces_as_read(index, names, target, dictionary, at_once=at_once)
            return
        of_keys = self._keys.columns
        rest = [name for name in names if name != RECORD_KEY]
        read_names = [*rest, *(name for name in of_keys if name not in rest)]
        read_target = target if rest else self._keys.schema
        stored = self.schema.columns_of(of_keys)
        for read, table in super().pieces_as_read(index, read_names, read_target, dictionary, at_once=at_once):
            # Keys are texts of the values as the table has them now, whatever the types of the file.
            values = converted_table(read, table.num_rows, self.schema, stored, self._keys.schema)
            keys = self._keys.of(values)
            if keys.null_count:
                raise CorruptFile(f"{self.full_path} has rows without a record key")
            yield read, pa.table([keys if n == RECORD_KEY else table.column(n) for n in names], names)

    def record_keys(self) -> Iterator[pa.ChunkedArray]:
        for _, rows in self.tables([RECORD_KEY], self._keys.schema):
            yield rows.column(RECORD_KEY)


@dataclass(frozen=True, slots=True)
class KeyedBaseSlices(BaseFileSlices):
    """The source of the base files of a table without meta fields, with record keys."""

    keys: RowKeys = field(kw_only=True)

    def open(self, file_slice: FileSlice) -> KeyedBaseSlice:
        base = self._base(file_slice)
        footer, ranges = read_footer(self.storage, base.path, base.size or None, base.content)
        # Keys are texts of dates as readers see them.
        return KeyedBaseSlice(base.path, ranges, footer, self.keys).gregorian()
