"""From the file slices of a table to the groups of a plan: eligible slices are grouped, ordered and limited."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import chain, islice, zip_longest

from ..errors import ConfigError
from ..model import FileSlice
from ..options import Options, clustering_keys, computed, value_of
from ..plugins import guarded, name_of
from ..rewriting.execution_strategies import execution_called
from ..rewriting.inputs import Unfit
from .eligibility import ClusteringReason, Eligibility, planned_size
from .planned_slices import MOST_OUTPUTS
from .strategies import PlanStrategy


def _target_file(options: Options) -> int:
    # One file remains one, however large: Hudi's class would refuse a group of more.
    single_files = execution_called(options[clustering_keys.EXECUTION_STRATEGY_CLASS]).single_files
    return sys.maxsize if single_files else options[clustering_keys.TARGET_FILE_BYTES]


@dataclass(frozen=True, slots=True)
class SizeRules:
    """The sizes of files, groups and plans, in bytes of base files; `small_file_limit` is exclusive.

    `whole_partitions`: a group has no largest size. `budget` limits the input of a whole plan; None for no limit.
    `by_gain` puts the groups first that save most files
    for each byte; otherwise groups are ordered by partition, as in Hudi.
    """

    target_file: int = computed(_target_file, clustering_keys.TARGET_FILE_BYTES.default)
    small_file_limit: int = value_of(clustering_keys.SMALL_FILE_LIMIT)
    max_group: int = value_of(clustering_keys.MAX_BYTES_PER_GROUP)
    whole_partitions: bool = value_of(clustering_keys.SORT_SCOPE, lambda one: one == clustering_keys.PARTITION_SCOPE)
    max_groups: int = value_of(clustering_keys.MAX_NUM_GROUPS)
    single_group: bool = value_of(clustering_keys.SINGLE_GROUP)
    by_gain: bool = value_of(clustering_keys.PLAN_ORDER, lambda order: order == "GAIN")
    budget: int | None = value_of(clustering_keys.PLAN_BUDGET)

    @property
    def largest_group(self) -> int:
        """The most bytes of a group of several slices; a group larger than the budget would wait for ever."""
        if self.whole_partitions:
            return sys.maxsize
        return self.max_group if self.budget is None else min(self.max_group, self.budget)


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
        return sum(map(planned_size, self.slices))

    @property
    def input(self) -> int:
        """The bytes of all its files, which is what a task reads; `size` is what Hudi's plans count."""
        return sum(one.size for one in self.slices)

    @property
    def gain(self) -> float:
        """By how many the number of files decreases, for each byte that is rewritten."""
        return (len(self.slices) - self.outputs) / max(1, self.size)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a file slice is in the plan or not; `group` is the number of its group in the plan, None for none."""

    slice: FileSlice
    reason: str
    group: int | None = None


MOST_VERDICTS = 200_000
"""Of so many file slices a plan keeps a verdict each, and of those that it takes; the others are counted."""
_MOST_WAITING = 200_000
"""The file slices in groups that wait for a comparison of their gain with that of others."""


@dataclass(slots=True)
class ClusteringSelection:
    """The groups of a plan, and the reasons why other slices are not in it.

    `reasons` counts file slices by reason. `left_out`: partitions that may still hold work, which Hudi's scheduler must
    revisit. `verdicts` has a verdict of each file slice, up to MOST_VERDICTS, if the caller asked for them. `unfit`:
    the slices of which a task could not make new files, with the reason.
    """

    groups: tuple[PlannedGroup, ...] = ()
    reasons: Counter[str] = field(default_factory=Counter)
    left_out: tuple[str, ...] = ()
    verdicts: list[Verdict] | None = None
    unfit: list[Unfit] = field(default_factory=list)

    def judge(self, slices: Sequence[FileSlice], reason: str, group: int | None = None) -> None:
        """Count slices under `reason`; `group` is the number of the group that takes them, None when no group does."""
        if slices:
            self.reasons[reason] += len(slices)
            if self.verdicts is not None and (group is not None or len(self.verdicts) < MOST_VERDICTS):
                self.verdicts += [Verdict(one, reason, group) for one in slices]


Fitted = Callable[[], tuple[list[FileSlice], list[Unfit]]]
"""Gives which slices of a group can be rewritten together, and which cannot; or raises what looking at them has."""
Fit = Callable[[Sequence[Sequence[FileSlice]]], Sequence[Fitted]]
"""Looks at the slices of several groups at the same time."""
_GROUPS_AHEAD = 8
"""The groups that are looked at together: a store answers for many in the time of one."""


def select(
    partitions: Iterable[tuple[Sequence[FileSlice], Eligibility]],
    strategy: PlanStrategy,
    rules: SizeRules,
    fit: Fit | None = None,
    *,
    explain: bool = False,
) -> ClusteringSelection:
    """The groups of a plan over the latest slices of `partitions`, each with the rules for them.

    Of a partition nothing is kept but the groups that the plan takes, and those that wait for their turn. `fit` is
    asked only of groups that the limits let pass; None: all slices fit. `explain`: with verdicts. Raises ConfigError
    for a strategy that gives groups that are not allowed.
    """
    selection = ClusteringSelection(verdicts=[] if explain else None)
    taken: list[PlannedGroup] = []
    left_out: set[str] = set()

    def leave(group: PlannedGroup, reason: ClusteringReason) -> None:
        selection.judge(group.slices, reason.value)
        left_out.add(group.partition)

    found: Iterable[PlannedGroup] = chain.from_iterable(
        _of_partition(slices, strategy, rules, eligibility, selection) for slices, eligibility in partitions
    )
    if rules.by_gain:
        found = _by_gain(found, rules.max_groups, lambda group: leave(group, ClusteringReason.GROUP_CAP))
    budget = rules.budget
    for group, fitted in _looked_at(found, fit, lambda: rules.max_groups - len(taken)):
        reason = None
        if len(taken) == rules.max_groups:
            reason = ClusteringReason.GROUP_CAP
        elif rules.budget is not None and group.input > rules.budget:
            # A single file: the next plan could not take it either.
            reason = ClusteringReason.LARGER_THAN_BUDGET
        elif budget is not None and group.input > budget:
            reason = ClusteringReason.BUDGET
        if reason is not None:
            leave(group, reason)
            continue
        whole = group if fitted is None else _without_unfit(group, rules, fitted, selection)
        if whole is not None:
            selection.judge(whole.slices, ClusteringReason.PICKED.value, len(taken))
            taken.append(whole)
            budget = None if budget is None else budget - whole.input
    selection.groups, selection.left_out = tuple(taken), tuple(sorted(left_out))
    return selection


def _by_gain(groups: Iterable[PlannedGroup], most: int, leave: Callable[[PlannedGroup], None]) -> list[PlannedGroup]:
    """The groups by their gain, the largest first; where they are too many to keep, `leave` gets those that gain least.

    At least `most` groups are kept.
    """
    kept: list[tuple[float, int, PlannedGroup]] = []
    slices = 0
    for number, group in enumerate(groups):
        heappush(kept, (group.gain, -number, group))
        slices += len(group.slices)
        while slices > _MOST_WAITING and len(kept) > most:
            least = heappop(kept)[2]
            slices -= len(least.slices)
            leave(least)
    return [group for _, _, group in sorted(kept, key=lambda one: one[:2], reverse=True)]


def _looked_at(
    groups: Iterable[PlannedGroup], fit: Fit | None, left: Callable[[], int]
) -> Iterator[tuple[PlannedGroup, Fitted | None]]:
    """Each group, with what `fit` says of it; it looks at no more groups ahead than are `left` to take."""
    if fit is None:
        yield from ((group, None) for group in groups)
        return
    waiting = iter(groups)
    while batch := [*islice(waiting, _GROUPS_AHEAD)]:
        most = left()
        looked = fit([group.slices for group in batch[:most]]) if most else ()
        for group, fitted in zip_longest(batch, looked):
            yield group, fitted or partial(_fitted_now, fit, group)


def _fitted_now(fit: Fit, group: PlannedGroup) -> tuple[list[FileSlice], list[Unfit]]:
    return fit([group.slices])[0]()


def _without_unfit(
    group: PlannedGroup, rules: SizeRules, fitted: Fitted, into: ClusteringSelection
) -> PlannedGroup | None:
    """The group without slices that cannot be rewritten; None when nothing is left to do."""
    kept, unfit = fitted()
    if not unfit:
        return group
    into.unfit += unfit
    into.judge([one.slice for one in unfit], ClusteringReason.UNFIT.value)
    if not kept:
        return None
    found = PlannedGroup(tuple(kept), _outputs(kept, rules))
    if _is_idle(found, rules):
        into.judge(kept, ClusteringReason.SINGLE_FILE.value)
        return None
    return found


def _outputs(slices: Sequence[FileSlice], rules: SizeRules) -> int:
    return max(1, -(-sum(map(planned_size, slices)) // rules.target_file))


def _is_idle(group: PlannedGroup, rules: SizeRules) -> bool:
    return len(group.slices) == 1 and group.outputs == 1 and not rules.single_group


def _of_partition(
    slices: Sequence[FileSlice],
    strategy: PlanStrategy,
    rules: SizeRules,
    eligibility: Eligibility,
    into: ClusteringSelection,
) -> Iterator[PlannedGroup]:
    eligible: list[FileSlice] = []
    for one in slices:
        reason = eligibility.exclusion(one)
        if reason is None:
            eligible.append(one)
        else:
            into.judge([one], reason.value)
    if not eligible:
        return
    left = {one.file_id: one for one in eligible}
    with guarded("plan strategy", type(strategy)):
        groups = [tuple(members) for members in strategy.groups(eligible)]
    for members in groups:
        _check(members, left, strategy, rules)
        group = PlannedGroup(members, _outputs(members, rules))
        if group.outputs > MOST_OUTPUTS:
            raise ConfigError(
                f"a group of {group.size:,} bytes would become {group.outputs:,} files, and {MOST_OUTPUTS:,} is the "
                "most",
                hint="set hoodie.clustering.plan.strategy.target.file.max.bytes to more",
            )
        for part in _within_budget(group, rules):
            if _is_idle(part, rules):
                into.judge(part.slices, ClusteringReason.SINGLE_FILE.value)
            elif part.slices:
                yield part
    into.judge(list(left.values()), strategy.left_out)


def _within_budget(group: PlannedGroup, rules: SizeRules) -> Iterator[PlannedGroup]:
    """The group, or parts that fit into the budget: with their log files, slices may have more than they count."""
    if rules.budget is None or group.input <= rules.budget or rules.whole_partitions:
        yield group
        return
    part, size = list[FileSlice](), 0
    for one in group.slices:
        if part and size + one.size > rules.budget:
            yield PlannedGroup(tuple(part), _outputs(part, rules))
            part, size = [], 0
        part.append(one)
        size += one.size
    yield PlannedGroup(tuple(part), _outputs(part, rules))


def _check(
    members: tuple[FileSlice, ...], left: dict[str, FileSlice], strategy: PlanStrategy, rules: SizeRules
) -> None:
    """Remove the members of a group from `left`. Raises ConfigError for a group that is not allowed."""
    for one in members:
        if not isinstance(one, FileSlice) or left.pop(one.file_id, None) is not one:
            raise _wrong(strategy, f"gave the file group {getattr(one, 'file_id', one)} twice, or made it up")
    size = sum(map(planned_size, members))
    if len(members) > 1 and size > rules.largest_group:
        raise _wrong(strategy, f"made a group of {size} bytes, and {rules.largest_group} is the largest size")


def _wrong(strategy: PlanStrategy, problem: str) -> ConfigError:
    return ConfigError(f"the plan strategy {name_of(type(strategy))} {problem}")
