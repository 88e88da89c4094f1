"""Writes a base file whose footer has a given schema, element for element.

pyarrow writes the raw form (parquet.file_schema) and this module holds back the end of the file: after the last row
group the footer is parsed, every leaf is checked against the target (levels and physical type, so that the pages mean
the same), and the target's elements replace pyarrow's. Storage then publishes the file.
"""

import io
from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import CheckFailed, ConfigError, UnsupportedTable
from ..parquet.chunk_stats import column_stats
from ..parquet.compression import ParquetCodec, codec_called
from ..parquet.conversion import natural
from ..parquet.file_schema import FileSchema, Leaf, keeps_order
from ..parquet.footer import MAGIC, Footer, Physical, footer_length, parse_footer
from ..parquet.nested_nulls import has_required, may_break, with_required
from ..parquet.node_types import parquet_type
from ..parquet.written_bounds import WrittenBounds
from ..schema.column_type import Kind
from ..storage import FileWrites
from .new_file import NewFile
from .page_packing import PagePacker

FILE_NAME_COLUMN = "_hoodie_file_name"
CREATED_BY = f"parquet-cpp-arrow version {pa.cpp_version}"
"""The writer that the footers of `BaseFileWriter` name."""

_MIB = 1 << 20
# Below 8 bytes pyarrow writes an empty page before a list, where its reader stops.
_LEAST_PAGE = 64


