"""One parquet file of an archive of timeline layout 2, read in batches and within bounds.

A few kilobytes of such a file may expand to millions of rows, to pages of gigabytes, or to one long value in each row.
So the numbers of rows and the sizes of pages are checked before pyarrow reads any; columns stay dictionary-encoded, as
in their pages; and the bytes of decoded values are limited to what an honest file could hold.
"""

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import CorruptFile
from ..limits import MIB
from ..parquet.footer import parse_footer
from ..parquet.page_header import ChunkPlace
from ..parquet.pages import read_pages

T = TypeVar("T")

_MOST_ROWS = 4_000_000
"""An archive file ends at 1 GB (hoodie.timeline.compaction.target.file.max.bytes), and a row takes about 300 bytes."""
_LEAST_PAGE_LIMIT = 64 * MIB
_SHRINKS_TO = 64
"""A page may have this many times its stored bytes: rows repeat a schema of 10 kB, which compresses very well."""
_LEAST_RESULTS, _RESULTS_PER_BYTE = 1024 * MIB, 256
_TEXT_ROWS, _RESULT_ROWS = 65_536, 512
_LONGEST_TEXT = 100
"""Bytes of a time or of the name of an action, at most."""


class ArchiveFile:
    """An archive file, given as bytes. The constructor checks the footer. Raises CorruptFile, naming `path`."""

    def __init__(self, data: bytes, path: str) -> None:
        self.path = path
        self._data = data
        self._footer = parse_footer(data, path)
        self._results_left = _LEAST_RESULTS + _RESULTS_PER_BYTE * len(data)
        if self._footer.num_rows > _MOST_ROWS:
            raise CorruptFile(f"{path} says it has {self._footer.num_rows} rows, more than any valid archive")

    def texts(self, *names: str) -> Iterator[tuple[str | None, ...]]:
        """The values of short columns, row by row."""
        for columns in self._batches(names, _TEXT_ROWS):
            yield from zip(*map(self._texts, columns), strict=True)

    def results(self, name: str, decoders: Sequence[Callable[[bytes], T] | None]) -> Iterator[T | None]:
        """The decoded values of a column of long values, row by row; None where the value or the decoder is None.

        A value that many rows of a batch share is decoded once by each decoder.
        """
        at = 0
        for (column,) in self._batches((name,), _RESULT_ROWS):
            known: dict[tuple[int, Callable[[bytes], T]], T] = {}
            for number, decode in zip(column.indices.to_pylist(), decoders[at : at + len(column)], strict=True):
                if number is None or decode is None:
                    yield None
                    continue
                if (number, decode) not in known:
                    known[number, decode] = decode(self._value(column, number))
                yield known[number, decode]
            at += len(column)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows with all columns, in pieces. Raises CorruptFile."""
        names = {column.path[0] for group in self._footer.row_groups for column in group.columns}
        self._check_pages(names)
        with self._pyarrow_errors():
            file = self._open(names)
            for batch in file.iter_batches(_RESULT_ROWS, use_threads=False):
                yield pa.RecordBatch.from_arrays(list(map(self._plain, batch.columns)), names=batch.schema.names)

    def _plain(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_dictionary(column.type):
            return column
        self._spend(pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)
        return column.dictionary_decode()

    def _value(self, column: pa.DictionaryArray, number: int) -> bytes:
        value = column.dictionary[number].as_buffer()
        self._spend(value.size)
        return bytes(value)

    def _spend(self, size: int) -> None:
        self._results_left -= size
        if self._results_left < 0:
            raise CorruptFile(f"{self.path} holds more than any valid archive of {len(self._data)} bytes")

    def _texts(self, column: pa.DictionaryArray) -> list[str | None]:
        if len(column.dictionary) and pc.max(pc.binary_length(column.dictionary)).as_py() > _LONGEST_TEXT:
            raise CorruptFile(f"{self.path} has a time or an action that is longer than any")
        values = column.dictionary.to_pylist()
        return [None if number is None else values[number] for number in column.indices.to_pylist()]

    def _batches(self, names: Sequence[str], rows: int) -> Iterator[list[pa.DictionaryArray]]:
        """The columns `names`, in batches of at most `rows` rows."""
        self._check_pages(names)
        with self._pyarrow_errors():
            for batch in self._open(names).iter_batches(rows, columns=list(names), use_threads=False):
                columns = [batch.column(name) for name in names]
                if not all(pa.types.is_dictionary(column.type) for column in columns):
                    raise CorruptFile(f"{self.path} is no archived timeline: {names} are not texts or bytes")
                yield columns

    def _open(self, names: Collection[str]) -> pq.ParquetFile:
        return pq.ParquetFile(
            io.BytesIO(self._data),
            read_dictionary=list(names),
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def _check_pages(self, names: Collection[str]) -> None:
        """Check the page sizes that headers announce, and the page checksums, before pyarrow reads the pages."""
        for number, group in enumerate(self._footer.row_groups):
            for chunk in group.columns:
                if chunk.path[0] in names:
                    stored = self._data[chunk.start : chunk.end]
                    for page in read_pages(stored, ChunkPlace(self.path, chunk.path[0], number, chunk.start)):
                        if page.uncompressed_bytes > max(_LEAST_PAGE_LIMIT, _SHRINKS_TO * len(page.body)):
                            raise CorruptFile(
                                f"{self.path} has a page of {len(page.body)} bytes in the column at byte {chunk.start} "
                                f"that says it has {page.uncompressed_bytes}"
                            )

    @contextmanager
    def _pyarrow_errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, KeyError, ValueError, MemoryError) as e:
            text = str(e)
            raise CorruptFile(f"{self.path} is no archived timeline: {text.splitlines()[0] if text else e!r}") from e
