"""Reads the records of the data blocks of log files, a piece at a time.

Content of an Avro data block: int32 version (1 to 3), int32 count, then for each record int32 length and that many
bytes of Avro in the schema of the block's header. Content of a parquet data block: a whole parquet file.
Source: HoodieAvroDataBlock, HoodieParquetDataBlock of Apache Hudi 0.15.0 to 1.2.0.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base_files.file_reader import BaseFileReader
from ..codecs.cursor import Cursor
from ..errors import CorruptFile
from ..storage import FileInfo
from .avro_columns import AvroColumns
from .log_blocks import BlockPlace
from .log_reader import Read

Offsets = npt.NDArray[np.int64]

_VERSIONS = (1, 2, 3)
_START = 8
_LENGTH = struct.Struct(">i")


def avro_pieces(read: Read, block: BlockPlace, decoder: AvroColumns, piece_bytes: int = 8 << 20) -> Iterator[pa.Table]:
    """The records of an Avro data block, in order, in the raw form of `decoder.schema`.

    `read` gives bytes of the file, about `piece_bytes` at once. Raises CorruptFile and the errors of `read`.
    """
    start, end = block.offset, block.offset + block.length
    wanted = max(piece_bytes, _START)
    data = read(start, min(wanted, block.length))
    expected, found = _count(data, block), 0
    at, data = start + _START, data[_START:]
    while at < end:
        starts, ends = _frames(data, block.path, at)
        if len(ends):
            found += len(ends)
            yield decoder.decode(data, starts, ends, block.path, at)
            at += int(ends[-1])
        # A record may be longer than a piece.
        wanted = piece_bytes if len(ends) else max(piece_bytes, _needed(data, block.path, at, end))
        data = read(at, min(wanted, end - at)) if at < end else b""
    if found != expected:
        raise CorruptFile(f"{block.path} is corrupt at offset {start}: {found} records, and {expected} by their count")


def avro_blocks(
    blocks: Sequence[BlockPlace], contents: Sequence[bytes], decoder: AvroColumns
) -> tuple[pa.Table, list[int]]:
    """The records of some Avro data blocks of one file and schema, in order, and how many each has.

    To decode them together takes a fraction of the time when they are small. Raises CorruptFile; `avro_pieces` says
    at which place.
    """
    starts, ends, counts, base = [], [], [], 0
    for block, content in zip(blocks, contents, strict=True):
        count = _count(content, block)
        first, last = _frames(content, block.path, block.offset, _START)
        if len(first) != count or (last[-1] if count else _START) != len(content):
            raise CorruptFile(f"{block.path} has a corrupt data block at {block.offset}")
        starts.append(first + base)
        ends.append(last + base)
        counts.append(count)
        base += len(content)
    return decoder.decode(b"".join(contents), np.concatenate(starts), np.concatenate(ends), blocks[0].path, 0), counts


def avro_record_count(read: Read, block: BlockPlace) -> int:
    """The number of records of an Avro data block, as it says. Raises CorruptFile and the errors of `read`."""
    return max(0, _count(read(block.offset, min(_START, block.length)), block))


def _count(data: bytes, block: BlockPlace) -> int:
    """The count at the start of the content of an Avro data block."""
    head = Cursor(data, block.path, base=block.offset)
    version = head.int32("data block version")
    if version not in _VERSIONS:
        head.fail(f"data block version {version} is not supported, only 1 to 3")
    return head.int32("record count")


def parquet_block(read: Read, block: BlockPlace) -> BaseFileReader:
    """The file that is the content of a parquet data block. Raises CorruptFile and UnsupportedTable."""
    return BaseFileReader.open(_Content(read, block), "", block.length).gregorian()


@dataclass(frozen=True)
class _Content:
    """The content of a block as if it were a file."""

    read: Read
    block: BlockPlace

    def full_path(self, path: str) -> str:
        return f"{self.block.path} (the block at {self.block.offset})"

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self.read(self.block.offset + start, length)

    def head(self, path: str) -> FileInfo | None:
        return None


def _frames(data: bytes, path: str, base: int, at: int = 0) -> tuple[Offsets, Offsets]:
    """The starts and ends of the records from `at` on that are whole in `data`, which begins at `base` of its file."""
    bounds = [at]
    last, size, length_at = len(data) - 4, len(data), _LENGTH.unpack_from
    while at <= last:
        (length,) = length_at(data, at)
        if length < 0:
            raise CorruptFile(f"{path} is corrupt at offset {base + at}: a record of {length} bytes")
        at += 4 + length
        if at > size:
            break
        bounds.append(at)
    found = np.array(bounds, np.int64)
    return found[:-1] + 4, found[1:]


def _needed(data: bytes, path: str, at: int, end: int) -> int:
    """The bytes of the record at `at`, with its length. Raises CorruptFile when it ends after the block."""
    needed = 4 + (_LENGTH.unpack_from(data)[0] if len(data) >= 4 else 0)
    if at + needed > end or len(data) >= needed:
        raise CorruptFile(f"{path} is corrupt at offset {at}: a record ends after its block")
    return needed
