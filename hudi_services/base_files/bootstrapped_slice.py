"""An open base file of a bootstrap by metadata alone, with the columns of its rows from the source file.

The base file has the meta columns, and the n-th of its rows belongs to the n-th row of the source file; their row
groups differ. Columns of the partition path that the source file does not have are made of the path.
Source: HoodieFileGroupReader, BootstrapIterator of Apache Hudi.
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence

import pyarrow as pa

from ..errors import CorruptFile
from ..model import BaseFile, SourceFile
from ..parquet.chunk_stats import ColumnStats
from ..parquet.conversion import converted_table
from ..parquet.file_schema import OPTIONAL, UTF8, FileSchema, Node
from ..parquet.footer import Footer, read_footer
from ..parquet.node_types import build_node
from ..schema.column_type import ColumnType, Kind
from ..schema.table_schema import META_COLUMNS
from ..small_files import FileRanges
from ..storage import Storage
from .base_file_slice import BaseFileSlice
from .source_folder import SourceFolder

_TEXT = ColumnType(Kind.STRING, nullable=True)
_ROWS = 65_536
"""Rows of a piece that needs nothing of the source file."""


def open_with_source(
    storage: Storage, base: BaseFile, source: SourceFile, sources: SourceFolder
) -> "BootstrappedSlice":
    """The open base file `base` with its source file, from the folder that the operator allows.

    Raises UnsupportedTable where no folder is allowed, CorruptFile for a source file that was changed since the table
    was bootstrapped, NotFound and the other StorageErrors.
    """
    if not sources.url:
        raise sources.refusal(storage, base)
    bare = BaseFileSlice.open(storage, base.path, base.size or None, base.content)
    footer, ranges = read_footer(storage.elsewhere(sources.url), source.path, None)
    if ranges.size != source.size or footer.num_rows != bare.num_rows:
        raise CorruptFile(
            f"{footer.path} was changed since the table was bootstrapped: it has {ranges.size} bytes and "
            f"{footer.num_rows} rows, and the table knows of {source.size} bytes and {bare.num_rows} rows",
            hint="put the old file back: readers of Hudi, too, give its rows to the keys of the old ones",
        )
    return BootstrappedSlice(base.path, ranges, footer, bare, source.columns)


class BootstrappedSlice(BaseFileSlice):
    """A base file with its source file. Its row groups are those of the source file."""

    def __init__(
        self,
        path: str,
        ranges: FileRanges,
        footer: Footer,
        bare: BaseFileSlice,
        columns: Sequence[tuple[str, str | None]],
    ) -> None:
        """`path` is that of the base file `bare`; `columns` those of the partition path, with their texts."""
        super().__init__(path, ranges, footer)
        self._bare = bare
        texts = dict(columns)
        own = [node for node in self.schema.root.children if _is_own(node, texts)]
        self._own = frozenset(node.name for node in own)
        self._made = {name: text for name, text in columns if name not in self._own}
        made = [build_node(name, _TEXT) for name in self._made]
        meta = [_nullable(node) for node in bare.schema.root.children]
        self.schema = FileSchema(self.schema.root.with_children([*meta, *own, *made]))
        self.key_values: Mapping[str, str] = {}

    is_converted = True

    @property
    def dictionary_columns(self) -> frozenset[str]:
        return super().dictionary_columns.intersection(self._own)

    def column_stats(self, complete: Collection[str] = ()) -> tuple[ColumnStats, ...]:
        return ()

    def release(self) -> None:
        super().release()
        self._bare.release()

    def read_row_group(
        self,
        index: int,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
    ) -> pa.Table:
        pieces = [table for _, table in self.pieces_as_read(index, columns, target, dictionary)]
        return pa.concat_tables(pieces)

    def pieces_as_read(
        self,
        index: int,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> Generator[tuple[pa.Table, pa.Table], None, None]:
        target = self.schema if target is None else target
        wanted = self.schema.columns_of(target.columns if columns is None else columns)
        names = [name for name in wanted.values() if name is not None]
        own = [name for name in names if name in self._own]
        meta = [name for name in names if name not in self._own and name not in self._made]
        start = sum(group.num_rows for group in self.row_groups[:index])
        rows = _Rows(self._bare, meta, start)
        with self._pyarrow_errors():
            for piece in self._source_pieces(index, own, frozenset(dictionary).intersection(own), at_once):
                count = piece.num_rows
                beside = rows.next(count)
                arrays = [self._array(name, piece, beside, count) for name in names]
                kinds = (self.schema.arrow.field(name) for name in names)
                fields = [field.with_type(one.type) for field, one in zip(kinds, arrays, strict=True)]
                read = pa.table(arrays, schema=pa.schema(fields))
                yield read, converted_table(read, count, self.schema, wanted, target)

    def _source_pieces(
        self, index: int, own: Sequence[str], dictionary: frozenset[str], at_once: int | None
    ) -> Iterator[pa.Table]:
        """The columns `own` of a row group; without any, tables of its rows and no columns of it."""
        if own:
            yield from self._read_pieces(index, own, dictionary, at_once)
            return
        left = self.row_groups[index].num_rows
        while left:
            count = min(left, _ROWS)
            left -= count
            yield pa.table({"rows": pa.nulls(count)})

    def _array(self, name: str, own: pa.Table, meta: pa.Table, count: int) -> pa.ChunkedArray:
        if name in self._own:
            return own.column(name)
        if name not in self._made:
            return meta.column(name)
        return pa.chunked_array([pa.repeat(pa.scalar(self._made[name], pa.string()), count)])


def _is_own(node: Node, texts: Mapping[str, str | None]) -> bool:
    """Whether the source file decides about a column: readers take texts of the partition path from the path."""
    return node.name not in META_COLUMNS and (node.name not in texts or node.converted != UTF8)


def _nullable(node: Node) -> Node:
    return node if node.repetition == OPTIONAL else node.with_repetition(OPTIONAL)


class _Rows:
    """Columns of the rows of a file from row `start` on, a given number at a time."""

    def __init__(self, file: BaseFileSlice, names: Sequence[str], start: int) -> None:
        self._names = names
        self._left: pa.Table | None = None
        self._pieces = self._read(file, start) if names else iter(())

    def _read(self, file: BaseFileSlice, start: int) -> Iterator[pa.Table]:
        for index, group in enumerate(file.row_groups):
            if start >= group.num_rows:
                start -= group.num_rows
                continue
            for piece in file.pieces(index, self._names):
                yield piece.slice(min(start, piece.num_rows))
                start -= min(start, piece.num_rows)

    def next(self, count: int) -> pa.Table:
        """The next `count` rows; a table without columns where none are asked for."""
        parts: list[pa.Table] = []
        while self._names and count:
            if self._left is None or not self._left.num_rows:
                self._left = next(self._pieces)
                continue
            part = self._left.slice(0, count)
            self._left = self._left.slice(part.num_rows)
            parts.append(part)
            count -= part.num_rows
        return pa.concat_tables(parts) if parts else pa.table({})
