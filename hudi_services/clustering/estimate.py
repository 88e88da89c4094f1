"""The estimate of a group's rewrite before it is done, from the footers and a few rows of its files.

The same functions decide here and in the rewrite whether the group is copied and how many files it becomes. Sizes that
only writing shows are estimated: a sample of the rows is put in order and written to memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..base_files.file_writer import writer_options
from ..base_files.slices import (
    SliceReader,
    StoredRowGroup,
    shared_dictionary_columns,
    shared_plain_leaves,
)
from ..parquet.file_schema import FileSchema
from ..rewriting.copy_plan import CopyPlan, copy_plan
from ..rewriting.inputs import open_group
from ..rewriting.task import RewriteTask
from ..rows.file_sizing import (
    LeafPath,
    Piece,
    compressed_bytes,
    files_needed,
    overhead_bytes,
    shares_of,
    stored_row_groups,
    weighed_readers,
)
from ..rows.memory import copy_peak, decoding_peak, sort_bytes, sort_peak
from ..rows.sorting import RowSorter

_SAMPLED_ROW_GROUPS = 16
_SAMPLED_ROWS = 16_384
"""Rows that are sampled of each row group."""


@dataclass(frozen=True, slots=True)
class GroupEstimate:
    """The estimate of one group. Sizes in bytes; `memory` is the peak of the process that runs the task.

    `decoded`: why the rows must be decoded, None when they are copied. `spilled`: whether a sort spills rows to the
    local disk.
    """

    rows: int
    new_files: tuple[int, ...]
    memory: int
    decoded: str | None
    spilled: bool


def estimate_group(task: RewriteTask) -> GroupEstimate:
    """Estimate the rewrite of a group. Raises the errors of `rewrite_group` for inputs that cannot be read."""
    group = open_group(task)
    readers, target = group.readers, group.target
    groups = stored_row_groups(readers)
    rows = sum(reader.num_rows for reader in readers)
    pieces = weighed_readers(readers, task.settings.codec, task.memory.stored) if not task.sort else []
    plan = copy_plan(task, readers, target, pieces)
    if isinstance(plan, CopyPlan):
        weighed = iter(pieces)
        sizes = _sizes(task, readers, [[next(weighed) for _ in file] for file in plan.files])
        return GroupEstimate(rows, sizes, _copy_peak(task, readers, plan), plan.decoded, False)
    if not rows:
        return GroupEstimate(0, (), copy_peak(0, len(readers)), plan, False)
    sample = _sample(task, readers, groups, target)
    if task.sort:
        leaves = [leaf.path for leaf in target.leaves]
        path = task.storage.full_path(task.partition)
        options = writer_options(target, path, task.settings.codec, shared_plain_leaves(readers))
        share = shares_of(sample.table, leaves, sample.encoded, options)
        merged = sum(reader.stored_bytes for reader in readers if not reader.stored)
        pieces = [(rows, merged + sum(compressed_bytes(group, share) for group in groups))]
    count = min(rows, files_needed(len(task.file_ids), pieces, readers, task.settings))
    even = [(rows // count, sum(weight for _, weight in pieces) / count)]
    data = sample.row_bytes * rows
    peak = (
        sort_peak(task.memory, data, rows, len(readers))
        if task.sort
        else decoding_peak(task.memory, task.settings.row_group_bytes, data, len(readers))
    )
    return GroupEstimate(
        rows,
        _sizes(task, readers, [even] * count),
        peak,
        plan,
        bool(task.sort) and sort_bytes(int(data), rows) > task.memory.run,
    )


def _copy_peak(task: RewriteTask, readers: Sequence[SliceReader], plan: CopyPlan) -> int:
    segments = [one for file in plan.files for one in file]
    largest = max(one.stored.facts.compressed_bytes for one in segments if one.stored is not None)
    merged = sum(one.rows for one in segments if one.stored is None)
    if not merged:
        return copy_peak(largest, len(readers))
    rows = max(1, sum(reader.num_rows for reader in readers))
    encoded = sum(reader.encoded_bytes for reader in readers) * merged / rows
    return decoding_peak(task.memory, task.settings.row_group_bytes, encoded, len(readers)) + 2 * largest


def _sizes(task: RewriteTask, readers: Sequence[SliceReader], files: Sequence[Sequence[Piece]]) -> tuple[int, ...]:
    """The sizes of new files, in bytes: the weight of their pieces plus their overhead bytes."""
    return tuple(
        round(sum(weight for _, weight in pieces))
        + overhead_bytes(readers, task.settings, sum(rows for rows, _ in pieces))
        for pieces in files
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some rows of a group in the new order; `encoded` is their encoded size in the old files by column, in bytes."""

    table: pa.Table
    encoded: dict[LeafPath, float]
    row_bytes: float


def _sample(
    task: RewriteTask, readers: Sequence[SliceReader], groups: Sequence[StoredRowGroup], target: FileSchema
) -> _Sample:
    dictionary = shared_dictionary_columns(readers)
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

    for at in np.unique(np.linspace(0, len(groups) - 1, min(len(groups), _SAMPLED_ROW_GROUPS)).astype(int)):
        group = groups[at]
        taken = add(group.first_piece(target, dictionary, task.memory.stored))
        for chunk in group.facts.columns:
            had = chunk.uncompressed_bytes * taken / group.rows
            encoded[chunk.path] = encoded.get(chunk.path, 0.0) + had
    for reader in readers:
        if not reader.stored and reader.num_rows:
            pieces = reader.tables(target=target, dictionary=dictionary, at_once=task.memory.stored)
            add(next(rows for _, rows in pieces if rows.num_rows))
    if task.sort:
        sorter = RowSorter(target, task.sort, task.layout)
        sorter.learn(pa.concat_tables(tables).unify_dictionaries())
        tables = [sorter.bare(sorter.sorted(tables))]
    return _Sample(pa.concat_tables(tables).unify_dictionaries(), encoded, size / max(1, rows))
