"""The keys that a write brings to the record index and to secondary indexes, and those that it takes away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..commit.write_attempt import WriteAttempt
from ..engine import Engine
from ..indexing.keys import moved_keys, record_shards
from ..indexing.secondary import ChangedGroups, moved_pairs
from ..metadata.record_index.log_writing import MovedKeys
from ..model import FileSlice, WriteStat
from ..table.view import FileGroupId


@dataclass(frozen=True, slots=True)
class WrittenKeys:
    """What a write did to file groups: its new files, the slices that have a next one now, the slices that it replaced,
    and those that got a log file. `by_bucket`: rows of buckets may be new, although their files say that they are not.
    """

    stats: Sequence[WriteStat]
    before: Sequence[FileSlice]
    replaced: Sequence[FileSlice]
    appended: Sequence[FileSlice]
    by_bucket: bool

    def record_keys(self, engine: Engine, attempt: WriteAttempt, groups: int) -> MovedKeys | None:
        """The keys that are new or gone; None without a record index. A new partition of the table gets `groups` file
        groups of a partitioned one."""
        shards = record_shards(attempt.table)
        if shards is None:
            return None
        # A file group that has only updates has the keys that it had.
        changed = [one for one in self._bases.values() if one.num_inserts or one.num_deletes]
        deleted = {_group(one) for one in changed if one.num_deletes}
        old = [one for one in self.before if _group(one) in deleted]
        shards = shards.holding([one.partition for one in changed], groups)
        # Updates by log files may also bring keys back that earlier log files have deleted.
        grown = [(one, log) for one, log in self._logs if log.num_deletes or one.log_files or self.by_bucket]
        return moved_keys(engine, attempt.table, shards, attempt.files, changed, [*self.replaced, *old], grown)

    def pairs(self, engine: Engine, attempt: WriteAttempt) -> tuple[MovedKeys, ...]:
        """The keys that came to each secondary index, and those that went."""
        bases = {**self._bases}
        updated = [(one, bases.pop(_group(one))) for one in self.before]
        groups = ChangedGroups([*bases.values()], self.replaced, updated, self._logs)
        return moved_pairs(engine, attempt.table, attempt.files, groups)

    @property
    def _bases(self) -> Mapping[FileGroupId, WriteStat]:
        return {_group(one): one for one in self.stats if not one.is_log}

    @property
    def _logs(self) -> list[tuple[FileSlice, WriteStat]]:
        logs = {_group(one): one for one in self.stats if one.is_log}
        return [(one, logs[_group(one)]) for one in self.appended]


def _group(one: FileSlice | WriteStat) -> FileGroupId:
    return one.partition, one.file_id
