"""Blocks of a log file: their types and headers.

A log file is a sequence of blocks, all integers big-endian:

    6  "#HUDI#"
    8  block size: bytes after this field, up to and including the reverse pointer
    4  format version, 1
    4  block type ordinal
       header: int32 n, then n times (int32 key ordinal, int32 length, UTF-8 text)
    8  content length
       content
       footer: as the header; n is 0, no footer keys exist
    8  reverse pointer: block size + 6

Content of a delete block: int32 version 3, int32 length, and that many bytes of the Avro record
HoodieDeleteRecordList {deleteRecordList: [HoodieDeleteRecord {recordKey: ["null", string],
partitionPath: ["null", string], orderingVal: union of wrappers}]}.

Source: HoodieLogFormat, HoodieLogBlock, HoodieDeleteBlock of Apache Hudi 0.15.0 to 1.2.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
DELETE_CONTENT_VERSION = 3
ROLLBACK_COMMAND = "0"
"""HoodieCommandBlockTypeEnum.ROLLBACK_BLOCK, by ordinal."""


class BlockType(IntEnum):
    """HoodieLogBlockType, by ordinal. CORRUPT is never written: it stands for bytes that could not be read."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """HeaderMetadataType, by ordinal."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


class Block:
    """What is known of a block without its content."""

    __slots__ = ()

    type: BlockType
    header: Mapping[HeaderKey, str]

    @property
    def instant(self) -> str | None:
        """The requested time of the action that wrote the block."""
        return self.header.get(HeaderKey.INSTANT_TIME)

    @property
    def rolled_back_instant(self) -> str | None:
        """For a rollback command: the instant whose blocks it cancels, in any log file of the slice."""
        if self.type is BlockType.COMMAND and self.header.get(HeaderKey.COMMAND_BLOCK_TYPE) == ROLLBACK_COMMAND:
            return self.header.get(HeaderKey.TARGET_INSTANT_TIME)
        return None


@dataclass(frozen=True)
class LogBlock(Block):
    """One block. `path` and `offset` (of its content in that file) say where it was read."""

    type: BlockType
    header: Mapping[HeaderKey, str]
    content: bytes
    path: str = field(default="a new log block", compare=False)
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True)
class BlockPlace(Block):
    """One block of the file `path` without its content, which are `length` bytes at `offset`."""

    type: BlockType
    header: Mapping[HeaderKey, str]
    path: str
    offset: int
    length: int
