"""A base or log file with the statistics of its columns: what writers give, and what a commit and its indexes take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..model import FileSlice, LogCounts, MergedLogs, WriteStat
from ..paths import bare_name

if TYPE_CHECKING:
    from ..parquet.chunk_stats import ColumnStats


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file by its write stat, with the statistics of its leaf columns."""

    stat: WriteStat
    columns: tuple[ColumnStats, ...] = ()

    @classmethod
    def of(cls, path: str, size: int, rows: int = 0, columns: Iterable[ColumnStats] = (), file_id: str = "") -> NewFile:
        """A file of `size` bytes, whose rows count as inserts; `path` is relative to the table."""
        return cls(WriteStat.of_file(path, size, rows, file_id), tuple(columns))

    @property
    def partition(self) -> str:
        return self.stat.partition

    @property
    def path(self) -> str:
        return self.stat.path

    @property
    def name(self) -> str:
        return bare_name(self.path)

    @property
    def file_id(self) -> str:
        return self.stat.file_id

    @property
    def size(self) -> int:
        """Bytes."""
        return self.stat.file_size

    @property
    def rows(self) -> int:
        return self.stat.num_writes

    def next_of(self, before: FileSlice, counts: LogCounts, merged: MergedLogs | None = None) -> NewFile:
        """As `WriteStat.next_of`."""
        return replace(self, stat=self.stat.next_of(before, counts, merged))
