import tracemalloc
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.clustering import selection as clustering_selection
from hudi_services.clustering.eligibility import ClusteringReason, Eligibility
from hudi_services.clustering.selection import ClusteringSelection, Fitted, SizeRules, select
from hudi_services.clustering.strategies import BySize, PlanContext, PlanStrategy, SingleFile
from hudi_services.errors import ConfigError, CorruptFile
from hudi_services.model import BaseFile, FileSlice, LogFile
from hudi_services.rewriting.inputs import Unfit


def a_slice(file_id: str, size: int, partition: str = "p", logs: int = 0, base: bool = True) -> FileSlice:
    name = f"{file_id}_0-0-0_1.parquet"
    files = tuple(
        LogFile(partition, f".{file_id}_1.log.{i}_0-0-0", file_id, "1", i, "0-0-0", "", 1) for i in range(logs)
    )
    return FileSlice(
        partition, file_id, "1", BaseFile(partition, name, file_id, "0-0-0", "1", size) if base else None, files
    )


def no_ranges(slices: Sequence[FileSlice], column: str) -> list[None]:
    return [None] * len(slices)


def by_size(
    slices: Mapping[str, Sequence[FileSlice]],
    rules: SizeRules,
    compacting: Collection[tuple[str, str]] = (),
    clustering: Collection[tuple[str, str]] = (),
    *,
    strategy: type[PlanStrategy] = BySize,
) -> ClusteringSelection:
    eligibility = Eligibility(rules.small_file_limit, compacting, clustering)
    partitions = ((one, eligibility) for one in slices.values())
    return select(partitions, strategy(PlanContext(rules.max_group, no_ranges)), rules, explain=True)


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
        ClusteringReason.PICKED.value: 3,
        ClusteringReason.TOO_LARGE.value: 1,
        ClusteringReason.PENDING_COMPACTION.value: 1,
        ClusteringReason.PENDING_CLUSTERING.value: 1,
    }
    # A slice without a base file counts as a whole new file.
    assert [one.file_id for one in selection.groups[0].slices] == ["none", "log", "small"]


def test_largest_first_and_outputs_by_target_size() -> None:
    slices = [a_slice("a", 30), a_slice("b", 90), a_slice("c", 60)]
    selection = by_size({"p": slices}, SizeRules(target_file=50, small_file_limit=100, max_group=150), (), ())
    assert [[one.file_id for one in group.slices] for group in selection.groups] == [["b", "c"], ["a"]]
    assert [group.outputs for group in selection.groups] == [3, 1]


def test_single_file_groups_can_be_left_out() -> None:
    selection = by_size({"p": [a_slice("a", 30)]}, SizeRules(single_group=False), (), ())
    assert selection.groups == () and selection.reasons[ClusteringReason.SINGLE_FILE.value] == 1


def test_the_cap_on_groups_says_what_it_leaves() -> None:
    slices = {p: [a_slice(f"{p}{i}", 60, p) for i in range(4)] for p in ("p", "q")}
    selection = by_size(slices, SizeRules(max_group=100, max_groups=3), (), ())
    assert len(selection.groups) == 3
    assert selection.reasons[ClusteringReason.GROUP_CAP.value] == 5
    assert selection.left_out == ("p", "q")


@given(st.lists(st.integers(0, 400), max_size=30), st.integers(1, 300), st.integers(1, 500), st.integers(1, 5))
def test_every_slice_is_counted_once(sizes: list[int], limit: int, group: int, cap: int) -> None:
    slices = [a_slice(f"f{i}", size) for i, size in enumerate(sizes)]
    rules = SizeRules(target_file=64, small_file_limit=limit, max_group=group, max_groups=cap)
    selection = by_size({"p": slices}, rules, (), ())
    assert sum(selection.reasons.values()) == len(sizes)
    assert selection.verdicts is not None
    assert sorted(one.slice.file_id for one in selection.verdicts) == sorted(one.file_id for one in slices)
    assert all((one.group is not None) == (one.reason == ClusteringReason.PICKED.value) for one in selection.verdicts)
    picked = [one.file_id for planned in selection.groups for one in planned.slices]
    assert len(picked) == len(set(picked)) == selection.reasons[ClusteringReason.PICKED.value]
    assert all(planned.size <= group or len(planned.slices) == 1 for planned in selection.groups)


def test_largest_gain_first() -> None:
    slices = {"p": [a_slice("a", 90), a_slice("b", 90)], "q": [a_slice(f"q{i}", 10, "q") for i in range(6)]}
    rules = SizeRules(target_file=100, small_file_limit=100, max_group=200, max_groups=1)
    assert [group.partition for group in by_size(slices, rules).groups] == ["p"]
    selection = by_size(
        slices, SizeRules(target_file=100, small_file_limit=100, max_group=200, max_groups=1, by_gain=True)
    )
    assert [group.partition for group in selection.groups] == ["q"]
    assert selection.left_out == ("p",)


def test_a_budget_takes_what_fits() -> None:
    slices = {p: [a_slice(f"{p}{i}", size, p) for i, size in enumerate(sizes)] for p, sizes in PARTS.items()}
    selection = by_size(slices, SizeRules(max_group=1000, budget=130))
    assert [group.partition for group in selection.groups] == ["p", "r"]
    assert selection.reasons == {ClusteringReason.PICKED.value: 4, ClusteringReason.BUDGET.value: 2}
    assert selection.left_out == ("q",)
    selection = by_size(slices, SizeRules(max_group=1000, budget=40), strategy=SingleFile)
    assert selection.reasons == {
        ClusteringReason.PICKED.value: 2,
        ClusteringReason.BUDGET.value: 2,
        ClusteringReason.LARGER_THAN_BUDGET.value: 2,
    }


