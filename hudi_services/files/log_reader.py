"""Reads log files; for the layout see `log_blocks`.

Source: HoodieLogFileReader (which bytes count as a corrupt block and where reading goes on) and HoodieDeleteBlock.
"""

from .cursor import Cursor
from .log_blocks import DELETE_CONTENT_VERSION, FORMAT_VERSION, MAGIC, BlockType, HeaderKey, LogBlock

_REVERSE_POINTER = 8
_MOST_BLOCKS = 200_000
"""Blocks of one file, at most: a write appends one or two, and a torn block of six bytes takes much more memory."""
# Wrappers in the union of HoodieDeleteRecord.orderingVal, by branch: 0 is null, and the items of an array are the same
# but for branch 12, which is a date there.
_VARINT_BRANCHES = {2, 3, 8, 10, 11}
_BYTES_BRANCHES = {6, 7, 9}
_FIXED_BRANCHES = {1: 1, 4: 4, 5: 8}
_ARRAY_BRANCH = _DATE_ITEM_BRANCH = 12


def read_log_blocks(data: bytes, path: str) -> list[LogBlock]:
    """All blocks of a log file, in file order.

    A block that a writer left torn is skipped to the next magic, as Hudi does, and comes back as a CORRUPT block
    without header and content. Raises CorruptFile when the file does not begin with a block, or when a block that
    is whole does not follow the format.
    """
    blocks: list[LogBlock] = []
    cursor = Cursor(data, path)
    while cursor.remaining >= len(MAGIC):
        if len(blocks) == _MOST_BLOCKS:
            cursor.fail(f"more than {_MOST_BLOCKS} blocks")
        if cursor.take(len(MAGIC), "magic") != MAGIC:
            cursor.fail("no log block begins here")
        end = _block_end(cursor)
        if end is None:
            blocks.append(LogBlock(BlockType.CORRUPT, {}, b"", path, cursor.pos))
            following = data.find(MAGIC, cursor.pos)
            cursor.pos = len(data) if following < 0 else following
        else:
            blocks.append(_read_block(cursor, end))
    return blocks


def delete_block_keys(block: LogBlock) -> list[str]:
    """Record keys of a delete block, in their order.

    Raises CorruptFile, also for the Java-serialised contents of versions 1 and 2.
    """
    outer = Cursor(block.content, block.path, base=block.offset)
    version = outer.int32("delete block version")
    if version != DELETE_CONTENT_VERSION:
        outer.fail(f"delete block version {version} is not supported, only {DELETE_CONTENT_VERSION}")
    cursor = outer.nested(outer.int32("delete list length"), "delete list")
    keys: list[str] = []
    while count := _array_count(cursor):
        for _ in range(count):
            keys.append(_delete_record_key(cursor))
    return keys


def _block_end(cursor: Cursor) -> int | None:
    """The end of the block whose magic was just read; None when the block is torn. Does not move the cursor."""
    data, start = cursor.data, cursor.pos
    size = int.from_bytes(data[start : start + 8], "big", signed=True)
    end = start + 8 + size
    if size < _REVERSE_POINTER or end > len(data):
        return None
    if int.from_bytes(data[end - _REVERSE_POINTER : end], "big") != size + len(MAGIC):
        return None
    # Fewer bytes than a magic are the start of a torn append, which Hudi takes for the end of the file.
    if len(data) - end >= len(MAGIC) and not data.startswith(MAGIC, end):
        return None
    return end


def _read_block(cursor: Cursor, end: int) -> LogBlock:
    cursor.int64("block size")
    version = cursor.int32("format version")
    if version != FORMAT_VERSION:
        cursor.fail(f"log format version {version} is not supported, only {FORMAT_VERSION}")
    block_type = _block_type(cursor)
    header = _read_header(cursor)
    length = cursor.int64("content length")
    offset = cursor.pos
    content = cursor.take(length, "content")
    _read_header(cursor)
    if cursor.pos != end - _REVERSE_POINTER:
        cursor.fail(f"the block should end at offset {end}")
    cursor.pos = end
    return LogBlock(block_type, header, content, cursor.path, offset)


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


def _array_count(cursor: Cursor) -> int:
    """Items in the next Avro array block, 0 at the end of the array. Every item has at least one byte."""
    count = cursor.zigzag("array count")
    if count < 0:
        count = -count
        cursor.zigzag("array size")
    if count > cursor.remaining:
        cursor.fail(f"an array of {count} items in {cursor.remaining} bytes")
    return count


def _delete_record_key(cursor: Cursor) -> str:
    key = _optional_text(cursor)
    _optional_text(cursor)
    _skip_ordering_value(cursor)
    if key is None:
        cursor.fail("a deleted record has no key")
    return key


def _optional_text(cursor: Cursor) -> str | None:
    branch = cursor.zigzag("union branch")
    if branch == 1:
        return _text(cursor, cursor.zigzag("text length"))
    if branch != 0:
        cursor.fail(f"unknown union branch {branch}")
    return None


def _skip_ordering_value(cursor: Cursor) -> None:
    branch = cursor.zigzag("ordering value branch")
    if branch != _ARRAY_BRANCH:
        _skip_wrapper(cursor, branch)
    elif cursor.zigzag("array branch"):
        while count := _array_count(cursor):
            for _ in range(count):
                item = cursor.zigzag("ordering value branch")
                if item == _DATE_ITEM_BRANCH:
                    cursor.varint("ordering date")
                else:
                    _skip_wrapper(cursor, item)


def _skip_wrapper(cursor: Cursor, branch: int) -> None:
    if branch in _VARINT_BRANCHES:
        cursor.varint("ordering value")
    elif branch in _BYTES_BRANCHES:
        cursor.take(cursor.zigzag("ordering value length"), "ordering value")
    elif branch in _FIXED_BRANCHES:
        cursor.take(_FIXED_BRANCHES[branch], "ordering value")
    elif branch != 0:
        cursor.fail(f"unknown ordering value branch {branch}")
