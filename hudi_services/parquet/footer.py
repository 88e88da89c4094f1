"""The footer of a parquet file as a tree of facts, readable through ranges and changeable in place.

    file      "PAR1" | column chunks | page indexes | FileMetaData (Thrift compact) | int32 LE its length | "PAR1"

    FileMetaData    1 version, 2 list<SchemaElement>, 3 num_rows, 4 list<RowGroup>, 5 list<KeyValue>, 6 created_by
    SchemaElement   1 type, 2 type_length, 3 repetition, 4 name, 5 num_children, 6 converted_type, 7 scale, 8 precision,
                    9 field_id, 10 logicalType
    RowGroup        1 list<ColumnChunk>, 2 total_byte_size, 3 num_rows, 4 sorting, 5 file_offset, 7 ordinal
    ColumnChunk     2 file_offset, 3 ColumnMetaData, 4/5 offset index, 6/7 column index (offset, length)
    ColumnMetaData  1 type, 2 encodings, 3 path_in_schema, 4 codec, 5 num_values, 6 uncompressed, 7 compressed,
                    9 data page offset, 11 dictionary page offset, 12 Statistics, 13 encoding stats
    Statistics      1 max, 2 min (old order), 3 null_count, 4 distinct_count, 5 max_value, 6 min_value, 7/8 exact

Source: apache/parquet-format, src/main/thrift/parquet.thrift.
"""

import functools
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import IntEnum
from threading import Lock
from typing import Any, TypeVar

from ..codecs import thrift
from ..codecs.thrift import ListValue, Struct
from ..computed_once import cached_property
from ..errors import CorruptFile, NotFound
from ..small_files import FileRanges
from ..storage import FileReads, Storage

MAGIC = b"PAR1"
_TAIL = 8
# One range usually has the whole footer: Hudi's bloom filter alone is 430 KB.
_FIRST_READ = 640 * 1024

# Bloom filters are the largest part of any footer, and one of ten million keys takes 72 MB.
_LARGEST_FOOTER = 128 << 20
# Footers that are larger than this are decoded one at a time: each may take a hundred times its bytes.
_LARGE_FOOTER = 4 << 20
_one_large = Lock()

# A page index that is longer is damaged, or not worth its memory.
_LARGEST_INDEX = 16 << 20

_PLAIN_DICTIONARY, _RLE_DICTIONARY = 2, 8
_PLAIN = 0
_ENCODINGS = 64
"""Parquet has ten, numbered from 0 on."""
_DATA_PAGES = (0, 3)
_DICTIONARY_PAGE = 2

PageCounts = tuple[tuple[bool, int, int], ...]
"""Numbers of pages, sorted: (whether they are dictionaries, their encoding, their number)."""


class Physical(IntEnum):
    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """One column of one row group. `min` and `max` are the raw bytes of the statistics, None when absent."""

    path: tuple[str, ...]
    physical: Physical
    codec: int
    num_values: int
    compressed_bytes: int
    uncompressed_bytes: int
    start: int
    dictionary_bytes: int
    only_dictionary: bool
    """Every data page is dictionary encoded."""
    min: bytes | None
    max: bytes | None
    exact: bool
    """Whether `min` and `max` are values of the chunk; writers may truncate them."""
    null_count: int | None
    column_index: tuple[int, int] | None
    """Offset and length of the bounds of every page, in bytes; None when there are none."""
    offset_index: tuple[int, int] | None
    """Offset and length of the places of every page, in bytes; None when there are none."""
    encodings: tuple[int, ...]
    """The encodings of its pages and of their levels."""
    page_counts: PageCounts | None
    """None when the footer does not have them."""

    @property
    def end(self) -> int:
        return self.start + self.compressed_bytes


@dataclass(frozen=True, slots=True)
class RowGroup:
    num_rows: int
    columns: tuple[ColumnChunk, ...]

    @property
    def uncompressed_bytes(self) -> int:
        return sum(c.uncompressed_bytes for c in self.columns)

    @property
    def compressed_bytes(self) -> int:
        return sum(c.compressed_bytes for c in self.columns)


