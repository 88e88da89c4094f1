"""Reads HFiles: all entries, also as Arrow columns, one entry, or entries by prefix; for the layout see `hfile_format`.

Source: org.apache.hudi.io.hfile.HFileReaderImpl. Unlike it, a data block is read to its uncompressed size: the Java
reader stops short by the size of the checksums and so loses the last records of some blocks.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from ..codecs.cursor import Cursor
from ..codecs.gzip_stream import gunzip
from ..computed_once import cached_property
from ..errors import CorruptFile
from .hfile_entries import check_large_block, decode_entries
from .hfile_format import (
    BLOCK_HEADER_SIZE,
    CODEC_GZ,
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    INFO_MAGIC,
    INTERMEDIATE_INDEX_MAGIC,
    LEAF_INDEX_MAGIC,
    ROOT_INDEX_MAGIC,
    TRAILER_SIZE,
    IndexEntry,
    decode_trailer,
    proto_fields,
)
from .hfile_ranges import RangeReader

_MAX_INDEX_LEVELS = 8
# Below this gap one request for two blocks costs less than two requests; one request reads about _RANGE bytes at most.
_GAP, _RANGE = 64 << 10, 8 << 20
# Bytes that are decoded at once: several blocks, so that each call of numpy and Arrow pays off.
_DECODED = 2 << 20
_Entries = dict[bytes, bytes]

# Gzip compresses zeros to a thousandth, so the sizes that blocks announce are bounded. A writer ends a block of 1 MB
# (its default) after the entry that makes it larger: the list of the files of a partition with 1.6 million of them.
_LARGEST_BLOCK = 128 << 20
_LAST_ENTRY_STARTS = 32 << 20
# A million blocks.
_LARGEST_INDEX = 128 << 20
# Schema and last key, 20 kB.
_LARGEST_INFO = 1 << 20


@dataclass(frozen=True, slots=True)
class _BytesRanges:
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, length: int) -> bytes:
        return self.data[start : start + length]


class HFileReader:
    """One HFile. The constructor reads the trailer and what follows the data; data blocks are read on demand.

    `path` is for messages. Every method raises CorruptFile for bytes that do not follow the format, and what the
    RangeReader raises.
    """

    def __init__(self, data: bytes | RangeReader, path: str) -> None:
        self._file: RangeReader = _BytesRanges(data) if isinstance(data, bytes) else data
        self._path = path
        self._data_end = self._file.size - TRAILER_SIZE
        if self._data_end < 0:
            raise CorruptFile(f"{path} is corrupt at offset 0: {self._file.size} bytes are too few for an HFile")
        self._trailer = decode_trailer(self._cursor(self._data_end, TRAILER_SIZE))
        self._tail_start = self._trailer.load_on_open_offset
        if not 0 <= self._tail_start <= self._data_end:
            self._cursor(self._data_end, 0).fail(f"load-on-open offset {self._tail_start} is outside the file")
        if self._data_end - self._tail_start > _LARGEST_INDEX + _LARGEST_BLOCK:
            self._cursor(self._data_end, 0).fail(f"load-on-open offset {self._tail_start} is too far from its end")
        self._tail = self._file.read(self._tail_start, self._data_end - self._tail_start)
        self._last_block: tuple[int, _Entries] = (-1, {})

    @property
    def entry_count(self) -> int:
        return self._trailer.entry_count

    @property
    def first_row(self) -> bytes | None:
        """The first row key, or a key before it; None without entries. Needs no data block."""
        return self._index_rows[0] if self.entry_count else None

    @cached_property
    def file_info(self) -> dict[bytes, bytes]:
        """The entries of the file info, `schema` among them."""
        at = self._trailer.file_info_offset - self._tail_start
        if at < 0:
            self._cursor(self._data_end, 0).fail("the file info is before the load-on-open part")
        cursor = self._payload(
            Cursor(self._tail, self._path, base=self._tail_start, pos=at), FILE_INFO_MAGIC, most=_LARGEST_INFO
        )
        if cursor.take(len(INFO_MAGIC), "file info magic") != INFO_MAGIC:
            cursor.fail("the file info is not a protobuf message")
        message = cursor.nested(cursor.varint("file info length"), "file info")
        return dict(_info_entry(entry, message) for _, entry in proto_fields(message))

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """All (row key, value) pairs in the order of the file; checked against the entry count at the end."""
        found = 0
        for run in self._runs(self._index):
            for block in run:
                entries = _entries(self._data_payload(block))
                found += len(entries)
                yield from entries.items()
        self._check_count(found)

    def scan_columns(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """All row keys and their values as pairs of binary arrays, in order, a few data blocks in each pair.

        Checked against the entry count at the end. Unlike in `scan`, a key that a block repeats stays repeated.
        """
        found = 0
        for rows, values in self._columns(self._index):
            found += len(rows)
            yield rows, values
        self._check_count(found)

    def columns_with(self, rows: Sequence[bytes]) -> Iterator[tuple[pa.Array, pa.Array]]:
        """As `scan_columns`, for the data blocks that may hold one of the ascending `rows`."""
        yield from self._columns([self._index[number] for number in self._blocks_with(rows)])

    def _blocks_with(self, rows: Sequence[bytes]) -> list[int]:
        found, at = [], 0
        for number, row in enumerate(self._index_rows):
            begin = bisect_left(rows, row, at)
            last = number + 1 == len(self._index_rows)
            at = len(rows) if last else bisect_left(rows, self._index_rows[number + 1], begin)
            if at > begin:
                found.append(number)
        return found

    def _columns(self, blocks: Sequence[IndexEntry]) -> Iterator[tuple[pa.Array, pa.Array]]:
        """The columns of these blocks."""
        for run in self._runs(blocks):
            payloads: list[Cursor] = []
            gathered = 0
            for block in run:
                payloads.append(self._data_payload(block))
                gathered += len(payloads[-1].data)
                if gathered >= _DECODED:
                    yield decode_entries(payloads)
                    payloads, gathered = [], 0
            if payloads:
                yield decode_entries(payloads)

    def _runs(self, blocks: Sequence[IndexEntry]) -> Iterator[Iterator[Cursor]]:
        """These blocks as they are stored; adjacent blocks are read in one range."""
        for run in _neighbours(blocks):
            start = run[0].offset
            data = self._file.read(start, run[-1].offset + run[-1].size - start)
            yield (
                Cursor(data[one.offset - start : one.offset - start + one.size], self._path, base=one.offset)
                for one in run
            )

    def get(self, key: bytes) -> bytes | None:
        """The value of `key`, or None. Ascending calls read each data block once."""
        at = bisect_right(self._index_rows, key) - 1
        if at < 0:
            return None
        return self._read_entries(self._index[at]).get(key)

    def scan_prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All (row key, value) pairs whose row key begins with `prefix`, in order."""
        for block in self._index[max(bisect_right(self._index_rows, prefix) - 1, 0) :]:
            # An index row is at or before the first row of its block, so this block and all later ones are beyond.
            if block.row > prefix and not block.row.startswith(prefix):
                return
            yield from (pair for pair in self._read_entries(block).items() if pair[0].startswith(prefix))

    def _check_count(self, count: int) -> None:
        if count != self.entry_count:
            self._cursor(self._data_end, 0).fail(f"{count} entries, and the trailer says {self.entry_count}")

    @cached_property
    def _index_rows(self) -> list[bytes]:
        return [entry.row for entry in self._index]

    @cached_property
    def _index(self) -> list[IndexEntry]:
        """The data blocks, in order."""
        count, levels = self._trailer.data_index_count, self._trailer.index_levels
        root_block = Cursor(self._tail, self._path, base=self._tail_start)
        root = self._payload(root_block, ROOT_INDEX_MAGIC, most=_LARGEST_INDEX)
        if levels > _MAX_INDEX_LEVELS:
            root.fail(f"{levels} index levels")
        if count * BLOCK_HEADER_SIZE > self._data_end:
            root.fail(f"{count} blocks in {self._data_end} bytes")
        entries = self._checked(_root_entries(root, count), root)
        for _ in range(levels - 1):
            entries = self._checked(self._next_level(entries), root)
        return entries

    def _next_level(self, blocks: Sequence[IndexEntry]) -> list[IndexEntry]:
        entries: list[IndexEntry] = []
        left = _LARGEST_INDEX
        for block in blocks:
            cursor = self._payload(self._block_cursor(block), LEAF_INDEX_MAGIC, INTERMEDIATE_INDEX_MAGIC, most=left)
            left -= len(cursor.data)
            entries += _leaf_entries(cursor)
        return entries

    def _checked(self, entries: list[IndexEntry], cursor: Cursor) -> list[IndexEntry]:
        """`entries`, of one index level. Raises CorruptFile unless their blocks follow one another inside the data.

        This also limits the work on a damaged file.
        """
        end = 0
        for entry in entries:
            if entry.offset < end or not BLOCK_HEADER_SIZE <= entry.size <= 2 * _LARGEST_BLOCK:
                cursor.fail(f"the index points to {entry.size} bytes at offset {entry.offset}, before offset {end}")
            end = entry.offset + entry.size
        if end > self._data_end:
            cursor.fail(f"the index points to a block that ends at {end}, and data ends at {self._data_end}")
        return entries

    def _read_entries(self, block: IndexEntry) -> _Entries:
        if self._last_block[0] != block.offset:
            self._last_block = (block.offset, _entries(self._data_payload(self._block_cursor(block))))
        return self._last_block[1]

    def _block_cursor(self, block: IndexEntry) -> Cursor:
        return self._cursor(block.offset, block.size)

    def _cursor(self, start: int, length: int) -> Cursor:
        return Cursor(self._file.read(start, length), self._path, base=start)

    def _data_payload(self, cursor: Cursor) -> Cursor:
        payload = self._payload(cursor, DATA_MAGIC)
        if len(payload.data) > _LAST_ENTRY_STARTS:
            check_large_block(payload, _LAST_ENTRY_STARTS)
        return payload

    def _payload(self, cursor: Cursor, *magics: bytes, most: int = _LARGEST_BLOCK) -> Cursor:
        """The uncompressed payload of the block at the cursor, at most `most` bytes."""
        where = f"the block at offset {cursor.base + cursor.pos} of {self._path}"
        magic = cursor.take(8, "block magic")
        if magic not in magics:
            cursor.fail(f"block magic {magic!r}, expected {magics[0]!r}")
        cursor.int32("on-disk size")
        uncompressed = cursor.int32("uncompressed size")
        if uncompressed > most:
            cursor.fail(f"the block says it has {uncompressed} bytes, more than any")
        cursor.take(13, "block header")
        payload = cursor.take(cursor.int32("data size") - BLOCK_HEADER_SIZE, "block payload")
        if self._trailer.codec == CODEC_GZ:
            payload = _gunzip(payload, uncompressed, cursor)
        if len(payload) != uncompressed:
            cursor.fail(f"the block holds {len(payload)} bytes, and its header says {uncompressed}")
        return Cursor(payload, where)


