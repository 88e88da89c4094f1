"""Ranges of sort keys, by which the rows of a group are divided before each range is sorted by itself.

Equal keys may be more than a file holds. So a bound is a key and the number of a row in the group: of the rows with
the key of a bound, those with lower numbers come before it. Rows keep the order that a sort of the whole group gives
them, as it keeps the order of equal rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..base_files.row_selection import Numbers
from .external_sort import of_schema
from .sorting import RowSorter, taken


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """One range more than there are `bounds`: the keys (`RowSorter.keys`, no dictionaries), and the row number of each.

    The bounds ascend.
    """

    sorter: RowSorter
    bounds: pa.Table
    numbers: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.numbers) + 1

    def divided(self, tables: list[pa.Table], first: int) -> list[pa.Table]:
        """The rows of `tables`, sorted, by range; their numbers go up from `first`. Empties `tables`.

        Raises the errors of `RowSorter.sorted`.
        """
        table = self.sorter.placed(tables)
        order, ends = self.order(table.select(self.sorter.keys), first)
        schema, columns = table.schema, table.columns
        del table
        rows = self.sorter.bare(taken(schema, columns, order))
        return [rows.slice(start, end - start) for start, end in zip([0, *ends], [*ends, len(order)], strict=True)]

    def order(self, keys: pa.Table, first: int) -> tuple[Numbers, Sequence[int]]:
        """The places of the rows of `keys` in order, and the ends of all ranges but the last one; as `divided`."""
        count = len(self.numbers)
        bounds = of_schema(self.bounds, keys.schema)
        # Before the rows with the same key, and after them.
        order = self.sorter.order(pa.concat_tables([bounds, keys, bounds]))
        is_row = (order >= count) & (order < count + keys.num_rows)
        rows = order[is_row] - count
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(is_row)
        low, high = places[:count], places[count + keys.num_rows :]
        ends = [
            int(start + np.searchsorted(rows[start:end] + first, number))
            for start, end, number in zip(low, high, self.numbers, strict=True)
        ]
        return rows, ends
