"""The tables that tasks of an engine hand to each other: by place, in pieces of about one size, in parts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..base_files.row_selection import by_number, gathered, take_table
from ..merging.fold import Numbers
from ..writing.row_store import Place

_PIECE_ROWS, _PIECE_BYTES = 1 << 17, 32 << 20
"""Rows and bytes of a table that is sent to another task, about at most."""
_DIVIDED_ROWS = 1 << 20
"""Rows that are divided at once."""


Runs: TypeAlias = "tuple[tuple[Place, int], ...]"
"""The places of the rows of one table, with the number of rows of each, in their order."""


def divided(
    tables: Iterable[tuple[Place, pa.Table]], numbers_of: Callable[[Place, pa.Table], Numbers]
) -> Iterator[tuple[tuple[int, Runs], pa.Table]]:
    """The rows of places in parts, whose numbers `numbers_of` gives: with the number of a part and its runs.

    All tables have one schema. A part gets one piece of many places, not one of each: there may be many.
    """
    for some in gathered(tables, itemgetter(1), _DIVIDED_ROWS, _PIECE_BYTES):
        yield from _parts_of(some, numbers_of)


def runs_of(runs: Runs, table: pa.Table) -> Iterator[tuple[Place, pa.Table]]:
    """The rows of each run of a piece."""
    start = 0
    for place, count in runs:
        yield place, table.slice(start, count)
        start += count


def _parts_of(
    tables: Sequence[tuple[Place, pa.Table]], numbers_of: Callable[[Place, pa.Table], Numbers]
) -> Iterator[tuple[tuple[int, Runs], pa.Table]]:
    numbers = np.concatenate([numbers_of(place, table) for place, table in tables])
    order = by_number(numbers)
    ordered = take_table(pa.concat_tables([table for _, table in tables]), order)
    of_place = np.repeat(np.arange(len(tables)), [table.num_rows for _, table in tables])[order]
    ends = np.cumsum(np.bincount(numbers))
    start = 0
    for number, end in enumerate(ends.tolist()):
        if end > start:
            here, counts = np.unique(of_place[start:end], return_counts=True)
            runs = tuple((tables[at][0], count) for at, count in zip(here.tolist(), counts.tolist(), strict=True))
            yield (number, runs), ordered.slice(start, end - start)
        start = end


def pieces_of(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of about the same size: each piece costs a label and a schema."""

    def small() -> Iterator[pa.Table]:
        for table in tables:
            step = max(1, min(_PIECE_ROWS, _PIECE_BYTES * table.num_rows // max(1, table.nbytes)))
            yield from (table.slice(start, step) for start in range(0, table.num_rows, step))

    return map(pa.concat_tables, gathered(small(), lambda table: table, _PIECE_ROWS, _PIECE_BYTES))
