"""The keys that a write brings to the record index and to secondary indexes, and those that it takes away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..attempts.write_attempt import WriteAttempt
from ..engine import Engine
from ..file_names import written_slice
from ..indexing.new_keys import moved_keys, record_shards, with_log
from ..indexing.secondary import ChangedGroups, StayingRows, moved_pairs
from ..metadata.record_index.log_writing import IndexDelta
from ..model import FileSlice, WriteStat
from ..table.view import FileGroupId
from .kept_keys import Searched, kept_keys


@dataclass(frozen=True, slots=True)
class WrittenKeys:
    """What a write did to file groups: its new files, the slices that have a next one now, the slices that it replaced,
    and those that got a log file.

    `by_bucket`: rows of buckets may be new, although their files say that they are not. `in_partitions`: the write
    looked keys up in single partitions, so that rows that it took away may have left others of the same keys.
    """

    stats: Sequence[WriteStat]
    before: Sequence[FileSlice]
    replaced: Sequence[FileSlice]
    appended: Sequence[FileSlice]
    by_bucket: bool
    in_partitions: bool

    def of_indexes(
        self, engine: Engine, attempt: WriteAttempt, groups: int
    ) -> tuple[IndexDelta | None, tuple[IndexDelta, ...]]:
        """The record keys that are new or gone, None without a record index; the same for each secondary index.

        A new partition of the table gets `groups` file groups of a partitioned record index.
        """
        moved = self._record_keys(engine, attempt, groups)
        kept: list[StayingRows] = []
        if moved is not None:
            changed = {_group(one) for some in (self.before, self.replaced, self.appended) for one in some}
            changed.update(map(_group, self.stats))
            after = self._after(attempt) if self.in_partitions else None
            moved, kept = kept_keys(attempt.table, moved, f"{attempt.files.scratch}/record_keys", changed, after)
        return moved, self._pairs(engine, attempt, kept)

    def _after(self, attempt: WriteAttempt) -> list[Searched]:
        bases = [written_slice(one) for one in self._bases.values()]
        grown = [with_log(one, log) for one, log in self._logs]
        return [(attempt.files.source, bases), (attempt.table.slices.counting(attempt.files.instant), grown)]

    def _record_keys(self, engine: Engine, attempt: WriteAttempt, groups: int) -> IndexDelta | None:
        shards = record_shards(attempt.table)
        if shards is None:
            return None
        # A file group that has only updates has the keys that it had.
        changed = [one for one in self._bases.values() if one.num_inserts or one.num_deletes]
        shards = shards.holding([one.partition for one in changed], groups)
        olds = {_group(one): one for one in self.before}
        rewritten = [(olds[_group(one)], one) for one in changed if one.num_deletes and _group(one) in olds]
        written = [one for one in changed if not one.num_deletes or _group(one) not in olds]
        # Updates by log files may also bring keys back that earlier log files have deleted.
        grown = [(one, log) for one, log in self._logs if log.num_deletes or one.log_files or self.by_bucket]
        return moved_keys(engine, attempt.table, shards, attempt.files, written, self.replaced, rewritten, grown)

    def _pairs(self, engine: Engine, attempt: WriteAttempt, kept: Sequence[StayingRows]) -> tuple[IndexDelta, ...]:
        bases = {**self._bases}
        updated = [(one, bases.pop(_group(one))) for one in self.before]
        groups = ChangedGroups([*bases.values()], self.replaced, updated, self._logs)
        return moved_pairs(engine, attempt.table, attempt.files, groups, kept)

    @property
    def _bases(self) -> Mapping[FileGroupId, WriteStat]:
        return {_group(one): one for one in self.stats if not one.is_log}

    @property
    def _logs(self) -> list[tuple[FileSlice, WriteStat]]:
        logs = {_group(one): one for one in self.stats if one.is_log}
        return [(one, logs[_group(one)]) for one in self.appended]


def _group(item: FileSlice | WriteStat) -> FileGroupId:
    return item.partition, item.file_id