def _entries(payload: Cursor) -> _Entries:
    rows, values = decode_entries([payload])
    return dict(zip(rows.to_pylist(), values.to_pylist(), strict=True))


def _neighbours(blocks: Sequence[IndexEntry]) -> Iterator[list[IndexEntry]]:
    """Groups of adjacent blocks, each with as many as one range should read."""
    run: list[IndexEntry] = []
    for block in blocks:
        if run and (block.offset - (run[-1].offset + run[-1].size) > _GAP or block.offset - run[0].offset > _RANGE):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _gunzip(payload: bytes, size: int, cursor: Cursor) -> bytes:
    if size < 0:
        cursor.fail(f"uncompressed size {size}")
    try:
        return gunzip(payload, size)
    except ValueError as e:
        cursor.fail(str(e))


def _root_entries(cursor: Cursor, count: int) -> list[IndexEntry]:
    start = cursor.pos
    try:
        return [_root_entry(cursor, cursor.hadoop_vint) for _ in range(count)]
    except CorruptFile:
        # Hudi 1.1 wrote the lengths of long keys as protobuf varints; read as VInts they contradict the row lengths.
        cursor.pos = start
    return [_root_entry(cursor, cursor.varint) for _ in range(count)]


def _leaf_entries(cursor: Cursor) -> list[IndexEntry]:
    count = cursor.int32("index entry count")
    # An offset, a place and a length for each.
    if not 0 <= count <= cursor.remaining // 18:
        cursor.fail(f"{count} index entries")
    offsets = [cursor.int32("index entry offset") for _ in range(count + 1)]
    entries = []
    for start, end in pairwise(offsets):
        offset, size = cursor.int64("block offset"), cursor.int32("block size")
        entries.append(IndexEntry(_row(cursor, end - start - 12), offset, size))
    return entries


def _root_entry(cursor: Cursor, read_length: Callable[[str], int]) -> IndexEntry:
    offset, size = cursor.int64("block offset"), cursor.int32("block size")
    return IndexEntry(_row(cursor, read_length("key length")), offset, size)


def _row(cursor: Cursor, key_length: int) -> bytes:
    """The row of a key, with or without the suffix."""
    row_length = cursor.int16("row length")
    suffix = key_length - 2 - row_length
    if suffix not in (0, 10):
        cursor.fail(f"a key of {key_length} bytes with a row of {row_length} bytes")
    row = cursor.take(row_length, "row")
    cursor.take(suffix, "key suffix")
    return row


def _info_entry(entry: int | bytes, message: Cursor) -> tuple[bytes, bytes]:
    if isinstance(entry, int):
        message.fail("a file info entry is a number")
    pair = dict(proto_fields(Cursor(entry, message.path, base=message.base)))
    key, value = pair.get(1, b""), pair.get(2, b"")
    if isinstance(key, int) or isinstance(value, int):
        message.fail("a file info key or value is a number")
    return key, value
