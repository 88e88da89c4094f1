"""Taking rows of Arrow columns of any size."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PIECE_BYTES = 512 << 20


def take_rows(column: pa.ChunkedArray, order: pa.Array) -> pa.ChunkedArray:
    """`column.take(order)` for a column of any size: strings of more than 2 GiB do not fit into one array."""
    if column.num_chunks <= 1:
        return column.take(order)
    if 2 * len(order) >= len(column) and column.nbytes <= _PIECE_BYTES:
        # Taking from one array costs a quarter.
        return pa.chunked_array([column.combine_chunks()]).take(order)
    numbers = order.to_numpy().astype(np.int64)
    step = max(1, len(numbers) * _PIECE_BYTES // max(1, column.nbytes))
    pieces = (_gather(column, numbers[start : start + step]) for start in range(0, len(numbers), step))
    return pa.chunked_array([array for piece in pieces for array in piece], type=column.type)


def _gather(column: pa.ChunkedArray, rows: npt.NDArray[np.int64]) -> list[pa.Array]:
    """The rows `rows`, taken chunk by chunk and then put in order; in halves when they do not fit into one array."""
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    by_chunk = np.argsort(rows, kind="stable")
    cuts = np.searchsorted(rows[by_chunk], starts)
    parts = [
        chunk.take(pa.array(rows[by_chunk[low:high]] - start))
        for chunk, start, low, high in zip(column.chunks, starts, cuts, cuts[1:], strict=False)
    ]
    back = np.empty(len(rows), dtype=np.int64)
    back[by_chunk] = np.arange(len(rows))
    try:
        return [pa.concat_arrays(parts).take(pa.array(back))]
    except pa.ArrowInvalid:
        if len(rows) < 2:
            raise
        half = len(rows) // 2
        return [*_gather(column, rows[:half]), *_gather(column, rows[half:])]
