"""Reads log files; for the layout see `log_blocks`.

Source: HoodieLogFileReader (which bytes count as a corrupt block and where reading goes on).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeAlias

from ..codecs.cursor import Cursor
from ..errors import CorruptFile
from ..model import LogFile
from ..small_files import FileRanges
from ..storage import Storage
from .log_blocks import (
    FORMAT_VERSION,
    MAGIC,
    BlockPlace,
    BlockType,
    HeaderKey,
    LogBlock,
)

Read: TypeAlias = Callable[[int, int], bytes]
"""(start, length) -> bytes."""

_REVERSE_POINTER = 8
_HEADER_BYTES = 64 << 10
"""Bytes in which the header of a block mostly ends."""
_LONGEST_HEADER = 64 << 20
_FIXED_BYTES = 16
"""Bytes of a block between its magic and its header."""
_MOST_BLOCKS = 200_000
"""Blocks of one file, at most: a write appends one or two, and a torn block of six bytes takes much more memory."""


def read_log_blocks(data: bytes, path: str) -> list[LogBlock]:
    """All blocks of a log file, in file order, as `scan_blocks` finds them. Raises CorruptFile."""
    places = scan_blocks(lambda start, length: data[start : start + length], len(data), path, len(data))
    return [
        LogBlock(one.type, one.header, data[one.offset : one.offset + one.length], path, one.offset) for one in places
    ]


def stored_blocks(storage: Storage, log: LogFile, read: Read | None = None) -> Iterator[BlockPlace]:
    """The blocks of a log file of a table; `read` gives its bytes. Raises CorruptFile and StorageError."""
    return scan_blocks(read or FileRanges(storage, log.path, log.size), log.size, storage.full_path(log.path))


def scan_blocks(read: Read, size: int, path: str, at_once: int = 1 << 20) -> Iterator[BlockPlace]:
    """The blocks of a log file of `size` bytes, in file order; `read` gives its bytes, `at_once` of them at a time.

    A block that a writer left torn is skipped to the next magic, as Hudi does, and comes back as a CORRUPT block
    without content, and with its header if that is whole. Raises CorruptFile when the file does not begin with a block,
    or when a block that is whole does not follow the format; and the errors of `read`.
    """
    window = _Window(read, size, path, at_once)
    at = found = 0
    while size - at >= len(MAGIC):
        found += 1
        if found > _MOST_BLOCKS:
            window.cursor(at, at).fail(f"more than {_MOST_BLOCKS} blocks")
        if window.take(at, len(MAGIC)) != MAGIC:
            window.cursor(at, at).fail("no log block begins here")
        start = at + len(MAGIC)
        end = _block_end(window, start)
        if end is None:
            yield BlockPlace(BlockType.CORRUPT, _torn_header(window, start), path, start, 0)
            at = window.find(MAGIC, start)
        else:
            yield _read_block(window, start, end)
            at = end


class _Window:
    """The bytes of a log file, of which some are held."""

    def __init__(self, read: Read, size: int, path: str, at_once: int) -> None:
        self.size = size
        self._read = read
        self._path = path
        self._at_once = at_once
        self._start = 0
        self._held = b""

    def take(self, start: int, length: int) -> bytes:
        """These bytes; fewer at the end of the file."""
        length = min(length, self.size - start)
        if start < self._start or start + length > self._start + len(self._held):
            self._start = start
            self._held = self._read(start, min(max(length, self._at_once), self.size - start))
        return self._held[start - self._start : start - self._start + length]

    def cursor(self, start: int, end: int) -> Cursor:
        return Cursor(self.take(start, end - start), self._path, base=start)

    def find(self, text: bytes, start: int) -> int:
        """The first place of `text` from `start` on; the size of the file when there is none."""
        while start < self.size:
            self.take(start, len(text))
            at = self._held.find(text, start - self._start)
            if at >= 0:
                return self._start + at
            end = self._start + len(self._held)
            if end >= self.size:
                break
            start = end - len(text) + 1
        return self.size


def _block_end(window: _Window, start: int) -> int | None:
    """The end of the block whose magic ends at `start`; None when the block is torn."""
    size = int.from_bytes(window.take(start, 8), "big", signed=True)
    end = start + 8 + size
    if size < _REVERSE_POINTER or end > window.size:
        return None
    last = window.take(end - _REVERSE_POINTER, _REVERSE_POINTER + len(MAGIC))
    if int.from_bytes(last[:_REVERSE_POINTER], "big") != size + len(MAGIC):
        return None
    # Fewer bytes than a magic are the start of a torn append, which Hudi takes for the end of the file.
    following = last[_REVERSE_POINTER:]
    return end if len(following) < len(MAGIC) or following == MAGIC else None


def _read_block(window: _Window, start: int, end: int) -> BlockPlace:
    held = _HEADER_BYTES
    while True:
        cursor = window.cursor(start, min(end, start + held))
        try:
            return _parse_block(window, cursor, end)
        except CorruptFile:
            if held > _LONGEST_HEADER or start + held >= end:
                raise
        # The schema in the header may be long.
        held *= 8


def _torn_header(window: _Window, start: int) -> dict[HeaderKey, str]:
    """The header of a torn block; {} when it is not whole."""
    with suppress(CorruptFile):
        first = window.cursor(start, start + _FIXED_BYTES)
        first.int64("block size")
        if first.int32("format version") == FORMAT_VERSION and _block_type(first) is not BlockType.CORRUPT:
            return _read_header(window.cursor(start + _FIXED_BYTES, start + _HEADER_BYTES))
    return {}


def _parse_block(window: _Window, cursor: Cursor, end: int) -> BlockPlace:
    cursor.int64("block size")
    version = cursor.int32("format version")
    if version != FORMAT_VERSION:
        cursor.fail(f"log format version {version} is not supported, only {FORMAT_VERSION}")
    block_type = _block_type(cursor)
    header = _read_header(cursor)
    length = cursor.int64("content length")
    offset, left = cursor.base + cursor.pos, end - cursor.base - cursor.pos
    if not 0 <= length <= left:
        cursor.fail(f"content of {length} bytes, and {left} are left")
    footer = window.cursor(offset + length, min(end, offset + length + _HEADER_BYTES))
    _read_header(footer)
    if footer.remaining != _REVERSE_POINTER:
        footer.fail(f"the block should end at offset {end}")
    return BlockPlace(block_type, header, cursor.path, offset, length)


def _block_type(cursor: Cursor) -> BlockType:
    ordinal = cursor.int32("block type")
    try:
        return BlockType(ordinal)
    except ValueError:
        cursor.fail(f"unknown block type {ordinal}")


def _header_key(cursor: Cursor) -> HeaderKey:
    ordinal = cursor.int32("header key")
    try:
        return HeaderKey(ordinal)
    except ValueError:
        cursor.fail(f"unknown header key {ordinal}")


def _read_header(cursor: Cursor) -> dict[HeaderKey, str]:
    header = {}
    count = cursor.int32("header count")
    if count < 0:
        cursor.fail(f"header count {count}")
    for _ in range(count):
        key = _header_key(cursor)
        header[key] = _text(cursor, cursor.int32("header length"))
    return header


def _text(cursor: Cursor, length: int) -> str:
    raw = cursor.take(length, "text")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        cursor.fail("text is not UTF-8")