class BaseFileWriter:
    """Writes one base file; use as a context manager, which aborts on an exception.

    `target`: the schema that the footer gets. `file_name`: the value of `_hoodie_file_name` in every row; tables need
    not have that column. `plain_leaves`: dotted target paths to write without dictionary. `ranged`: dotted target paths
    whose ranges are wanted, in the footer or not. `row_group_bytes`: size of a row group in memory. Raises
    UnsupportedTable, before anything is written, when pyarrow cannot write such pages.
    """

    def __init__(
        self,
        storage: FileWrites,
        path: str,
        target: FileSchema,
        *,
        file_name: str | None = None,
        codec: str = "zstd",
        row_group_bytes: int = 120 * _MIB,
        page_bytes: int = _MIB,
        plain_leaves: Collection[str] = (),
        ranged: Collection[str] = (),
    ) -> None:
        self._storage = storage
        self._path = path
        self._target = target
        self._file_name = file_name if target.column(FILE_NAME_COLUMN) is not None else None
        self._codec = codec_called(codec)
        self._options = writer_options(target, storage.full_path(path), codec, plain_leaves)
        self._options |= {"data_page_size": max(page_bytes, _LEAST_PAGE)}
        if self._codec.packs:
            self._options |= {"compression": "none", "compression_level": None}
        self._row_group_bytes = row_group_bytes
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._flushed_bytes = 0
        self._rows = 0
        self._bounds: list[dict[int, tuple[bytes, bytes]]] = []
        self._own_bounds = [
            (i, leaf) for i, leaf in enumerate(target.leaves) if len(leaf.path) == 1 and _needs_own_bounds(leaf)
        ]
        self._sink: _TailSink | None = None
        self._values = WrittenBounds(target, ranged)
        self._with_required = frozenset(field.name for field in target.arrow if has_required(field.type))
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> "BaseFileWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()

    def write(self, table: pa.Table) -> None:
        """Append rows in the raw form of the target; top-level strings may be dictionary encoded."""
        if not table.num_rows:
            return
        table = self._arrange(table)
        self._rows += table.num_rows
        pieces = -(-table.nbytes // self._row_group_bytes)
        step = -(-table.num_rows // max(1, pieces))
        for start in range(0, table.num_rows, step):
            part = table.slice(start, step)
            if self._pending and self._pending_bytes + part.nbytes > self._row_group_bytes:
                self._flush()
            self._pending.append(part)
            self._pending_bytes += part.nbytes

    def settle(self) -> None:
        """Write the rows that wait as a row group, so that the bytes in the file are known."""
        if self._pending:
            self._flush()

    @property
    def expected_bytes(self) -> float:
        """The bytes of the row groups in the file, and those of the rows that wait, by the row groups before them."""
        return (self._sink.written if self._sink is not None else 0) + self._pending_bytes * self.stored_share

    @property
    def stored_share(self) -> float:
        """The stored bytes of the rows for each byte in memory; 1 before the first row group."""
        return self._sink.written / self._flushed_bytes if self._sink is not None and self._flushed_bytes else 1.0

    def close(self, key_values: Mapping[str, str]) -> NewFile:
        """Write the footer with `key_values` and publish the file.

        Raises CheckFailed, with nothing published, when the written pages do not fit the target.
        """
        try:
            if self._pending or self._writer is None:
                self._flush()
            assert self._writer is not None and self._sink is not None
            self._sink.hold()
            self._writer.close()
            before, footer = self._sink.take()
            self._finish(footer, key_values)
            self._drop_statistics(footer, self._values.untrue_leaves)
            columns = column_stats(self._target, footer.row_groups, self._values.known)
            self._drop_statistics(footer, self._values.nan_leaves)
            self._sink.finish(before + footer.as_file()[len(MAGIC) :])
            size = self._sink.written
        except BaseException:
            self.abort()
            raise
        return NewFile.of(self._path, size, self._rows, columns)

    def abort(self) -> None:
        """Drop what was written; nothing is published."""
        self._pending = []
        if self._sink is not None:
            # pyarrow's writer closes itself when it is destroyed: its last bytes must not pass. An output that is
            # destroyed without being closed removes its temporary file.
            self._sink.hold()
        self._sink = self._writer = None

    def _arrange(self, table: pa.Table) -> pa.Table:
        """`table` with the target's columns in its order, each of the type that it has in the first table."""
        arrays = []
        for field in self._target.arrow:
            if field.name == FILE_NAME_COLUMN and self._file_name is not None:
                arrays.append(_constant(self._file_name, table.num_rows))
            else:
                arrays.append(self._column(table.column(field.name), field))
        return pa.table(arrays, schema=self._schema(arrays))

    def _column(self, values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        settled = self._writer.schema.field(field.name).type if self._writer is not None else None
        if settled is None and self._pending:
            settled = self._pending[0].schema.field(field.name).type
        given = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if given != field.type:
            raise CheckFailed(f"column {field.name} of {self._path} should be {field.type} and is {given}")
        if field.name in self._with_required and any(may_break(chunk, field.type) for chunk in values.chunks):
            # The fields of a null struct of a log file are nulls, too, which pyarrow does not write.
            try:
                values = with_required(values, field)
            except ConfigError as error:
                raise CheckFailed(f"{self._storage.full_path(self._path)}: {error.message}") from error
        if settled is None or values.type == settled:
            return values
        return values.dictionary_encode() if pa.types.is_dictionary(settled) else values.cast(settled)

    def _schema(self, arrays: list[pa.ChunkedArray]) -> pa.Schema:
        return pa.schema([f.with_type(a.type) for f, a in zip(self._target.arrow, arrays, strict=True)])

    def _flush(self) -> None:
        """Write the pending tables as one row group."""
        schema = self._pending[0].schema if self._pending else self._target.arrow
        if self._writer is None:
            path = self._storage.full_path(self._path)
            self._sink = _TailSink(self._storage.open_output(self._path), self._codec, path)
            self._writer = pq.ParquetWriter(self._sink, schema, **self._options)
        if not self._pending:
            return
        table = _with_used_values(pa.concat_tables(self._pending).unify_dictionaries())
        self._flushed_bytes += self._pending_bytes
        self._pending, self._pending_bytes = [], 0
        self._bounds.append({i: bounds for i, leaf in self._own_bounds if (bounds := _bounds(table, leaf)) is not None})
        self._values.add(table, len(self._bounds) - 1)
        try:
            self._writer.write_table(table, row_group_size=table.num_rows)
        except pa.ArrowInvalid as e:
            raise CheckFailed(f"{self._storage.full_path(self._path)}: {str(e).splitlines()[0]}") from e

    def _drop_statistics(self, footer: Footer, leaves: Iterable[int]) -> None:
        """Drop the bounds of float leaves: NaN is Spark's greatest number, pyarrow leaves it out of the bounds, and
        parquet-mr writes no bounds then."""
        for index in leaves:
            leaf = self._target.leaves[index]
            footer.set_leaf(index, leaf.path, leaf.physical, keep_statistics=False)

    def _finish(self, footer: Footer, key_values: Mapping[str, str]) -> None:
        """Put the target's elements into the footer. Raises CheckFailed when the written pages do not fit them."""
        check_pages(FileSchema.of(footer), self._target, footer.path)
        if footer.num_rows != self._rows:
            raise CheckFailed(f"{footer.path} has {footer.num_rows} rows in its footer and got {self._rows}")
        footer.set_schema(self._target.elements)
        for index, leaf in enumerate(self._target.leaves):
            footer.set_leaf(index, leaf.path, leaf.physical, keep_statistics=keeps_order(leaf.node))
        for group, bounds in enumerate(self._bounds):
            for index, (low, high) in bounds.items():
                footer.set_statistics(group, index, low, high)
        footer.set_key_values(key_values)


def _constant(value: str, rows: int) -> pa.ChunkedArray:
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, pa.array([value]))])


def _with_used_values(table: pa.Table) -> pa.Table:
    """`table` with the dictionaries, one per column, reduced to the values that its rows use.

    pyarrow writes a dictionary whole: after a sort it would have values that the row group does not have.
    """
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field, _used_values(table.column(i)))
    return table


