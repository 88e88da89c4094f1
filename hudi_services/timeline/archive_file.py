"""One parquet file of an archive of timeline layout 2, read in batches and within bounds.

A few kilobytes of such a file may stand for millions of rows, for pages of gigabytes, or for one long value in each
row. So rows and pages are counted before anything is read; columns stay dictionaries, as their pages have them; and of
what rows hold no more is given out than an honest file could have.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import CorruptFile
from ..files.parquet_footer import parse_footer
from ..files.parquet_page_header import ChunkPlace
from ..files.parquet_pages import read_pages
from ..limits import MIB

T = TypeVar("T")

_MOST_ROWS = 4_000_000
"""An archive file ends at 1 GB (hoodie.timeline.compaction.target.file.max.bytes), and a row takes about 300 bytes."""
_LEAST_PAGE_LIMIT = 64 * MIB
_SHRINKS_TO = 64
"""A page may have so many times its bytes: rows repeat a schema of 10 kB, which takes next to none."""
_LEAST_RESULTS, _RESULTS_PER_BYTE = 1024 * MIB, 256
_TEXT_ROWS, _RESULT_ROWS = 65_536, 512
_LONGEST_TEXT = 100
"""Of times and names of actions."""


class ArchiveFile:
    """The file of these bytes. Opening it checks its footer. Raises CorruptFile, naming `path`."""

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
        """What the decoder of each row makes of its value in a column of long ones; None where there is none.

        One that many rows share is not decoded for each of them.
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

    def _value(self, column: pa.DictionaryArray, number: int) -> bytes:
        value = column.dictionary[number].as_buffer()
        self._results_left -= value.size
        if self._results_left < 0:
            raise CorruptFile(f"{self.path} holds more than any valid archive of {len(self._data)} bytes")
        return bytes(value)

    def _texts(self, column: pa.DictionaryArray) -> list[str | None]:
        if len(column.dictionary) and pc.max(pc.binary_length(column.dictionary)).as_py() > _LONGEST_TEXT:
            raise CorruptFile(f"{self.path} has a time or an action that is longer than any")
        values = column.dictionary.to_pylist()
        return [None if number is None else values[number] for number in column.indices.to_pylist()]

    def _batches(self, names: Sequence[str], rows: int) -> Iterator[list[pa.DictionaryArray]]:
        """The columns `names`, so many rows of them at a time."""
        self._check_pages(names)
        with self._pyarrow_errors():
            file = pq.ParquetFile(
                io.BytesIO(self._data),
                read_dictionary=list(names),
                pre_buffer=False,
                page_checksum_verification=True,
            )
            for batch in file.iter_batches(rows, columns=list(names), use_threads=False):
                columns = [batch.column(name) for name in names]
                if not all(pa.types.is_dictionary(column.type) for column in columns):
                    raise CorruptFile(f"{self.path} is no archived timeline: {names} are not texts or bytes")
                yield columns

    def _check_pages(self, names: Sequence[str]) -> None:
        """What pages say they are before pyarrow believes it; their checksums, too."""
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
