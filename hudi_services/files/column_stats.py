"""Column statistics of a base file, from its footer, as typed values.

Units (metadata-table.md section 8): date in epoch days, times and timestamps as integers in the column's own unit,
decimal as decimal.Decimal at the column's scale, string as str, bytes and fixed as bytes. A float's bound is never
NaN; a lower bound of zero is -0.0 and an upper one 0.0 (Statistics.Builder of parquet-mr).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from .column_type import ColumnType, Kind, parquet_type
from .parquet_footer import ColumnChunk, Physical, RowGroup
from .parquet_schema import FileSchema, Leaf

_WIDE = Context(prec=100)
_FORMATS = {Physical.INT32: "<i", Physical.INT64: "<q", Physical.FLOAT: "<f", Physical.DOUBLE: "<d"}
_UNSIGNED_FORMATS = {Physical.INT32: "<I", Physical.INT64: "<Q"}
_TEXT = (Kind.STRING, Kind.ENUM)


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What a file's footer says about one leaf column (`column`: its dotted path). Sizes in bytes, counts in values.

    `has_range` False: values exist whose bounds are not known (INT96, absent statistics), so leave the column out.
    With `has_range`, min and max are None exactly when every value is null. `null_count` is None when not known.
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


def column_stats(schema: FileSchema, row_groups: Sequence[RowGroup]) -> tuple[ColumnStats, ...]:
    """One entry per leaf, in file order, over all row groups."""
    return tuple(_leaf_stats(leaf, [g.columns[i] for g in row_groups]) for i, leaf in enumerate(schema.leaves))


def _leaf_stats(leaf: Leaf, chunks: Sequence[ColumnChunk]) -> ColumnStats:
    kind = parquet_type(leaf.node)
    nulls = None if any(c.null_count is None for c in chunks) else sum(c.null_count or 0 for c in chunks)
    # A required column without a null count has none.
    if nulls is None and leaf.max_def == 0:
        nulls = 0
    bounds = [_bounds(leaf, kind, c) for c in chunks if not _all_null(c)]
    known = [b for b in bounds if b is not None]
    has_range = len(known) == len(bounds)
    return ColumnStats(
        column=leaf.dotted,
        type=kind,
        min=min((low for low, _ in known), default=None) if has_range else None,
        max=max((high for _, high in known), default=None) if has_range else None,
        value_count=sum(c.num_values for c in chunks),
        null_count=nulls,
        total_size=sum(c.compressed_bytes for c in chunks),
        total_uncompressed_size=sum(c.uncompressed_bytes for c in chunks),
        has_range=has_range,
    )


def _all_null(chunk: ColumnChunk) -> bool:
    return chunk.null_count is not None and chunk.null_count >= chunk.num_values


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
    return _spread_zero(low, high) if kind.kind in (Kind.FLOAT, Kind.DOUBLE) else (low, high)


def _spread_zero(low: float, high: float) -> tuple[float, float]:
    """Zero bounds as parquet-mr hands them out: they cover both zeros, whichever of them the writer compared."""
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


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
