"""The draft of every operation that adds files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ..base_files.new_file import NewFile
from ..codecs.clustering_plan import CLUSTER
from ..codecs.compaction_plan import COMPACT
from ..concurrency import at_once
from ..derived_indexes.expression_index.index import ComputedIndex, renamed_records
from ..metadata.record_index.locations import millis_of
from ..metadata.record_index.log_writing import IndexDelta
from ..metadata_updates.delta_commit import Confirm
from ..metadata_updates.sync import Change, rehearse_commit, sync_commit
from ..model import CommitMetadata, WriteStat
from ..schema.table_schema import TableSchema
from ..snapshot import Snapshot
from ..timeline.instant import Instant
from .conflicts import pending_writes
from .drafts import TimesSource
from .expectations import Expectation
from .new_files import path_at
from .newest_files import read_ahead
from .rolling_metadata import RollingMetadata
from .schema_commits import refuse_altered, store_history


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """The commit of an operation that adds files, and may replace file groups (file ids by partition).

    `index_delta` are the keys of the new files, for the record index; `expressions` are the files' records in the
    expression indexes. `merged` are the log files (paths) that were merged into new files of their own file groups.
    `schema` is that of the commit, None for that of the table; with a schema history, it is that of the new files.
    `secondary_deltas` are the keys that came to each secondary index, and those that went; None for a commit that keeps
    all rows. `rolling` is what the commit takes over from earlier ones, `extra` is extra metadata of its own.
    """

    instant: Instant
    operation: str
    files: Sequence[NewFile]
    replaced: Mapping[str, Sequence[str]] | None = None
    index_delta: IndexDelta | None = None
    expressions: tuple[ComputedIndex, ...] = ()
    expectations: Sequence[Expectation] = ()
    merged: frozenset[str] = frozenset()
    schema: TableSchema | None = None
    secondary_deltas: tuple[IndexDelta, ...] | None = None
    rolling: RollingMetadata = field(default_factory=RollingMetadata)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def stats(self) -> dict[str, tuple[WriteStat, ...]]:
        """The write stats of the new files by partition."""
        found: dict[str, tuple[WriteStat, ...]] = {}
        for one in self.files:
            found[one.stat.partition] = (*found.get(one.stat.partition, ()), one.stat)
        return found

    def at(self, instant: Instant) -> "CommitDraft":
        """The draft of the same new files under the names of another instant, and without expectations."""
        ts = instant.ts
        names = [(one.stat.partition, one.stat.path, path_at(one.stat.path, ts)) for one in self.files]
        return replace(
            self,
            instant=instant,
            files=[
                replace(one, stat=replace(one.stat, path=path))
                for one, (_, _, path) in zip(self.files, names, strict=True)
            ],
            index_delta=None if self.index_delta is None else replace(self.index_delta, written_millis=millis_of(ts)),
            expressions=tuple(renamed_records(one, names, ts) for one in self.expressions),
            expectations=(),
        )

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the new files."""
        return frozenset(path for one in self.files for path, _ in one.stat.files)

    def rehearse(self, table: Snapshot) -> None:
        """Read what `sync` and the check of the newest files need, before the lock is taken, of the table as known."""
        change = self._change(table)
        stats = [one.stat for one in self.files if not one.stat.is_log and one.stat.prev_commit != "null"]
        groups = [(stat.partition, stat.file_id) for stat in stats]
        reads: list[Callable[[], None]] = [partial(read_ahead, table, groups)] if groups else []
        if table.metadata is not None:
            reads.append(partial(rehearse_commit, table.metadata, change))
        at_once(lambda read: read(), reads)

    def sync(self, current: Snapshot, times: TimesSource) -> Confirm | None:
        schema, ts = self.schema or current.versioned_schema(self.instant.ts), self.instant.ts
        refuse_altered(current, ts, schema)
        store_history(current, ts, schema, times)
        if current.metadata is None:
            return None
        return sync_commit(current.metadata, self._change(current), times)

    def content(self, current: Snapshot) -> bytes:
        schema = self.schema or current.schema_at(self.instant.ts)
        extra = {**self.extra, **(schema.in_commit if schema else {})}
        metadata = CommitMetadata(
            self.operation,
            self.stats,
            extra | self.rolling.carried(current, self.instant.ts, extra),
            None if self.replaced is None else {partition: tuple(ids) for partition, ids in self.replaced.items()},
            compacted=self.operation == COMPACT,
        )
        return current.timeline.layout.encode_commit(metadata, current.config.version.release)

    def _change(self, current: Snapshot) -> Change:
        """The change for the metadata table; its live files are those of the slices that stay beside the new files."""
        live: dict[str, list[str]] = {}
        for partition in {**self.stats, **(self.replaced or {})}:
            replaced = {*(self.replaced or {}).get(partition, ())}
            bases = {stat.file_id for stat in self.stats.get(partition, ()) if not stat.is_log}
            slices = (one for one in current.view.latest_slices(partition) if one.file_id not in replaced)
            # Log files that are written beside the merge, where that is allowed, belong to the slice of the new file.
            live[partition] = [
                file.name
                for one in slices
                for file in (one.log_files if one.file_id in bases else one.files)
                if file.path not in self.merged
            ]
        return Change(
            self.instant.ts,
            tuple(self.files),
            live,
            self.index_delta,
            self.secondary_deltas,
            self.expressions,
            keys_stay=self.operation == COMPACT,
            replaces=any((self.replaced or {}).values()),
            beside_writes=bool(pending_writes(current)),
            # Table services give the table no columns.
            schema=None if self.operation in (CLUSTER, COMPACT) else self.schema,
        )
