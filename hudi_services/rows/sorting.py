"""Sorting the rows of a group, column by column."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.row_selection import take_rows
from ..errors import CheckFailed
from ..parquet.file_schema import FileSchema
from ..parquet.sort_keys import sort_key, sort_value
from ..plugins import guarded, name_of
from .row_order import RowOrder, row_order
from .sort_order import LINEAR, SortColumn

Order = npt.NDArray[np.int64]

_MUCH_BYTES = 8 << 20
_PLACE = "hudi_services place"
"""A column of sorted rows: their places in a layout that is not linear."""


class RowSorter:
    """The order of rows (raw form of `schema`) by `columns`; the order of equal rows is not defined.

    `layout` is a name for `row_order`. Strings are ordered by their UTF-8 bytes. NaN comes after every number; along a
    curve in descending order it comes before them. Raises ConfigError for a layout that does not exist.
    """

    def __init__(self, schema: FileSchema, columns: Sequence[SortColumn], layout: str = LINEAR) -> None:
        self.columns = [column.name for column in columns]
        self._schema = schema
        self._sort = columns
        self._layout = row_order(layout, columns)

    @property
    def needs_sample(self) -> bool:
        """Whether `learn` must be called before rows are sorted."""
        return self._layout is not None

    def learn(self, sample: pa.Table) -> None:
        """Let the layout learn from some rows of the group; columns other than the sort columns may be missing.

        Raises ConfigError for a column without an order, and for a layout of the operator's own that fails.
        """
        if self._layout is not None:
            with guarded("layout", type(self._layout)):
                self._layout.learn(self._values(sample))

    def sorted(self, tables: list[pa.Table]) -> pa.Table:
        """The rows of `tables` in order, including the columns that `order` needs; `bare` removes those.

        Empties `tables`, so that only one column at a time is in memory twice. Raises the errors of `learn`, and
        CheckFailed when a layout of the operator's own returns places of another shape or type.
        """
        table = self.placed(tables)
        order = self.order(table)
        schema, columns = table.schema, table.columns
        del table
        return taken(schema, columns, order)

    def placed(self, tables: list[pa.Table]) -> pa.Table:
        """The rows of `tables` as they are, including the columns that `order` needs. Empties `tables`; raises as
        `sorted`."""
        # Promoted types cannot occur: every table has the target's form, only its dictionaries differ.
        table = pa.concat_tables(tables).unify_dictionaries()
        tables.clear()
        if self._layout is not None:
            table = table.append_column(_PLACE, pa.array(self._places(self._layout, table)))
        return table

    @property
    def keys(self) -> list[str]:
        """The columns of a sorted table that `order` sorts by."""
        return self.columns if self._layout is None else [_PLACE]

    def order(self, table: pa.Table) -> Order:
        """The row numbers of `table`, which has the `keys`, in sorted order; equal rows keep their order."""
        if self._layout is not None:
            return np.argsort(table.column(_PLACE).to_numpy(), kind="stable")
        keys = [sort_key(self._schema, table, column) for column in self.columns]
        order = _packed_order(keys, self._sort)
        return _general_order(keys, self._sort) if order is None else order

    def bare(self, table: pa.Table) -> pa.Table:
        """A sorted table without the column that `sorted` added."""
        return table if self._layout is None else table.drop_columns([_PLACE])

    def _values(self, table: pa.Table) -> list[pa.ChunkedArray]:
        return [sort_value(self._schema, table, column) for column in self.columns]

    def _places(self, layout: RowOrder, table: pa.Table) -> Order:
        with guarded("layout", type(layout)):
            places = np.asarray(layout.places(self._values(table)))
        if places.shape != (table.num_rows,) or places.dtype != np.int64:
            raise CheckFailed(
                f"the layout {name_of(type(layout))} gave {places.shape} places of the type {places.dtype} for "
                f"{table.num_rows} rows",
                hint="it must give an int64 for each row",
            )
        return places


def taken(schema: pa.Schema, columns: list[pa.ChunkedArray], order: Order) -> pa.Table:
    """The rows `order` of a table of these columns. Empties `columns`, to which no other reference should exist."""
    rows, done = pa.array(order), []
    columns.reverse()
    while columns:
        done.append(_taken(columns.pop(), rows))
        if done[-1].nbytes >= _MUCH_BYTES:
            # The old column was in small blocks of memory, which the process would keep.
            pa.default_memory_pool().release_unused()
    return pa.table(done, schema=schema)


def _taken(column: pa.ChunkedArray, order: pa.Array) -> pa.ChunkedArray:
    # One chunk first: taking from many chunks costs four times as much (measured on 1.5 million rows).
    with suppress(pa.ArrowInvalid):
        column = pa.chunked_array([column.combine_chunks()])
    return take_rows(column, order)


def _packed_order(keys: Sequence[pa.ChunkedArray], columns: Sequence[SortColumn]) -> Order | None:
    """The order when all keys together fit into 63 bits, else None; twice as fast as comparing key by key."""
    packed: npt.NDArray[np.int64] | None = None
    bits = 0
    for key, column in zip(keys, columns, strict=True):
        found = _ordinals(key, column)
        if found is None:
            return None
        ordinals, width = found
        bits += width
        if bits > 63:
            return None
        packed = ordinals if packed is None else (packed << width) | ordinals
    return None if packed is None else np.argsort(packed, kind="stable")


def _ordinals(key: pa.ChunkedArray, column: SortColumn) -> tuple[npt.NDArray[np.int64], int] | None:
    """The key as numbers from 0 that ascend in the wanted order, and their width in bits; None for keys without."""
    kind = key.type
    if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind)):
        return None
    if pa.types.is_uint64(kind):
        return None
    numbers = pc.cast(key, pa.int8()) if pa.types.is_boolean(kind) else key
    if not pa.types.is_integer(numbers.type):
        numbers = pc.cast(numbers, pa.int32() if kind.bit_width == 32 else pa.int64())
    limits = pc.min_max(numbers).as_py()
    low, high = limits["min"] or 0, limits["max"] or 0
    width = (high - low + 2).bit_length()
    if width > 63:
        return None
    values = pc.fill_null(numbers, low).to_numpy().astype(np.int64)
    # 0 and span + 2 are left for nulls.
    ordinals = high - values + 1 if column.descending else values - low + 1
    if key.null_count:
        ordinals[pc.is_null(key).to_numpy()] = 0 if column.nulls_first else high - low + 2
    return ordinals, width


def _general_order(keys: Sequence[pa.ChunkedArray], columns: Sequence[SortColumn]) -> Order:
    arrays: dict[str, pa.ChunkedArray] = {}
    order: list[tuple[str, str]] = []
    for i, (key, column) in enumerate(zip(keys, columns, strict=True)):
        if key.null_count:
            # Arrow puts the nulls of all keys at one end; a flag before the key sorts its nulls to the wanted end.
            arrays[f"null {i}"] = pc.is_null(key).cast(pa.int8())
            order.append((f"null {i}", "descending" if column.nulls_first else "ascending"))
        arrays[f"key {i}"] = key
        order.append((f"key {i}", "descending" if column.descending else "ascending"))
    found: Order = pc.sort_indices(pa.table(arrays), sort_keys=order).to_numpy().astype(np.int64)
    return found
