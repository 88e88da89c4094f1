"""Rewriting a group by decoding it, a piece of a row group at a time; a sort may spill rows to the local disk."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from ..base_files.file_writer import writer_options
from ..rows.external_sort import ExternalSort
from ..rows.file_sizing import Piece, even_cuts, needs_no_cut, weighed
from ..rows.memory import copy_peak, decoding_peak, sort_bytes, sort_peak
from ..rows.row_order import SAMPLE_ROWS
from ..rows.sorting import RowSorter
from .group import Group
from .group_writer import GroupEstimate, GroupWriter
from .sample import sample_of


class DecodingWriter(GroupWriter):
    """Writes the rows in their order, or sorted, into files of about equal size; `decoded` says why none is copied."""

    def __init__(self, group: Group, decoded: str) -> None:
        super().__init__(group)
        self.decoded = decoded

    def write(self) -> None:
        group = self.group
        if not group.task.sort:
            self._write(group.tables(), group.cuts(group.pieces))
            return
        with ExternalSort(learned_sorter(self.group), group.rows, group.task.memory) as sort:
            for table in group.tables():
                with group.clock.phase("sort"):
                    sort.add(table)
            with group.clock.phase("sort"):
                sort.complete()
            cuts = group.cuts(self._weighed(sort))
            group.spilled_bytes = sort.spilled_bytes
            self._write(group.clock.each("sort", sort.tables()), cuts)

    def estimate(self) -> GroupEstimate:
        group, task = self.group, self.group.task
        files = len(group.readers)
        if not group.rows:
            return GroupEstimate(0, (), copy_peak(0, files), self.decoded, False)
        # Before the sample: groups are estimated in threads, of which one then decodes while another one parses.
        unsorted = [] if task.sort else group.weighed
        sample = sample_of(group)
        # The rewrite weighs its rows in the same way, and so cuts them into as many files.
        pieces = sample.pieces(group) if task.sort else unsorted
        count = min(group.rows, group.files_needed(pieces))
        stored = sample.stored_bytes(group)
        if not task.sort:
            # Row groups need no more together than apart, and small ones less: each has dictionaries of its own.
            stored = min(stored, sum(weight for _, weight in unsorted))
        even = [(group.rows // count, stored / count)]
        data = sample.row_bytes * group.rows
        if task.sort:
            peak = sort_peak(task.memory, data, group.rows, files)
        else:
            peak = decoding_peak(task.memory, task.settings.row_group_bytes, data, files)
        spills = bool(task.sort) and sort_bytes(int(data), group.rows) > task.memory.run
        sizes, cuts = group.sizes([even] * count), tuple(even_cuts(pieces, count))
        return GroupEstimate(group.rows, sizes, peak, self.decoded, spills, cuts)

    def _weighed(self, sort: ExternalSort) -> list[Piece]:
        group, task = self.group, self.group.task
        count = len(task.file_ids)
        if needs_no_cut(group.readers, count, task.settings):
            return [(sort.rows, 1.0)]
        path = task.storage.full_path(task.partition)
        with group.clock.phase("cut"):
            options = writer_options(group.target, path, task.settings.codec, group.columns.plain_leaves)
            return weighed(sort.sections(), sort.rows, count, options)

    def _write(self, tables: Iterable[pa.Table], cuts: Sequence[int]) -> None:
        """Write the files; `cuts` are the numbers of their rows."""
        left, rest = iter(tables), None
        for wanted in cuts:
            with self.group.new_file(wanted) as file:
                while wanted:
                    if rest is None or rest.num_rows == 0:
                        rest = next(left, None)
                    if rest is None:
                        # Fewer rows than the footers say: the comparison of the checksums will fail.
                        break
                    part, rest = rest.slice(0, wanted), rest.slice(wanted)
                    wanted -= part.num_rows
                    file.write(part)


def learned_sorter(group: Group) -> RowSorter:
    """The order of the rows of a group; a layout has learned from some of them."""
    task = group.task
    sorter = RowSorter(group.target, task.sort, task.layout)
    if sorter.needs_sample:
        step, seen, parts = max(1, group.rows // SAMPLE_ROWS), 0, []
        for table in group.values(sorter.columns):
            parts.append(table.take(pa.array(np.arange(-seen % step, table.num_rows, step))))
            seen += table.num_rows
            while sum(part.nbytes for part in parts) > task.memory.sample and step < group.rows:
                # Long texts: keep every second row of the sample.
                parts, step = [part.take(pa.array(range(0, part.num_rows, 2))) for part in parts], 2 * step
        if parts:
            with group.clock.phase("sort"):
                sorter.learn(pa.concat_tables(parts).unify_dictionaries())
    return sorter
