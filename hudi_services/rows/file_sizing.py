"""File sizing: how many new files a group gets, and where each file ends, so that all have about the same size.

Rows differ in compressed size, also from one end of the order to the other. Therefore pieces of the group are weighed,
by the row groups that they come from or by writing a part of them, and the cuts divide the weight evenly.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..base_files.file_writer import writer_options
from ..base_files.slices import Segment, SliceReader, StoredRowGroup
from ..parquet.compression import codec_called
from .external_sort import OrderedRows, plain
from .settings import FileSettings

LeafPath = tuple[str, ...]
WriterOptions = Mapping[str, Any]
"""Options of pyarrow's writer of parquet files."""
Piece = tuple[int, float]
"""Consecutive rows: their number, and about how many bytes they need together (their weight)."""

_PIECES_OF_A_FILE = 16
_WEIGHED_PART = 8
_LEAST_ROWS = 1000
_MOST_READ = 4
_MUCH_LARGER = 1.05
"""The group gets more files than planned when files would be larger than this many times the wanted size."""


def stored_row_groups(readers: Iterable[SliceReader]) -> list[StoredRowGroup]:
    """The row groups that have rows, in order, of slices whose rows need not be merged."""
    return [group for reader in readers for group in reader.stored if group.rows]


def segments_of(readers: Iterable[SliceReader]) -> list[Segment]:
    """The segments in order, without row groups that have no rows."""
    return [one for reader in readers for one in reader.segments if one.rows or one.stored is None]


def cut_segments(segments: Iterable[Segment], start: int, rows: int) -> list[Segment]:
    """The segments of `rows` rows from row `start` on, of which the first and the last one may be cut."""
    found, first = [], 0
    for one in segments:
        low, high = max(start, first) - first, min(start + rows, first + one.rows) - first
        if low < high:
            is_whole = (low, high) == (0, one.rows)
            share = one.stored_bytes * (high - low) // max(1, one.rows)
            cut = replace(one, rows=high - low, stored_bytes=share, stored=None, within=(low, high))
            found.append(one if is_whole else cut)
        first += one.rows
    return found


def unweighed(readers: Iterable[SliceReader]) -> list[Piece]:
    """The pieces of `weighed_readers` where no weight is needed."""
    return [(one.rows, 1.0) for one in segments_of(readers)]


def weighed_readers(readers: Sequence[SliceReader], codec: str, at_once: int) -> list[Piece]:
    """The segments of unsorted slices, weighed; `codec` and `at_once` as for `weighed_row_groups`."""
    weights = iter(weighed_row_groups(stored_row_groups(readers), codec, at_once))
    return [
        next(weights) if reader.stored else (one.rows, float(one.stored_bytes))
        for reader in readers
        for one in segments_of([reader])
    ]


def compressed_bytes(group: StoredRowGroup, shares: Mapping[LeafPath, float]) -> float:
    """The bytes of a row group when each column is compressed to its share of the encoded bytes."""
    return sum(chunk.uncompressed_bytes * shares.get(chunk.path, 1.0) for chunk in group.facts.columns)


def overhead_bytes(readers: Sequence[SliceReader], settings: FileSettings, rows: int) -> int:
    """About how many bytes a new file of `rows` rows has outside its pages: footer, page indexes, bloom filter."""
    return footer_bytes(readers) + bloom_bytes(settings, rows)


def footer_bytes(readers: Sequence[SliceReader]) -> int:
    """About how many bytes the footer and the page indexes of a new file have."""
    others = sum(reader.overhead_bytes for reader in readers)
    return others // max(1, sum(len(reader.stored) for reader in readers))


def bloom_bytes(settings: FileSettings, rows: int) -> int:
    """The bytes of the bloom filter of a new file of `rows` rows."""
    return 0 if settings.bloom is None else settings.bloom.new_filter(0).serialized_bytes(rows)


def files_needed(planned: int, pieces: Sequence[Piece], readers: Sequence[SliceReader], settings: FileSettings) -> int:
    """The number of new files: as planned, or more where the files would be too large."""
    if needs_no_cut(readers, planned, settings):
        return planned
    return files_for(planned, pieces, footer_bytes(readers), settings)


def files_for(planned: int, pieces: Sequence[Piece], footer: int, settings: FileSettings) -> int:
    """The number of new files for all rows in weighed `pieces`, where a footer takes so many bytes."""
    rows, weight = sum(rows for rows, _ in pieces), sum(weight for _, weight in pieces)
    each = footer + bloom_bytes(settings, -(-rows // planned))
    if weight + planned * each <= planned * settings.file_bytes * _MUCH_LARGER:
        return planned
    # The overhead bytes may exceed a very small wanted size, because of the bloom filter.
    return max(planned, math.ceil(weight / max(settings.file_bytes - each, settings.file_bytes // 2, 1)))


def even_cuts(pieces: Sequence[Piece], files: int) -> list[int]:
    """The number of rows in each file; with fewer rows than `files`, one file for each row."""
    rows = np.concatenate([[0], np.cumsum([piece[0] for piece in pieces])]).astype(np.float64)
    # Rows without weight must count, too.
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
    """Whether all rows fit into the one planned file, however well they compress."""
    return planned < 2 and sum(reader.encoded_bytes for reader in readers) <= settings.file_bytes


def weighed(sections: Iterable[OrderedRows], rows: int, files: int, options: WriterOptions) -> list[Piece]:
    """Weighed pieces of `rows` sorted rows, fine enough to cut into `files`; a part of each piece is written."""
    step = max(_LEAST_ROWS, -(-rows // (files * _PIECES_OF_A_FILE)))
    pieces = []
    for section in sections:
        for start in range(0, section.num_rows, step):
            count = min(step, section.num_rows - start)
            part = section.rows(start, min(count, max(_LEAST_ROWS, count // _WEIGHED_PART)))
            pieces.append((count, sum(_written(part, options)) * count / part.num_rows))
    return pieces


def weighed_row_groups(groups: Sequence[StoredRowGroup], codec: str, at_once: int) -> list[Piece]:
    """The row groups in order, each with its bytes in `codec`.

    With another codec than before, some row groups are read and written in memory; `at_once` as for `pieces`.
    """
    number = codec_called(codec).number
    if all(chunk.codec == number for group in groups for chunk in group.facts.columns):
        return [(group.rows, group.facts.compressed_bytes) for group in groups]
    shares = _shares(groups[:: max(1, len(groups) // _MOST_READ, min(len(groups), _WEIGHED_PART))], codec, at_once)
    return [(group.rows, compressed_bytes(group, shares)) for group in groups]


def _shares(groups: Sequence[StoredRowGroup], codec: str, at_once: int) -> dict[LeafPath, float]:
    """The compressed share of the encoded bytes, by column."""
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
    """The compressed share of the `encoded` bytes, by leaf, when `table` with these `leaves` is written."""
    written = dict(zip(leaves, _written(table, options), strict=True))
    return {path: written.get(path, 0) / max(1.0, size) for path, size in encoded.items()}


def _written(table: pa.Table, options: WriterOptions) -> list[int]:
    """The bytes of each leaf column when `table` is written."""
    # Otherwise a part would be written with the dictionary of the whole table.
    table = plain(table)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table)
    facts = pq.read_metadata(sink.getvalue())
    groups = [facts.row_group(n) for n in range(facts.num_row_groups)]
    return [sum(group.column(n).total_compressed_size for group in groups) for n in range(facts.num_columns)]
