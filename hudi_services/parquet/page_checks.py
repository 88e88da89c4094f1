"""Checks that the pages of a column chunk are the pages that were written, by their checksums and by the footer.

A checksum covers the body of a page. Its header is compared with the facts of the chunk, in which every page is
counted: its values, its bytes before and after compression, its encoding. Files of writers that leave checksums out get
only this comparison, and the checks of the decoders.
"""

from collections import Counter
from collections.abc import Callable

from isal import isal_zlib

from ..errors import CorruptFile
from .file_schema import Leaf
from .footer import ColumnChunk
from .page_header import (
    DAMAGED_HINT,
    DICTIONARY_ENCODINGS,
    LONGEST_HEADER,
    ChunkPlace,
    PageHeader,
    PageKind,
    read_header,
)

_UNCOMPRESSED = 0
_AT_ONCE = 4 << 20


def page_crc(body: bytes | memoryview, before: int = 0) -> int:
    """The CRC-32 of `body`, continued from the checksum `before` of the bytes before it; headers hold it `signed`."""
    return int(isal_zlib.crc32(body, before))


def page_sums(body: bytes) -> tuple[int, int]:
    """The CRC-32 and the Adler-32 of `body`."""
    return page_crc(body), int(isal_zlib.adler32(body))


def signed(crc: int) -> int:
    """The checksum as in a header: a signed number of 32 bits."""
    return crc - (1 << 32) if crc >= 1 << 31 else crc


def check_crc(page: PageHeader, crc: int, place: ChunkPlace, at: int) -> None:
    """Raise CorruptFile when the header of the page has another checksum."""
    if page.crc is not None and page.crc != signed(crc):
        raise place.damaged(at, "does not have the checksum of its header")


class ChunkCheck:
    """Compares the pages of one chunk, one after the other, with its facts; `rows` are those of its row group."""

    def __init__(self, place: ChunkPlace, leaf: Leaf, chunk: ColumnChunk, rows: int) -> None:
        self._place = place
        self._leaf = leaf
        self._chunk = chunk
        self._rows = rows
        self._values = 0
        self._uncompressed = 0
        self._pages: Counter[tuple[bool, int]] = Counter()
        self._second: list[PageHeader] = []
        self._data_pages = 0

    def add(self, page: PageHeader, at: int, levels: bytes | memoryview) -> None:
        """Check the next page, at byte `at`; `levels`: the first bytes of a body of version 2. Raises CorruptFile."""
        is_dictionary = page.kind is PageKind.DICTIONARY
        wrong = self._wrong_place(page) or self._wrong_encoding(page) or self._wrong_sizes(page)
        if wrong is None and page.kind is PageKind.DATA_V2:
            wrong = self._wrong_levels(page, levels)
            self._second.append(page)
        if wrong is not None:
            raise self._place.damaged(at, wrong)
        self._pages[is_dictionary, page.encoding] += 1
        self._uncompressed += page.length + page.uncompressed_bytes
        if not is_dictionary:
            self._values += page.num_values
            self._data_pages += 1

    def finish(self) -> None:
        """Check the totals, after the last page. Raises CorruptFile."""
        chunk, leaf = self._chunk, self._leaf
        if self._values != chunk.num_values or (leaf.max_rep == 0 and self._values != self._rows):
            raise self._differs(f"hold {self._values} values; its footer says {chunk.num_values} in {self._rows} rows")
        if self._uncompressed != chunk.uncompressed_bytes:
            raise self._differs(
                f"take {self._uncompressed} bytes without compression; its footer says {chunk.uncompressed_bytes}"
            )
        counts = tuple(sorted((*which, count) for which, count in self._pages.items()))
        if chunk.page_counts is not None and counts != chunk.page_counts:
            raise self._differs("do not have the encodings of its footer")
        if self._second and len(self._second) == self._data_pages:
            self._finish_second()

    def _finish_second(self) -> None:
        rows, nulls = (sum(page.details.get(field) for page in self._second) for field in (3, 2))
        if rows != self._rows:
            raise self._differs(f"hold {rows} rows; its footer says {self._rows}")
        if self._chunk.null_count not in (None, nulls):
            raise self._differs(f"hold {nulls} nulls; its footer says {self._chunk.null_count}")

    def _wrong_place(self, page: PageHeader) -> str | None:
        first = not self._pages
        if page.kind is PageKind.DICTIONARY:
            if not first:
                return "is a dictionary behind other pages"
            if self._chunk.dictionary_bytes not in (0, page.length + page.compressed_bytes):
                return f"is a dictionary and does not have the {self._chunk.dictionary_bytes} bytes of the footer"
        elif first and self._chunk.dictionary_bytes:
            return "should be a dictionary, by the footer"
        return None

    def _wrong_encoding(self, page: PageHeader) -> str | None:
        if page.encoding not in self._chunk.encodings:
            return f"is in the encoding {page.encoding}, which the footer does not name"
        if page.kind is not PageKind.DICTIONARY and page.encoding in DICTIONARY_ENCODINGS and not self._pages:
            return "needs a dictionary, and there is none"
        return None

    def _wrong_sizes(self, page: PageHeader) -> str | None:
        if self._chunk.codec == _UNCOMPRESSED and page.compressed_bytes != page.uncompressed_bytes:
            return f"is not compressed and has {page.compressed_bytes} and {page.uncompressed_bytes} bytes"
        return None

    def _wrong_levels(self, page: PageHeader, levels: bytes | memoryview) -> str | None:
        repetition, _ = page.level_bytes
        parts = (levels[:repetition], self._leaf.max_rep), (levels[repetition:], self._leaf.max_def)
        if not all(_fit(part, highest, page.num_values) for part, highest in parts):
            return f"has levels that are not of {page.num_values} values"
        if self._leaf.max_rep == 0 and page.details.get(3) != page.num_values:
            return "does not have as many rows as values"
        return None

    def _differs(self, what: str) -> CorruptFile:
        place = self._place
        return CorruptFile(
            f"{place.path}: the pages of column {place.column} {what} (row group {place.row_group})", hint=DAMAGED_HINT
        )


