"""The pages of a column chunk, put into another codec without decoding a value.

    chunk                 page*; page: PageHeader (Thrift compact) | body
    PageHeader            1 type, 2 uncompressed size, 3 compressed size, 4 crc, 5 DataPageHeader,
                          7 DictionaryPageHeader, 8 DataPageHeaderV2
    DataPageHeader        1 num_values, 2 encoding, 3 and 4 encodings of levels, 5 statistics
    DictionaryPageHeader  1 num_values, 2 encoding
    DataPageHeaderV2      1 num_values, 2 num_nulls, 3 num_rows, 4 encoding, 5 bytes of definition levels,
                          6 of repetition levels (both never compressed), 7 is_compressed

Source: apache/parquet-format, src/main/thrift/parquet.thrift.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import pyarrow as pa

from ..codecs import thrift
from ..codecs.thrift import Struct
from ..codecs.varint import encode_varint
from ..errors import CorruptFile
from .parquet_codec import ParquetCodec

_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _CRC = 2, 3, 4
_IS_COMPRESSED = 7
# No page of Hudi's writers is near this: a larger size is a damaged header, not a reason to ask for memory.
_LARGEST_PAGE = 1 << 30


class PageKind(IntEnum):
    DATA = 0
    INDEX = 1
    DICTIONARY = 2
    DATA_V2 = 3


_HEADERS = {PageKind.DATA: 5, PageKind.DICTIONARY: 7, PageKind.DATA_V2: 8}
_ENCODING = {PageKind.DATA: 2, PageKind.DICTIONARY: 2, PageKind.DATA_V2: 4}
# Window bits that make zlib read the gzip format.
_GZIP = 31
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8


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
        size: int = self.header.get(_UNCOMPRESSED_SIZE)
        return size

    def encoded_header(self) -> bytes:
        return thrift.encode_struct(self.header)

    @property
    def content(self) -> tuple[bytes, bytes]:
        """What the page says whatever its codec: header and, once it is `plain`, its body."""
        bare = self.header.copy()
        bare.drop(_COMPRESSED_SIZE, _CRC)
        if self.kind is PageKind.DATA_V2:
            details = self.header.get(8).copy()
            details.drop(_IS_COMPRESSED)
            bare.set(8, thrift.STRUCT, details)
        return thrift.encode_struct(bare), self.body


def read_pages(chunk: bytes, source: str, start: int) -> Iterator[Page]:
    """Every page of `chunk`, which lies at byte `start` of the file `source`. Raises CorruptFile."""
    position = 0
    while position < len(chunk):
        header, after = thrift.decode_struct(chunk, f"{source} (column chunk at byte {start})", position)
        end = after + _size(header, _COMPRESSED_SIZE, source, start + position)
        if end > len(chunk):
            raise CorruptFile(f"{source}: the page at byte {start + position} is longer than its column chunk")
        body = chunk[after:end]
        crc = header.get(_CRC)
        if crc is not None and crc != _crc(body):
            raise CorruptFile(f"{source}: the page at byte {start + position} does not have the checksum of its header")
        yield _page(header, body, source, start + position)
        position = end


def _page(header: Struct, body: bytes, source: str, at: int) -> Page:
    _size(header, _UNCOMPRESSED_SIZE, source, at)
    try:
        kind = PageKind(header.get(1))
        details = header.get(_HEADERS[kind])
    except (ValueError, KeyError):
        raise CorruptFile(f"{source}: the page at byte {at} is of an unknown kind {header.get(1)}") from None
    if not isinstance(details, Struct):
        raise CorruptFile(f"{source}: the page at byte {at} has no header for its values")
    levels: frozenset[int] = frozenset()
    if kind is PageKind.DATA:
        levels = frozenset(_size(details, field, source, at) for field in (3, 4))
    elif kind is PageKind.DATA_V2:
        levels = frozenset({_RLE})
        levels_size = _size(details, 5, source, at) + _size(details, 6, source, at)
        if levels_size > min(len(body), header.get(_UNCOMPRESSED_SIZE)):
            raise CorruptFile(f"{source}: the levels of the page at byte {at} are longer than the page")
    return Page(kind, header, body, _size(details, 1, source, at), _size(details, _ENCODING[kind], source, at), levels)


def _size(parent: Struct, field_id: int, source: str, at: int) -> int:
    value = parent.get(field_id)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_PAGE:
        raise CorruptFile(f"{source}: field {field_id} in the header of the page at byte {at} is not a size")
    return value


def plain(page: Page, codec: ParquetCodec, source: str) -> Page:
    """`page` of a chunk in `codec` without compression, its old checksum left in the header.

    Raises CorruptFile when its body is not as announced.
    """
    levels, packed = _split(page)
    size = page.uncompressed_bytes - len(levels)
    body = _decompress(packed, size, codec, source) if _is_compressed(page) else packed
    if len(body) != size:
        raise CorruptFile(f"{source}: a page has {len(body)} bytes and not the {size} of its header")
    return _with_body(page, levels + body)


def _decompress(packed: bytes, size: int, codec: ParquetCodec, source: str) -> bytes:
    """At most one byte more than `size`: pyarrow's own call fills up what a page lacks, with whatever memory held."""
    if not size:
        # What stands for nothing differs from codec to codec; some leave it out.
        return b""
    try:
        if codec.name == "gzip":
            return _gunzip(packed, size + 1)
        if codec.name == "snappy" and _preamble(packed) != size:
            raise CorruptFile(f"{source}: a page does not have the {size} bytes of its header")
        decompressor = codec.compressor()
        return packed if decompressor is None else decompressor.decompress(packed, size, asbytes=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError, zlib.error) as e:
        raise CorruptFile(
            f"{source}: a page cannot be decompressed: {(str(e) or type(e).__name__).splitlines()[0]}"
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
    """A `plain` page in `codec`, with a checksum when it had one."""
    compressor = codec.compressor()
    levels, body = _split(page)
    packed = _with_body(page, levels + compressor.compress(body, asbytes=True) if compressor else page.body)
    if _CRC in packed.header.fields:
        packed.header.set(_CRC, thrift.I32, _crc(packed.body))
    if compressor and page.kind is PageKind.DATA_V2:
        details = page.header.get(8).copy()
        details.set(_IS_COMPRESSED, thrift.TRUE, True)
        packed.header.set(8, thrift.STRUCT, details)
    return packed


def _is_compressed(page: Page) -> bool:
    return page.kind is not PageKind.DATA_V2 or page.header.get(8).get(_IS_COMPRESSED, True) is True


def _split(page: Page) -> tuple[bytes, bytes]:
    """The levels that are never compressed, and the rest of the body."""
    if page.kind is not PageKind.DATA_V2:
        return b"", page.body
    details = page.header.get(8)
    length = details.get(5) + details.get(6)
    return page.body[:length], page.body[length:]


def _with_body(page: Page, body: bytes) -> Page:
    header = page.header.copy()
    header.set(_COMPRESSED_SIZE, thrift.I32, len(body))
    return replace(page, header=header, body=body)


def constant_pages(value: bytes, rows: int, *, nullable: bool) -> tuple[Page, Page]:
    """Dictionary page and data page of a flat BYTE_ARRAY column that holds `value` in each of `rows` rows, `plain`."""
    # Runs of the RLE/bit-packing hybrid: the count times two, then the repeated value in whole bytes.
    run = encode_varint(rows << 1)
    levels = struct.pack("<I", len(run) + 1) + run + b"\x01" if nullable else b""
    width_and_indices = b"\x01" + run + b"\x00"
    return (
        _new_page(PageKind.DICTIONARY, struct.pack("<I", len(value)) + value, 1, _PLAIN, frozenset()),
        _new_page(PageKind.DATA, levels + width_and_indices, rows, _RLE_DICTIONARY, frozenset({_RLE})),
    )


def _new_page(kind: PageKind, body: bytes, values: int, encoding: int, levels: frozenset[int]) -> Page:
    details = Struct({1: (thrift.I32, values), 2: (thrift.I32, encoding)})
    if kind is PageKind.DATA:
        details.set(3, thrift.I32, _RLE)
        details.set(4, thrift.I32, _RLE)
    header = Struct(
        {
            1: (thrift.I32, int(kind)),
            _UNCOMPRESSED_SIZE: (thrift.I32, len(body)),
            _COMPRESSED_SIZE: (thrift.I32, len(body)),
            _HEADERS[kind]: (thrift.STRUCT, details),
        }
    )
    return Page(kind, header, body, values, encoding, levels)


def _crc(body: bytes) -> int:
    """As the header has it: a signed number of 32 bits."""
    crc = zlib.crc32(body)
    return crc - (1 << 32) if crc >= 1 << 31 else crc
