"""The file groups that a write replaces: those of the partitions of its rows, of the table, or of named partitions."""

import re
from collections.abc import Sequence

from ..errors import NothingToDo
from ..model import FileSlice
from ..snapshot import Snapshot


def slices_of(table: Snapshot, partitions: Sequence[str]) -> list[FileSlice]:
    """The newest slices of the partitions, which may not be there."""
    known = {*table.view.partitions()}
    wanted = [one for one in partitions if one in known]
    table.view.load(wanted)
    return [one for partition in wanted for one in table.view.latest_slices(partition)]


def matching_partitions(table: Snapshot, patterns: Sequence[str]) -> list[str]:
    """The partitions with rows whose paths match one of the patterns, in which * stands for any text.

    Raises NothingToDo when there is none. Source: HoodieSparkSqlWriter.resolvePartitionWildcards of Apache Hudi.
    """
    rules = [re.compile(".*".join(map(re.escape, one.strip("/").split("*"))), re.DOTALL) for one in patterns]
    known = [one for one in table.view.partitions() if any(rule.fullmatch(one) for rule in rules)]
    found = sorted({one.partition for one in slices_of(table, known)})
    if not found:
        raise NothingToDo(f"{table.storage.root} has no rows in the partitions {', '.join(map(repr, patterns))}")
    return found