class Footer:
    """FileMetaData of the file `path`. `tree` holds every field; the properties are typed views of it."""

    def __init__(self, tree: Struct, path: str) -> None:
        self.tree = tree
        self.path = path

    @property
    def num_rows(self) -> int:
        return _integer(self.tree, 3, self.path)

    @property
    def created_by(self) -> str:
        return _text(self.tree.get(6, b""), self.path)

    @property
    def elements(self) -> list[Struct]:
        """The SchemaElements in depth-first order, the root first."""
        return _structs(self.tree, 2, self.path)

    @cached_property
    def ordered_leaves(self) -> frozenset[int]:
        """Leaves whose bounds have the order of their type; bounds of other leaves mean nothing (ColumnOrder)."""
        if 7 not in self.tree.fields:
            return frozenset()
        return frozenset(i for i, order in enumerate(_structs(self.tree, 7, self.path)) if 1 in order.fields)

    @cached_property
    def key_values(self) -> dict[str, str]:
        pairs = _structs(self.tree, 5, self.path) if 5 in self.tree.fields else []
        return {_text(p.get(1, b""), self.path): _text(p.get(2, b""), self.path) for p in pairs}

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        return tuple(
            RowGroup(
                _integer(group, 3, self.path),
                tuple(_column_chunk(c, self.path) for c in _structs(group, 1, self.path)),
            )
            for group in _structs(self.tree, 4, self.path)
        )

    def encode(self) -> bytes:
        return thrift.encode_struct(self.tree)

    def as_file(self) -> bytes:
        """A parquet file that is nothing but this footer, for readers that want the metadata apart from the data."""
        encoded = self.encode()
        return b"".join((MAGIC, encoded, struct.pack("<I", len(encoded)), MAGIC))

    def set_key_values(self, values: Mapping[str, str]) -> None:
        """Replace the key/value metadata."""
        pairs = [
            Struct({1: (thrift.BINARY, key.encode()), 2: (thrift.BINARY, value.encode())})
            for key, value in values.items()
        ]
        self.tree.set(5, thrift.LIST, ListValue(thrift.STRUCT, pairs))
        self.__dict__.pop("key_values", None)

    def set_schema(self, elements: Sequence[Struct]) -> None:
        """Replace the SchemaElements; the leaves must stand for the same pages (same levels and physical bytes)."""
        self.tree.set(2, thrift.LIST, ListValue(thrift.STRUCT, list(elements)))

    def set_leaf(self, index: int, path: Sequence[str], physical: Physical, *, keep_statistics: bool) -> None:
        """Rename and retype the chunks of leaf `index` in every row group.

        Bounds are dropped when `keep_statistics` is False, because their order is the order of the old type; so is the
        column index, which has bounds for each page. The null count stays.
        """
        for group in _structs(self.tree, 4, self.path):
            chunk = _structs(group, 1, self.path)[index]
            meta = _struct(chunk, 3, self.path)
            meta.set(1, thrift.I32, int(physical))
            meta.set(3, thrift.LIST, ListValue(thrift.BINARY, [name.encode() for name in path]))
            if not keep_statistics:
                chunk.drop(6, 7)
                if 12 in meta.fields:
                    _struct(meta, 12, self.path).drop(1, 2, 4, 5, 6, 7, 8)
        self.__dict__.pop("row_groups", None)

    def set_statistics(self, group: int, index: int, low: bytes, high: bytes) -> None:
        """Write min and max of leaf `index` in row group `group`; the null count stays."""
        chunk = _structs(_structs(self.tree, 4, self.path)[group], 1, self.path)[index]
        meta = _struct(chunk, 3, self.path)
        stats = meta.get(12) or Struct()
        stats.set(5, thrift.BINARY, high)
        stats.set(6, thrift.BINARY, low)
        meta.set(12, thrift.STRUCT, stats)
        self.__dict__.pop("row_groups", None)


def read_footer(
    storage: FileReads, path: str, size: int | None = None, content: bytes = b""
) -> tuple[Footer, FileRanges]:
    """The footer of the file at `path`, and what gives the other bytes of the file. Raises CorruptFile, NotFound.

    `content` is the whole file, if it is known.
    """
    if size is None:
        info = storage.head(path)
        if info is None:
            raise NotFound(f"{storage.full_path(path)} does not exist")
        size = info.size
    ranges = FileRanges(storage, path, size, content)
    return parse_footer(_read_tail(ranges, storage.full_path(path)), storage.full_path(path)), ranges


