"""The partitions that an operator names by patterns, whose file groups a write replaces."""

import re
from collections.abc import Sequence

from ..errors import NothingToDo
from ..snapshot import Snapshot


def matching_partitions(table: Snapshot, patterns: Sequence[str]) -> list[str]:
    """The partitions with rows whose paths match one of the patterns, in which * stands for any text.

    Raises NothingToDo when there is none. Source: HoodieSparkSqlWriter.resolvePartitionWildcards of Apache Hudi.
    """
    rules = [re.compile(".*".join(map(re.escape, one.strip("/").split("*"))), re.DOTALL) for one in patterns]
    known = [one for one in table.view.partitions() if any(rule.fullmatch(one) for rule in rules)]
    found = sorted({one.partition for one in table.view.latest_slices_of(known)})
    if not found:
        raise NothingToDo(f"{table.storage.root} has no rows in the partitions {', '.join(map(repr, patterns))}")
    return found
