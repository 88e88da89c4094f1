"""Which blocks of the log files of a slice count, and in which order.

    blocks of instants that do not count are left out; a rollback command cancels the blocks of its target before it
    a block that a log compaction made stands where the newest of its originals stood, and replaces all of them
    or, by the default scan of 0.15.0 and 1.0.2, it is a block like others, and its originals count, too

The two differ where a log compaction merges records in another way than a query: that of 1.0.2 forgets a delete when an
older value follows, which its queries do not.
Source: BaseHoodieLogRecordReader.scanInternal of Apache Hudi 1.2.0, scanInternalV1 of 0.15.0 and 1.0.2.
"""

from collections.abc import Callable, Iterable, Sequence

from ..errors import CorruptFile, UnsupportedTable
from ..log_files.log_blocks import BlockPlace, BlockType, HeaderKey
from ..table.support import WITH_HUDI

_RECORDS = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.DELETE)


def replayed(
    blocks: Sequence[BlockPlace], counts: Callable[[str], bool], *, with_originals: bool = False
) -> list[BlockPlace]:
    """The data and delete blocks that count, oldest first; `blocks` are those of all log files of the slice, in order.

    `counts` says whether blocks of an instant are read. `with_originals`: as 0.15.0 and 1.0.2 do. Raises CorruptFile
    for a torn block whose records readers would lose and for a block without an instant, UnsupportedTable for blocks of
    other kinds.
    """
    order, lost = by_instant(blocks, counts)
    if lost:
        raise CorruptFile(
            f"{lost[0].path} has {lost_records(lost[0])}, and a rewrite would lose them for good",
            hint="restore the log file from a copy, or write its records again and roll the commit back",
        )
    if with_originals:
        kept = {id(block) for of_instant in order.values() for block in of_instant}
        return [block for block in blocks if id(block) in kept]
    return _with_compacted(order)


def by_instant(
    blocks: Iterable[BlockPlace], counts: Callable[[str], bool]
) -> tuple[dict[str, list[BlockPlace]], list[BlockPlace]]:
    """The data and delete blocks that count, by instant, and the torn blocks whose records readers lose.

    The arguments are those of `replayed`; originals of compacted blocks count, too. Raises CorruptFile for a block
    without an instant, UnsupportedTable for blocks of other kinds.
    """
    order: dict[str, list[BlockPlace]] = {}
    torn: list[BlockPlace] = []
    for block in blocks:
        cancelled = block.rolled_back_instant
        if block.type is BlockType.CORRUPT:
            torn.append(block)
        elif cancelled is not None:
            order.pop(cancelled, None)
        elif block.type not in _RECORDS:
            raise UnsupportedTable(
                f"{block.path} has a block of the type {block.type.name} at {block.offset}, which is not supported",
                hint=WITH_HUDI,
            )
        elif block.instant is None:
            raise CorruptFile(f"{block.path} has a block without an instant at {block.offset}")
        elif counts(block.instant):
            order.setdefault(block.instant, []).append(block)
    return order, [block for block in torn if _is_lost(block, order, counts)]


def lost_records(block: BlockPlace) -> str:
    """The words for a torn block whose records readers lose."""
    of = f"the commit {block.instant}" if block.instant is not None else "an unknown commit"
    return f"a torn block of {of} at {block.offset}: readers of Hudi skip its records without a word"


def _is_lost(block: BlockPlace, order: dict[str, list[BlockPlace]], counts: Callable[[str], bool]) -> bool:
    """False for a torn block that was written again later, or does not count."""
    instant = block.instant
    if instant is not None and not counts(instant):
        return False
    again = order.get(instant or "", [])
    return not any(one.path == block.path and one.offset > block.offset for one in again)


def _with_compacted(order: dict[str, list[BlockPlace]]) -> list[BlockPlace]:
    replaced: dict[str, str] = {}
    newest_first: list[str] = []
    for instant in reversed(order):
        originals = order[instant][0].header.get(HeaderKey.COMPACTED_BLOCK_TIMES)
        if originals is not None:
            for original in originals.split(","):
                replaced[original.strip()] = replaced.get(instant, instant)
            continue
        found = replaced.get(instant, instant)
        if found not in newest_first:
            newest_first.append(found)
    for lost in set(replaced.values()).difference(newest_first):
        block = order[lost][0]
        raise UnsupportedTable(
            f"{block.path} has the block of the log compaction {lost} at {block.offset}, and none of its originals",
            hint=WITH_HUDI,
        )
    return [block for instant in reversed(newest_first) for block in order[instant]]
