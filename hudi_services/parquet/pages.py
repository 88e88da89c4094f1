"""The pages of a column chunk, recompressed with another codec without decoding a value."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..codecs import thrift
from ..codecs.thrift import Struct
from ..codecs.varint import encode_varint
from ..errors import CorruptFile
from .compression import ParquetCodec
from .file_schema import Leaf
from .footer import Physical
from .page_checks import ChunkCheck, check_crc, page_crc, signed
from .page_header import (
    COMPRESSED_SIZE,
    CRC,
    DAMAGED_HINT,
    HEADERS,
    IS_COMPRESSED,
    PLAIN,
    RLE,
    RLE_DICTIONARY,
    UNCOMPRESSED_SIZE,
    ChunkPlace,
    PageKind,
    read_header,
)

# Window bits that make zlib read the gzip format.
_GZIP = 31
_LENGTH = struct.Struct("<I")
_WIDTHS = {Physical.INT32: 4, Physical.INT64: 8, Physical.INT96: 12, Physical.FLOAT: 4, Physical.DOUBLE: 8}


@dataclass(frozen=True, slots=True)
class Page:
    """One page; `num_values` counts nulls and, in a dictionary page, the entries."""

    kind: PageKind
    header: Struct
    body: bytes
    num_values: int
    encoding: int
    level_encodings: frozenset[int]

    @property
    def uncompressed_bytes(self) -> int:
        size: int = self.header.get(UNCOMPRESSED_SIZE)
        return size

    def encoded_header(self) -> bytes:
        return thrift.encode_struct(self.header)

    @property
    def content(self) -> tuple[tuple[Any, ...], bytes]:
        """The content of the page whatever its codec: what its header says but for compressed size, checksum and flag
        of compression; and the body, once the page is `plain`."""
        details = sorted((number, value) for number, (_, value) in self.header.get(HEADERS[self.kind]).fields.items())
        if self.kind is PageKind.DATA_V2:
            details = [(number, value) for number, value in details if number != IS_COMPRESSED]
        return (int(self.kind), self.uncompressed_bytes, *details), self.body


def read_pages(chunk: bytes, place: ChunkPlace, check: ChunkCheck | None = None) -> Iterator[Page]:
    """Every page of `chunk`, which is at `place`; `check` checks all pages. Raises CorruptFile.

    The headers are without statistics.
    """
    position = 0
    while position < len(chunk):
        at = place.start + position
        header = read_header(chunk, position, place, at)
        after = position + header.length
        position = after + header.compressed_bytes
        if position > len(chunk):
            raise place.damaged(at, "is longer than its column chunk")
        body = chunk[after:position]
        check_crc(header, page_crc(body), place, at)
        if check is not None:
            check.add(header, at, body[: sum(header.level_bytes)])
        yield Page(header.kind, header.fields, body, header.num_values, header.encoding, header.level_encodings)


def plain(page: Page, codec: ParquetCodec, source: str) -> Page:
    """`page` of a chunk in `codec` without compression and without a checksum.

    Raises CorruptFile when its body cannot be decompressed, or does not have the size in its header.
    """
    levels, packed = _split(page)
    size = page.uncompressed_bytes - len(levels)
    body = _decompress(packed, size, codec, source) if _is_compressed(page) else packed
    if len(body) != size:
        raise CorruptFile(f"{source}: a page has {len(body)} bytes and not the {size} of its header", hint=DAMAGED_HINT)
    return _with_body(page, levels + body)


def _decompress(packed: bytes, size: int, codec: ParquetCodec, source: str) -> bytes:
    """The decompressed body, at most one byte more than `size`. Raises CorruptFile.

    The length of gzip and snappy data is checked here: pyarrow's own call fills a page that is too short with arbitrary
    bytes of memory.
    """
    if not size:
        # The stored form of no bytes differs from codec to codec; some leave it out.
        return b""
    try:
        if codec.name == "gzip":
            return _gunzip(packed, size + 1)
        if codec.name == "snappy" and _preamble(packed) != size:
            raise CorruptFile(f"{source}: a page does not have the {size} bytes of its header", hint=DAMAGED_HINT)
        return pa.Codec(codec.name).decompress(packed, size, asbytes=True) if codec.number else packed
    except (pa.ArrowException, OSError, ValueError, MemoryError, zlib.error) as e:
        raise CorruptFile(
            f"{source}: a page cannot be decompressed: {(str(e) or type(e).__name__).splitlines()[0]}",
            hint=DAMAGED_HINT,
        ) from e


def _gunzip(packed: bytes, limit: int) -> bytes:
    """All members, cut off after `limit` bytes."""
    parts: list[bytes] = []
    while packed and limit > 0:
        member = zlib.decompressobj(_GZIP)
        parts.append(member.decompress(packed, limit))
        limit -= len(parts[-1])
        if limit > 0 and not member.eof:
            raise ValueError("its gzip data ends too early")
        packed = member.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _preamble(packed: bytes) -> int:
    """The uncompressed length that snappy data begin with, a varint."""
    length = 0
    for i, byte in enumerate(packed[:5]):
        length |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return length
    return -1


def compressed(page: Page, codec: ParquetCodec) -> Page:
    """A `plain` page in `codec`, with its checksum."""
    levels, body = _split(page)
    packed = with_crc(_with_body(page, levels + codec.compress(body)))
    if codec.number and page.kind is PageKind.DATA_V2:
        details = page.header.get(8).copy()
        details.set(IS_COMPRESSED, thrift.TRUE, True)
        packed.header.set(8, thrift.STRUCT, details)
    return packed


def with_crc(page: Page) -> Page:
    """`page` with the checksum of its body; an existing checksum was checked when the page was read."""
    if CRC in page.header.fields:
        return page
    header = page.header.copy()
    header.set(CRC, thrift.I32, signed(page_crc(page.body)))
    return replace(page, header=header)


def check_without_values(page: Page, leaf: Leaf, codec: ParquetCodec, source: str) -> None:
    """Check a page that is copied as it is, as far as neither its checksum nor the footer does.

    Raises CorruptFile when a page without a checksum cannot be decompressed, or a dictionary does not have as many
    entries as its header says.
    """
    if page.kind is PageKind.DICTIONARY:
        check_dictionary(plain(page, codec, source), leaf, source)
    elif CRC not in page.header.fields:
        plain(page, codec, source)


def check_dictionary(page: Page, leaf: Leaf, source: str) -> None:
    """Raise CorruptFile when a `plain` dictionary page does not have as many entries as its header says."""
    width = leaf.type_length if leaf.physical is Physical.FIXED_LEN_BYTE_ARRAY else _WIDTHS.get(leaf.physical)
    same = len(page.body) == page.num_values * width if width is not None else _texts(page.body) == page.num_values
    if not same:
        raise CorruptFile(
            f"{source}: a dictionary of column {leaf.dotted} does not have the {page.num_values} entries of its header",
            hint=DAMAGED_HINT,
        )


def _texts(body: bytes) -> int:
    """The number of byte arrays, each its length in 4 bytes, then its bytes; -1 when the last array is cut off."""
    data = np.frombuffer(body, np.uint8)
    # In texts without NUL, a zero is part of a length: the last two bytes of a length below 65,536, and no others, are
    # two zeros before a byte that is none. Whether these are the lengths is then seen from what they say.
    zeros = data == 0
    starts = np.flatnonzero(zeros[2:-2] & zeros[3:-1] & ~zeros[4:])
    if len(starts) and starts[0] == 0:
        ends = starts + _LENGTH.size + data[starts] + (data[starts + 1].astype(np.int64) << 8)
        if ends[-1] == len(body) and (ends[:-1] == starts[1:]).all():
            return len(starts)
    position = count = 0
    while position + _LENGTH.size <= len(body):
        position += _LENGTH.size + _LENGTH.unpack_from(body, position)[0]
        count += 1
    return count if position == len(body) else -1


def _is_compressed(page: Page) -> bool:
    return page.kind is not PageKind.DATA_V2 or page.header.get(8).get(IS_COMPRESSED, True) is True


def _split(page: Page) -> tuple[bytes, bytes]:
    """The levels that are never compressed, and the rest of the body."""
    if page.kind is not PageKind.DATA_V2:
        return b"", page.body
    details = page.header.get(8)
    length = details.get(5) + details.get(6)
    return page.body[:length], page.body[length:]


def _with_body(page: Page, body: bytes) -> Page:
    header = page.header.copy()
    header.set(COMPRESSED_SIZE, thrift.I32, len(body))
    header.drop(CRC)
    return replace(page, header=header, body=body)


def constant_pages(value: bytes, rows: int, *, nullable: bool) -> tuple[Page, Page]:
    """Dictionary page and data page of a flat BYTE_ARRAY column that holds `value` in each of `rows` rows, `plain`."""
    # Runs of the RLE/bit-packing hybrid: the count times two, then the repeated value in whole bytes.
    run = encode_varint(rows << 1)
    levels = struct.pack("<I", len(run) + 1) + run + b"\x01" if nullable else b""
    width_and_indices = b"\x01" + run + b"\x00"
    return (
        _new_page(PageKind.DICTIONARY, struct.pack("<I", len(value)) + value, 1, PLAIN, frozenset()),
        _new_page(PageKind.DATA, levels + width_and_indices, rows, RLE_DICTIONARY, frozenset({RLE})),
    )


def _new_page(kind: PageKind, body: bytes, values: int, encoding: int, levels: frozenset[int]) -> Page:
    details = Struct({1: (thrift.I32, values), 2: (thrift.I32, encoding)})
    if kind is PageKind.DATA:
        details.set(3, thrift.I32, RLE)
        details.set(4, thrift.I32, RLE)
    header = Struct(
        {
            1: (thrift.I32, int(kind)),
            UNCOMPRESSED_SIZE: (thrift.I32, len(body)),
            COMPRESSED_SIZE: (thrift.I32, len(body)),
            HEADERS[kind]: (thrift.STRUCT, details),
        }
    )
    return Page(kind, header, body, values, encoding, levels)
