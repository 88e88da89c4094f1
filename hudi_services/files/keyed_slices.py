"""Base files of tables without meta fields: they store no record keys, which are made of the columns of each row.

Such a file may have the meta columns nevertheless, with nulls or empty texts, as releases of Hudi write them: they are
never read here.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from ..codecs.table_schema import META_COLUMNS
from ..errors import CorruptFile
from ..model import FileSlice
from ..storage import FileReads, Storage
from .parquet_convert import converted_table
from .parquet_footer import Footer, read_footer
from .parquet_schema import FileSchema
from .slices import RECORD_KEY, BaseFileSlice, BaseFileSlices, SliceFacts

T = TypeVar("T")


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
    """A base file that has a column of record keys for those who read it; `data_schema` is without meta columns."""

    makes_keys = True

    def __init__(self, storage: FileReads, path: str, size: int, footer: Footer, keys: RowKeys) -> None:
        super().__init__(storage, path, size, footer)
        self._keys = keys
        self.data_schema = without_meta_columns(self.schema)

    @classmethod
    def keyed(cls, storage: Storage, one: FileSlice, keys: RowKeys) -> "KeyedBaseSlice":
        """The open base file of a slice. Raises CorruptFile and StorageError."""
        assert one.base_file is not None and not one.log_files, "a slice of a copy-on-write table is a base file"
        footer, size = read_footer(storage, one.base_file.path, one.base_file.size or None)
        return cls(storage, one.base_file.path, size, footer, keys)

    def pieces_as_read(
        self,
        index: int,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> Generator[tuple[pa.Table, pa.Table], None, None]:
        target = self.data_schema if target is None else target
        names = list(target.columns if columns is None else columns)
        if RECORD_KEY not in names:
            yield from super().pieces_as_read(index, names, target, dictionary, at_once=at_once)
            return
        of_keys = self._keys.columns
        rest = [name for name in names if name != RECORD_KEY]
        read_names = [*rest, *(name for name in of_keys if name not in rest)]
        read_target = target if rest else self._keys.schema
        for read, table in super().pieces_as_read(index, read_names, read_target, dictionary, at_once=at_once):
            # Keys are texts of the values as the table has them now, whatever the types of the file.
            values = converted_table(read, table.num_rows, self.schema, list(of_keys), self._keys.schema)
            keys = self._keys.of(values)
            if keys.null_count:
                raise CorruptFile(f"{self.full_path} has rows without a record key")
            yield read, pa.table([keys if n == RECORD_KEY else table.column(n) for n in names], names)

    def record_keys(self) -> Iterator[pa.ChunkedArray]:
        for _, rows in self.tables([RECORD_KEY], self._keys.schema):
            yield rows.column(RECORD_KEY)


@dataclass(frozen=True, slots=True)
class KeyedBaseSlices:
    """The source of the base files of a table without meta fields, with record keys."""

    storage: Storage
    keys: RowKeys

    def open(self, one: FileSlice) -> KeyedBaseSlice:
        return KeyedBaseSlice.keyed(self.storage, one, self.keys)

    def facts(self, one: FileSlice, take: Callable[[SliceFacts], T]) -> T:
        return BaseFileSlices(self.storage).facts(one, take)

    def as_of(self, instant: str | None, memory: int) -> "KeyedBaseSlices":
        return self

    def counting(self, instant: str) -> "KeyedBaseSlices":
        return self

    def check(self, one: FileSlice) -> None:
        BaseFileSlices(self.storage).check(one)
