"""How many new files a group gets, and where one ends and the next begins: all of about as many bytes.

Rows do not weigh the same: what compresses well at one end of the order may not at the other. So pieces of the group
are weighed, by the row groups that they come from or by writing a part of them, and the cuts share out the weight.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..files.parquet_codec import codec_called
from ..files.parquet_writer import writer_options
from ..files.slices import SliceReader, StoredRowGroup
from .external_sort import Section, plain
from .settings import FileSettings

LeafPath = tuple[str, ...]
WriterOptions = Mapping[str, Any]
"""Of pyarrow's writer of parquet files."""
Piece = tuple[int, float]
"""Consecutive rows: how many, and about how many bytes they take together."""

_PIECES_OF_A_FILE = 16
_WEIGHED_PART = 8
_LEAST_ROWS = 1000
_MOST_READ = 4
_MUCH_LARGER = 1.05
"""Files that would be so many times as large as wanted become more files."""


def stored_row_groups(readers: Iterable[SliceReader]) -> list[StoredRowGroup]:
    """Those that have rows, in order."""
    return [group for reader in readers for group in reader.stored if group.rows]


def compressed_bytes(group: StoredRowGroup, shares: Mapping[LeafPath, float]) -> float:
    """The bytes of a row group when each column is compressed to such a share of what it has encoded."""
    return sum(chunk.uncompressed_bytes * shares.get(chunk.path, 1.0) for chunk in group.facts.columns)


def overhead_bytes(readers: Sequence[SliceReader], settings: FileSettings, rows: int) -> int:
    """About how many bytes a new file of so many rows has that are no pages: footer, page indexes, bloom filter."""
    others = sum(reader.overhead_bytes for reader in readers)
    footer = others // max(1, sum(len(reader.stored) for reader in readers))
    return footer + (0 if settings.bloom is None else settings.bloom.new_filter(0).serialized_bytes(rows))


def files_needed(planned: int, pieces: Sequence[Piece], readers: Sequence[SliceReader], settings: FileSettings) -> int:
    """How many files: as planned, or more where these would be larger than they should be."""
    if needs_no_cut(readers, planned, settings):
        return planned
    rows, weight = sum(rows for rows, _ in pieces), sum(weight for _, weight in pieces)
    each = overhead_bytes(readers, settings, -(-rows // planned))
    if weight + planned * each <= planned * settings.file_bytes * _MUCH_LARGER:
        return planned
    # A bloom filter may be larger than a file that is meant to be very small.
    return max(planned, math.ceil(weight / max(settings.file_bytes - each, settings.file_bytes // 2, 1)))


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


def needs_no_cut(readers: Iterable[SliceReader], planned: int, settings: FileSettings) -> bool:
    """Whether all rows fit into the one planned file however they compress."""
    return planned < 2 and sum(reader.encoded_bytes for reader in readers) <= settings.file_bytes


def weighed(sections: Iterable[Section], rows: int, files: int, options: WriterOptions) -> list[Piece]:
    """Pieces of `rows` sorted rows, fine enough for `files` cuts; a part of each is written to see what it weighs."""
    step = max(_LEAST_ROWS, -(-rows // (files * _PIECES_OF_A_FILE)))
    pieces = []
    for section in sections:
        for start in range(0, section.num_rows, step):
            count = min(step, section.num_rows - start)
            part = section.rows(start, min(count, max(_LEAST_ROWS, count // _WEIGHED_PART)))
            pieces.append((count, sum(_written(part, options)) * count / part.num_rows))
    return pieces


def weighed_row_groups(groups: Sequence[StoredRowGroup], codec: str, at_once: int) -> list[Piece]:
    """Row groups in order, by what they will take in `codec`; for that some of them are read, `at_once` as `pieces`."""
    number = codec_called(codec).number
    if all(chunk.codec == number for group in groups for chunk in group.facts.columns):
        return [(group.rows, group.facts.compressed_bytes) for group in groups]
    shares = _shares(groups[:: max(1, len(groups) // _MOST_READ, min(len(groups), _WEIGHED_PART))], codec, at_once)
    return [(group.rows, compressed_bytes(group, shares)) for group in groups]


def _shares(groups: Sequence[StoredRowGroup], codec: str, at_once: int) -> dict[LeafPath, float]:
    """To which part of its encoded bytes each column is compressed."""
    before: Counter[LeafPath] = Counter()
    after: Counter[LeafPath] = Counter()
    for group in groups:
        reader = group.reader
        options = writer_options(reader.schema, reader.full_path, codec, reader.plain_leaves)
        part = group.first_piece(reader.schema, reader.dictionary_columns, at_once)
        for chunk, size in zip(group.facts.columns, _written(part, options), strict=True):
            before[chunk.path] += chunk.uncompressed_bytes * part.num_rows // group.rows
            after[chunk.path] += size
    return {path: after[path] / max(1, size) for path, size in before.items()}


def shares_of(
    table: pa.Table, leaves: Iterable[LeafPath], encoded: Mapping[LeafPath, float], options: WriterOptions
) -> dict[LeafPath, float]:
    """To which part of its `encoded` bytes each of the `leaves` of `table` is compressed when it is written."""
    written = dict(zip(leaves, _written(table, options), strict=True))
    return {path: written.get(path, 0) / max(1.0, size) for path, size in encoded.items()}


def _written(table: pa.Table, options: WriterOptions) -> list[int]:
    """The bytes of each leaf column when `table` is written."""
    # A part would be written with the dictionary of the whole.
    table = plain(table)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table)
    facts = pq.read_metadata(sink.getvalue())
    groups = [facts.row_group(n) for n in range(facts.num_row_groups)]
    return [sum(group.column(n).total_compressed_size for group in groups) for n in range(facts.num_columns)]
