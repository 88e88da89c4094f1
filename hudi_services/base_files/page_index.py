"""The page indexes of a column chunk, kept when its pages are copied.

    ColumnIndex   1 list<bool> null_pages, 2 list<binary> min_values, 3 list<binary> max_values, 4 boundary_order,
                  5 list<i64> null_counts: has no positions, so it stays byte for byte
    OffsetIndex   1 list<PageLocation>: 1 offset, 2 size with the page's header, 3 first_row_index

Source: apache/parquet-format, PageIndex.md and parquet.thrift.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ..codecs import thrift
from ..codecs.thrift import ListValue, Struct
from ..errors import CorruptFile
from ..parquet.footer import ColumnChunk
from .file_reader import BaseFileReader

_ASCENDING = 1


@dataclass(frozen=True, slots=True)
class PageIndexes:
    """The first row of each data page, and, where there is one, the encoded column index."""

    first_rows: tuple[int, ...]
    column_index: bytes | None

    def offset_index(self, places: Sequence[tuple[int, int]]) -> bytes:
        """The encoded offset index for pages at `places`: offset and size of each."""
        locations = [
            Struct({1: (thrift.I64, start), 2: (thrift.I32, size), 3: (thrift.I64, first_row)})
            for (start, size), first_row in zip(places, self.first_rows, strict=True)
        ]
        return thrift.encode_struct(Struct({1: (thrift.LIST, ListValue(thrift.STRUCT, locations))}))


def old_indexes(
    reader: BaseFileReader, chunk: ColumnChunk, pages: int, rows: int, *, bounds: bool
) -> PageIndexes | None:
    """The indexes of `chunk`, which has `pages` data pages and `rows` rows; None when they are missing or damaged.

    Without `bounds` the column index is left out: it has bounds for every page.
    """
    if chunk.offset_index is None:
        return None
    try:
        first_rows = _first_rows(reader, chunk.offset_index)
        if len(first_rows) != pages or not _ascends(first_rows, rows):
            return None
        if chunk.column_index is None or not bounds:
            return PageIndexes(first_rows, None)
        return PageIndexes(first_rows, _column_index(reader, chunk.column_index, pages))
    except CorruptFile:
        # Readers do not need page indexes.
        return None


def _first_rows(reader: BaseFileReader, place: tuple[int, int]) -> tuple[int, ...]:
    index, _ = thrift.decode_struct(reader.read_bytes(*place), reader.full_path)
    locations = index.get(1)
    if not isinstance(locations, ListValue) or not all(isinstance(item, Struct) for item in locations.items):
        raise CorruptFile(f"{reader.full_path}: the offset index at byte {place[0]} has no page locations")
    return tuple(location.get(3) for location in locations.items)


def _ascends(first_rows: Sequence[object], rows: int) -> bool:
    numbers = [row for row in first_rows if isinstance(row, int)]
    ordered = all(low < high for low, high in itertools.pairwise(numbers))
    return len(numbers) == len(first_rows) and numbers[:1] == [0] and ordered and numbers[-1] < rows


def _column_index(reader: BaseFileReader, place: tuple[int, int], pages: int) -> bytes | None:
    """The encoded column index, None when it is not for `pages` pages."""
    encoded = reader.read_bytes(*place)
    index, end = thrift.decode_struct(encoded, reader.full_path)
    lists = [index.get(field_id) for field_id in (1, 2, 3)]
    fits = all(isinstance(one, ListValue) and len(one.items) == pages for one in lists)
    return encoded if fits and end == len(encoded) else None


def constant_column_index(value: bytes) -> bytes:
    """The column index of a chunk that is one page of one value, without nulls."""
    fields = {
        1: (thrift.LIST, ListValue(thrift.TRUE, [False])),
        2: (thrift.LIST, ListValue(thrift.BINARY, [value])),
        3: (thrift.LIST, ListValue(thrift.BINARY, [value])),
        4: (thrift.I32, _ASCENDING),
        5: (thrift.LIST, ListValue(thrift.I64, [0])),
    }
    return thrift.encode_struct(Struct(fields))
