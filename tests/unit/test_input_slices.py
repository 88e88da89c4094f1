"""Which files a plan names: a plan that would lose, double or misplace rows is refused."""

import pytest

from hudi_services.clustering.planned_slices import input_slices
from hudi_services.codecs.clustering_plan import ClusteringGroup, ClusteringPlan, SliceInfo
from hudi_services.errors import CorruptFile, UnsupportedTable


def plan(*groups: tuple[tuple[str, str], ...]) -> ClusteringPlan:
    """Of groups of (partition, file id)."""
    slices = [
        tuple(SliceInfo(p, file_id, f"file:/t/{p}/{file_id}_0-0-0_1.parquet") for p, file_id in group)
        for group in groups
    ]
    return ClusteringPlan(tuple(ClusteringGroup(group) for group in slices), "strategy")


def test_files_by_group() -> None:
    found = input_slices(plan((("p", "a"), ("p", "b")), (("q", "a"),)), "plan")
    assert [[one.files[0].path for one in group] for group in found] == [
        ["p/a_0-0-0_1.parquet", "p/b_0-0-0_1.parquet"],
        ["q/a_0-0-0_1.parquet"],
    ]


@pytest.mark.parametrize("twice", [plan((("p", "a"), ("p", "a"))), plan((("p", "a"),), (("p", "b"), ("p", "a")))])
def test_a_file_group_is_rewritten_once(twice: ClusteringPlan) -> None:
    with pytest.raises(CorruptFile, match="names the file group a in partition 'p' 2 times"):
        input_slices(twice, "plan")


def test_a_group_stays_in_its_partition() -> None:
    with pytest.raises(UnsupportedTable, match="'p' and others"):
        input_slices(plan((("p", "a"), ("q", "b"))), "plan")


@pytest.mark.parametrize("empty", [plan(), plan(())])
def test_a_plan_names_something(empty: ClusteringPlan) -> None:
    with pytest.raises(CorruptFile, match="names no file slice"):
        input_slices(empty, "plan")
