"""Which partitions and file slices a clustering takes, and how it groups them: pure functions on plain values.

Follows ClusteringPlanPartitionFilter and SparkSizeBasedClusteringPlanStrategy of Apache Hudi.
"""

import enum
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ..model import FileSlice
from ..packing import pack


class PartitionFilter(enum.Enum):
    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """`hoodie.clustering.plan.strategy.partition.*`, `cluster.begin|end.partition` and `daybased.*`."""

    mode: PartitionFilter = PartitionFilter.NONE
    selected: tuple[str, ...] = ()
    pattern: str = ""
    begin: str = ""
    end: str = ""
    lookback: int = 2
    skip_latest: int = 0


@dataclass(frozen=True, slots=True)
class SizeRules:
    """Sizes in bytes, of base files. `small_file_limit` is exclusive."""

    target_file: int = 1 << 30
    small_file_limit: int = 300 << 20
    max_group: int = 2 << 30
    max_groups: int = 30
    single_group: bool = True


class Reason(enum.Enum):
    """Why a file slice is in the plan or not."""

    PICKED = "picked"
    PENDING_COMPACTION = "in a pending compaction"
    PENDING_CLUSTERING = "in a pending clustering"
    HAS_LOG_FILES = "has log files"
    NO_BASE_FILE = "has no base file"
    TOO_LARGE = "at or above the small-file limit"
    SINGLE_FILE = "alone in its group"
    GROUP_CAP = "beyond the largest number of groups"


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """File slices of one partition that are rewritten together into `outputs` file groups."""

    slices: tuple[FileSlice, ...]
    outputs: int

    @property
    def partition(self) -> str:
        return self.slices[0].partition

    @property
    def size(self) -> int:
        return sum(base_size(one) for one in self.slices)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a strategy decided. `left_out`: partitions that may still hold work, which Hudi's scheduler must revisit."""

    groups: tuple[PlannedGroup, ...]
    reasons: Mapping[Reason, int]
    left_out: tuple[str, ...] = field(default=())


def base_size(one: FileSlice) -> int:
    return one.base_file.size if one.base_file else 0


def select_partitions(partitions: Iterable[str], rules: PartitionRules, now: datetime) -> list[str]:
    """The partitions that `rules` admit. `now` is in the table's time zone (DAY_ROLLING goes by its hour)."""
    if rules.selected:
        chosen = sorted(set(rules.selected) & set(partitions))
    elif rules.pattern:
        chosen = sorted(p for p in partitions if re.fullmatch(rules.pattern, p))
    else:
        chosen = sorted(partitions)
    return _FILTERS[rules.mode](chosen, rules, now)


def _recent_days(partitions: list[str], rules: PartitionRules, now: datetime) -> list[str]:
    newest = partitions[::-1][rules.skip_latest :]
    return newest[: rules.lookback] if rules.lookback > 0 else newest


def _between(partitions: list[str], rules: PartitionRules, now: datetime) -> list[str]:
    return [p for p in partitions if (not rules.begin or rules.begin <= p) and (not rules.end or p <= rules.end)]


def _day_rolling(partitions: list[str], rules: PartitionRules, now: datetime) -> list[str]:
    return [p for i, p in enumerate(partitions) if i % 24 == now.hour]


_FILTERS: dict[PartitionFilter, Callable[[list[str], PartitionRules, datetime], list[str]]] = {
    PartitionFilter.NONE: lambda partitions, rules, now: partitions,
    PartitionFilter.RECENT_DAYS: _recent_days,
    PartitionFilter.SELECTED_PARTITIONS: _between,
    PartitionFilter.DAY_ROLLING: _day_rolling,
}


def by_size(
    slices: Mapping[str, Sequence[FileSlice]],
    rules: SizeRules,
    pending_compaction: Collection[tuple[str, str]],
    pending_clustering: Collection[tuple[str, str]],
) -> Selection:
    """Pack the small file slices of each partition, largest first, into groups of at most `rules.max_group` bytes.

    `slices` are the latest slices by partition; the pending sets hold (partition, file id).
    """
    reasons: Counter[Reason] = Counter()
    groups: list[PlannedGroup] = []
    left_out: list[str] = []
    for partition in slices:
        eligible = []
        for one in slices[partition]:
            reason = _exclusion(one, rules, pending_compaction, pending_clustering)
            if reason is None:
                eligible.append(one)
            else:
                reasons[reason] += 1
        for members in _pack(eligible, rules):
            group = PlannedGroup(tuple(members), max(1, -(-sum(map(base_size, members)) // rules.target_file)))
            if len(members) == 1 and group.outputs == 1 and not rules.single_group:
                reasons[Reason.SINGLE_FILE] += 1
            elif len(groups) == rules.max_groups:
                reasons[Reason.GROUP_CAP] += len(members)
                left_out += [partition] if left_out[-1:] != [partition] else []
            else:
                reasons[Reason.PICKED] += len(members)
                groups.append(group)
    return Selection(tuple(groups), reasons, tuple(left_out))


def _pack(eligible: Sequence[FileSlice], rules: SizeRules) -> list[list[FileSlice]]:
    return pack(sorted(eligible, key=lambda one: (-base_size(one), one.file_id)), base_size, rules.max_group)


def _exclusion(
    one: FileSlice,
    rules: SizeRules,
    pending_compaction: Collection[tuple[str, str]],
    pending_clustering: Collection[tuple[str, str]],
) -> Reason | None:
    group = (one.partition, one.file_id)
    if group in pending_compaction:
        return Reason.PENDING_COMPACTION
    if group in pending_clustering:
        return Reason.PENDING_CLUSTERING
    if one.log_files:
        return Reason.HAS_LOG_FILES
    if one.base_file is None:
        return Reason.NO_BASE_FILE
    if one.base_file.size >= rules.small_file_limit:
        return Reason.TOO_LARGE
    return None
