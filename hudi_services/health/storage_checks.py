"""Checks of storage itself: files that belong to no instant, and features that some commands refuse."""

from collections import defaultdict
from collections.abc import Iterator

from ..errors import UnsupportedTable
from ..orphan_files.data_files import parse_strictly
from ..orphan_files.known_files import FileJudge
from ..orphan_files.model import OrphanKind
from ..table.support import Operation, check_support
from ..units import counted, size_text
from .examination import Examination
from .model import HealthFinding, Level


def orphan_files(seen: Examination) -> Iterator[HealthFinding]:
    """Data files that belong to no instant, in a sample of the partitions."""
    judge = FileJudge(seen.table)
    found: list[int] = []
    looked_at = 0
    first = ""
    for partition in seen.sample:
        for file in seen.table.storage.list_dir(partition)[0]:
            looked_at += file.size
            data = parse_strictly(partition, file)
            if data is None or seen.now_millis - file.mtime_millis < seen.limits.orphan_minutes * 60_000:
                continue
            if isinstance(judge.judge(data), OrphanKind):
                found.append(file.size)
                first = first or file.path
    seen.measures |= {"sampled_orphan_files": len(found), "sampled_orphan_bytes": sum(found)}
    if found:
        yield HealthFinding(
            Level.WARNING if sum(found) > looked_at / 20 else Level.NOTE,
            first,
            f"{counted(len(found), 'file')} of {size_text(sum(found))} {'belongs' if len(found) == 1 else 'belong'} to "
            f"no instant, the first {first}: failed attempts leave such files ({len(seen.sample)} of "
            f"{counted(len(seen.files.partitions), 'partition')} looked at)",
            {"files": len(found), "bytes": sum(found), "sampled_partitions": len(seen.sample)},
            "orphan-files --apply",
        )


def refused_features(seen: Examination) -> Iterator[HealthFinding]:
    """What this table has that some commands do not support."""
    refused: dict[str, list[str]] = defaultdict(list)
    for operation in Operation:
        if operation is Operation.COMPACT and not seen.table.config.is_merge_on_read:
            continue
        try:
            check_support(operation, seen.table)
        except UnsupportedTable as error:
            refused[error.line].append(operation.value)
    for why, commands in refused.items():
        yield HealthFinding(
            Level.NOTE,
            "",
            f"{', '.join(commands)} refuse this table: {why}",
            {"commands": len(commands)},
        )
