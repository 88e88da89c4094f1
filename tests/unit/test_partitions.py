from datetime import datetime, timezone

import pytest

from hudi_services.clustering.partitions import ClusteredPartitionRules, PartitionFilter, select_partitions

NOW = datetime(2026, 11, 21, 2, 30, tzinfo=timezone.utc)
DAYS = [f"2026-01-{day:02d}" for day in range(1, 31)]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (ClusteredPartitionRules(), DAYS),
        (ClusteredPartitionRules(PartitionFilter.RECENT_DAYS, lookback=2, skip_latest=1), ["2026-01-29", "2026-01-28"]),
        (
            ClusteredPartitionRules(PartitionFilter.SELECTED_PARTITIONS, begin="2026-01-03", end="2026-01-05"),
            ["2026-01-03", "2026-01-04", "2026-01-05"],
        ),
        (
            ClusteredPartitionRules(PartitionFilter.SELECTED_PARTITIONS, begin="2026-01-29"),
            ["2026-01-29", "2026-01-30"],
        ),
        (ClusteredPartitionRules(PartitionFilter.DAY_ROLLING), ["2026-01-03", "2026-01-27"]),
        (ClusteredPartitionRules(pattern=r".*-0[12]"), ["2026-01-01", "2026-01-02"]),
        (ClusteredPartitionRules(pattern="2026"), []),
        (ClusteredPartitionRules(selected=("2026-01-09", "no-such", "2026-01-02")), ["2026-01-02", "2026-01-09"]),
        (
            ClusteredPartitionRules(PartitionFilter.RECENT_DAYS, selected=("2026-01-09", "2026-01-02"), lookback=1),
            ["2026-01-09"],
        ),
    ],
)
def test_partition_filters(rules: ClusteredPartitionRules, expected: list[str]) -> None:
    assert select_partitions(reversed(DAYS), rules, NOW) == expected
