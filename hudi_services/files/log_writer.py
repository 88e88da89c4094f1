"""Writes log blocks; for the layout see `log_blocks`.

Source: HoodieLogFormatWriter.appendBlocks, HoodieDeleteBlock.getContentBytes of Apache Hudi 0.15.0 to 1.2.0.
"""

import struct
from collections.abc import Mapping, Sequence

from .log_blocks import (
    DELETE_CONTENT_VERSION,
    FORMAT_VERSION,
    MAGIC,
    ROLLBACK_COMMAND,
    BlockType,
    HeaderKey,
    LogBlock,
)

_NO_FOOTER = b"\0\0\0\0"
# Union branch 2 (IntWrapper) with value 0: the ordering value of a delete that beats every older record.
_DEFAULT_ORDERING = b"\x04\x00"


def encode_block(block: LogBlock) -> bytes:
    """The bytes to append to a log file (or of a whole file). Header keys are written in ordinal order."""
    header = _encode_header(block.header)
    body = b"".join(
        (
            struct.pack(">ii", FORMAT_VERSION, block.type),
            header,
            struct.pack(">q", len(block.content)),
            block.content,
            _NO_FOOTER,
        )
    )
    size = len(body) + 8
    return b"".join((MAGIC, struct.pack(">q", size), body, struct.pack(">q", size + len(MAGIC))))


def encode_rollback_command(instant: str, target: str) -> bytes:
    """The command block by which the rollback at `instant` cancels the blocks of `target`."""
    header = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    return encode_block(LogBlock(BlockType.COMMAND, header, b""))


def delete_block_content(keys: Sequence[tuple[str, str]]) -> bytes:
    """Content of a delete block for (record key, partition path) pairs, with the default ordering value.

    Without keys this is what Hudi writes to make an empty file group of the metadata table exist.
    """
    records = b"".join(_nullable(key) + _nullable(partition) + _DEFAULT_ORDERING for key, partition in keys)
    array = _zigzag(len(keys)) + records + b"\0" if keys else b"\0"
    return struct.pack(">ii", DELETE_CONTENT_VERSION, len(array)) + array


def _encode_header(header: Mapping[HeaderKey, str]) -> bytes:
    parts = [struct.pack(">i", len(header))]
    for key in sorted(header):
        text = header[key].encode()
        parts += (struct.pack(">ii", key, len(text)), text)
    return b"".join(parts)


def _nullable(text: str) -> bytes:
    raw = text.encode()
    return b"\x02" + _zigzag(len(raw)) + raw


def _zigzag(value: int) -> bytes:
    """A non-negative Avro long."""
    value <<= 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