def _fit(levels: bytes | memoryview, highest: int, values: int) -> bool:
    """Whether `levels` are exactly the runs (RLE/bit-packing hybrid) of `values` values up to `highest`."""
    if not highest:
        return not len(levels)
    width = highest.bit_length()
    position, left = 0, values
    while left > 0 and position < len(levels):
        run = shift = 0
        while position < len(levels):
            byte = levels[position]
            position += 1
            run |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        groups = run >> 1
        # Eight values a group, or one value in whole bytes.
        position += groups * width if run & 1 else (width + 7) // 8
        left -= groups * 8 if run & 1 else groups
        if not groups:
            return False
    return left <= 0 and position == len(levels)


class ChunkWalk:
    """Checks the pages of one chunk while its bytes are read; it does not keep them."""

    def __init__(self, place: ChunkPlace, leaf: Leaf, chunk: ColumnChunk, rows: int) -> None:
        self.position = chunk.start
        """The position in the file of the next byte to check."""
        self.end = chunk.end
        self._place = place
        self._check = ChunkCheck(place, leaf, chunk, rows)
        self._at = chunk.start
        self._held = b""
        """The beginning of a header."""
        self._page: PageHeader | None = None
        self._left = 0
        self._crc = 0
        self._levels = b""

    def feed(self, start: int, data: bytes | memoryview) -> None:
        """Check bytes of the file from `start` on, except bytes that were checked before, follow a gap or the chunk.

        Raises CorruptFile for the first damaged page.
        """
        skip = self.position - start
        if not 0 <= skip < len(data):
            return
        rest = memoryview(data)[skip : self.end - start]
        self.position += len(rest)
        while len(rest):
            rest = rest[self._take_header(rest) if self._page is None else self._take_body(rest) :]

    def finish(self, fetch: Callable[[int, int], bytes | memoryview]) -> None:
        """Check the rest of the chunk, which `fetch` (start, length) reads, and the totals. Raises CorruptFile."""
        while self.position < self.end:
            length = min(_AT_ONCE, self.end - self.position)
            data = fetch(self.position, length)
            if len(data) != length:
                raise CorruptFile(f"{self._place.path}: {self._place} is cut off", hint=DAMAGED_HINT)
            self.feed(self.position, data)
        self._check.finish()

    def _take_header(self, data: memoryview) -> int:
        """The number of bytes of `data` that belong to the header: all bytes while the header has not ended."""
        known = len(self._held)
        held = self._held + bytes(data[:LONGEST_HEADER]) if known else data
        try:
            page = read_header(held, 0, self._place, self._at)
        except CorruptFile:
            if len(held) >= LONGEST_HEADER or self.position >= self.end:
                raise
            self._held = bytes(held)
            return len(data)
        if self._at + page.length + page.compressed_bytes > self.end:
            raise self._place.damaged(self._at, "is longer than its column chunk")
        self._held = self._levels = b""
        self._page, self._left, self._crc = page, page.compressed_bytes, 0
        if not self._left:
            self._end_page(page)
        return page.length - known

    def _take_body(self, data: memoryview) -> int:
        assert self._page is not None
        part = data[: self._left]
        self._crc = page_crc(part, self._crc)
        wanted = sum(self._page.level_bytes) - len(self._levels)
        if wanted > 0:
            self._levels += bytes(part[:wanted])
        self._left -= len(part)
        if not self._left:
            self._end_page(self._page)
        return len(part)

    def _end_page(self, page: PageHeader) -> None:
        check_crc(page, self._crc, self._place, self._at)
        self._check.add(page, self._at, self._levels)
        self._at += page.length + page.compressed_bytes
        self._page = None
