"""Writes log blocks; for the layout see `log_blocks`, for contents `block_contents`.

Source: HoodieLogFormatWriter.appendBlocks of Apache Hudi 0.15.0 to 1.2.0.
"""

import struct
from collections.abc import Mapping

from .log_blocks import (
    FORMAT_VERSION,
    MAGIC,
    ROLLBACK_COMMAND,
    BlockType,
    HeaderKey,
    LogBlock,
)

_NO_FOOTER = b"\0\0\0\0"


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


def _encode_header(header: Mapping[HeaderKey, str]) -> bytes:
    parts = [struct.pack(">i", len(header))]
    for key in sorted(header):
        text = header[key].encode()
        parts += (struct.pack(">ii", key, len(text)), text)
    return b"".join(parts)
