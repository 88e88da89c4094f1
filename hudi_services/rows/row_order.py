"""The order in which the rows of a sorted group are written: hoodie.layout.optimize.strategy.

    LINEAR                 by the first sort column, then the second, and so on: `sorting`
    ZORDER, HILBERT        by a space-filling curve over all sort columns: ranges of each column become narrow
    package.module:Class   a subclass of `RowOrder`, the operator's own

The coordinates of a curve are equal shares of the rows, not of the values; the bounds come from a sample of the group.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.binary_layout import has_offsets, offsets_and_bytes
from ..errors import ConfigError
from ..plugins import guarded, load_class
from .curves import Coordinates, hilbert, z_order
from .sort_order import LINEAR, SortColumn

Z_ORDER, HILBERT = "ZORDER", "HILBERT"
SAMPLE_ROWS = 1 << 16
_MOST_BITS = 16
"""The most bits of a coordinate: a group has far fewer files than 65,536."""
_TEXT_BYTES = 64
"""The bytes at the start of a text that count."""
_AT_ONCE = 1 << 16

Comparable: TypeAlias = "npt.NDArray[np.int64] | npt.NDArray[np.float64] | npt.NDArray[np.bytes_]"


class RowOrder(ABC):
    """The order of the rows of one group. The keys are one array for each sort column, all of one length.

    Texts are string, binary, or dictionary arrays of strings; numbers, times and decimals have their own types.
    `places` is called several times for the rows of a group, and the places of all calls must compare.
    """

    def __init__(self, columns: Sequence[SortColumn]) -> None:
        self.columns = tuple(columns)

    @abstractmethod
    def learn(self, sample: Sequence[pa.ChunkedArray]) -> None:
        """Called once, before `places`, with the keys of some rows of the group."""

    @abstractmethod
    def places(self, keys: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
        """A number for each row: the rows are written in ascending order of these."""


class Curve(RowOrder):
    """The order by a space-filling curve."""

    def __init__(
        self, columns: Sequence[SortColumn], curve: Callable[[Sequence[Coordinates], int], Coordinates]
    ) -> None:
        super().__init__(columns)
        self._curve = curve
        self._bits = min(_MOST_BITS, 63 // len(columns))
        if self._bits < 2:
            raise ConfigError(f"{len(columns)} sort columns are too many for a space-filling curve")
        self._bounds: list[Comparable] = []

    def learn(self, sample: Sequence[pa.ChunkedArray]) -> None:
        self._bounds = [_bounds(key, (1 << self._bits) - 3) for key in sample]

    def places(self, keys: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
        found = [self._coordinate(*one) for one in zip(keys, self.columns, self._bounds, strict=True)]
        return self._curve(found, self._bits)

    def _coordinate(self, key: pa.ChunkedArray, column: SortColumn, bounds: Comparable) -> Coordinates:
        """Coordinates from 1 to 2**bits - 2, in the wanted direction; nulls are at 0 or at 2**bits - 1."""
        highest = (1 << self._bits) - 2
        shares = np.concatenate([np.zeros(0, np.int64), *(_shares(array, bounds) for array in key.chunks)])
        # Few distinct values are spread over all bits, because the high bits count first on the curve.
        coordinate = 1 + shares * (highest - 1) // max(1, len(bounds))
        if column.descending:
            coordinate = highest + 1 - coordinate
        if key.null_count:
            coordinate[pc.is_null(key).to_numpy()] = 0 if column.nulls_first else highest + 1
        return coordinate


def row_order(name: str, columns: Sequence[SortColumn]) -> RowOrder | None:
    """The order of this name; None for LINEAR. Raises ConfigError for an unknown name."""
    if name == LINEAR:
        return None
    if name in (Z_ORDER, HILBERT):
        return Curve(columns, z_order if name == Z_ORDER else hilbert)
    kind: type[RowOrder] = load_class(name, "layout", RowOrder)
    with guarded("layout", kind):
        return kind(columns)


def comparable(array: pa.Array) -> Comparable:
    """Values in the order of the array's values, of which some may become equal; values for nulls have no meaning."""
    kind = array.type
    types = pa.types
    if has_offsets(kind):
        return _texts(array)
    if types.is_fixed_size_binary(kind):
        return _texts(array.cast(pa.binary()))
    if types.is_decimal(kind) or types.is_floating(kind) or types.is_uint64(kind):
        numbers: npt.NDArray[np.float64] = (
            array.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
        )
        return numbers
    if types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif types.is_temporal(kind):
        array = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)


def _texts(array: pa.Array) -> npt.NDArray[np.bytes_]:
    offsets, data = offsets_and_bytes(array)
    lengths = np.minimum(np.diff(offsets), _TEXT_BYTES)
    width = max(1, int(lengths.max(initial=0)))
    cells = np.zeros((len(array), width), np.uint8)
    for at in range(width):
        rows = np.flatnonzero(lengths > at)
        cells[rows, at] = data[offsets[rows] + at]
    return cells.view(f"S{width}")[:, 0]


def _shares(array: pa.Array, bounds: Comparable) -> Coordinates:
    """The number of bounds that are at or below each value."""
    if pa.types.is_dictionary(array.type):
        found = _shares(array.dictionary, bounds)
        return found[array.indices.fill_null(0).to_numpy()] if len(found) else np.zeros(len(array), np.int64)
    starts = range(0, len(array), _AT_ONCE)
    parts = [np.searchsorted(bounds, comparable(array.slice(start, _AT_ONCE)), "right") for start in starts]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _bounds(sample: pa.ChunkedArray, most: int) -> Comparable:
    """The bounds of equal shares of the sample, ascending and distinct."""
    if pa.types.is_dictionary(sample.type):
        sample = sample.cast(sample.type.value_type)
    values: Any = np.sort(comparable(sample.drop_null().combine_chunks()))
    if len(values):
        values = np.unique(values[np.linspace(0, len(values) - 1, min(most, len(values))).astype(np.int64)])
    found: Comparable = values
    return found
