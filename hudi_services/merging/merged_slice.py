"""An open file slice with log files, or with rows that are being written.

A slice is read in three steps: the records that change it are read and merged with each other; the record keys of the
base file are read, to find the rows that records touch; then the rows are read, and pieces that no record touches are
passed on as they are. Row groups that no record touches may be copied instead.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from ..base_files.base_file_slice import BaseFileSlice
from ..base_files.base_file_slices import BaseFileSlices
from ..base_files.row_selection import take_table
from ..base_files.slices import CheckedTables, Segment, StoredRowGroup
from ..calendars.calendar import FileCalendar
from ..computed_once import cached_property
from ..errors import REPORT_IT, CheckFailed, CorruptFile, UnsupportedTable
from ..model import FileSlice, LogCounts
from ..parquet.chunk_stats import ColumnStats
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..small_files import with_small_files
from ..storage import Storage
from ..table.support import WITH_HUDI
from .counted_instants import CountedInstants
from .expected_rows import ExpectedRows
from .fold import NullOrdering
from .log_records import KEY
from .merged_logs import Merger, with_dictionaries
from .rules import Fill, MergeRule
from .slice_changes import Changes, LogChanges
from .updates import Effects, Touched, Updates, find_updates

_COMPRESSION = 3
"""About how many times as large records are in a log file as in a base file."""


class MergedSlice:
    """An open slice with records that change it. Raises CorruptFile, UnsupportedTable and StorageError."""

    def __init__(self, file_slice: FileSlice, base: BaseFileSlice | None, changes: Changes, memory: int) -> None:
        """`base` is the open base file of the slice; `memory` is the bytes of records that may be in memory.

        The records have Gregorian dates, and so do the rows.
        """
        self._again = partial(MergedSlice, file_slice, base, memory=memory)
        self._memory = memory
        self._base = base
        self._row_groups = [group.num_rows for group in base.row_groups] if base is not None else []
        self.path = file_slice.base_file.path if file_slice.base_file is not None else file_slice.log_files[0].path
        self.full_path = changes.full_path
        self._changes = changes
        self._schema = changes.schema
        self._makes_keys = base is not None and base.makes_keys
        self.schema = _without_key(self._schema) if self._makes_keys else self._schema
        self._merger = Merger(self._schema, changes.rule, changes.ordering, changes.subsets)
        self._spilled = 0
        """Bytes on the local disk of the checks of merged rows, and of merges that were released."""
        self._held: Updates | None = None
        """Until `release`; `_effects` stay known."""
        self._wider: MergedSlice | None = None
        self._kept: list[pa.Table] | None = None
        """The records as they were read, for the check of the merged rows."""
        self._kept_base: pa.Table | None = None
        """Columns of all rows of the base file, which the merge has read, until `release`."""

    @classmethod
    def of_logs(
        cls,
        storage: Storage,
        file_slice: FileSlice,
        rule: MergeRule,
        counts: CountedInstants,
        memory: int,
        bases: BaseFileSlices,
    ) -> "MergedSlice":
        """The slice with its log files."""
        file_slice = (
            file_slice if all(file.content for file in file_slice.files) else with_small_files(storage, file_slice)
        )
        found = file_slice.base_file
        base = bases.open_base(found).gregorian() if found is not None else None
        changes = LogChanges(storage, file_slice, base, rule, counts, bases.history.value)
        return cls(file_slice, base, changes, memory)

    # ---- facts

    @property
    def num_rows(self) -> int:
        return self._base_rows - int(self._effects.row_groups.deleted.sum()) + self._effects.added

    @property
    def most_rows(self) -> int:
        """As `SliceFacts.most_rows`."""
        return self._base_rows + self._changes.count()

    @property
    def log_counts(self) -> LogCounts:
        return self._effects.counts + LogCounts(self._changes.blocks)

    @property
    def spilled_bytes(self) -> int:
        return self._spilled + (self._held.spilled_bytes if self._held is not None else 0)

    @property
    def size(self) -> int:
        return (self._base.size if self._base is not None else 0) + self._changes.size

    @property
    def encoded_bytes(self) -> int:
        base = self._base.encoded_bytes if self._base is not None else 0
        return base + self._changes.encoded_bytes

    @property
    def stored_bytes(self) -> int:
        if self._base is None or not self._base.num_rows:
            return self.encoded_bytes // _COMPRESSION
        return self._base.stored_bytes * self.num_rows // self._base.num_rows

    @property
    def overhead_bytes(self) -> int:
        return self._base.overhead_bytes if self._base is not None else 0

    @property
    def key_values(self) -> Mapping[str, str]:
        return self._base.key_values if self._base is not None else {}

    @property
    def calendar(self) -> FileCalendar:
        entries = self._base.calendar.converted().key_values if self._base is not None else {}
        return FileCalendar(self.full_path, entries, self.schema, is_converted=True)

    is_converted = False

    def gregorian(self) -> "MergedSlice":
        return self

    @property
    def dictionary_columns(self) -> frozenset[str]:
        # What decides, and what may be filled from another record, is compared as values.
        if self._base is None or self._changes.rule.fill is not Fill.NOTHING:
            return frozenset()
        return self._base.dictionary_columns.difference({KEY}, self._merger.deciding_columns)

    @property
    def plain_leaves(self) -> frozenset[str]:
        return self._base.plain_leaves if self._base is not None else frozenset()

    @property
    def stored(self) -> tuple[StoredRowGroup, ...]:
        return ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        effects, base = self._effects, self._base
        changed = effects.row_groups
        sizes = [rows - deleted for rows, deleted in zip(self._row_groups, changed.deleted.tolist(), strict=True)]
        each = self.stored_bytes / max(1, self.num_rows)
        # Log records may have columns, and wider types, that the base file does not have.
        is_same = base is not None and base.schema == self.schema and not base.is_converted

        def stored(index: int) -> StoredRowGroup | None:
            return StoredRowGroup(base, index) if base is not None and is_same and not changed.touched[index] else None

        found = []
        for i, rows in enumerate(sizes):
            group = stored(i)
            size = group.facts.compressed_bytes if group is not None else round(rows * each)
            found.append(Segment(self, i, rows, size, group))
        if effects.added:
            found.append(Segment(self, None, effects.added, round(effects.added * each), None))
        return tuple(found)

    def column_stats(self, complete: Collection[str] = ()) -> tuple[ColumnStats, ...]:
        return ()

    # ---- rows

    def tables(
        self,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        target = self.schema if target is None else target
        names = list(target.columns if columns is None else columns)
        encoded = self.dictionary_columns.intersection(dictionary)
        reader = self._as_wide_as(target)
        for index in reader._indexes:
            yield from reader._tables(index, names, target, encoded, at_once, None)

    def checked_tables(
        self,
        columns: Sequence[str],
        target: FileSchema,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> CheckedTables:
        encoded = self.dictionary_columns.intersection(dictionary)
        return _Checked(self._as_wide_as(target), columns, target, encoded, at_once)

    def _as_wide_as(self, target: FileSchema) -> "MergedSlice":
        """This slice with doubles for floats where `target` has doubles: they are widened before they are merged."""
        wider = self._changes.widened(target)
        if wider is None:
            return self
        self._wider = self._again(changes=wider)
        return self._wider

    @property
    def _indexes(self) -> list[int | None]:
        """Those of the segments."""
        return [*range(len(self._row_groups)), None]

    def _tables(
        self,
        index: int | None,
        names: Sequence[str],
        target: FileSchema,
        dictionary: frozenset[str],
        at_once: int | None,
        expected: ExpectedRows | None,
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        columns = self.schema.columns_of(names)
        own = [stored for stored in columns.values() if stored is not None]

        # The rows that are expected are known by their keys, which are no column of the result where they are made.
        merged = [KEY, *own] if self._makes_keys else own

        def stored(rows: pa.Table) -> None:
            if expected is not None:
                found = converted_table(rows, rows.num_rows, self.schema, columns, target)
                expected.add_base(found, rows if self._makes_keys else found)

        for rows in self._merged(index, merged, dictionary, at_once, stored):
            rows = rows.select(own) if self._makes_keys else rows
            yield rows, converted_table(rows, rows.num_rows, self.schema, columns, target)

    def _expected_rows(self, names: Sequence[str], target: FileSchema) -> ExpectedRows:
        """What the records, as they were read, must make of the base file; they are read again if there was no room."""
        changes = self._changes
        facts = (changes.rule, changes.ordering, self._schema, changes.subsets)
        expected = ExpectedRows(
            *facts,
            names,
            target,
            is_partial=changes.is_partial,
            records=self._effects.counts.records,
            memory=self._memory,
        )
        kept, self._kept = self._kept, None
        for piece in changes.records() if kept is None else kept:
            expected.add_records(piece)
        expected.decide()
        return expected

    def touched_rows(self) -> Iterator[tuple[pa.Table, pa.Table, Touched]]:
        """The rows of the base file that the records touch, before the merge and after it, without those that it
        deletes; in the raw form of `keyed_schema`. `Touched.at` numbers the former from 0 on."""
        names, touched_groups = list(self._schema.columns), self._effects.row_groups.touched
        for index in map(int, np.flatnonzero(touched_groups)):
            start = self._start(index)
            for piece in self._base_pieces(index, names):
                touched = self._updates.touched(start, start + piece.num_rows)
                start += piece.num_rows
                if touched is not None:
                    before, at = take_table(piece, touched.at), np.arange(touched.at.size)
                    after = self._merger.rows(before, at, touched.log, touched.wins)
                    yield before, after, Touched(at, touched.log, touched.wins)

    def added_rows(self) -> Iterator[pa.Table]:
        """The rows that only the records have, in the raw form of `keyed_schema`."""
        for rows in self._updates.inserts():
            yield rows.select(self._schema.columns)

    @property
    def keyed_schema(self) -> FileSchema:
        """The schema of its rows with their record keys."""
        return self._schema

    def record_keys(self) -> Iterator[pa.ChunkedArray]:
        for rows, _ in self.tables([KEY]):
            if rows.column(KEY).null_count:
                raise CorruptFile(f"{self.full_path} has rows without a record key")
            yield rows.column(KEY)

    def release(self) -> None:
        if self._held is not None:
            self._spilled, _ = self.spilled_bytes, self._effects
        # Whoever reads rows after this merges them again.
        self._held = self._kept = self._kept_base = None
        for one in (self._wider, self._base):
            if one is not None:
                one.release()

    def _merged(
        self,
        index: int | None,
        names: Sequence[str],
        dictionary: frozenset[str],
        at_once: int | None,
        stored: Callable[[pa.Table], None],
    ) -> Iterator[pa.Table]:
        """The rows of a segment in the raw form of the schema; `stored` gets those of the base file."""
        if index is None:
            for rows in self._updates.inserts():
                yield with_dictionaries(rows.select(names), dictionary)
            return
        start = self._start(index)
        for piece in self._base_pieces(index, names, dictionary, at_once):
            touched = self._updates.touched(start, start + piece.num_rows)
            start += piece.num_rows
            stored(piece)
            if touched is None:
                yield piece
            else:
                yield self._merger.rows(piece, touched.at, touched.log, touched.wins)

    def _start(self, index: int) -> int:
        """The number of the first row of a row group."""
        return sum(self._row_groups[:index])

    def _base_pieces(
        self,
        index: int,
        names: Sequence[str],
        dictionary: frozenset[str] = frozenset(),
        at_once: int | None = None,
    ) -> Iterator[pa.Table]:
        """The rows of a row group of the base file."""
        assert self._base is not None
        kept, start = self._kept_base, self._start(index)
        known = frozenset(names).intersection(kept.column_names if kept is not None else ())
        rest = [name for name in names if name not in known]
        if kept is not None and not rest:
            yield kept.slice(start, self._row_groups[index]).select(names)
            return
        for piece in self._base.pieces(index, rest, self._schema, dictionary, at_once=at_once):
            if kept is None:
                yield piece
                continue
            part = kept.slice(start, piece.num_rows)
            start += piece.num_rows
            yield pa.table([(part if name in known else piece).column(name) for name in names], names)

    @property
    def _deciding_columns(self) -> list[str]:
        """The record key, and the columns that decide whether a log record is preferred to a base row."""
        return list(dict.fromkeys((KEY, *self._merger.deciding_columns)))

    def _deciding_pieces(self) -> Iterator[pa.Table]:
        """The record keys of the base file, and the columns that decide; they are kept when memory has room."""
        kept: list[pa.Table] = []
        size = 0
        names = self._deciding_columns
        for piece in chain.from_iterable(self._base_pieces(index, names) for index in range(len(self._row_groups))):
            size += piece.nbytes
            kept = [*kept, piece] if 4 * size <= self._memory else []
            yield piece
        if kept and 4 * size <= self._memory:
            self._kept_base = pa.concat_tables(kept)

    # ---- the merge

    @cached_property
    def _effects(self) -> Effects:
        return self._updates.effects

    @property
    def _updates(self) -> Updates:
        if self._held is None:
            self._held = self._merge()
        return self._held

    def _merge(self) -> Updates:
        records: Iterable[pa.Table] = self._changes.records()
        keys = self._deciding_pieces()
        expected = self._changes.memory_bytes
        if 2 * expected <= self._memory:
            records = self._kept = list(records)
        with self._null_orderings():
            found = find_updates(self._merger, records, expected, keys, self._row_groups, self._memory)
        if self._merger.is_partial and any(self._merger.lacks_columns(rows) for rows in found.inserts()):
            raise UnsupportedTable(f"{self.full_path}: a partial update has no row to update", hint=WITH_HUDI)
        return found

    @property
    def _base_rows(self) -> int:
        return self._base.num_rows if self._base is not None else 0

    @contextmanager
    def _null_orderings(self) -> Iterator[None]:
        try:
            yield
        except NullOrdering:
            fields, (what, hint) = ", ".join(self._changes.rule.ordering), self._changes.after_null
            raise UnsupportedTable(
                f"{self.full_path}: a null in the ordering field {fields} would have to be compared with a value: "
                f"{what}",
                hint=hint,
            ) from None


def _without_key(schema: FileSchema) -> FileSchema:
    return schema.select([name for name in schema.columns if name != KEY])


class _Checked:
    """See `CheckedTables`."""

    merges = True

    def __init__(
        self,
        reader: MergedSlice,
        names: Sequence[str],
        target: FileSchema,
        dictionary: frozenset[str],
        at_once: int | None,
    ) -> None:
        self._reader = reader
        self._names = names
        self._target = target
        self._dictionary = dictionary
        self._at_once = at_once
        self._rows = reader._expected_rows(names, target)

    def rows(self, segment: Segment) -> Iterator[tuple[pa.Table, pa.Table]]:
        return self._reader._tables(
            segment.index, self._names, self._target, self._dictionary, self._at_once, self._rows
        )

    def stored(self, segment: Segment) -> Iterator[pa.Table]:
        reader, names = self._reader, self._reader._deciding_columns
        assert segment.index is not None
        plain = [name for name in names if name != KEY or not reader._makes_keys]
        for piece in reader._base_pieces(segment.index, names, at_once=self._at_once):
            columns = reader.schema.columns_of(plain)
            rows = converted_table(piece, piece.num_rows, reader.schema, columns, self._target)
            if reader._makes_keys:
                # A table without columns has no rows to append a column to.
                rows = pa.table([*rows.columns, piece.column(KEY)], [*plain, KEY])
            self._rows.add_copied(rows)
            yield rows

    def expected(self) -> tuple[int, int]:
        expected = self._rows.finish()
        self._reader._spilled += self._rows.spilled_bytes
        if self._rows.changed_copies:
            raise CheckFailed(
                f"{self._reader.full_path}: log records change {self._rows.changed_copies} rows of row groups that "
                "were copied because no log record was found to change them",
                hint=REPORT_IT,
            )
        return expected
