"""The choice of partitions for a clustering plan: pure functions on plain values.

Source: ClusteringPlanPartitionFilter of Apache Hudi.
"""

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from ..options import clustering_keys, value_of


class PartitionFilter(enum.Enum):
    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


@dataclass(frozen=True, slots=True)
class ClusteredPartitionRules:
    """Which partitions a plan takes."""

    mode: PartitionFilter = value_of(clustering_keys.PARTITION_FILTER_MODE, PartitionFilter)
    selected: tuple[str, ...] = value_of(clustering_keys.PARTITIONS_SELECTED)
    pattern: str = value_of(clustering_keys.PARTITION_REGEX)
    begin: str = value_of(clustering_keys.BEGIN_PARTITION)
    end: str = value_of(clustering_keys.END_PARTITION)
    lookback: int = value_of(clustering_keys.LOOKBACK_PARTITIONS)
    skip_latest: int = value_of(clustering_keys.SKIP_FROM_LATEST)


def select_partitions(partitions: Iterable[str], rules: ClusteredPartitionRules, now: datetime) -> list[str]:
    """The partitions that `rules` admit. `now` is in the table's time zone (DAY_ROLLING uses its hour)."""
    if rules.selected:
        chosen = sorted(set(rules.selected) & set(partitions))
    elif rules.pattern:
        chosen = sorted(p for p in partitions if re.fullmatch(rules.pattern, p))
    else:
        chosen = sorted(partitions)
    return _FILTERS[rules.mode](chosen, rules, now)


def _recent_days(partitions: list[str], rules: ClusteredPartitionRules, now: datetime) -> list[str]:
    newest = partitions[::-1][rules.skip_latest :]
    return newest[: rules.lookback] if rules.lookback > 0 else newest


def _between(partitions: list[str], rules: ClusteredPartitionRules, now: datetime) -> list[str]:
    return [p for p in partitions if (not rules.begin or rules.begin <= p) and (not rules.end or p <= rules.end)]


def _day_rolling(partitions: list[str], rules: ClusteredPartitionRules, now: datetime) -> list[str]:
    return [p for i, p in enumerate(partitions) if i % 24 == now.hour]


_FILTERS: dict[PartitionFilter, Callable[[list[str], ClusteredPartitionRules, datetime], list[str]]] = {
    PartitionFilter.NONE: lambda partitions, rules, now: partitions,
    PartitionFilter.RECENT_DAYS: _recent_days,
    PartitionFilter.SELECTED_PARTITIONS: _between,
    PartitionFilter.DAY_ROLLING: _day_rolling,
}
