"""Another number of file groups for the record index, from the entries that it has: no data file is read.

Tasks read the entries of each file group into runs by new shard, and write a base file for each new shard, which is
read back and compared. What writers add to the old file groups meanwhile is written as log files on top: of a file
group whose first log blocks are still those that were read, only the blocks after them are read, also beyond a
compaction, as long as no clean has deleted what was compacted; any other one is read again.

At the end, under the table's lock, the index is taken out of hoodie.properties, its old files are deleted, the new ones
take their places, and the properties name the index again: what Hudi does when it drops the index and builds it anew,
without the build. A kill in between leaves a table without a record index: nobody reads a half of it. From the moment
when the index is taken out, the files follow the table as those of a build do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from ..commit.unfinished import refuse_planned_files
from ..concurrency import at_once
from ..engine import Engine
from ..errors import ConflictError
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.entry_reading import EntriesRead, EntryTask, GroupState, SeenBlocks, read_entries
from ..metadata.record_index.key_reading import KeyRunRef
from ..metadata.record_index.shard_base_file import WrittenBase
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..metadata_updates.new_partition import LostWork, initial_instant, require_there
from ..model import FileSlice
from ..paths import bare_name
from ..snapshot import Snapshot
from ..timeline.instant import Action
from .checkpoints import RESCALE_FOLDER, BuildPlan, Checkpoints, Closed
from .entry_split import SplitTask, split_entries
from .group_build import GroupBuild, Progress

_MOST_SOURCES, _MOST_TARGETS = 16, 64
"""The most file groups that a task reads and writes at once: it holds some blocks of each."""
_GONE = "build it anew with index-bootstrap"
_LEAST_TASKS = 4
"""With fewer tasks, entries go through runs, which as many tasks read and write as there are file groups."""


class Rescale(GroupBuild):
    """One rescale of the whole index; data partitions of a partitioned one may keep the number of their file groups."""

    def __init__(self, table: Snapshot, metadata: MetadataTable, engine: Engine, progress: Progress) -> None:
        super().__init__(table, metadata, engine, progress, RESCALE_FOLDER)
        self._seen: dict[str, SeenBlocks] = {}
        """The log blocks that were read of each old file group."""
        self._later: dict[str, tuple[KeyRunRef, ...]] = {}
        """The runs that were read of each old file group after those of the plan's tasks."""
        self._since: dict[str, str] = {}
        """The base instant of the slice of each old file group from which on its log blocks were read."""
        self._placed: dict[str, tuple[str | None, int, int]] = {}
        """The data partition of each old file group (None in a global index), its position there, and their number."""
        self._targets: Mapping[str | None, Sequence[int]] = {}
        """The new shards of each data partition."""
        self._cleans: frozenset[str] | None = None
        """The cleans of the metadata table, finished or not, when the build began; None for a resumed build."""
        self._looked_at: frozenset[str] = frozenset()
        """The completed instants of both timelines whose entries are in the new files."""
        self._splits = True
        self.is_closed = False
        """Whether the old file groups are taken out."""

    def begin(
        self,
        table: Snapshot,
        metadata: MetadataTable,
        counts: Mapping[str | None, int],
        times: Callable[[], str],
        *,
        splits: bool = True,
    ) -> None:
        """Delete an older build, and write the plan. `times` gives instants later than all others.

        `counts`: the number of file groups of each data partition, or under None of the whole index. `splits`: whether
        entries may go straight into base files.
        """
        self.forget()
        self._splits = splits
        self._metadata = metadata
        groups = metadata.file_groups(RECORD_INDEX)
        instant, digest = initial_instant(metadata, times), metadata.config.file_digest(self._storage)
        self._begin(BuildPlan(instant, Shards.new(counts).file_ids, tuple((group,) for group in groups), digest))
        self._looked_at, self._cleans = _completed(table), _cleans_of(metadata)

    def read_entries(self) -> None:
        """Write the runs of every file group that is not read, or the base files that its entries go straight into."""
        undone = self._undone
        # Without any, the old file groups may be gone.
        straight = self._components(undone) if self._splits and undone else []
        done = {number for one in straight for number in one.numbers}
        split = self._engine.map(_noted_split, straight, "split the record index", self._tell("read keys"))
        for component, (reads, bases) in zip(straight, split, strict=True):
            self._read.update(zip(component.numbers, reads, strict=True))
            self._bases.update((base.shard, base) for base in bases)
        left = {number: self._task(self.plan.slices[number], str(number)) for number in undone if number not in done}
        self._read_noted(left, read_entries, "read the record index")
        self._seen = {self.plan.slices[number].file_id: read.seen for number, read in self._read.items()}

    def _components(self, undone: Sequence[int]) -> list["_NotedSplit"]:
        """The file groups that are read by tasks which also write all base files that get their entries."""
        found: dict[tuple[str | None, int], list[int]] = {}
        for number in undone:
            partition, position, count = self._placed[self.plan.slices[number].file_id]
            found.setdefault((partition, position % gcd(count, len(self._targets[partition]))), []).append(number)
        components = []
        for (partition, rest), numbers in found.items():
            _, _, count = self._placed[self.plan.slices[numbers[0]].file_id]
            targets = self._targets[partition]
            divisor = gcd(count, len(targets))
            shards = targets[rest::divisor]
            is_whole = len(numbers) == count // divisor
            is_spread = divisor >= _LEAST_TASKS or 1 in (len(numbers), len(shards))
            if is_whole and is_spread and len(numbers) <= _MOST_SOURCES and len(shards) <= _MOST_TARGETS:
                tasks = tuple(self._task(self.plan.slices[number], str(number)) for number in numbers)
                paths = tuple((shard, self._kept.shard_path(shard)) for shard in shards)
                task = SplitTask(self._storage, tasks, divisor, paths, self._metadata.writer_schema.text)
                components.append(_NotedSplit(tuple(numbers), self._kept, task))
        return components

    def close(self, table: Snapshot) -> None:
        """Take the index out of hoodie.properties; under the lock, when the files have all that `table` has.

        Raises LostWork when the index is not the one whose entries were read, or the files cannot be published.
        """
        self._check_fits(table)
        refuse_planned_files(table, RECORD_INDEX)
        require_there(self._storage, {one.source: one for one in self._files.values()})
        self._follow_slices(table.view.live_slices())
        self._kept.save_closed(Closed(tuple(self._known), self._logs))
        table.check_held()
        table.config.withdraw(self._storage, RECORD_INDEX)
        self.is_closed = True

    def is_behind(self, table: Snapshot) -> bool:
        """Whether anything was completed since the table whose entries the new files have."""
        return super().is_behind(table) if self.is_closed else _completed(table) != self._looked_at

    def catch_up(self, table: Snapshot) -> None:
        """Write log files with the changes up to `table`: of the old file groups, as long as they are there."""
        if self.is_closed:
            super().catch_up(table)
            return
        self._metadata = self._check_fits(table)
        newest = {group.file_id: group for group in self._metadata.file_groups(RECORD_INDEX)}
        groups = [newest[one.file_id] for one in self.plan.slices]
        name = f"{self._next_log}-{{}}"
        added = dict(self._added_to(groups))
        tasks = [self._task(one, name.format(at), self._seen[one.file_id]) for at, one in added.items()]
        read = self._engine.map(read_entries, tasks, "read what writers added", self._tell("catch up"))
        found = {at: one for at, one in zip(added, read, strict=True) if one.follows}
        gone = [run for one in found.values() for run in one.gone]
        again = [at for at in range(len(groups)) if at not in found]
        if any(self._read[at].is_split for at in again):
            # Which keys went is not known without runs.
            raise LostWork("the log files of the record index are not those that were read")
        gone += [run for at in again for run in self._runs_of(at)]
        tasks = [self._task(groups[at], name.format(f"whole-{at}")) for at in again]
        read = self._engine.map(read_entries, tasks, "read the record index again", self._tell("catch up"))
        found |= dict(zip(again, read, strict=True))
        self._since |= {groups[at].file_id: groups[at].base_instant for at in again}
        runs = [run for at in sorted(found) for run in found[at].runs]
        if runs or gone:
            self._follow(runs, gone)
        for at, one in found.items():
            file_id = groups[at].file_id
            self._seen[file_id] = one.seen
            self._later[file_id] = (*self._later.get(file_id, ()), *one.runs)
        self._looked_at = _completed(table)

    def _check_fits(self, table: Snapshot) -> MetadataTable:
        """The metadata table. Raises LostWork when the index is not the one whose entries were read, or the new files
        cannot be published, and ConflictError when it is gone.
        """
        metadata = table.metadata
        if metadata is None or RECORD_INDEX not in metadata.partitions:
            raise ConflictError(f"{table.storage.root}: the record index was dropped meanwhile", hint=_GONE)
        unfit = self._why_unfit(self.plan, metadata)
        if unfit:
            raise LostWork(unfit)
        return metadata

    def _runs_of(self, number: int) -> Iterable[KeyRunRef]:
        return (*self._read[number].runs, *self._later.get(self.plan.slices[number].file_id, ()))

    def _take(self, plan: BuildPlan) -> None:
        super()._take(plan)
        self._seen, self._later, self._cleans, self.is_closed = {}, {}, None, False
        self._since = {one.file_id: one.base_instant for one in plan.slices}
        old = Shards.of_groups(plan.slices)
        self._placed = {
            old.file_ids[shard]: (partition, position, len(shards))
            for partition, shards in old.by_partition.items()
            for position, shard in enumerate(shards)
        }
        self._targets = plan.shards.by_partition

    def _why_not_resumed(self) -> str:
        if RECORD_INDEX not in self._metadata.partitions:
            closed = self._kept.load_closed()
            if closed is None or self._undone:
                return "the record index was dropped"
            self.is_closed = True
            self._follow_slices(closed.known)
            self._logs = dict(closed.logs)
            self._next_log = max((version + 1 for _, version in closed.logs), default=self._next_log)
            return ""
        slices = self._metadata.all_slices(RECORD_INDEX)
        for one in self.plan.slices:
            if one.base_instant not in (there.base_instant for there in slices.get(one.file_id, ())):
                return "files of the record index that it has read were cleaned"
        undone = [self.plan.slices[number] for number in self._undone]
        if any(at_once(self._lacks, undone)):
            return "files of the record index that it has not read yet were cleaned"
        return ""

    def _why_unfit(self, plan: BuildPlan, metadata: MetadataTable) -> str:
        if not self.is_closed and RECORD_INDEX in metadata.partitions:
            there = {group.file_id for group in metadata.file_groups(RECORD_INDEX)}
            if there != {one.file_id for one in plan.slices}:
                return "the record index has other file groups by now"
        return super()._why_unfit(plan, metadata)

    def _others(self, now: Sequence[FileSlice], gone: Sequence[FileSlice]) -> Sequence[KeyRunRef]:
        # The entries that were read tell one place of each key, and rows of a key may be in several.
        return self._runs(f"{self._next_log}-all", now) if gone else ()

    def _is_begun(self, metadata: MetadataTable) -> bool:
        if RECORD_INDEX in metadata.partitions:
            return False
        found = metadata.timeline.find(self.plan.instant, Action.DELTA_COMMIT)
        if found is None or not found.is_completed:
            return found is not None
        # Another build may have taken the instant since.
        stats = metadata.timeline.read_commit(found).stats.get(RECORD_INDEX, ())
        written = {bare_name(one.path): one.file_size for one in stats}
        return written == {bare_name(self._base_path(one.shard)): one.size for one in self.bases}

    def _follow_slices(self, slices: Sequence[FileSlice]) -> None:
        """From now on the files follow the table from these slices on."""
        self._known, self._ever = [*slices], {*slices}

    def _task(self, group: FileSlice, name: str, after: SeenBlocks | None = None) -> EntryTask:
        metadata = self._metadata
        partition, position, count = self._placed[group.file_id]
        state = GroupState(group, metadata.blocks, metadata.committed.of_logs(group.log_files))
        prefix = self._kept.run_prefix(name)
        return EntryTask(self._storage, state, position, count, self._targets[partition], prefix, after)

    def _added_to(self, groups: Sequence[FileSlice]) -> Iterator[tuple[int, FileSlice]]:
        """The file groups, by number, as all their log files since the slice that was read; its base file was read.

        Without those that were compacted since, when a clean may have deleted log files that were compacted.
        """
        slices = self._metadata.all_slices(RECORD_INDEX)
        all_there = self._cleans is not None and self._cleans == _cleans_of(self._metadata)
        for number, group in enumerate(groups):
            first = self._since[group.file_id]
            if group.base_instant == first or all_there:
                since = [one for one in slices[group.file_id] if one.base_instant >= first]
                logs = tuple(log for one in since for log in one.log_files)
                yield number, replace(group, base_file=None, log_files=logs)


