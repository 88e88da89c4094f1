"""The tables that tasks of an engine hand to each other: by place, in pieces of about one size, in parts."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..merging.fold import Numbers
from ..writing.row_store import Place

_PIECE_ROWS, _PIECE_BYTES = 1 << 17, 32 << 20
"""Rows and bytes of a table that is sent to another task, about at most."""

Labelled: TypeAlias = Iterator[tuple[Any, pa.Table]]


def number_of(token: str) -> int:
    """The number of the partition that a task has."""
    return int(token.partition("-")[0])


def divided(place: Place, table: pa.Table, numbers: Numbers) -> Labelled:
    """The rows in parts, each with the number of its part and the place; `numbers` are those of the rows' parts."""
    ordered = table.take(pa.array(np.argsort(numbers, kind="stable")))
    ends = np.cumsum(np.bincount(numbers))
    start = 0
    for number, end in enumerate(ends.tolist()):
        if end > start:
            yield (number, place), ordered.slice(start, end - start)
        start = end


def pieces_of(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of about the same size: each piece costs a label and a schema."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        step = max(1, min(_PIECE_ROWS, _PIECE_BYTES * table.num_rows // max(1, table.nbytes)))
        for start in range(0, table.num_rows, step):
            part = table.slice(start, step)
            waiting.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
            if rows >= _PIECE_ROWS or size >= _PIECE_BYTES:
                yield pa.concat_tables(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)
