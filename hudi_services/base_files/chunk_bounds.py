"""The ranges that a footer does not have, from the values of column chunks: read column by column, in pieces."""

from collections.abc import Collection

from ..parquet.chunk_stats import ColumnStats, column_stats, untold_leaves
from ..parquet.value_bounds import BoundsOf, ValueBounds, leaf_arrays
from .file_reader import BaseFileReader

_AT_ONCE = 16 << 20
"""Bytes of a stored chunk that memory holds; of a larger chunk it holds only a buffer."""


def complete_stats(reader: BaseFileReader, columns: Collection[str]) -> tuple[ColumnStats, ...]:
    """As `reader.column_stats`, with the ranges of all of `columns` (dotted paths).

    Raises CorruptFile and StorageError for values that cannot be read.
    """
    known = {
        (number, leaf): bounds
        for number, group in enumerate(reader.row_groups)
        for leaf, bounds in chunk_bounds(reader, number, untold_leaves(reader.schema, group, columns)).items()
    }
    reader.release()
    return column_stats(reader.schema, reader.row_groups, known)


def chunk_bounds(reader: BaseFileReader, group: int, leaves: Collection[int]) -> dict[int, ValueBounds]:
    """The bounds of these leaves in a row group. Raises CorruptFile and StorageError."""
    found = {leaf: BoundsOf(reader.schema.leaves[leaf]) for leaf in leaves}
    for column in dict.fromkeys(reader.schema.leaves[leaf].path[0] for leaf in leaves):
        own = [i for i, leaf in enumerate(reader.schema.leaves) if leaf.path[0] == column]
        for piece in reader.pieces(group, [column], at_once=_AT_ONCE):
            for chunk in piece.column(0).chunks:
                for leaf, values in zip(own, leaf_arrays(chunk), strict=True):
                    if leaf in found:
                        found[leaf].add(values)
    return {leaf: one.bounds for leaf, one in found.items()}
