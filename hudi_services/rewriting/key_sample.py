"""A sample of a group that several tasks sort together, and the ranges of keys of its new files.

Each source of the group samples its own rows: the keys of every so many, to know where the rows are; and a few whole
rows, which are written to memory, to know how many bytes rows take along the order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..base_files.file_writer import writer_options
from ..base_files.row_selection import Numbers, take_table
from ..rows.external_sort import SortedTable, plain
from ..rows.file_sizing import Piece, WriterOptions, even_cuts, files_for, weighed
from ..rows.key_ranges import KeyRanges
from ..rows.sorting import RowSorter
from .group import Group
from .sample import sample_of
from .task import GroupForm, RewriteTask

_KEYS = 1 << 17
"""Keys that are sampled of a group, about."""
_ROW_GROUPS = 16
"""Row groups of a group of which whole rows are sampled, about."""
_ROW_BITS = 40


def first_number(source: RewriteTask) -> int:
    """The number of the first row of a source; those of the next source are higher than those of all its rows."""
    assert source.part is not None, "a source is a part"
    return source.part.number << _ROW_BITS


@dataclass(frozen=True, slots=True)
class KeySample:
    """The sample of one source. `keys`: the sort columns of every so many, each of which stands for `each` rows.

    `numbers`: those of the rows in the group. `whole`: a few whole rows, None where none were wanted. `bytes`: those of
    the rows of the source as they are stored; `stored`: as they will be stored, about, 0.0 without whole rows.
    """

    keys: pa.Table
    numbers: Numbers
    each: int
    bytes: int
    whole: pa.Table | None = None
    stored: float = 0.0


@dataclass(frozen=True, slots=True)
class SampleTask:
    """A source, one of so many of its group. `whole`: whether whole rows are wanted of it, too."""

    source: RewriteTask
    of: int
    whole: bool

    @classmethod
    def of_group(cls, sources: Sequence[RewriteTask]) -> "list[SampleTask]":
        """The tasks of all sources of a group."""
        step = max(1, len(sources) // _ROW_GROUPS)
        return [cls(source, len(sources), number % step == 0) for number, source in enumerate(sources)]


def sample_source(task: SampleTask, write_token: str) -> KeySample | None:
    """Sample one source of a group; None where it has no rows. Raises as `rewrite_group`."""
    group, of = Group(task.source), task.of
    if not group.rows:
        return None
    columns = [column.name for column in group.task.sort]
    step = max(1, group.rows * of // _KEYS)
    seen, keys, numbers = 0, [], []
    for table in group.values(columns):
        at = np.arange(-seen % step, table.num_rows, step)
        keys.append(plain(take_table(table, at)))
        numbers.append(first_number(group.task) + seen + at)
        seen += table.num_rows
    size = sum(one.compressed_bytes for one in group.stored) + group.merged_bytes
    found = KeySample(pa.concat_tables(keys), np.concatenate(numbers), step, size)
    if not task.whole:
        return found
    sample = sample_of(group, max(1, _ROW_GROUPS // of))
    return replace(found, whole=sample.table, stored=sample.stored_bytes(group))


def ranges_of(task: RewriteTask, form: GroupForm, footer: int, samples: Sequence[KeySample]) -> KeyRanges:
    """The ranges of the new files of a group, which `task` rewrites, by the samples of its sources, in their order.

    Without a sample there are no rows. `footer`: about how many bytes the footer of a new file has. Raises the errors
    of `RowSorter`.
    """
    sorter = RowSorter(form.target, task.sort, task.layout)
    if not samples:
        return KeyRanges(sorter, pa.table({}), ())
    keys = pa.concat_tables([one.keys for one in samples])
    if sorter.needs_sample:
        sorter.learn(keys)
    each = np.concatenate([np.full(len(one.numbers), one.each) for one in samples])
    numbers = np.concatenate([one.numbers for one in samples])
    placed = sorter.placed([keys]).select(sorter.keys)
    order = sorter.order(placed)
    ordered = take_table(placed, order)
    rows_before = np.cumsum(each[order])
    path = task.storage.full_path(task.partition)
    options = writer_options(form.target, path, task.settings.codec, form.columns.plain_leaves)
    total = sum(one.bytes for one in samples)
    pieces: list[Piece] = [(int(rows_before[-1]), float(total))]
    with_rows = [one for one in samples if one.whole is not None]
    if with_rows:
        whole = sorter.sorted([one.whole for one in with_rows])
        pieces = _weighed(sorter, whole, ordered, rows_before, len(task.file_ids), options)
        share = sum(one.stored for one in with_rows) / max(1, sum(one.bytes for one in with_rows))
        scale = share * total / max(1.0, sum(weight for _, weight in pieces))
        pieces = [(rows, weight * scale) for rows, weight in pieces]
    files = files_for(len(task.file_ids), pieces, footer, task.settings)
    ends = np.cumsum(even_cuts(pieces, files))[:-1]
    at = np.unique(np.searchsorted(rows_before, ends, "left").clip(1, len(order) - 1))
    return KeyRanges(sorter, plain(take_table(ordered, at)), tuple(numbers[order[at]].tolist()))


def _weighed(
    sorter: RowSorter, whole: pa.Table, keys: pa.Table, rows_before: Numbers, files: int, options: WriterOptions
) -> list[Piece]:
    """Pieces of all rows in order: sorted `whole` rows say what rows weigh, and sorted `keys` how many there are."""
    sampled = weighed([SortedTable(sorter.bare(whole))], whole.num_rows, files, options)
    starts = np.cumsum([count for count, _ in sampled])[:-1]
    bounds = plain(take_table(whole.select(sorter.keys), starts))
    _, ends = KeyRanges(sorter, bounds, (0,) * len(starts)).order(keys, 0)
    rows = np.diff(np.concatenate([[0], rows_before])[[0, *ends, len(rows_before)]])
    return [(n, weight / count * n) for n, (count, weight) in zip(rows.tolist(), sampled, strict=True)]
