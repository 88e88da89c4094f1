"""A sample of the rows of a group in their new order: it is written to memory, to estimate what only writing shows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..base_files.file_writer import writer_options
from ..base_files.slice_outline import LeafPath
from ..rows.external_sort import SortedTable
from ..rows.file_sizing import Piece, compressed_bytes, shares_of, weighed
from ..rows.sorting import RowSorter
from .group import Group

_SAMPLED_ROW_GROUPS = 16
_PIECES = 4
"""Pieces that a sample has for four new files, where the rewrite has sixteen for each."""
_SAMPLED_ROWS = 16_384
"""Rows that are sampled of each row group."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of a group in the new order; `encoded` is their encoded size in the old files by column, in bytes.

    `row_bytes`: of one row in memory.
    """

    table: pa.Table
    encoded: dict[LeafPath, float]
    row_bytes: float

    def pieces(self, group: Group) -> list[Piece]:
        """Pieces of all rows of the group in the new order, weighed by those of the sample."""
        task, files = group.task, len(group.task.file_ids)
        path = task.storage.full_path(task.partition)
        options = writer_options(group.target, path, task.settings.codec, group.columns.plain_leaves)
        # Of a sample, fewer and longer pieces: what is written of each must tell.
        found = weighed([SortedTable(self.table)], self.table.num_rows, max(1, files // _PIECES), options)
        share = group.rows / max(1, self.table.num_rows)
        return [(round(rows * share), weight * share) for rows, weight in found]

    def stored_bytes(self, group: Group) -> float:
        """About how many bytes all rows of the group have as they will be stored."""
        task, target = group.task, group.target
        leaves, path = [leaf.path for leaf in target.leaves], task.storage.full_path(task.partition)
        options = writer_options(target, path, task.settings.codec, group.columns.plain_leaves)
        share = shares_of(self.table, leaves, self.encoded, options)
        return group.merged_bytes + sum(compressed_bytes(one, share) for one in group.stored)


def sample_of(group: Group, row_groups: int = _SAMPLED_ROW_GROUPS) -> Sample:
    """The sample of a group that has rows, of about so many of its row groups."""
    task, dictionary, target = group.task, group.columns.dictionary, group.target
    tables: list[pa.Table] = []
    encoded: dict[LeafPath, float] = {}
    rows = size = 0

    def add(piece: pa.Table) -> int:
        nonlocal rows, size
        # Scattered rows: neighbours in the old file are alike, and neighbours in the new order need not be.
        step = max(1, piece.num_rows // _SAMPLED_ROWS)
        tables.append(piece.take(pa.array(range(0, piece.num_rows, step))))
        size += piece.get_total_buffer_size()
        rows += piece.num_rows
        return int(tables[-1].num_rows)

    stored = group.stored
    for at in np.unique(np.linspace(0, len(stored) - 1, min(len(stored), row_groups)).astype(int)):
        one = stored[at]
        taken = add(one.first_piece(target, dictionary, task.memory.stored))
        for path, bytes_of in one.encoded.items():
            encoded[path] = encoded.get(path, 0.0) + bytes_of * taken / one.rows
    for reader in group.readers:
        if not reader.stored and reader.num_rows:
            pieces = reader.tables(target=target, dictionary=dictionary, at_once=task.memory.stored)
            add(next(rows for _, rows in pieces if rows.num_rows))
    if task.sort:
        sorter = RowSorter(target, task.sort, task.layout)
        sorter.learn(pa.concat_tables(tables).unify_dictionaries())
        tables = [sorter.bare(sorter.sorted(tables))]
    return Sample(pa.concat_tables(tables).unify_dictionaries(), encoded, size / max(1, rows))