def _read_tail(ranges: FileRanges, name: str) -> bytes:
    """The last bytes of the file `name`, which include its whole footer."""
    size = ranges.size
    tail = ranges(max(0, size - _FIRST_READ), min(size, _FIRST_READ))
    needed = footer_length(tail, size, name) + _TAIL
    return tail if needed <= len(tail) else ranges(size - needed, needed)


T = TypeVar("T")


def using_footer(storage: Storage, path: str, size: int, take: Callable[[Footer], T], content: bytes = b"") -> T:
    """The result of `take` for the footer of a file of `size` bytes; `content` as for `read_footer`.

    Raises CorruptFile and NotFound.

    May be called for several files at once: each footer is released after `take`, since all footers together, with
    their bloom filters, would take much memory.
    """
    name = storage.full_path(path)
    tail = _read_tail(FileRanges(storage, path, size, content), name)
    with _one_large if len(tail) > _LARGE_FOOTER else nullcontext():
        return take(parse_footer(tail, name))


def footer_length(tail: bytes, size: int, path: str) -> int:
    """The length of the Thrift bytes before the last 8 of `tail`, checked against the file's `size`."""
    if size < len(MAGIC) + _TAIL or len(tail) < _TAIL:
        raise CorruptFile(f"{path} is too short for a parquet file ({size} bytes)")
    if tail[-4:] == b"PARE":
        raise CorruptFile(f"{path} has an encrypted footer at byte {size - _TAIL}, which is not supported")
    if tail[-4:] != MAGIC:
        raise CorruptFile(f"{path} does not end like a parquet file at byte {size - 4}")
    length: int = struct.unpack("<I", tail[-8:-4])[0]
    if length > _LARGEST_FOOTER:
        raise CorruptFile(
            f"{path} says its footer has {length} bytes at byte {size - _TAIL}, more than any valid footer"
        )
    if length > size - len(MAGIC) - _TAIL:
        raise CorruptFile(f"{path} says its footer has {length} bytes at byte {size - _TAIL}, more than the file")
    return length


def parse_footer(tail: bytes, path: str) -> Footer:
    """The footer in `tail`, which ends where the file ends. Raises CorruptFile."""
    # The file has at least its leading magic before the tail.
    length = footer_length(tail, len(MAGIC) + len(tail), path)
    tree, _ = thrift.decode_struct(tail[len(tail) - _TAIL - length : len(tail) - _TAIL], path)
    footer = Footer(tree, path)
    _check(footer)
    return footer


def _check(footer: Footer) -> None:
    """Raise CorruptFile, naming the file, for a footer without the properties that every later step relies on."""
    leaves = sum(1 for e in footer.elements if 5 not in e.fields)
    if footer.num_rows != sum(g.num_rows for g in footer.row_groups):
        raise CorruptFile(f"{footer.path}: the row groups in its footer do not add up to {footer.num_rows} rows")
    for number, group in enumerate(footer.row_groups):
        if len(group.columns) != leaves and not (leaves == 0 and not group.columns):
            raise CorruptFile(f"{footer.path}: row group {number} has {len(group.columns)} of {leaves} columns")


def _column_chunk(chunk: Struct, path: str) -> ColumnChunk:
    meta = _struct(chunk, 3, path)
    data_page = _integer(meta, 9, path)
    dictionary_page = meta.get(11)
    # Some writers store 0 where there is no dictionary page.
    has_dictionary = isinstance(dictionary_page, int) and 0 < dictionary_page < data_page
    low, high, exact, nulls = _statistics(meta, path)
    return ColumnChunk(
        path=tuple(_text(name, path) for name in _list(meta, 3, path)),
        physical=_physical(meta.get(1), path),
        codec=_integer(meta, 4, path),
        num_values=_integer(meta, 5, path),
        uncompressed_bytes=_integer(meta, 6, path),
        compressed_bytes=_integer(meta, 7, path),
        start=dictionary_page if has_dictionary else data_page,
        dictionary_bytes=data_page - dictionary_page if has_dictionary else 0,
        only_dictionary=has_dictionary and _only_dictionary(meta, path),
        min=low,
        max=high,
        exact=exact,
        null_count=nulls,
        column_index=_place(chunk, 6, 7),
        offset_index=_place(chunk, 4, 5),
        encodings=_shared(tuple(sorted({_encoding(number, path) for number in _list(meta, 2, path)}))),
        page_counts=_shared(_page_counts(meta, path)),
    )


