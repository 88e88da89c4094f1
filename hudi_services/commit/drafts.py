"""Drafts: what a commit is going to say and do, as values that carry their expectations.

`Draft` is what `transaction.complete` asks of any of them. `CommitDraft` is that of every operation that adds files;
cleans, rollbacks, repairs and new indexes have theirs beside the work that they complete.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..files.column_stats import ColumnStats
from ..metadata.expression_index.index import ComputedIndex
from ..metadata.record_index.log_writing import MovedKeys
from ..metadata.statistics.column_stats import NewFile
from ..metadata.sync import Change, sync_commit
from ..model import CommitMetadata, WriteStat
from ..snapshot import Snapshot, current_schema
from ..timeline.instant import Instant
from .expectations import Expectation

TimesSource = Callable[[], str]
"""Gives instants that are greater than all on the table's timeline and on the metadata table's."""


class Draft(Protocol):
    """A change of the table that becomes visible in one step."""

    @property
    def instant(self) -> Instant | None:
        """The pending instant that completes; None for a change of the metadata table alone."""

    @property
    def expectations(self) -> Sequence[Expectation]: ...

    def sync(self, current: Snapshot, times: TimesSource) -> None:
        """Bring everything else in step, the metadata table first of all; may be repeated after a kill."""

    def content(self, current: Snapshot) -> bytes:
        """Of the completed file; called after `sync`."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A new base or log file with the statistics of its columns."""

    stat: WriteStat
    columns: tuple[ColumnStats, ...]


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """The commit of an operation that adds files, and may replace file groups (file ids by partition).

    `moved` are the keys of the new files, for the record index; `expressions` their records in expression indexes.
    """

    instant: Instant
    operation: str
    files: Sequence[WrittenFile]
    replaced: Mapping[str, Sequence[str]] | None = None
    moved: MovedKeys | None = None
    expressions: tuple[ComputedIndex, ...] = ()
    expectations: Sequence[Expectation] = ()

    @property
    def stats(self) -> dict[str, tuple[WriteStat, ...]]:
        """By partition."""
        found: dict[str, tuple[WriteStat, ...]] = {}
        for one in self.files:
            found[one.stat.partition] = (*found.get(one.stat.partition, ()), one.stat)
        return found

    @property
    def paths(self) -> frozenset[str]:
        """Of the new files."""
        return frozenset(one.stat.path for one in self.files)

    def sync(self, current: Snapshot, times: TimesSource) -> None:
        if current.metadata is not None:
            sync_commit(current.metadata, self._change(current), times)

    def content(self, current: Snapshot) -> bytes:
        schema = current_schema(current)
        metadata = CommitMetadata(
            self.operation,
            self.stats,
            {"schema": schema} if schema else {},
            None if self.replaced is None else {partition: tuple(ids) for partition, ids in self.replaced.items()},
        )
        return current.timeline.layout.encode_commit(metadata, current.config.version.release)

    def _change(self, current: Snapshot) -> Change:
        """What the metadata table must learn; live files are those that stay beside the new ones."""
        live: dict[str, list[str]] = {}
        for partition, stats in self.stats.items():
            gone = {*(self.replaced or {}).get(partition, ()), *(stat.file_id for stat in stats)}
            slices = (one for one in current.view.latest_slices(partition) if one.file_id not in gone)
            live[partition] = [file.name for one in slices for file in one.files]
        new = tuple(
            NewFile(one.stat.partition, one.stat.path.rpartition("/")[2], one.stat.file_size, one.columns)
            for one in self.files
        )
        return Change(self.instant.ts, new, live, self.moved, self.expressions)
