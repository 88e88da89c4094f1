"""Which layouts are worth a try for some predicates, and what each would let them read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

from ..computed_once import cached_property
from ..options.clustering_keys import NO_LAYOUT
from ..rows.row_order import HILBERT, Z_ORDER
from ..rows.sort_order import LINEAR
from .file_ranges import RangedSlice, chances_by_ranges
from .predicates import Exists, Predicate, Test, leaves
from .sampled_groups import Numbers, RowLayout, SampledGroup

OPEN_COST_BYTES = 4 << 20
"""What it costs to open a file, in bytes: as Spark counts it (spark.sql.files.openCostInBytes)."""
KINDS = (NO_LAYOUT, LINEAR, Z_ORDER, HILBERT)
ERROR = 0.05
"""Predicted bytes that differ by a smaller share are the same: sizes are estimated from a few rows that are written."""
_COLUMNS, _COLUMNS_TOGETHER = 4, 3
"""The columns that are tried by themselves, and in twos and threes: those that select most."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Read:
    """What each predicate of the workload reads, in its order: files and their bytes."""

    files: Floats
    bytes: Floats

    def __add__(self, other: "Read") -> "Read":
        return Read(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True)
class GroupSize:
    """New files of a group, the bytes of all of them, and the share of the rows that each gets; () for equal ones."""

    files: int
    bytes: float
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """What predicates would read after a clustering."""

    layout: RowLayout
    target_bytes: int
    new_files: int
    new_bytes: float
    read: Read

    def cost(self, weights: Floats) -> float:
        """Bytes that a run of the workload reads, with those that opening its files costs."""
        return float(weights @ (self.read.bytes + OPEN_COST_BYTES * self.read.files))


def simplest_of(outcomes: Sequence[Prediction], weights: Floats) -> Prediction:
    """The outcome that reads fewest bytes, of the simplest kind that reads no more within the error of a prediction."""
    read = [float(weights @ one.read.bytes) for one in outcomes]
    equal = [(one, size) for one, size in zip(outcomes, read, strict=True) if size * (1 - ERROR) <= min(read)]
    return min(equal, key=lambda pair: (KINDS.index(pair[0].layout.name), pair[1]))[0]


def read_of(predicates: Sequence[Predicate], slices: Sequence[RangedSlice]) -> Read:
    """What the predicates read of file slices, by their ranges."""
    sizes = np.array([one.slice.size for one in slices], np.float64)
    chances = [chances_by_ranges(one, slices) for one in predicates]
    return Read(np.array([one.sum() for one in chances]), np.array([one @ sizes for one in chances]))


class LayoutSearch:
    """The layouts of sampled groups, for some predicates; `kept` is what they read of slices that stay as they are."""

    def __init__(self, groups: Sequence[SampledGroup], predicates: Sequence[Predicate], kept: Read) -> None:
        self._groups = groups
        self._predicates = predicates
        self._kept = kept
        self._orders: dict[RowLayout, list[Numbers]] = {}

    @cached_property
    def columns(self) -> list[str]:
        """The columns that may be sorted by, those first that select most in the workload."""
        gains: dict[str, float] = {}
        for one in self._predicates:
            for column, share in self._selectivities(one).items():
                gains[column] = gains.get(column, 0.0) + one.weight * (1.0 - share)
        varied = {column for column in gains if gains[column] > 0 and self._varies(column)}
        return sorted(varied, key=lambda column: (-gains[column], column))

    def candidates(self) -> list[RowLayout]:
        """The layouts that are worth a try, rows as they are first."""
        single, together = self.columns[:_COLUMNS], self.columns[:_COLUMNS_TOGETHER]
        linear = [(column,) for column in single] + [*permutations(together, 2)]
        curves = [columns for count in (2, 3) for columns in combinations(together, count)]
        found = [RowLayout(NO_LAYOUT)] + [RowLayout(LINEAR, columns) for columns in linear]
        return found + [RowLayout(name, columns) for name in (Z_ORDER, HILBERT) for columns in curves]

    def planned_sizes(self, target_bytes: int) -> list[GroupSize]:
        """The new files of each group by the bytes of the old ones, as a plan counts them."""
        return [GroupSize(max(1, -(-one.bytes // target_bytes)), one.bytes) for one in self._groups]

    def outcome(self, layout: RowLayout, target_bytes: int, sizes: Sequence[GroupSize]) -> Prediction:
        """What the predicates would read after a clustering into new files of these `sizes`, one for each group."""
        if layout not in self._orders:
            self._orders[layout] = [group.order(layout) for group in self._groups]
        files, total = np.zeros(len(self._predicates)), np.zeros(len(self._predicates))
        for group, order, size in zip(self._groups, self._orders[layout], sizes, strict=True):
            made = group.new_files(order, size.files, size.shares, layout.ordered)
            read = np.array([made.chances(one).sum() for one in self._predicates])
            files += read
            total += read * size.bytes / size.files
        new_files, new_bytes = sum(one.files for one in sizes), sum(one.bytes for one in sizes)
        return Prediction(layout, target_bytes, new_files, new_bytes, self._kept + Read(files, total))

    def _selectivities(self, predicate: Predicate) -> Mapping[str, float]:
        """The share of rows that the tests of a predicate let pass, by column."""
        found: dict[str, float] = {}
        for leaf in leaves(predicate.condition):
            if isinstance(leaf, Exists) and leaf.test not in (Test.OTHER, Test.VALUE):
                found[leaf.column] = min(found.get(leaf.column, 1.0), self._share(leaf))
        return found

    def _share(self, atom: Exists) -> float:
        rows = sum(group.rows for group in self._groups)
        return sum(group.selectivity(atom) * group.rows for group in self._groups) / max(1.0, rows)

    def _varies(self, column: str) -> bool:
        """Whether a group has several values of a column, so that an order may bring them apart."""
        return any(len(group.coded[column].values) > 1 for group in self._groups if column in group.coded)