@functools.lru_cache(maxsize=1024)
def _shared(value: T) -> T:
    """The same object for all equal values: there are many chunks, and few different values."""
    return value


def _encoding(number: Any, path: str) -> int:
    if isinstance(number, int) and 0 <= number < _ENCODINGS:
        return number
    raise CorruptFile(f"{path}: unknown encoding {number!r:.40} in its footer")


def _page_counts(meta: Struct, path: str) -> PageCounts | None:
    if 13 not in meta.fields:
        return None
    counts: Counter[tuple[bool, int]] = Counter()
    for stats in _structs(meta, 13, path):
        kind, encoding, count = (_integer(stats, field_id, path) for field_id in (1, 2, 3))
        # pyarrow counts data pages of both versions as those of the first.
        counts[kind == _DICTIONARY_PAGE, _encoding(encoding, path)] += count
    return tuple(sorted((*which, count) for which, count in counts.items() if count))


def _place(chunk: Struct, offset_id: int, length_id: int) -> tuple[int, int] | None:
    offset, length = chunk.get(offset_id), chunk.get(length_id)
    if not isinstance(offset, int) or not isinstance(length, int) or offset <= 0 or not 0 < length <= _LARGEST_INDEX:
        return None
    return offset, length


def _only_dictionary(meta: Struct, path: str) -> bool:
    if 13 in meta.fields:
        pages = [(s.get(1), s.get(2)) for s in _structs(meta, 13, path)]
        return all(e in (_PLAIN_DICTIONARY, _RLE_DICTIONARY) for kind, e in pages if kind in _DATA_PAGES)
    encodings = _list(meta, 2, path)
    # Without page counts: only old parquet-mr leaves PLAIN out when no page fell back to it.
    return _PLAIN_DICTIONARY in encodings and _PLAIN not in encodings


def _statistics(meta: Struct, path: str) -> tuple[bytes | None, bytes | None, bool, int | None]:
    if 12 not in meta.fields:
        return None, None, False, None
    stats = _struct(meta, 12, path)
    low, high, nulls = stats.get(6), stats.get(5), stats.get(3)
    for value in (low, high):
        if value is not None and not isinstance(value, bytes):
            raise CorruptFile(f"{path}: statistics in its footer are not bytes")
    if nulls is not None and not isinstance(nulls, int):
        raise CorruptFile(f"{path}: a null count in its footer is not a number")
    exact = stats.get(7) is not False and stats.get(8) is not False
    return low, high, exact, nulls


def _physical(value: Any, path: str) -> Physical:
    try:
        return Physical(value)
    except ValueError:
        raise CorruptFile(f"{path}: unknown physical type {value!r} in its footer") from None


def _integer(parent: Struct, field_id: int, path: str) -> int:
    value = parent.get(field_id)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CorruptFile(f"{path}: field {field_id} of its footer is not a count")
    return value


def _text(value: Any, path: str) -> str:
    try:
        return str(value, "utf-8")
    except (TypeError, UnicodeDecodeError):
        raise CorruptFile(f"{path}: a name in its footer is not UTF-8") from None


def _struct(parent: Struct, field_id: int, path: str) -> Struct:
    value = parent.get(field_id)
    if not isinstance(value, Struct):
        raise CorruptFile(f"{path}: field {field_id} of its footer is not a struct")
    return value


def _list(parent: Struct, field_id: int, path: str) -> list[Any]:
    value = parent.get(field_id)
    if not isinstance(value, ListValue):
        raise CorruptFile(f"{path}: field {field_id} of its footer is not a list")
    return value.items


def _structs(parent: Struct, field_id: int, path: str) -> list[Struct]:
    items = _list(parent, field_id, path)
    if items and not isinstance(items[0], Struct):
        raise CorruptFile(f"{path}: field {field_id} of its footer is not a list of structs")
    return items
