"""Column statistics of a base file, from its footer, as typed values; and the columns whose range a footer lacks.

Units: date in epoch days, times and timestamps as integers in the column's own unit, decimal as decimal.Decimal at the
column's scale, string as str, bytes and fixed as bytes. A float's bound is never NaN; a lower bound of zero is -0.0 and
an upper bound 0.0 (Statistics.Builder of parquet-mr).
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from ..schema.column_type import ColumnType, Kind
from .file_schema import FileSchema, Leaf
from .footer import ColumnChunk, Physical, RowGroup
from .node_types import parquet_type
from .value_bounds import ValueBounds, order_key, spread_zero

_WIDE = Context(prec=100)
_FORMATS = {Physical.INT32: "<i", Physical.INT64: "<q", Physical.FLOAT: "<f", Physical.DOUBLE: "<d"}
_UNSIGNED_FORMATS = {Physical.INT32: "<I", Physical.INT64: "<Q"}
_TEXT = (Kind.STRING, Kind.ENUM)


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """The statistics of one leaf column (`column`: its dotted path) of a file. Sizes in bytes, counts in values.

    `has_range` False: values exist whose bounds are not known (INT96, NaN, long texts, absent statistics). With
    `has_range`, min and max are None exactly when every value is null. `null_count` is None when not known.
    """

    column: str
    type: ColumnType
    min: Any
    max: Any
    value_count: int
    null_count: int | None
    total_size: int
    total_uncompressed_size: int
    has_range: bool


Known = Mapping[tuple[int, int], ValueBounds]
"""Bounds that were computed from the values, by row group and leaf."""


def column_stats(
    schema: FileSchema, row_groups: Sequence[RowGroup], known: Known | None = None
) -> tuple[ColumnStats, ...]:
    """One entry per leaf, in file order, over all row groups; bounds in `known` replace those of the footer."""
    known = known or {}
    return tuple(
        _leaf_stats(
            schema.path_of(leaf),
            leaf,
            [group.columns[i] for group in row_groups],
            [known.get((n, i)) for n in range(len(row_groups))],
        )
        for i, leaf in enumerate(schema.leaves)
    )


def untold_leaves(schema: FileSchema, row_group: RowGroup, columns: Collection[str]) -> list[int]:
    """The leaves among `columns` (dotted paths) whose range in a row group the footer does not have."""
    return [
        i
        for i, (leaf, chunk) in enumerate(zip(schema.leaves, row_group.columns, strict=True))
        if schema.path_of(leaf) in columns and not _tells_range(leaf, chunk)
    ]


def _tells_range(leaf: Leaf, chunk: ColumnChunk) -> bool:
    if chunk.null_count is None and leaf.max_def:
        return False
    return _all_null(chunk) or _bounds(leaf, parquet_type(leaf.node), chunk) is not None


def _leaf_stats(
    column: str, leaf: Leaf, chunks: Sequence[ColumnChunk], known: Sequence[ValueBounds | None]
) -> ColumnStats:
    kind = parquet_type(leaf.node)
    pairs = list(zip(chunks, known, strict=True))
    nulls = [_nulls(leaf, chunk, own) for chunk, own in pairs]
    found = [_chunk_bounds(leaf, kind, chunk, own) for chunk, own in pairs if not _has_no_value(chunk, own)]
    told = [bounds for bounds in found if bounds is not None]
    has_range = len(told) == len(found)
    return ColumnStats(
        column=column,
        type=kind,
        min=min((low for low, _ in told), key=order_key, default=None) if has_range else None,
        max=max((high for _, high in told), key=order_key, default=None) if has_range else None,
        value_count=sum(c.num_values for c in chunks),
        null_count=None if None in nulls else sum(count or 0 for count in nulls),
        total_size=sum(c.compressed_bytes for c in chunks),
        total_uncompressed_size=sum(c.uncompressed_bytes for c in chunks),
        has_range=has_range,
    )


def _nulls(leaf: Leaf, chunk: ColumnChunk, own: ValueBounds | None) -> int | None:
    if own is not None:
        return chunk.num_values - own.values
    # A required column without a null count has none.
    return 0 if chunk.null_count is None and leaf.max_def == 0 else chunk.null_count


def _has_no_value(chunk: ColumnChunk, own: ValueBounds | None) -> bool:
    return _all_null(chunk) if own is None else not own.values


def _all_null(chunk: ColumnChunk) -> bool:
    return chunk.null_count is not None and chunk.null_count >= chunk.num_values


def _chunk_bounds(leaf: Leaf, kind: ColumnType, chunk: ColumnChunk, own: ValueBounds | None) -> tuple[Any, Any] | None:
    return _bounds(leaf, kind, chunk) if own is None else (own.low, own.high)


def _bounds(leaf: Leaf, kind: ColumnType, chunk: ColumnChunk) -> tuple[Any, Any] | None:
    if chunk.min is None or chunk.max is None or leaf.physical is Physical.INT96:
        return None
    try:
        low, high = (decode_value(raw, leaf.physical, kind) for raw in (chunk.min, chunk.max))
    except (struct.error, UnicodeDecodeError, IndexError):
        return None
    # A NaN in the statistics says nothing about the other values.
    if low != low or high != high:
        return None
    return spread_zero(low, high) if kind.kind in (Kind.FLOAT, Kind.DOUBLE) else (low, high)


def decode_value(raw: bytes, physical: Physical, kind: ColumnType) -> Any:
    """The plain-encoded `raw` of a statistic as a Python value; struct.error or UnicodeDecodeError when malformed."""
    if kind.kind is Kind.DECIMAL:
        signed = _number(raw, physical) if physical in _FORMATS else int.from_bytes(raw, "big", signed=True)
        return Decimal(signed).scaleb(-kind.scale, _WIDE)
    if physical is Physical.BOOLEAN:
        return raw[0] != 0
    if kind.kind is Kind.UNSIGNED:
        return struct.unpack(_UNSIGNED_FORMATS[physical], raw)[0]
    if physical in _FORMATS:
        return _number(raw, physical)
    return raw.decode() if kind.kind in _TEXT else raw


def _number(raw: bytes, physical: Physical) -> Any:
    return struct.unpack(_FORMATS[physical], raw)[0]
