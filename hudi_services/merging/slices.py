"""The source of file slices with log files: their rows are merged when they are read.

A slice is read in three steps: the log records are read and merged with each other; the record keys of the base file
are read, a row group at a time, to find the rows that log records touch; then the rows are read, and row groups that no
log record touches are passed on as they are.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CorruptFile, UnsupportedTable
from ..files.avro_columns import avro_decoder
from ..files.column_stats import ColumnStats
from ..files.log_blocks import BlockPlace, HeaderKey
from ..files.log_reader import scan_blocks
from ..files.parquet_convert import converted_table
from ..files.parquet_evolution import SourceSchema, resolve_target
from ..files.parquet_schema import FileSchema
from ..files.slices import BaseFileSlice, BaseFileSlices, BloomBits, SliceFacts, SliceReader, StoredRowGroup
from ..model import FileSlice
from ..storage import Storage
from .block_order import replayed
from .fold import Flags, NullOrdering, Numbers
from .log_records import DELETES, KEY, LogRecords, header_schema
from .merged_logs import Merger
from .ordering import ordering_fields
from .rules import Final, MergeRule

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CountedInstants:
    """The instants whose log blocks are read. A plain value, which is sent to the executors."""

    until: str | None = None
    """The query instant: blocks of later ones are not read; None for no limit."""
    is_committed: Callable[[str], bool] | None = None
    """Whether an instant is completed, or older than the timeline; None where the names of log files say it."""

    def __call__(self, instant: str) -> bool:
        if self.until is not None and instant > self.until:
            return False
        return self.is_committed is None or self.is_committed(instant)


@dataclass(frozen=True, slots=True)
class MergedSlices:
    """The source of slices of a merge-on-read table."""

    storage: Storage
    rule: MergeRule
    counts: CountedInstants

    def open(self, one: FileSlice, like: SliceReader | None = None) -> SliceReader:
        if not one.log_files:
            return BaseFileSlices(self.storage).open(one, like)
        return MergedSlice(self.storage, one, self.rule, self.counts)

    def facts(self, one: FileSlice, take: Callable[[SliceFacts], T]) -> T:
        if not one.log_files:
            return BaseFileSlices(self.storage).facts(one, take)
        return take(_MergedFacts(self.open(one)))


@dataclass(frozen=True, slots=True)
class _Touched:
    """The rows of a row group of the base file that log records touch, in order."""

    at: Numbers
    """Their row numbers in the row group."""
    log: Numbers
    """The numbers of their folded records."""
    wins: Flags
    """Whether the folded records are preferred."""


class MergedSlice:
    """An open slice with log files. Raises CorruptFile, UnsupportedTable and StorageError."""

    def __init__(self, storage: Storage, one: FileSlice, rule: MergeRule, counts: CountedInstants) -> None:
        self._storage = storage
        self._slice = one
        self._rule = rule
        base = one.base_file
        self._base = BaseFileSlice.open(storage, base.path, base.size or None) if base is not None else None
        self.path = base.path if base is not None else one.log_files[0].path
        self.full_path = storage.full_path(self.path)
        self._paths = {storage.full_path(log.path): log.path for log in one.log_files}
        found = list(self._scan())
        self._blocks = replayed(found, counts)
        # A slice without a base file may have no block that counts, and no rows.
        is_empty = self._base is None and not self._blocks
        described = [one for one in found if HeaderKey.SCHEMA in one.header] if is_empty else self._blocks
        self.schema = self._merged_schema(described)
        self._ordering = ordering_fields(rule, self.schema, self.full_path)
        self._records = LogRecords(self.schema, one.partition, rule, self._ordering)
        self._merger = Merger(self.schema, rule, self._ordering, self._records.subsets)

    # ---- facts

    @property
    def num_rows(self) -> int:
        base = self._base.num_rows if self._base is not None else 0
        deletes = self._deletes
        gone = sum(int((deletes[one.log] & one.wins).sum()) for one in self._touched)
        return base - gone + len(self._inserts)

    @property
    def size(self) -> int:
        return (self._base.size if self._base is not None else 0) + sum(log.size for log in self._slice.log_files)

    @property
    def encoded_bytes(self) -> int:
        base = self._base.encoded_bytes if self._base is not None else 0
        return base + sum(block.length for block in self._blocks)

    @property
    def overhead_bytes(self) -> int:
        return self._base.overhead_bytes if self._base is not None else 0

    @property
    def key_values(self) -> Mapping[str, str]:
        return self._base.key_values if self._base is not None else {}

    @property
    def dictionary_columns(self) -> frozenset[str]:
        return frozenset()

    @property
    def plain_leaves(self) -> frozenset[str]:
        return self._base.plain_leaves if self._base is not None else frozenset()

    @property
    def stored(self) -> tuple[StoredRowGroup, ...]:
        return ()

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
        own = [name for name in names if self.schema.column(name) is not None]
        for rows in self._merged(own, at_once):
            yield rows, converted_table(rows, rows.num_rows, self.schema, names, target)

    def record_keys(self) -> Iterator[pa.ChunkedArray]:
        for rows, _ in self.tables([KEY]):
            if rows.column(KEY).null_count:
                raise CorruptFile(f"{self.full_path} has rows without a record key")
            yield rows.column(KEY)

    def release(self) -> None:
        if self._base is not None:
            self._base.release()

    def _merged(self, names: Sequence[str], at_once: int | None) -> Iterator[pa.Table]:
        """The rows of the slice in the raw form of its schema."""
        for group, touched in enumerate(self._touched):
            assert self._base is not None
            start = 0
            for piece in self._base.pieces(group, names, self.schema, at_once=at_once):
                low, high = np.searchsorted(touched.at, (start, start + piece.num_rows))
                at, some = touched.at[low:high] - start, slice(low, high)
                start += piece.num_rows
                if at.size:
                    log = self._folded.take(pa.array(touched.log[some]))
                    yield self._merger.rows(piece, at, log, touched.wins[some])
                else:
                    yield piece
        if len(self._inserts):
            yield self._folded.select(names).take(pa.array(self._inserts))

    # ---- the merge

    def _scan(self) -> Iterator[BlockPlace]:
        for log in self._slice.log_files:
            yield from scan_blocks(self._read_of(log.path), log.size, self._storage.full_path(log.path))

    def _read_of(self, path: str) -> Callable[[int, int], bytes]:
        return lambda start, length: self._storage.read_range(path, start, length)

    def _merged_schema(self, blocks: Sequence[BlockPlace]) -> FileSchema:
        """The columns of the base file and of the records, in types that hold the values of all."""
        sources = [] if self._base is None else [SourceSchema(self._base.full_path, self._base.schema)]
        texts = dict.fromkeys(header_schema(block) for block in reversed(blocks))
        path = self.full_path
        sources += [SourceSchema(path, avro_decoder(text, path).as_written) for text in texts]
        if not sources:
            raise UnsupportedTable(f"{path} has no block with a schema", hint="compact the table with Apache Hudi")
        return resolve_target(sources, None)

    @cached_property
    def _folded(self) -> pa.Table:
        pieces = [piece for block in self._blocks for piece in self._records.pieces(self._read_block(block), block)]
        with self._null_orderings():
            return self._merger.folded(pa.concat_tables([self._records.none(), *pieces]))

    def _read_block(self, block: BlockPlace) -> Callable[[int, int], bytes]:
        return self._read_of(self._paths[block.path])

    @cached_property
    def _deletes(self) -> Flags:
        return np.asarray(self._folded.column(DELETES).to_numpy())

    @cached_property
    def _touched(self) -> list[_Touched]:
        """For each row group of the base file, the rows that log records touch."""
        if self._base is None:
            return []
        keys = self._folded.column(KEY)
        seen = np.zeros(len(keys), np.bool_)
        return [self._touched_in(group, keys, seen) for group in range(len(self._base.row_groups))]

    def _touched_in(self, group: int, keys: pa.ChunkedArray, seen: Flags) -> _Touched:
        assert self._base is not None
        found = pc.index_in(self._base.read_row_group(group, [KEY], self.schema).column(KEY), keys)
        at = np.flatnonzero(pc.is_valid(found).to_numpy())
        log = np.asarray(found.drop_null().to_numpy()).astype(np.int64)
        # Of rows with the same key, Hudi merges the first.
        _, firsts = np.unique(log, return_index=True)
        is_first = np.zeros(log.size, np.bool_)
        is_first[firsts] = True
        is_first &= ~seen[log]
        at, log = at[is_first], log[is_first]
        seen[log] = True
        return _Touched(at, log, self._wins(group, at, log))

    def _wins(self, group: int, at: Numbers, log: Numbers) -> Flags:
        if not at.size or self._rule.final is Final.ALWAYS:
            return np.ones(at.size, np.bool_)
        assert self._base is not None
        needed = [*self._rule.ordering_columns, *(["_event_seq"] if self._rule.final is Final.LATER_IN_BINLOG else [])]
        rows = pa.array(at)
        base = self._base.read_row_group(group, list(dict.fromkeys(needed)), self.schema).take(rows)
        with self._null_orderings():
            order = [one.values(base) for one in self._ordering]
            return self._merger.wins(self._folded.take(pa.array(log)), order, base)

    @cached_property
    def _inserts(self) -> Numbers:
        """The numbers of the folded records that are rows by themselves."""
        alone = ~self._deletes
        for touched in self._touched:
            alone[touched.log] = False
        rows = np.flatnonzero(alone)
        if self._merger.lacks_columns(self._folded.take(pa.array(rows))):
            raise UnsupportedTable(
                f"{self.full_path}: a partial update has no row to update", hint="compact the table with Apache Hudi"
            )
        return rows

    @contextmanager
    def _null_orderings(self) -> Iterator[None]:
        try:
            yield
        except NullOrdering:
            fields = ", ".join(self._rule.ordering)
            raise UnsupportedTable(
                f"{self.full_path}: a null in the ordering field {fields} would have to be compared with a value: "
                "Hudi itself cannot read this file slice",
                hint="delete the record with Apache Hudi, and write it again with a value",
            ) from None


class _MergedFacts:
    """The facts of a slice whose rows must be merged to be known."""

    def __init__(self, reader: SliceReader) -> None:
        self._reader = reader

    @property
    def rows(self) -> int:
        return self._reader.num_rows

    @property
    def row_groups(self) -> int:
        return len(self._reader.stored)

    @property
    def columns(self) -> tuple[ColumnStats, ...]:
        return self._reader.column_stats()

    @property
    def bloom(self) -> BloomBits | None:
        return None
