"""Building a record index from the files of the table: read all keys, write a base file for each shard."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..base_files.slices import describe
from ..concurrency import at_once
from ..engine import Engine
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.entry_reading import EntriesRead
from ..metadata.record_index.key_reading import KeyTask, read_keys
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import group_id
from ..metadata_updates.new_partition import initial_instant
from ..model import FileSlice
from ..packing import pack
from ..snapshot import Snapshot
from .checkpoints import WORK_FOLDER, BuildPlan
from .group_build import GroupBuild, Progress
from .kinds import RECORDS, IndexKind
from .shard_count import GroupSizing, file_group_count

_KEYS_PER_TASK = 1_000_000


class Build(GroupBuild):
    """A build of a new index; `hash_name` is the hash function that spreads the keys.

    `of_partitions`: whether each data partition gets file groups of its own.
    """

    def __init__(
        self,
        table: Snapshot,
        metadata: MetadataTable,
        engine: Engine,
        progress: Progress,
        hash_name: str,
        kind: IndexKind = RECORDS,
        *,
        of_partitions: bool = False,
    ) -> None:
        super().__init__(table, metadata, engine, progress, WORK_FOLDER, kind)
        self._hash_name = hash_name
        self._of_partitions = of_partitions

    def begin(self, table: Snapshot, metadata: MetadataTable, sizing: GroupSizing, times: Callable[[], str]) -> None:
        """Delete an older build, count the keys, and write the plan. `times` gives instants later than all others."""
        self.forget()
        self._metadata, self._source = metadata, table.slices
        slices = table.view.live_slices()
        counts = describe(table.slices, slices, lambda _, facts: facts.most_rows)
        tasks = _tasks(slices, counts)
        instant, digest = initial_instant(metadata, times), metadata.config.file_digest(self._storage)
        numbers = group_counts(slices, counts, sizing, of_partitions=self._of_partitions)
        self._begin(BuildPlan(instant, self._file_ids(numbers), tasks, digest, self.kind.partition))

    def read_keys(self) -> None:
        """Write the runs of every task that is not done."""
        tasks = {number: self._key_task(str(number), self.plan.tasks[number]) for number in self._undone}
        self._read_noted(tasks, _keys_read, "read record keys")

    def _file_ids(self, counts: Mapping[str | None, int]) -> tuple[str, ...]:
        if self.kind.secondary is None:
            return Shards.new(counts).file_ids
        return tuple(group_id(self.kind.partition, number) for number in range(counts[None]))

    def _take(self, plan: BuildPlan) -> None:
        super()._take(plan)
        self._known, self._ever = plan.slices, set(plan.slices)

    def _why_not_resumed(self) -> str:
        if self.plan.index != self.kind.partition or self.shards.is_partitioned != self._of_partitions:
            return "the index that was begun is of another kind"
        undone = [one for number in self._undone for one in self.plan.tasks[number]]
        return "base files that it has not read yet were cleaned" if any(at_once(self._lacks, undone)) else ""

    @property
    def _hash(self) -> str:
        return self._hash_name


def group_counts(
    slices: Sequence[FileSlice], counts: Sequence[int], sizing: GroupSizing, *, of_partitions: bool
) -> dict[str | None, int]:
    """The number of file groups for slices with so many keys: for each data partition, or under None for all."""
    keys: Counter[str | None] = Counter() if of_partitions else Counter({None: 0})
    for one, count in zip(slices, counts, strict=True):
        keys[one.partition if of_partitions else None] += count
    return {partition: file_group_count(count, sizing) for partition, count in keys.items()}


def _keys_read(task: KeyTask, token: str) -> EntriesRead:
    return EntriesRead(tuple(read_keys(task, token)))


def _tasks(slices: Sequence[FileSlice], counts: Sequence[int]) -> tuple[tuple[FileSlice, ...], ...]:
    """The slices by task: neighbouring slices with up to `_KEYS_PER_TASK` keys together, or one larger slice."""
    packed = pack(zip(slices, counts, strict=True), lambda counted: counted[1], _KEYS_PER_TASK)
    return tuple(tuple(one for one, _ in some) for some in packed)