PARTS = {"p": (50, 50), "q": (30, 20), "r": (10, 20)}


class Made(PlanStrategy):
    """Invents a file slice, or takes one twice."""

    left_out = "not wanted"
    twice = False

    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        return [slices[:1], slices[:1]] if self.twice else [[a_slice(slices[0].file_id, 1)]]


class Twice(Made):
    twice = True


class Nothing(Made):
    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        return [[]]


@pytest.mark.parametrize("strategy", [Made, Twice])
def test_a_strategy_that_does_what_it_may_not(strategy: type[PlanStrategy]) -> None:
    with pytest.raises(ConfigError, match=rf"test_selection:{strategy.__name__} gave the file group a"):
        by_size({"p": [a_slice("a", 30), a_slice("b", 30)]}, SizeRules(), strategy=strategy)


def test_a_strategy_has_reasons_of_its_own() -> None:
    selection = by_size({"p": [a_slice("a", 30), a_slice("b", 30)]}, SizeRules(), strategy=Nothing)
    assert selection.reasons == {"not wanted": 2} and selection.groups == ()


@given(
    st.dictionaries(st.text("pqr", min_size=1, max_size=3), st.lists(st.integers(0, 90), max_size=6), max_size=9),
    st.integers(1, 6),
    st.sampled_from([None, 120, 200]),
    st.integers(1, 12),
)
def test_what_waits_for_its_gain_is_bounded(
    partitions: dict[str, list[int]], cap: int, budget: int | None, most: int
) -> None:
    """With fewer groups in memory the plan still takes those that gain most, and counts the others."""
    slices = {p: [a_slice(f"{p}{i}", size, p) for i, size in enumerate(sizes)] for p, sizes in partitions.items()}
    rules = SizeRules(target_file=100, small_file_limit=80, max_group=120, max_groups=cap, budget=budget, by_gain=True)
    whole = by_size(slices, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clustering_selection, "_MOST_WAITING", most)
        bounded = by_size(slices, rules)
    assert sum(bounded.reasons.values()) == sum(whole.reasons.values())
    if budget is None:
        assert bounded.groups == whole.groups and bounded.reasons == whole.reasons
        assert bounded.left_out == whole.left_out
    else:
        assert {*bounded.groups} <= {*by_size(slices, replace(rules, budget=None, max_groups=99)).groups}


def test_of_too_many_slices_those_that_are_taken_have_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering_selection, "MOST_VERDICTS", 5)
    slices = {p: [a_slice(f"{p}{i}", 200 if p == "a" else 10, p) for i in range(9)] for p in "abc"}
    selection = by_size(slices, SizeRules(small_file_limit=100))
    assert selection.verdicts is not None
    assert Counter(one.reason for one in selection.verdicts) == {"picked": 18, ClusteringReason.TOO_LARGE.value: 5}
    assert selection.reasons == {"picked": 18, ClusteringReason.TOO_LARGE.value: 9}


def test_a_partition_is_forgotten_before_the_next_one() -> None:
    """The memory of a plan does not depend on the number of partitions."""

    def peak(partitions: int) -> int:
        eligibility, strategy = Eligibility(100, (), ()), BySize(PlanContext(1000, no_ranges))
        made = (
            ([a_slice(f"{number}-{i}", 10, f"p{number}") for i in range(10)], eligibility)
            for number in range(partitions)
        )
        tracemalloc.start()
        selection = select(made, strategy, SizeRules(max_groups=3), explain=False)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert selection.reasons[ClusteringReason.GROUP_CAP.value] == 10 * (partitions - 3)
        return found

    # The names of the partitions that are left out: 200 bytes of each.
    assert peak(1_000) < peak(100) + 1_000 * 200


@given(
    st.lists(st.sampled_from(["fit", "half", "unfit", "damaged"]), max_size=25), st.integers(1, 9), st.integers(1, 9)
)
def test_looking_ahead_changes_nothing(kinds: list[str], cap: int, ahead: int) -> None:
    """Groups that are looked at together give the plan of groups that are looked at one after the other; a group that
    is not taken is no error, and no more are looked at than the plan could take, and those after unfit ones."""
    slices = [a_slice(f"{at:02}-{i}", 50, f"p{at:02}") for at in range(len(kinds)) for i in range(2)]
    looked: list[int] = []

    def look(group: Sequence[FileSlice]) -> tuple[list[FileSlice], list[Unfit]]:
        at = int(group[0].partition[1:])
        if kinds[at] == "damaged":
            raise CorruptFile(f"group {at}")
        kept = {"fit": 2, "half": 1, "unfit": 0}[kinds[at]]
        return [*group[:kept]], [Unfit(one, ConfigError("no")) for one in group[kept:]]

    def fit(groups: Sequence[Sequence[FileSlice]]) -> list[Fitted]:
        looked.extend(int(group[0].partition[1:]) for group in groups)
        return [partial(look, group) for group in groups]

    def planned(at_once: int) -> tuple[object, ...]:
        looked.clear()
        eligibility, strategy = Eligibility(100, (), ()), BySize(PlanContext(1000, no_ranges))
        partitions = (
            ([one for one in slices if one.partition == f"p{at:02}"], eligibility) for at in range(len(kinds))
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clustering_selection, "_GROUPS_AHEAD", at_once)
            try:
                found = select(partitions, strategy, SizeRules(max_groups=cap, single_group=True), fit)
            except CorruptFile as error:
                return (str(error),)
        return found.groups, found.reasons, found.left_out, [one.slice for one in found.unfit]

    expected = planned(1)
    assert planned(ahead) == expected
    assert len(looked) == len({*looked}) <= cap + sum(kind == "unfit" for kind in kinds) + ahead - 1
