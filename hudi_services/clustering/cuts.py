"""Where one new file ends and the next begins: so that all files of a group have about as many bytes.

Rows do not weigh the same: what compresses well at one end of the order may not at the other. So pieces of the group
are weighed, by the row groups that they come from or by writing a part of them, and the cuts share out the weight.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..files.parquet_codec import codec_called
from ..files.parquet_reader import BaseFileReader

Piece = tuple[int, float]
"""Consecutive rows: how many, and about how many bytes they take together, in any unit."""

_PIECES_OF_A_FILE = 16
_WEIGHED_PART = 8
_LEAST_ROWS = 1000
_MOST_READ = 4


def even_cuts(pieces: Sequence[Piece], files: int) -> list[int]:
    """How many rows go into each file; as many files as there are rows where these are fewer."""
    rows = np.concatenate([[0], np.cumsum([piece[0] for piece in pieces])]).astype(np.float64)
    # A weight of nothing must not hide rows.
    weights = np.concatenate([[0.0], np.cumsum([piece[1] + piece[0] * 1e-6 for piece in pieces])])
    total = int(rows[-1])
    files = min(files, total)
    if not files:
        return []
    cuts = np.rint(np.interp(np.linspace(0, weights[-1], files + 1), weights, rows)).astype(np.int64)
    cuts[0], cuts[-1] = 0, total
    # At least one row for each file.
    cuts = np.maximum.accumulate(cuts - np.arange(files + 1)) + np.arange(files + 1)
    cuts = np.minimum(cuts, total - np.arange(files, -1, -1))
    return [int(rows) for rows in np.diff(cuts)]


def weighed(table: pa.Table, files: int, codec: str) -> list[Piece]:
    """Pieces of `table` in its order, fine enough for `files` cuts; a part of each is written to see what it weighs."""
    if files < 2:
        return [(table.num_rows, 1.0)]
    step = max(_LEAST_ROWS, -(-table.num_rows // (files * _PIECES_OF_A_FILE)))
    pieces = []
    for start in range(0, table.num_rows, step):
        piece = table.slice(start, step)
        part = piece.slice(0, max(_LEAST_ROWS, piece.num_rows // _WEIGHED_PART))
        written = _written(part, codec)
        size = sum(
            written.row_group(n).column(column).total_compressed_size
            for n in range(written.num_row_groups)
            for column in range(written.num_columns)
        )
        pieces.append((piece.num_rows, size * piece.num_rows / part.num_rows))
    return pieces


def weighed_row_groups(readers: Sequence[BaseFileReader], files: int, codec: str) -> list[Piece]:
    """The row groups of old files in order, by what they will take in `codec`; for that some of them are read."""
    groups = [(reader, i) for reader in readers for i, group in enumerate(reader.row_groups) if group.num_rows]
    chunks = [reader.row_groups[i].columns for reader, i in groups]
    rows = [reader.row_groups[i].num_rows for reader, i in groups]
    number = codec_called(codec).number
    if files < 2 or all(chunk.codec == number for one in chunks for chunk in one):
        return [(count, sum(c.compressed_bytes for c in one)) for count, one in zip(rows, chunks, strict=True)]
    picked = groups[:: max(1, len(groups) // _MOST_READ, min(len(groups), _WEIGHED_PART))]
    shares = _shares(picked, codec)
    return [
        (count, sum(c.uncompressed_bytes * shares.get(c.path, 1.0) for c in one))
        for count, one in zip(rows, chunks, strict=True)
    ]


def _shares(groups: Sequence[tuple[BaseFileReader, int]], codec: str) -> dict[tuple[str, ...], float]:
    """To which part of its encoded bytes each column is compressed."""
    before: Counter[tuple[str, ...]] = Counter()
    after: Counter[tuple[str, ...]] = Counter()
    for reader, i in groups:
        written = _written(reader.read_row_group(i, dictionary=reader.dictionary_columns), codec)
        for number, chunk in enumerate(reader.row_groups[i].columns):
            before[chunk.path] += chunk.uncompressed_bytes
            after[chunk.path] += sum(
                written.row_group(n).column(number).total_compressed_size for n in range(written.num_row_groups)
            )
    return {path: after[path] / max(1, size) for path, size in before.items()}


def _written(table: pa.Table, codec: str) -> pq.FileMetaData:
    # A part would be written with the dictionary of the whole.
    columns = [_plain(column) for column in table.columns]
    table = pa.table(columns, names=table.column_names)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **codec_called(codec).writer_options) as writer:
        writer.write_table(table)
    return pq.read_metadata(sink.getvalue())


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
