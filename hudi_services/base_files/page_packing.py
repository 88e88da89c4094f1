"""Compresses pages by a codec of our own while pyarrow writes them, where its own takes much longer.

pyarrow writes a file without compression, page after page, and counts positions of that file. Here each page is
compressed before it goes on, and what the end of the file says about positions and sizes is put right.

Source: apache/parquet-format, parquet.thrift; SerializedPageWriter of Arrow, whose pages are a header and then a body.
"""

import io
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from ..codecs import thrift
from ..codecs.thrift import ListValue, Struct
from ..errors import CorruptFile
from ..parquet.compression import ParquetCodec
from ..parquet.footer import MAGIC, Footer
from ..parquet.page_header import LONGEST_HEADER, ChunkPlace, PageHeader, read_header
from ..parquet.pages import Page, compressed


@dataclass(frozen=True, slots=True)
class _Packed:
    """A page that went on: where it is now, its bytes with its header, and those it would have without compression."""

    start: int
    stored: int
    plain: int


class PagePacker:
    """Takes the bytes that pyarrow writes before the footer, and hands compressed pages to `write`."""

    def __init__(self, codec: ParquetCodec, write: Callable[[bytes], object], path: str) -> None:
        """`path` is for messages."""
        self.written = 0
        """Bytes that went on."""
        self._codec = codec
        self._write = write
        self._path = path
        self._taken = 0
        """The position, as pyarrow counts, of the first byte that waits."""
        self._waiting = bytearray()
        self._header: PageHeader | None = None
        self._starts: list[int] = []
        """The positions of pages, as pyarrow counts, in their order."""
        self._pages: list[_Packed] = []

    def add(self, data: bytes) -> None:
        """Take bytes that follow those before. Raises CorruptFile when they are no pages."""
        self._waiting += data
        if not self._taken:
            # Written at once, and before any page.
            self._go_on(bytes(self._waiting[: len(MAGIC)]))
            self._drop(len(MAGIC))
        while self._waiting:
            if self._header is None:
                self._header = self._next_header()
            header = self._header
            if header is None or len(self._waiting) < header.length + header.compressed_bytes:
                return
            self._pack(header)
            self._header = None

    def settle(self, before: bytes, footer: Footer) -> bytes:
        """Put right the positions in the footer, and in the page indexes `before` it, which are given back.

        Raises CorruptFile when they do not name the pages, or a page is cut off.
        """
        if self._waiting:
            raise CorruptFile(f"{self._path}: the last page of the new file is cut off at byte {self._taken}")
        base, parts = self._taken, io.BytesIO()
        chunks = [chunk for group in footer.tree.get(4).items for chunk in group.get(1).items]
        for chunk in chunks:
            # Column indexes have no positions.
            for of, length in ((6, 7), (4, 5)):
                if of in chunk.fields:
                    start, size = chunk.get(of) - base, chunk.get(length)
                    encoded = before[start : start + size]
                    encoded = self._offset_index(encoded) if of == 4 else encoded
                    chunk.set(of, thrift.I64, self.written + parts.tell())
                    chunk.set(length, thrift.I32, len(encoded))
                    parts.write(encoded)
        for group in footer.tree.get(4).items:
            self._place_group(group)
        footer.__dict__.pop("row_groups", None)
        return parts.getvalue()

    def _next_header(self) -> PageHeader | None:
        """The header that waits; None while some of it is missing."""
        try:
            place = ChunkPlace(self._path, "", 0, self._taken)
            return read_header(memoryview(self._waiting), 0, place, self._taken)
        except CorruptFile:
            if len(self._waiting) > LONGEST_HEADER:
                raise
            return None

    def _pack(self, header: PageHeader) -> None:
        end = header.length + header.compressed_bytes
        body = bytes(self._waiting[header.length : end])
        page = Page(header.kind, header.fields, body, header.num_values, header.encoding, header.level_encodings)
        packed = compressed(page, self._codec)
        encoded = packed.encoded_header()
        size = len(encoded) + len(packed.body)
        self._starts.append(self._taken)
        self._pages.append(_Packed(self.written, size, len(encoded) + header.uncompressed_bytes))
        self._go_on(encoded)
        self._go_on(packed.body)
        self._drop(end)

    def _go_on(self, data: bytes) -> None:
        self._write(data)
        self.written += len(data)

    def _drop(self, length: int) -> None:
        del self._waiting[:length]
        self._taken += length

    def _offset_index(self, encoded: bytes) -> bytes:
        index, _ = thrift.decode_struct(encoded, self._path)
        for location in index.get(1).items:
            page = self._page(location.get(1))
            location.set(1, thrift.I64, page.start)
            location.set(2, thrift.I32, page.stored)
        return thrift.encode_struct(index)

    def _place_group(self, group: Struct) -> None:
        chunks: ListValue = group.get(1)
        sizes = [self._place_chunk(chunk) for chunk in chunks.items]
        group.set(2, thrift.I64, sum(plain for _, plain in sizes))
        group.set(6, thrift.I64, sum(stored for stored, _ in sizes))
        if 5 in group.fields:
            group.set(5, thrift.I64, self._page(group.get(5)).start)

    def _place_chunk(self, chunk: Struct) -> tuple[int, int]:
        """Put a chunk right; its bytes, and those it would have without compression."""
        meta: Struct = chunk.get(3)
        start = meta.get(11, meta.get(9))
        first, end = (bisect_left(self._starts, at) for at in (start, start + meta.get(7)))
        pages = self._pages[first:end]
        stored, plain = sum(page.stored for page in pages), sum(page.plain for page in pages)
        meta.set(4, thrift.I32, self._codec.number)
        meta.set(6, thrift.I64, plain)
        meta.set(7, thrift.I64, stored)
        for of in (9, 11):
            if of in meta.fields:
                meta.set(of, thrift.I64, self._page(meta.get(of)).start)
        return stored, plain

    def _page(self, at: int) -> _Packed:
        number = bisect_left(self._starts, at)
        if self._starts[number : number + 1] != [at]:
            raise CorruptFile(f"{self._path}: the new file names a page at byte {at}, where none was written")
        return self._pages[number]