def _used_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = column.chunk(0).dictionary
    used = pa.chunked_array([chunk.indices for chunk in column.chunks]).unique().drop_null()
    if len(used) == len(values):
        return column
    places = np.zeros(len(values), np.int32)
    places[used.to_numpy()] = np.arange(len(used), dtype=np.int32)
    new_index, new_values = pa.array(places), values.take(used)
    chunks = [pa.DictionaryArray.from_arrays(new_index.take(c.indices), new_values) for c in column.chunks]
    return pa.chunked_array(chunks)


def _written_schema(target: FileSchema, path: str) -> FileSchema:
    """The schema that pyarrow gives the raw form of `target`. Raises UnsupportedTable when its pages would differ."""
    sink = io.BytesIO()
    try:
        pq.ParquetWriter(sink, target.arrow, store_schema=False, version="2.6").close()
    except pa.ArrowException as e:
        raise UnsupportedTable(f"{path} cannot be written: {str(e).splitlines()[0]}") from e
    written = FileSchema.of(parse_footer(sink.getvalue(), path))
    try:
        check_pages(written, target, path)
    except CheckFailed as e:
        raise UnsupportedTable(e.message) from e
    return written


def check_pages(written: FileSchema, target: FileSchema, path: str) -> None:
    """Raise CheckFailed unless every leaf has the levels and physical values that the target's element announces."""
    if len(written.leaves) != len(target.leaves):
        raise CheckFailed(f"{path} would have {len(written.leaves)} columns instead of {len(target.leaves)}")
    for got, raw, true in zip(written.leaves, target.raw.leaves, target.leaves, strict=True):
        same_values = (got.physical, got.type_length) == (raw.physical, raw.type_length)
        if not same_values or got.levels != true.levels:
            raise CheckFailed(f"column {true.dotted} of {path} cannot be written in its own parquet type")


def writer_options(target: FileSchema, path: str, codec: str, plain_leaves: Collection[str]) -> dict[str, Any]:
    """The options of pyarrow's writer for the pages of `target`; `path` is for messages.

    Raises UnsupportedTable when pyarrow cannot write such pages.
    """
    plain = set(plain_leaves)
    pairs = zip(_written_schema(target, path).leaves, target.leaves, strict=True)
    dictionary = [w.dotted for w, t in pairs if t.dotted not in plain]
    return {
        "version": "2.6",
        "data_page_version": "1.0",
        "store_schema": False,
        "use_dictionary": dictionary or False,
        "write_statistics": True,
        "write_page_index": True,
        "write_page_checksum": True,
        **codec_called(codec).writer_options,
    }


def _needs_own_bounds(leaf: Leaf) -> bool:
    """Whether the leaf has decimals kept as bytes: pyarrow's statistics order them as unsigned bytes."""
    return not keeps_order(leaf.node) and parquet_type(leaf.node).kind is Kind.DECIMAL


def _bounds(table: pa.Table, leaf: Leaf) -> tuple[bytes, bytes] | None:
    chunks = [natural(chunk, leaf.node) for chunk in table.column(leaf.path[0]).chunks]
    extremes = pc.min_max(pa.chunked_array(chunks))
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    return None if low is None else (_decimal_bytes(low, leaf), _decimal_bytes(high, leaf))


def _decimal_bytes(value: Any, leaf: Leaf) -> bytes:
    _, scale = leaf.node.precision_and_scale
    unscaled = int(value.scaleb(scale))
    fixed = leaf.physical is Physical.FIXED_LEN_BYTE_ARRAY
    return unscaled.to_bytes(leaf.type_length if fixed else unscaled.bit_length() // 8 + 1, "big", signed=True)


class _TailSink(io.RawIOBase):
    """Passes bytes on to `out`, until `hold`: from then on they are kept for `take`. Pages of a codec that pyarrow does
    not compress are packed on the way."""

    def __init__(self, out: IO[bytes], codec: ParquetCodec, path: str) -> None:
        super().__init__()
        self.out = out
        self.written = 0
        """Bytes that went to `out`."""
        self._path = path
        self._position = 0
        self._tail: list[bytes] | None = None
        self._packer = PagePacker(codec, self._pass_on, path) if codec.packs else None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """The position, as pyarrow counts it."""
        return self._position

    def write(self, data: Any) -> int:
        self._position += len(data)
        if self._tail is not None:
            self._tail.append(bytes(data))
        elif self._packer is not None:
            self._packer.add(data)
        else:
            self._pass_on(data)
        return len(data)

    def hold(self) -> None:
        self._tail = []

    def take(self) -> tuple[bytes, Footer]:
        """The held bytes before the footer (page indexes), and the footer, to be passed on to the end of the file."""
        tail = b"".join(self._tail or [])
        length = footer_length(tail, self._position, self._path)
        before, footer = tail[: len(tail) - 8 - length], parse_footer(tail, self._path)
        return (before if self._packer is None else self._packer.settle(before, footer)), footer

    def finish(self, end: bytes) -> None:
        """Pass on the end of the file, and publish it."""
        self._pass_on(end)
        self.out.close()

    def _pass_on(self, data: bytes) -> None:
        self.out.write(data)
        self.written += len(data)
