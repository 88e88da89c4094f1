"""File sizing: how many new files a group gets, and where each file ends, so that all have about the same size.

Rows differ in compressed size, also from one end of the order to the other. Therefore pieces of the group are weighed,
by the row groups that they come from or by writing a part of them, and the cuts divide the weight evenly.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..base_files.file_writer import writer_options
from ..base_files.slice_outline import LeafPath, Segmented, SegmentSizes, SliceSizes, StoredSizes
from ..base_files.slices import Segment, SliceReader, StoredRowGroup
from ..parquet.compression import codec_called
from .external_sort import OrderedRows, plain
from .settings import FileSettings

Sizes = TypeVar("Sizes", bound=SegmentSizes)
"""A segment, or its outline."""
WriterOptions = Mapping[str, Any]
"""Options of pyarrow's writer of parquet files."""
Piece = tuple[int, float]
"""Consecutive rows: their number, and about how many bytes they need together (their weight)."""
Written = Mapping[LeafPath, tuple[int, int]]
"""Some rows that were written in another codec: for each leaf its uncompressed bytes before, and its bytes after."""

_PIECES_OF_A_FILE = 16
_WEIGHED_PART = 8
_LEAST_ROWS = 1000
_MOST_READ = 4
_MUCH_LARGER = 1.05
"""The group gets more files than planned when files would be larger than this many times the wanted size."""


def stored_row_groups(readers: Iterable[SliceReader]) -> list[StoredRowGroup]:
    """The row groups that have rows, in order, of slices whose rows need not be merged."""
    return [group for reader in readers for group in reader.stored if group.rows]


def segments_of(slices: "Iterable[Segmented[Sizes]]") -> list[Sizes]:
    """The segments in order, without row groups that have no rows."""
    return [one for some in slices for one in some.segments if one.rows or one.stored is None]


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


def unweighed(slices: Iterable[SliceSizes]) -> list[Piece]:
    """The pieces of `weighed_slices` where no weight is needed."""
    return [(one.rows, 1.0) for one in segments_of(slices)]


def weighed_slices(slices: Iterable[SliceSizes], codec: str, written: Iterable[Written]) -> list[Piece]:
    """The segments of slices that are not sorted, each with its bytes in `codec`, about.

    `written`: the samples of those that `sampled_slices` names; they tell for each leaf how well `codec` compresses.
    """
    shares, number = _shares(written), codec_called(codec).number

    def weighed(segment: SegmentSizes) -> Piece:
        stored = segment.stored
        if stored is None or not shares or stored.codecs == {number}:
            return segment.rows, float(segment.stored_bytes)
        return segment.rows, compressed_bytes(stored, shares)

    return [
        weighed(one) if some.stored else (one.rows, float(one.stored_bytes))
        for some in slices
        for one in segments_of([some])
    ]


def compressed_bytes(group: StoredSizes, shares: Mapping[LeafPath, float]) -> float:
    """The bytes of a row group when each column is compressed to its share of the encoded bytes."""
    return sum(size * shares.get(path, 1.0) for path, size in group.encoded.items())


def overhead_bytes(readers: Sequence[SliceSizes], settings: FileSettings, rows: int) -> int:
    """About how many bytes a new file of `rows` rows has outside its pages: footer, page indexes, bloom filter."""
    return footer_bytes(readers) + bloom_bytes(settings, rows)


def footer_bytes(readers: Sequence[SliceSizes]) -> int:
    """About how many bytes the footer and the page indexes of a new file have."""
    others = sum(reader.overhead_bytes for reader in readers)
    return others // max(1, sum(len(reader.stored) for reader in readers))


def bloom_bytes(settings: FileSettings, rows: int) -> int:
    """The bytes of the bloom filter of a new file of `rows` rows."""
    return 0 if settings.bloom is None else settings.bloom.new_filter(0).serialized_bytes(rows)


def files_needed(planned: int, pieces: Sequence[Piece], readers: Sequence[SliceSizes], settings: FileSettings) -> int:
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


def needs_no_cut(readers: Iterable[SliceSizes], planned: int, settings: FileSettings) -> bool:
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


def sampled_slices(count: int) -> dict[int, int]:
    """The slices, of `count`, of which some rows are read and written to know what a codec does with them.

    By number; each with the most row groups that are read of it.
    """
    found = range(0, count, max(1, count // _MOST_READ, min(count, _WEIGHED_PART)))
    return dict.fromkeys(found, -(-_MOST_READ // max(1, len(found))))


def written_samples(
    readers: Sequence[SliceReader], sampled: Mapping[int, int], codec: str, at_once: int
) -> Iterator[Written]:
    """The samples of the slices that `sampled` names, as `sampled_slices` does; the rest as for `written_sample`."""
    return (written_sample(readers[number], most, codec, at_once) for number, most in sampled.items())


def written_sample(reader: SliceReader, most: int, codec: str, at_once: int) -> Written:
    """What the first rows of some row groups, `most` of them, become in `codec`.

    {} where a slice has this codec, or must be merged. `at_once` as for `BaseFileReader.pieces`.
    """
    stored = [one for one in reader.stored if one.rows]
    number = codec_called(codec).number
    found: dict[LeafPath, tuple[int, int]] = {}
    if all(one.codecs == {number} for one in stored):
        return found
    options = writer_options(reader.schema, reader.full_path, codec, reader.plain_leaves)
    for group in stored[:: max(1, len(stored) // most, min(len(stored), _WEIGHED_PART))]:
        part = group.first_piece(reader.schema, reader.dictionary_columns, at_once)
        for (path, size), written in zip(group.encoded.items(), _written(part, options), strict=True):
            before, after = found.get(path, (0, 0))
            found[path] = before + size * part.num_rows // group.rows, after + written
    return found


def _shares(samples: Iterable[Written]) -> dict[LeafPath, float]:
    """The compressed share of the encoded bytes, by leaf."""
    before: Counter[LeafPath] = Counter()
    after: Counter[LeafPath] = Counter()
    for sample in samples:
        for path, (encoded, written) in sample.items():
            before[path] += encoded
            after[path] += written
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