def _completed(table: Snapshot) -> frozenset[str]:
    """The completed instants of both timelines, as text."""
    assert table.metadata is not None, "it has a record index"
    timelines = {"": table.timeline, "metadata/": table.metadata.timeline}
    return frozenset(where + one.file_name for where, timeline in timelines.items() for one in timeline.completed())


def _cleans_of(metadata: MetadataTable) -> frozenset[str]:
    return frozenset(one.ts for one in metadata.timeline.instants if one.action is Action.CLEAN)


@dataclass(frozen=True, slots=True)
class _NotedSplit:
    """A task whose base files are noted, and what it has read of the file groups of these numbers."""

    numbers: tuple[int, ...]
    kept: Checkpoints
    task: SplitTask

    @property
    def bytes(self) -> int:
        return self.task.bytes


def _noted_split(noted: _NotedSplit, token: str) -> tuple[list[EntriesRead], tuple[WrittenBase, ...]]:
    split = split_entries(noted.task, token)
    for base in split.bases:
        noted.kept.save_shard(base)
    reads = [EntriesRead(seen=seen, is_split=True) for seen in split.seen]
    # After the base files: without these notes they are written again.
    for number, read in zip(noted.numbers, reads, strict=True):
        noted.kept.save_read(number, read)
    return reads, split.bases
