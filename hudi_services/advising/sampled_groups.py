"""Some rows of each group of a clustering plan, and the files that a clustering would make of them.

The rows are drawn at random from row groups of the base files, the predicates' columns alone; rows of log files are
not among them. They are sorted by the code that sorts clusterings, and cut into files of equal numbers of rows: each of
these stands for a new file. Statistics of the old files say what no row of the group can pass.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base_files.row_selection import take_table
from ..base_files.slices import SliceReader, StoredRowGroup
from ..computed_once import cached_property
from ..model import FileSlice
from ..parquet.file_schema import FileSchema
from ..parquet.sort_keys import sort_value
from ..rewriting.inputs import TableColumns
from ..rows.sort_order import LINEAR, SortColumn
from ..rows.sorting import RowSorter
from ..snapshot import Snapshot
from .column_values import Coded, FileRange, coded
from .file_ranges import RangedSlice, may_have, union
from .predicates import Chances, Exists, Predicate, Test, chances
from .seen_rows import chances_of_files

Numbers = npt.NDArray[np.int64]

SHARE = 0.01
LEAST_ROWS, MOST_ROWS = 50_000, 200_000
"""A sample has a hundredth of the rows, but not fewer than the least nor more than the most."""
MOST_FILES = 256
"""Files that are opened for a sample."""
_ROW_GROUPS_OF_A_FILE = 4
_PIECE_BYTES = 64 << 20


@dataclass(frozen=True)
class RowLayout:
    """An order of rows: `name` as for `rows.row_order`, NONE for the order that the rows have."""

    name: str
    columns: tuple[str, ...] = ()

    @property
    def ordered(self) -> tuple[str, ...]:
        """The columns whose values it brings together, each by itself."""
        return self.columns[:1] if self.name == LINEAR else self.columns

    @property
    def sort(self) -> tuple[SortColumn, ...]:
        return tuple(map(SortColumn, self.columns))


@dataclass(frozen=True)
class SampledGroup:
    """Rows of a group in the order of the plan's file slices, in the raw form of `schema`.

    `rows`: about how many the group has. `ranges`: of all of its rows.
    """

    slices: tuple[RangedSlice, ...]
    table: pa.Table
    schema: FileSchema | None
    rows: float
    ranges: Mapping[str, FileRange]

    @property
    def partition(self) -> str:
        return self.slices[0].slice.partition

    @property
    def bytes(self) -> int:
        return sum(one.slice.size for one in self.slices)

    @cached_property
    def coded(self) -> Mapping[str, Coded]:
        """The values of the columns that the sample has."""
        if self.schema is None:
            return {}
        return {name: coded(sort_value(self.schema, self.table, name)) for name in self.table.column_names}

    def order(self, layout: RowLayout) -> Numbers:
        """The places of the rows in the order of a layout. Raises ConfigError for columns without an order."""
        if not layout.columns or self.schema is None or not self.table.num_rows:
            return np.arange(self.table.num_rows)
        sorter = RowSorter(self.schema, layout.sort, layout.name)
        keys = self.table.select(layout.columns)
        sorter.learn(keys)
        return sorter.order(sorter.placed([keys]))

    def new_files(
        self, order: Numbers, files: int, shares: Sequence[float] = (), ordered: Collection[str] = ()
    ) -> "VirtualFiles":
        """The files that the rows make in an order; `shares` of the rows, or the same number for each file.

        `ordered`: the columns whose values the order brings together.
        """
        rows = len(order)
        ends = np.cumsum(shares or [1.0 / files] * files)[:-1]
        of_rows = np.empty(rows, np.int64)
        of_rows[order] = np.searchsorted(np.rint(ends * rows).astype(np.int64), np.arange(rows), "right")
        return VirtualFiles(self, of_rows, files, ordered)

    def selectivity(self, atom: Exists) -> float:
        """The share of sampled rows that pass a test; 1 where nothing is known."""
        known = self.coded.get(atom.column)
        if known is None or not len(known.codes):
            return 1.0
        low, high = _codes(known, atom)
        inside = (known.codes >= low) & (known.codes < high)
        if atom.test is Test.OTHER:
            inside = ~inside & (known.codes >= 0)
        return float(inside.mean())


class VirtualFiles:
    """The files that a layout makes of a group: `of_rows` says which one has each sampled row."""

    def __init__(self, group: SampledGroup, of_rows: Numbers, files: int, ordered: Collection[str]) -> None:
        self.group = group
        self.files = files
        self._ordered = ordered
        self._of_rows = of_rows
        self._sorted: dict[str, Numbers] = {}
        self._known: dict[Exists, Chances] = {}

    def chances(self, predicate: Predicate) -> Chances:
        """How probable it is for each file that a predicate reads it."""
        return chances(predicate.condition, self._of_atom, self.files)

    def _of_atom(self, atom: Exists) -> Chances:
        if atom not in self._known:
            is_there = may_have(self.group.ranges.get(atom.column, FileRange(is_known=False)), atom)
            if atom.column not in self.group.coded or not is_there:
                self._known[atom] = np.full(self.files, float(is_there))
            else:
                rows, sampled = self.group.rows, len(self._of_rows)
                is_ordered = atom.column in self._ordered
                seen = self._seen(atom)
                self._known[atom] = chances_of_files(seen, rows, sampled, is_there=True, is_ordered=is_ordered)
        return self._known[atom]

    def _seen(self, atom: Exists) -> Numbers:
        """How many sampled rows of each file pass the test."""
        known = self.group.coded[atom.column]
        # One number for each row: its file, then its code, where nulls come first.
        step = len(known.values) + 2
        if atom.column not in self._sorted:
            self._sorted[atom.column] = np.sort(self._of_rows * step + known.codes + 1)
        places, begins = self._sorted[atom.column], np.arange(self.files) * step

        def within(low: int, high: int) -> Numbers:
            return np.searchsorted(places, begins + high + 1) - np.searchsorted(places, begins + low + 1)

        found = within(*_codes(known, atom))
        return within(0, len(known.values)) - found if atom.test is Test.OTHER else found


def _codes(known: Coded, atom: Exists) -> tuple[int, int]:
    """The first code that passes a test, and the one after the last; of OTHER those that do not pass it."""
    values, last = known.values, len(known.values)
    if atom.test is Test.NULL:
        return -1, 0
    if atom.test is Test.VALUE:
        return 0, last
    low, high = bisect_left(values, atom.value), bisect_right(values, atom.value)
    found = {Test.BELOW: (0, low), Test.UP_TO: (0, high), Test.FROM: (low, last), Test.ABOVE: (high, last)}
    return found.get(atom.test, (low, high))


@dataclass(frozen=True)
class Sampler:
    """Draws the rows of `columns` of the groups of a plan; the same `seed` draws the same rows."""

    table: Snapshot
    columns: Collection[str]
    seed: int = 0

    def draw(self, groups: Sequence[Sequence[RangedSlice]]) -> list[SampledGroup]:
        """A sample of each group. Raises CorruptFile, UnsupportedTable and StorageError."""
        random = np.random.default_rng(self.seed)
        total = max(1, sum(one.slice.base_bytes for group in groups for one in group))
        chosen = [self._chosen(group, total, random) for group in groups]
        opened = [[self._open(one.slice) for one in group] for group in chosen]
        read = max(1, sum(one.slice.base_bytes for group in chosen for one in group))
        rows = sum(reader.num_rows for group in opened for reader in group) * total / read
        wanted = min(rows, max(LEAST_ROWS, min(MOST_ROWS, SHARE * rows)))
        columns = TableColumns.of(self.table)
        return [
            self._sampled(group, some, readers, columns, wanted / max(1.0, rows), random)
            for group, some, readers in zip(groups, chosen, opened, strict=True)
        ]

    def _chosen(self, group: Sequence[RangedSlice], total: int, random: np.random.Generator) -> list[RangedSlice]:
        """The slices whose rows are drawn, in their order."""
        based = [one for one in group if one.slice.base_file is not None]
        size = sum(one.slice.base_bytes for one in based)
        count = min(len(based), max(1, round(MOST_FILES * size / total)))
        places = np.sort(random.choice(len(based), count, replace=False)) if based else ()
        return [based[at] for at in places]

    def _open(self, file_slice: FileSlice) -> SliceReader:
        assert file_slice.base_file is not None, "no other is chosen"
        return self.table.slices.open(FileSlice.of_base(file_slice.base_file))

    def _sampled(
        self,
        group: Sequence[RangedSlice],
        some: Sequence[RangedSlice],
        readers: Sequence[SliceReader],
        columns: TableColumns,
        share: float,
        random: np.random.Generator,
    ) -> SampledGroup:
        names = {column for one in group for column in one.ranges} | set(self.columns)
        ranges = {name: union(one.of(name) for one in group) for name in names}
        read = sum(one.slice.base_bytes for one in some)
        factor = sum(one.slice.base_bytes for one in group) / max(1, read)
        rows = sum(reader.num_rows for reader in readers) * factor
        if not readers:
            return SampledGroup(tuple(group), pa.table({}), None, rows, ranges)
        schema, _ = columns.target(readers)
        wanted = [name for name in schema.columns if name in self.columns]
        parts = []
        for reader in readers:
            parts.append(_drawn(reader, wanted, schema, round(reader.num_rows * factor * share), random))
            reader.release()
        return SampledGroup(tuple(group), pa.concat_tables(parts), schema, rows, ranges)


def _drawn(
    reader: SliceReader, columns: Sequence[str], schema: FileSchema, count: int, random: np.random.Generator
) -> pa.Table:
    """About `count` random rows of a base file, of a few of its row groups, in their order."""
    stored = [one for one in reader.stored if one.rows]
    places = np.sort(random.choice(len(stored), min(len(stored), _ROW_GROUPS_OF_A_FILE), replace=False))
    chosen = [stored[at] for at in places]
    # Where values are converted, no row group has them as they are given.
    rows = sum(one.rows for one in chosen) if chosen else reader.num_rows
    share = min(1.0, count / max(1, rows))
    tables = _stored_tables(chosen, columns, schema) if chosen else _all_tables(reader, columns, schema)
    parts = [take_table(table, np.flatnonzero(random.random(table.num_rows) < share)) for table in tables]
    return pa.concat_tables(parts) if parts else schema.arrow.empty_table().select(columns)


def _stored_tables(
    row_groups: Sequence[StoredRowGroup], columns: Sequence[str], schema: FileSchema
) -> Iterator[pa.Table]:
    for one in row_groups:
        yield from one.reader.pieces(one.index, columns, schema, at_once=_PIECE_BYTES)


def _all_tables(reader: SliceReader, columns: Sequence[str], schema: FileSchema) -> Iterator[pa.Table]:
    return (table for _, table in reader.tables(columns, schema, at_once=_PIECE_BYTES))
