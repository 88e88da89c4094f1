from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.clustering.strategies import (
    PartitionFilter,
    PartitionRules,
    Reason,
    SizeRules,
    by_size,
    select_partitions,
)
from hudi_services.model import BaseFile, FileSlice, LogFile

NOW = datetime(2026, 11, 21, 2, 30, tzinfo=timezone.utc)
DAYS = [f"2026-01-{day:02d}" for day in range(1, 31)]


def a_slice(file_id: str, size: int, partition: str = "p", logs: int = 0, base: bool = True) -> FileSlice:
    name = f"{file_id}_0-0-0_1.parquet"
    files = tuple(
        LogFile(partition, f".{file_id}_1.log.{i}_0-0-0", file_id, "1", i, "0-0-0", "", 1) for i in range(logs)
    )
    return FileSlice(
        partition, file_id, "1", BaseFile(partition, name, file_id, "0-0-0", "1", size) if base else None, files
    )


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (PartitionRules(), DAYS),
        (PartitionRules(PartitionFilter.RECENT_DAYS, lookback=2, skip_latest=1), ["2026-01-29", "2026-01-28"]),
        (
            PartitionRules(PartitionFilter.SELECTED_PARTITIONS, begin="2026-01-03", end="2026-01-05"),
            ["2026-01-03", "2026-01-04", "2026-01-05"],
        ),
        (PartitionRules(PartitionFilter.SELECTED_PARTITIONS, begin="2026-01-29"), ["2026-01-29", "2026-01-30"]),
        (PartitionRules(PartitionFilter.DAY_ROLLING), ["2026-01-03", "2026-01-27"]),
        (PartitionRules(pattern=r".*-0[12]"), ["2026-01-01", "2026-01-02"]),
        (PartitionRules(pattern="2026"), []),
        (PartitionRules(selected=("2026-01-09", "no-such", "2026-01-02")), ["2026-01-02", "2026-01-09"]),
        (
            PartitionRules(PartitionFilter.RECENT_DAYS, selected=("2026-01-09", "2026-01-02"), lookback=1),
            ["2026-01-09"],
        ),
    ],
)
def test_partition_filters(rules: PartitionRules, expected: list[str]) -> None:
    assert select_partitions(reversed(DAYS), rules, NOW) == expected


def test_every_exclusion_has_its_reason() -> None:
    slices = [
        a_slice("small", 10),
        a_slice("limit", 100),
        a_slice("log", 10, logs=1),
        a_slice("none", 0, base=False),
        a_slice("compacting", 10),
        a_slice("clustering", 10),
    ]
    rules = SizeRules(small_file_limit=100)
    selection = by_size({"p": slices}, rules, {("p", "compacting")}, {("p", "clustering")})
    assert dict(selection.reasons) == {
        Reason.PICKED: 1,
        Reason.TOO_LARGE: 1,
        Reason.HAS_LOG_FILES: 1,
        Reason.NO_BASE_FILE: 1,
        Reason.PENDING_COMPACTION: 1,
        Reason.PENDING_CLUSTERING: 1,
    }
    assert [one.file_id for one in selection.groups[0].slices] == ["small"]


def test_largest_first_and_outputs_by_target_size() -> None:
    slices = [a_slice("a", 30), a_slice("b", 90), a_slice("c", 60)]
    selection = by_size({"p": slices}, SizeRules(target_file=50, small_file_limit=100, max_group=150), (), ())
    assert [[one.file_id for one in group.slices] for group in selection.groups] == [["b", "c"], ["a"]]
    assert [group.outputs for group in selection.groups] == [3, 1]


def test_single_file_groups_can_be_left_out() -> None:
    selection = by_size({"p": [a_slice("a", 30)]}, SizeRules(single_group=False), (), ())
    assert selection.groups == () and selection.reasons[Reason.SINGLE_FILE] == 1


def test_the_cap_on_groups_says_what_it_leaves() -> None:
    slices = {p: [a_slice(f"{p}{i}", 60, p) for i in range(4)] for p in ("p", "q")}
    selection = by_size(slices, SizeRules(max_group=100, max_groups=3), (), ())
    assert len(selection.groups) == 3
    assert selection.reasons[Reason.GROUP_CAP] == 5
    assert selection.left_out == ("p", "q")


@given(st.lists(st.integers(0, 400), max_size=30), st.integers(1, 300), st.integers(1, 500), st.integers(1, 5))
def test_every_slice_is_counted_once(sizes: list[int], limit: int, group: int, cap: int) -> None:
    slices = [a_slice(f"f{i}", size) for i, size in enumerate(sizes)]
    rules = SizeRules(target_file=64, small_file_limit=limit, max_group=group, max_groups=cap)
    selection = by_size({"p": slices}, rules, (), ())
    assert sum(selection.reasons.values()) == len(sizes)
    picked = [one.file_id for planned in selection.groups for one in planned.slices]
    assert len(picked) == len(set(picked)) == selection.reasons.get(Reason.PICKED, 0)
    assert all(planned.size <= group or len(planned.slices) == 1 for planned in selection.groups)
