"""The headers of pages. No checksum covers them, so each field is checked, and an unknown field is refused.

    chunk                 page*; page: PageHeader (Thrift compact) | body
    PageHeader            1 type, 2 uncompressed size, 3 compressed size, 4 crc, 5 DataPageHeader,
                          7 DictionaryPageHeader, 8 DataPageHeaderV2
    DataPageHeader        1 num_values, 2 encoding, 3 and 4 encodings of levels, 5 statistics
    DictionaryPageHeader  1 num_values, 2 encoding, 3 is_sorted
    DataPageHeaderV2      1 num_values, 2 num_nulls, 3 num_rows, 4 encoding, 5 bytes of definition levels,
                          6 of repetition levels (both never compressed), 7 is_compressed, 8 statistics

`crc` is the CRC-32 of gzip over the body as it is stored. Statistics are left out: nothing would show that they are
wrong, page indexes have the same values, and no reader of Hudi tables uses them.

Source: apache/parquet-format, src/main/thrift/parquet.thrift.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ..codecs import thrift
from ..codecs.thrift import I32, STRUCT, Struct
from ..errors import CorruptFile

UNCOMPRESSED_SIZE, COMPRESSED_SIZE, CRC = 2, 3, 4
IS_COMPRESSED = 7
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
_PLAIN_DICTIONARY, _BIT_PACKED = 2, 4
DICTIONARY_ENCODINGS = frozenset({_PLAIN_DICTIONARY, RLE_DICTIONARY})

LONGEST_HEADER = 1 << 20
"""A longer header is damaged."""
# No page of Hudi's writers is near this: a larger size is a damaged header, not a reason to ask for memory.
_LARGEST_PAGE = 1 << 30

DAMAGED_HINT = (
    "if the file is damaged on storage, put a good copy of it in its place (a backup, a replica, an older version of "
    "the object), or leave its partition out until there is one"
)


class PageKind(IntEnum):
    DATA = 0
    INDEX = 1
    DICTIONARY = 2
    DATA_V2 = 3


HEADERS = {PageKind.DATA: 5, PageKind.DICTIONARY: 7, PageKind.DATA_V2: 8}
_ENCODING = {PageKind.DATA: 2, PageKind.DICTIONARY: 2, PageKind.DATA_V2: 4}
_SIZES = {1: I32, UNCOMPRESSED_SIZE: I32, COMPRESSED_SIZE: I32}
_DETAILS: Mapping[PageKind, Mapping[int, int]] = {
    PageKind.DATA: dict.fromkeys((1, 2, 3, 4), I32),
    PageKind.DICTIONARY: dict.fromkeys((1, 2), I32),
    PageKind.DATA_V2: dict.fromkeys((1, 2, 3, 4, 5, 6), I32),
}
_FLAG = {PageKind.DICTIONARY: 3, PageKind.DATA_V2: IS_COMPRESSED}
_STATISTICS = {PageKind.DATA: 5, PageKind.DATA_V2: 8}


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """Where a column chunk is, for messages: the file, its column and row group (from 0), its first byte."""

    path: str
    column: str
    row_group: int
    start: int

    def damaged(self, at: int, what: str) -> CorruptFile:
        """The error for the damaged page at byte `at` of the file."""
        return CorruptFile(f"{self.path}: the page at byte {at} {what} ({self})", hint=DAMAGED_HINT)

    def __str__(self) -> str:
        return f"column {self.column} of row group {self.row_group}"


@dataclass(frozen=True, slots=True)
class PageHeader:
    """A header of `length` bytes. `num_values` counts nulls and, in a dictionary page, the entries."""

    kind: PageKind
    length: int
    fields: Struct
    """Without statistics."""
    num_values: int
    encoding: int

    @property
    def compressed_bytes(self) -> int:
        """The size of the body."""
        size: int = self.fields.get(COMPRESSED_SIZE)
        return size

    @property
    def uncompressed_bytes(self) -> int:
        size: int = self.fields.get(UNCOMPRESSED_SIZE)
        return size

    @property
    def crc(self) -> int | None:
        """The checksum as a signed number, None when there is none."""
        crc: int | None = self.fields.get(CRC)
        return crc

    @property
    def level_encodings(self) -> frozenset[int]:
        if self.kind is PageKind.DATA:
            details = self.details
            return frozenset({details.get(3), details.get(4)})
        return frozenset({RLE}) if self.kind is PageKind.DATA_V2 else frozenset()

    @property
    def details(self) -> Struct:
        found: Struct = self.fields.get(HEADERS[self.kind])
        return found

    @property
    def level_bytes(self) -> tuple[int, int]:
        """Bytes of the repetition and definition levels that a body of version 2 begins with; (0, 0) in other pages."""
        if self.kind is not PageKind.DATA_V2:
            return 0, 0
        details = self.details
        return details.get(6), details.get(5)


def read_header(data: bytes | memoryview, position: int, place: ChunkPlace, at: int) -> PageHeader:
    """The header at `position` of `data`, which is byte `at` of the file. Raises CorruptFile."""
    part = memoryview(data)[position : position + LONGEST_HEADER]
    try:
        # Bytes are indexed faster than a view, and most headers are short.
        tree, length = thrift.decode_struct(bytes(part[:256]), place.path)
    except CorruptFile:
        try:
            tree, length = thrift.decode_struct(bytes(part), place.path)
        except CorruptFile as e:
            raise place.damaged(at, "has no header that can be read") from e
    fields = _sizes(tree, _SIZES, place, at)
    if CRC in tree.fields:
        wire_type, crc = tree.fields[CRC]
        if wire_type != I32 or not -(1 << 31) <= crc < 1 << 31:
            raise place.damaged(at, "has a checksum in its header that is none")
        fields[CRC] = tree.fields[CRC]
    kind = _kind(tree, place, at)
    found = tree.fields.get(HEADERS[kind])
    if found is None or found[0] != STRUCT:
        raise place.damaged(at, "has no header for its values")
    details = _sizes(found[1], _DETAILS[kind], place, at)
    flag = _FLAG.get(kind)
    if flag is not None and flag in found[1].fields:
        if found[1].fields[flag][0] != thrift.TRUE:
            raise place.damaged(at, f"has no flag in field {flag} of its header")
        details[flag] = found[1].fields[flag]
    fields[HEADERS[kind]] = (STRUCT, Struct(details))
    if fields.keys() != tree.fields.keys() or found[1].fields.keys() - {_STATISTICS.get(kind)} != details.keys():
        raise place.damaged(at, "has something in its header that is not known")
    header = PageHeader(kind, length, Struct(fields), details[1][1], details[_ENCODING[kind]][1])
    if kind is PageKind.DATA and not header.level_encodings <= {RLE, _BIT_PACKED}:
        raise place.damaged(at, "has levels in an encoding that levels cannot have")
    if sum(header.level_bytes) > min(header.compressed_bytes, header.uncompressed_bytes):
        raise place.damaged(at, "has levels that are longer than the page")
    return header


def _kind(tree: Struct, place: ChunkPlace, at: int) -> PageKind:
    kind = tree.get(1)
    if kind not in (PageKind.DATA, PageKind.DICTIONARY, PageKind.DATA_V2):
        raise place.damaged(at, f"is of an unknown kind {kind}")
    return PageKind(kind)


def _sizes(struct: Struct, types: Mapping[int, int], place: ChunkPlace, at: int) -> dict[int, tuple[int, Any]]:
    """The fields of `types`. Raises CorruptFile when one of them is missing or wrong."""
    fields = {}
    for field_id, wire_type in types.items():
        found = struct.fields.get(field_id)
        if found is None or found[0] != wire_type or not 0 <= found[1] <= _LARGEST_PAGE:
            raise place.damaged(at, f"has no size in field {field_id} of its header")
        fields[field_id] = found
    return fields
