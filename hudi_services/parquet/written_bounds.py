"""Facts of the values of a row group that a writer needs and its footer will not have: NaN, and bounds of leaves."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..schema.column_type import Kind
from .file_schema import FileSchema, Leaf, keeps_order
from .footer import Physical
from .node_types import parquet_type
from .value_bounds import (
    LONGEST_IN_FOOTERS,
    BoundsOf,
    ValueBounds,
    leaf_arrays,
    longest_value,
)

_FLOATS = (Physical.FLOAT, Physical.DOUBLE)
_OF_ANY_LENGTH = (Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY)


class WrittenBounds:
    """The facts of the row groups of one file. `columns`: dotted paths of the leaves whose bounds are needed."""

    def __init__(self, target: FileSchema, columns: Collection[str]) -> None:
        self.known: dict[tuple[int, int], ValueBounds] = {}
        """Bounds by row group and leaf."""
        self.nan_leaves: set[int] = set()
        """Top-level float leaves with NaN in some row group."""
        self._nested_floats = {i for i, leaf in enumerate(target.leaves) if leaf.physical in _FLOATS and leaf.path[1:]}
        self._wanted = {i for i, leaf in enumerate(target.leaves) if leaf.dotted in columns}
        self._columns: dict[str, list[tuple[int, Leaf] | None]] = {}
        """Each top-level column to inspect, with its leaves in order; None for a leaf that is not inspected."""
        for i, leaf in enumerate(target.leaves):
            looked_at = _is_looked_at(leaf, i in self._wanted)
            self._columns.setdefault(leaf.path[0], []).append((i, leaf) if looked_at else None)
        self._columns = {name: leaves for name, leaves in self._columns.items() if any(leaves)}

    @property
    def untrue_leaves(self) -> set[int]:
        """Float leaves that may have NaN, which pyarrow's bounds leave out, and whose right bounds are unknown."""
        return self._nested_floats | (self.nan_leaves - self._wanted)

    def add(self, table: pa.Table, group: int) -> None:
        """Inspect the rows of row group `group`, in the raw form of the target."""
        for name, leaves in self._columns.items():
            chunks = table.column(name).chunks
            for one, arrays in zip(leaves, zip(*map(_leaf_arrays, chunks), strict=True), strict=False):
                if one is not None:
                    self._look(group, *one, arrays)

    def _look(self, group: int, index: int, leaf: Leaf, arrays: Sequence[pa.Array]) -> None:
        if leaf.physical in _FLOATS and len(leaf.path) == 1:
            if not any(pc.any(pc.is_nan(one), min_count=0).as_py() for one in arrays):
                return
            self.nan_leaves.add(index)
            if index not in self._wanted:
                return
        elif _may_be_long(leaf) and max(map(_longest, arrays), default=0) <= LONGEST_IN_FOOTERS:
            return
        bounds = BoundsOf(leaf)
        for values in arrays:
            if pa.types.is_dictionary(values.type):
                bounds.add(values.dictionary, len(values) - values.null_count)
            else:
                bounds.add(values)
        self.known[group, index] = bounds.bounds


def _is_looked_at(leaf: Leaf, is_wanted: bool) -> bool:
    if leaf.physical in _FLOATS and len(leaf.path) == 1:
        return True
    # The writer writes the range of top-level decimals itself.
    has_order = keeps_order(leaf.node) or (parquet_type(leaf.node).kind is Kind.DECIMAL and len(leaf.path) == 1)
    return is_wanted and (leaf.physical in _FLOATS or _may_be_long(leaf) or not has_order)


def _may_be_long(leaf: Leaf) -> bool:
    return leaf.physical in _OF_ANY_LENGTH and parquet_type(leaf.node).kind is not Kind.DECIMAL


def _leaf_arrays(chunk: pa.Array) -> list[pa.Array]:
    return list(leaf_arrays(chunk))


def _longest(values: pa.Array) -> int:
    return longest_value(values.dictionary if pa.types.is_dictionary(values.type) else values)
