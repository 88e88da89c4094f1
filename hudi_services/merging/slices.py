"""The source of file slices with log files: their rows are merged when they are read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from ..base_files.base_file_slices import BaseFileSlices
from ..base_files.slices import BloomBits, SliceFacts, SliceReader
from ..base_files.source_folder import NO_SOURCES, SourceFolder
from ..errors import UnsupportedTable
from ..model import FileSlice
from ..parquet.chunk_stats import ColumnStats
from ..schema.schema_history import NO_HISTORY, KnownHistory
from ..small_files import with_small_files
from ..storage import Storage
from ..table.support import WITH_HUDI
from ..table_config import TableConfig
from ..timeline.active import Timeline
from .counted_instants import CountedInstants, counted_instants
from .merged_slice import MergedSlice
from .rules import MergeRule, merge_rule

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MergedSlices:
    """The source of slices of a merge-on-read table; `rule` is None for a table with a rule that is not supported."""

    storage: Storage
    rule: MergeRule | None
    counts: CountedInstants
    memory: int = 256 << 20
    """Bytes of log records that an open slice may hold; more of them go to the local disk."""
    refusal: str = ""
    """The sentence about a rule that is not supported."""
    history: KnownHistory = NO_HISTORY
    """Rows have the columns that its newest version has."""
    sources: SourceFolder = NO_SOURCES
    """The folder with the columns of a bootstrapped table."""

    @classmethod
    def of(
        cls, storage: Storage, config: TableConfig, timeline: Timeline, history: KnownHistory, sources: SourceFolder
    ) -> "MergedSlices":
        """The source for a table that is opened."""
        counts = counted_instants(timeline)
        try:
            return cls(storage, merge_rule(config), counts, history=history, sources=sources)
        except UnsupportedTable as e:
            return cls(storage, None, counts, refusal=e.message, history=history, sources=sources)

    def open(self, file_slice: FileSlice) -> SliceReader:
        if not file_slice.log_files:
            return self._bases.open(file_slice)
        return self._merged(file_slice)

    def facts(self, file_slice: FileSlice, take: Callable[[SliceFacts], T]) -> T:
        if not file_slice.log_files:
            return BaseFileSlices(self.storage).facts(file_slice, take)
        return take(MergedFacts(self._merged(file_slice)))

    def as_of(self, instant: str | None, memory: int) -> "MergedSlices":
        return replace(self, counts=replace(self.counts, until=instant), memory=memory)

    def columns_at(self, instant: str) -> "MergedSlices":
        return replace(self, history=self.history.until(instant))

    def counting(self, instant: str) -> "MergedSlices":
        return replace(self, counts=replace(self.counts, also=instant))

    def checked(self, file_slice: FileSlice) -> FileSlice:
        if not file_slice.log_files:
            return file_slice
        file_slice = with_small_files(self.storage, file_slice)
        self.open(file_slice)
        return file_slice

    def _merged(self, file_slice: FileSlice) -> MergedSlice:
        return MergedSlice.of_logs(self.storage, file_slice, self._rule(), self.counts, self.memory, self._bases)

    @property
    def _bases(self) -> BaseFileSlices:
        return BaseFileSlices(self.storage, self.history, self.sources)

    def _rule(self) -> MergeRule:
        if self.rule is None:
            raise UnsupportedTable(self.refusal, hint=WITH_HUDI)
        return self.rule


class MergedFacts:
    """The facts of a slice whose rows must be merged to be known."""

    def __init__(self, reader: MergedSlice) -> None:
        self._reader = reader

    @property
    def most_rows(self) -> int:
        return self._reader.most_rows

    @property
    def rows(self) -> int:
        return self._reader.num_rows

    row_groups = 0
    columns: tuple[ColumnStats, ...] = ()

    bloom: BloomBits | None = None
