"""Plan strategies: how the file slices of a partition are put into groups that are rewritten together.

    size          largest first, as SparkSizeBasedClusteringPlanStrategy; or by instant, or by both
    commit_time   in the order in which they were written: neighbours in time stay together
    key_range     by the range of their record keys: neighbours in the key space stay together
    overlap       slices whose values of given columns overlap; a slice that overlaps no other is left out
    random        shuffled, by a seed: for comparisons, and against a bad order
    single_file   each slice in a group of its own, as SparkSingleFileSortPlanStrategy

An operator can write another strategy as a class, see `PlanStrategy`.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base_files.slices import RECORD_KEY
from ..errors import ConfigError
from ..model import FileSlice
from ..packing import pack
from ..plugins import guarded, load_class
from .eligibility import ClusteringReason, planned_size

Range = tuple[Any, Any] | None
"""The least and the greatest value, which compare; None when they are not known, or all values are null."""
Ranges = Callable[[Sequence[FileSlice], str], Sequence[Range]]
"""The range that each of the slices of one partition has in a column."""


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The input of a plan strategy. Sizes in bytes.

    `columns` are those of `hudi.services.clustering.plan.columns`, else the sort columns; `key_column` holds the record
    key. `options` are the texts of all keys that are set anywhere, also of keys that this tool does not know.
    """

    max_group: int
    ranges: Ranges
    columns: tuple[str, ...] = ()
    key_column: str = RECORD_KEY
    sort_by: tuple[str, ...] = ("SIZE",)
    after: str = ""
    """The strategy `commit_time` skips the files of commits up to and including this instant."""
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)


class PlanStrategy(ABC):
    """A plan strategy, created once for each plan. Operators name a subclass of their own as `package.module:Class`."""

    left_out = ClusteringReason.NOT_CHOSEN.value
    """Why slices that are in no group are left out, in words that can follow "12 file slices: "."""

    def __init__(self, context: PlanContext) -> None:
        self.context = context

    @abstractmethod
    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        """Groups of some of the `slices`, which are eligible base files of one partition.

        No slice may be in two groups, and a group of several slices must not exceed `context.max_group`. Called again
        under the lock when the table has changed meanwhile: equal slices must give equal groups.
        """

    def packed(self, slices: Iterable[FileSlice]) -> list[list[FileSlice]]:
        """Groups of neighbours, each as large as `max_group` allows."""
        return pack(slices, planned_size, self.context.max_group)


class BySize(PlanStrategy):
    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        def order(file_slice: FileSlice) -> tuple[int | str, ...]:
            keys: dict[str, int | str] = {"SIZE": -planned_size(file_slice), "INSTANT_TIME": file_slice.base_instant}
            return (*(keys[name] for name in self.context.sort_by), file_slice.file_id)

        return self.packed(sorted(slices, key=order))


class ByCommitTime(PlanStrategy):
    left_out = "of a commit that is passed over"

    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        newer = [one for one in slices if one.base_instant > self.context.after]
        return self.packed(sorted(newer, key=lambda one: (one.base_instant, one.file_id)))


class ByKeyRange(PlanStrategy):
    left_out = "of an unknown range of record keys"

    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        ranges = self.context.ranges(slices, self.context.key_column)
        known = [(found, one) for found, one in zip(ranges, slices, strict=True) if found is not None]
        return self.packed(one for _, one in sorted(known, key=lambda pair: (*pair[0], pair[1].file_id)))


class ByOverlap(PlanStrategy):
    left_out = "overlaps no other file"

    def __init__(self, context: PlanContext) -> None:
        super().__init__(context)
        if not context.columns:
            raise ConfigError(
                "the plan strategy overlap needs columns",
                hint="set hudi.services.clustering.plan.columns, or sort columns",
            )

    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        by_column = [self.context.ranges(slices, column) for column in self.context.columns]
        for rows in _overlapping(list(range(len(slices))), by_column):
            if len(rows) > 1:
                yield from self.packed(slices[row] for row in rows)


class AtRandom(PlanStrategy):
    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        ordered = sorted(slices, key=lambda one: one.file_id)
        partition = ordered[0].partition if ordered else ""
        random.Random(f"{self.context.seed}/{partition}").shuffle(ordered)
        return self.packed(ordered)


class SingleFile(PlanStrategy):
    def groups(self, slices: Sequence[FileSlice]) -> Iterable[Sequence[FileSlice]]:
        return [[one] for one in sorted(slices, key=lambda one: (-planned_size(one), one.file_id))]


STRATEGIES: Mapping[str, type[PlanStrategy]] = {
    "size": BySize,
    "commit_time": ByCommitTime,
    "key_range": ByKeyRange,
    "overlap": ByOverlap,
    "random": AtRandom,
    "single_file": SingleFile,
}


def plan_strategy(name: str, context: PlanContext) -> PlanStrategy:
    """The strategy of this short name, or the class `package.module:Class`. Raises ConfigError for an unknown name."""
    kind = STRATEGIES.get(name)
    if kind is None:
        kind = load_class(name, "plan strategy", PlanStrategy)
        if not isinstance(kind.left_out, str):
            raise ConfigError(f"the plan strategy {name} has a left_out that is no text")
    with guarded("plan strategy", kind):
        return kind(context)


def _overlapping(rows: list[int], by_column: Sequence[Sequence[Range]]) -> list[list[int]]:
    """`rows` in runs that no column separates: between two runs at least one column has a gap.

    Rows without a range overlap each other, and no other rows.
    """
    found, left = [], [rows]
    while left:
        run = left.pop()
        parts = [run]
        for ranges in by_column:
            parts = [part for one in parts for part in _runs(one, ranges)]
        # Another column may separate the parts further.
        if len(parts) == 1:
            found += parts
        else:
            left += reversed(parts)
    return found


def _runs(rows: list[int], ranges: Sequence[Range]) -> list[list[int]]:
    known = sorted((found, row) for row in rows if (found := ranges[row]) is not None)
    unknown = [row for row in rows if ranges[row] is None]
    runs: list[list[int]] = [unknown] if unknown else []
    highest: Any = None
    for (low, high), row in known:
        if highest is None or low > highest:
            runs.append([])
        runs[-1].append(row)
        highest = high if highest is None else max(highest, high)
    return runs
