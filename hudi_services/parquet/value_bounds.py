"""Bounds of the values of a column, from the values themselves: no reader may skip an existing value by them.

They are used where a footer has no range. A bound need not be a value:

    float, double   Infinity is the upper bound where NaN is among the values: Spark takes NaN for the greatest number.
                    NaN itself must not be a bound: Hudi's readers put the records into Spark's cache of columns, which
                    ignores NaN, and then takes the other values for all (seen with 1.0.2 and 1.2.0; by a predicate
                    like `x = NaN` they find nothing whatever the bound is). If all values are NaN, the lower bound is
                    the greatest finite number. A bound of zero covers both zeros
    text, bytes     a value that is longer than footers keep is truncated, and in an upper bound its last character or
                    byte is raised, so that the bound holds in the order of UTF-8 and of UTF-16 (Java), too
    the rest        the least and the greatest value, in the units of `column_stats`
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..schema.column_type import Kind
from .conversion import natural
from .file_schema import Leaf
from .node_types import parquet_type

LONGEST_IN_FOOTERS = 4096
"""Bytes: pyarrow and parquet-mr leave the statistics of a chunk out when a bound is longer."""
_KEPT = 64
"""Characters, or bytes, that a truncated value keeps."""
_GREATEST_TEXT = "\U0010ffff"
_TEXT = (Kind.STRING, Kind.ENUM)
_GREATEST_NUMBER = {Kind.FLOAT: float(np.finfo(np.float32).max), Kind.DOUBLE: float(np.finfo(np.float64).max)}
"""The greatest finite numbers."""


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """The bounds and the number of the non-null values of a leaf column; `low` and `high` are None without values."""

    low: Any
    high: Any
    values: int


class BoundsOf:
    """The bounds of a leaf column whose values are added array by array, in the raw form of the leaf."""

    def __init__(self, leaf: Leaf) -> None:
        self._leaf = leaf
        self._kind = parquet_type(leaf.node).kind
        self._extremes: list[Any] = []
        self._values = 0
        self._has_nan = False

    def add(self, values: pa.Array, count: int | None = None) -> None:
        """Add values. `count`: the number of non-null values that the array stands for, when it is a dictionary."""
        self._values += len(values) - values.null_count if count is None else count
        values = _comparable(natural(values, self._leaf.node))
        if self._kind in _GREATEST_NUMBER:
            self._has_nan = self._has_nan or pc.any(pc.is_nan(values), min_count=0).as_py()
        both = pc.min_max(values)
        low, high = (_plain(both[side]) for side in ("min", "max"))
        # NaN, which is not equal to itself, is the result where all values are NaN.
        if low is not None and low == low:
            found = [low, high, *self._extremes]
            self._extremes = [min(found, key=order_key), max(found, key=order_key)]

    @property
    def exact(self) -> ValueBounds:
        """As `bounds`, and long texts and bytes are not truncated; texts must be UTF-8."""
        found = self.bounds
        if not self._extremes or not isinstance(self._extremes[0], bytes):
            return found
        low, high = (one.decode() if self._kind in _TEXT else one for one in self._extremes)
        return replace(found, low=low, high=high)

    @property
    def bounds(self) -> ValueBounds:
        low: Any
        high: Any
        low, high = self._extremes or (None, None)
        if self._has_nan:
            low, high = _GREATEST_NUMBER[self._kind] if low is None else low, math.inf
        if low is None:
            return ValueBounds(None, None, self._values)
        if self._kind in _GREATEST_NUMBER:
            low, high = spread_zero(low, high)
        elif self._kind in _TEXT:
            low, high = _text_below(low), _text_above(high)
        elif isinstance(low, bytes):
            low, high = _bytes_below(low), _bytes_above(high)
        return ValueBounds(low, high, self._values)


def order_key(value: Any) -> Any:
    """A key that orders values of one type: NaN above all numbers, -0.0 before 0.0, as in Java; texts by code point."""
    if not isinstance(value, float):
        return value
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, math.copysign(1.0, value))


def spread_zero(low: float, high: float) -> tuple[float, float]:
    """Zero bounds as parquet-mr returns them: they cover both zeros, whichever of them the writer compared."""
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


def leaf_arrays(values: pa.Array) -> Iterator[pa.Array]:
    """The values of each leaf of a column, in the order of the leaves of its parquet schema."""
    kind = values.type
    if pa.types.is_struct(kind):
        for field in values.flatten():
            yield from leaf_arrays(field)
    elif pa.types.is_map(kind):
        start, end = (values.offsets[at].as_py() for at in (0, -1)) if len(values) else (0, 0)
        for part in (values.keys, values.items):
            yield from leaf_arrays(part.slice(start, end - start))
    elif pa.types.is_nested(kind):
        yield from leaf_arrays(values.flatten())
    else:
        yield values


def longest_value(values: pa.Array) -> int:
    """The length in bytes of the longest of texts or bytes; 0 when there are none."""
    if pa.types.is_fixed_size_binary(values.type):
        return int(values.type.byte_width)
    return pc.max(pc.binary_length(values)).as_py() or 0


def _comparable(values: pa.Array) -> pa.Array:
    """Texts as bytes, by which they are ordered: not every value of a text column is UTF-8."""
    if pa.types.is_string(values.type):
        return values.view(pa.binary())
    return values.view(pa.large_binary()) if pa.types.is_large_string(values.type) else values


def _plain(value: pa.Scalar) -> Any:
    if pa.types.is_temporal(value.type):
        return value.value
    return value.as_py()


def _text_below(value: bytes) -> str:
    text, is_whole = _as_text(value)
    return text if is_whole else text[:_KEPT]


def _text_above(value: bytes) -> str:
    text, is_whole = _as_text(value)
    if is_whole:
        return text
    prefix = text[:_KEPT]
    for at in range(len(prefix) - 1, -1, -1):
        # The next character; in UTF-16 that of U+FFFF would come before it.
        if prefix[at] not in ("\uffff", _GREATEST_TEXT):
            code = ord(prefix[at])
            return prefix[:at] + chr(0xE000 if code == 0xD7FF else code + 1)
    return text if text.encode() == value else _GREATEST_TEXT


def _as_text(value: bytes) -> tuple[str, bool]:
    """The first part of `value` that is text; and whether it is the whole value, and short enough to be a bound."""
    try:
        return value.decode(), len(value) <= LONGEST_IN_FOOTERS
    except UnicodeDecodeError as e:
        return value[: e.start].decode(), False


def _bytes_below(value: bytes) -> bytes:
    return value if len(value) <= LONGEST_IN_FOOTERS else value[:_KEPT]


def _bytes_above(value: bytes) -> bytes:
    if len(value) <= LONGEST_IN_FOOTERS:
        return value
    prefix = value[:_KEPT].rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else value
