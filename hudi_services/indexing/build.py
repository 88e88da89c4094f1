"""Building a record index: read all keys, write a base file for each shard, follow the table, publish.

Tasks of an engine do the first two, and write a checkpoint when they are done, so that a killed build can be resumed.
The changes that writers of the table make meanwhile are written as log files on top of the base files, until under the
table's lock no change is left.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..base_files.slices import describe
from ..concurrency import at_once
from ..engine import Engine
from ..errors import ConflictError
from ..metadata.file_groups.new_groups import base_path, log_path
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.key_reading import KeyRunRef, KeyTask, read_keys
from ..metadata.record_index.locations import Location, millis_of
from ..metadata.record_index.log_writing import IndexDelta, IndexLogTask, write_index_log
from ..metadata.record_index.shard_base_file import IndexBaseTask, WrittenBase, write_index_base
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX, group_id
from ..metadata_updates.new_partition import LostWork, Placed, initial_instant, place_groups, why_unfit
from ..model import FileSlice
from ..packing import pack
from ..snapshot import Snapshot
from .checkpoints import (
    BuildPlan,
    forget,
    load_plan,
    load_runs,
    load_shards,
    log_work_path,
    run_prefix,
    save_plan,
    save_runs,
    save_shard,
    shard_path,
)
from .shard_count import GroupSizing, file_group_count

Progress = Callable[[str, int, int], None]

_KEYS_PER_TASK = 1_000_000
_FIRST_FREE_LOG = 2


class Build:
    """One build, new or resumed; `engine` runs its tasks, `hash_name` is the hash function that spreads the keys."""

    def __init__(
        self, table: Snapshot, metadata: MetadataTable, engine: Engine, progress: Progress, hash_name: str
    ) -> None:
        self._storage = table.storage
        self._source = table.slices
        self._metadata = metadata
        self._engine = engine
        self._progress = progress
        self._hash_name = hash_name
        self._plan: BuildPlan | None = None
        self._runs_of: dict[int, list[KeyRunRef]] = {}
        self._bases: dict[int, WrittenBase] = {}
        """What is done, by task of the plan and by shard: that of a resumed build by its checkpoints, and what tasks do
        now by their results: a listing may miss what was written just before."""
        self._known: list[FileSlice] = []
        """The file slices whose keys are in the index now."""
        self._read: set[FileSlice] = set()
        self._followed: tuple[KeyRunRef, ...] = ()
        """`_read`: the file slices whose keys were ever read. `_followed`: the runs of slices added after the plan."""
        self._next_log = _FIRST_FREE_LOG
        self._logs: dict[tuple[int, int], int] = {}
        """Bytes of the log files that follow the table, by shard and version."""

    def begin(self, table: Snapshot, metadata: MetadataTable, sizing: GroupSizing, times: Callable[[], str]) -> None:
        """Delete an older build, count the keys, and write the plan. `times` gives instants later than all others."""
        forget(self._storage)
        self._metadata, self._source = metadata, table.slices
        slices = table.view.live_slices()
        counts = describe(self._source, slices, lambda _, facts: facts.most_rows)
        tasks = _tasks(slices, counts)
        instant, digest = initial_instant(metadata, times), metadata.config.file_digest(self._storage)
        plan = BuildPlan(instant, file_group_count(sum(counts), sizing), tasks, digest)
        save_plan(self._storage, plan)
        self._take(plan)

    def resume(self) -> str:
        """Resume a killed build; return "" or the reason why it cannot be resumed."""
        plan = load_plan(self._storage)
        if plan is None:
            return "there is no build to go on with"
        unfit = self._why_unfit(plan, self._metadata)
        if unfit:
            return unfit
        self._take(plan)
        self._runs_of, self._bases = load_runs(self._storage), load_shards(self._storage)
        lost = self._lost()
        if lost is not None:
            return f"{self._storage.full_path(lost.path)} is not there as it was written"
        undone = [one for number in self._undone() for one in plan.tasks[number]]
        if any(at_once(self._lacks, undone)):
            return "base files that it has not read yet were cleaned"
        return ""

    def _take(self, plan: BuildPlan) -> None:
        self._plan, self._known = plan, plan.slices
        self._runs_of, self._bases = {}, {}
        self._read, self._followed = set(plan.slices), ()
        self._next_log, self._logs = _FIRST_FREE_LOG, {}

    @property
    def plan(self) -> BuildPlan:
        assert self._plan is not None, "begin or resume first"
        return self._plan

    def read_keys(self) -> None:
        """Write the runs of every task that is not done."""
        undone = self._undone()
        tasks = [_NotedKeys(number, self._key_task(str(number), self.plan.tasks[number])) for number in undone]
        results = self._engine.map(_noted_keys, tasks, "read record keys", self._tell("read keys"))
        self._runs_of.update(zip(undone, results, strict=True))

    def write_shards(self) -> list[WrittenBase]:
        """Write the base file of every shard that has keys and is not done; return all base files, ordered by shard."""
        runs = [run for of_task in self._runs_of.values() for run in of_task]
        wanted = sorted({shard for run in runs for shard in run.rows} - self._bases.keys())
        tasks = [self._base_task(shard, runs) for shard in wanted]
        made = self._engine.map(_noted_base, tasks, "write the record index", self._tell("write shards"))
        self._bases.update((base.shard, base) for base in made)
        return sorted(self._bases.values(), key=lambda base: base.shard)

    def is_behind(self, table: Snapshot) -> bool:
        """Whether the table has other file slices than those whose keys are in the index."""
        return set(table.view.live_slices()) != set(self._known)

    def catch_up(self, table: Snapshot) -> None:
        """Write log files with the changes from the file slices in the index to the file slices of `table`.

        Raises ConflictError when a file was cleaned whose keys are needed.
        """
        now = table.view.live_slices()
        # It knows the writes that were completed meanwhile.
        self._source = table.slices
        before, after = set(self._known), set(now)
        unseen = self._read.difference(now)
        places = frozenset(map(_place, unseen))
        # The keys of an older version of a slice, without its newest log files, are in runs with the same place.
        added = [one for one in now if one not in before or _place(one) in places]
        gone = [one for one in self._known if one not in after]
        lost = next(filter(None, at_once(self._lacks, gone)), "")
        if lost:
            raise ConflictError(
                f"{self._storage.full_path(lost)} was replaced and cleaned while the record index was built",
                hint="run again without --resume, and let cleans retain more commits meanwhile",
            )
        number = self._next_log
        new_runs, old_runs = (self._runs(f"{number}-{which}", some) for which, some in (("new", added), ("old", gone)))
        moved = IndexDelta(self._shards, new_runs, self._write_logs, old_runs)
        touched = sorted(moved.counts())
        self._read.update(added)
        others = [run for of_task in self._runs_of.values() for run in of_task]
        others += self._followed
        sizes = moved.write([self._log_task(shard, number, moved, others, places) for shard in touched])
        self._followed += new_runs
        self._logs |= {(shard, number): size for shard, size in zip(touched, sizes, strict=True)}
        self._known, self._next_log = now, number + 1

    def place(self, metadata: MetadataTable, bases: Sequence[WrittenBase]) -> None:
        """Move all files of the build into the metadata table, where no reader uses them yet.

        Raises LostWork when a file is missing, or the build was made for another metadata table.
        """
        unfit = self._why_unfit(self.plan, metadata)
        if unfit:
            raise LostWork(unfit)
        instant = self.plan.instant
        files = {base_path(RECORD_INDEX, base.shard, instant): Placed(base.path, base.size) for base in bases}
        files |= {
            log_path(RECORD_INDEX, shard, instant, version): Placed(log_work_path(shard, version), size)
            for (shard, version), size in self._logs.items()
        }
        place_groups(metadata, self.plan.shards, instant, files)

    def forget(self) -> None:
        """Delete the work files of the build; to be called after the index is published."""
        forget(self._storage)

    def _why_unfit(self, plan: BuildPlan, metadata: MetadataTable) -> str:
        if not plan.metadata:
            return "its plan does not say which metadata table it is for"
        if plan.metadata != metadata.config.file_digest(self._storage):
            return "the metadata table was built anew since it began"
        return why_unfit(metadata, plan.instant)

    def _lost(self) -> WrittenBase | None:
        """A base file that has a checkpoint, but is neither in the work folder nor in the metadata table; else None."""

        def is_lost(written: tuple[int, WrittenBase]) -> bool:
            shard, base = written
            places = (base.path, base_path(RECORD_INDEX, shard, self.plan.instant))
            return not any((info := self._storage.head(path)) and info.size == base.size for path in places)

        done = sorted(self._bases.items())
        lost = at_once(is_lost, done)
        return next((base for (_, base), gone in zip(done, lost, strict=True) if gone), None)

    @property
    def _shards(self) -> Shards:
        return Shards(tuple(group_id(RECORD_INDEX, shard) for shard in range(self.plan.shards)))

    def _undone(self) -> list[int]:
        return [number for number in range(len(self.plan.tasks)) if number not in self._runs_of]

    def _lacks(self, file_slice: FileSlice) -> str:
        """The path of a file of the slice that does not exist any more; "" when all files exist."""
        return next((file.path for file in file_slice.files if self._storage.head(file.path) is None), "")

    def _key_task(self, name: str, slices: Sequence[FileSlice]) -> KeyTask:
        dated = tuple((one, millis_of(one.base_instant)) for one in slices)
        return KeyTask(self._storage, self._source, dated, self._shards, run_prefix(name), self._hash_name)

    def _runs(self, name: str, slices: Sequence[FileSlice]) -> tuple[KeyRunRef, ...]:
        tasks = [self._key_task(f"{name}-{i}", [one]) for i, one in enumerate(slices)]
        found = self._engine.map(read_keys, tasks, "read changed keys", self._tell("catch up"))
        return tuple(run for of_task in found for run in of_task)

    def _base_task(self, shard: int, runs: Collection[KeyRunRef]) -> IndexBaseTask:
        paths = tuple(run.path for run in runs if shard in run.rows)
        return IndexBaseTask(self._storage, shard_path(shard), self._metadata.writer_schema.text, shard, paths)

    def _log_task(
        self, shard: int, number: int, delta: IndexDelta, others: Sequence[KeyRunRef], gone: frozenset[Location]
    ) -> IndexLogTask:
        new, old, other = (
            tuple(r.path for r in runs if shard in r.rows) for runs in (delta.runs, delta.old_runs, others)
        )
        path = log_work_path(shard, number)
        schema = self._metadata.writer_schema.text
        return IndexLogTask(self._storage, path, self.plan.instant, schema, shard, new, old, other, gone)

    def _write_logs(self, tasks: Sequence[IndexLogTask]) -> list[int]:
        return self._engine.map(write_index_log, tasks, "follow the table", self._tell("catch up"))

    def _tell(self, phase: str) -> Callable[[int, int], None]:
        return lambda done, total: self._progress(phase, done, total)


def _place(file_slice: FileSlice) -> Location:
    return Location(file_slice.partition, file_slice.file_id, millis_of(file_slice.base_instant))


@dataclass(frozen=True, slots=True)
class _NotedKeys:
    """A task whose runs are noted under its number."""

    number: int
    task: KeyTask

    @property
    def bytes(self) -> int:
        return self.task.bytes


def _noted_keys(noted: _NotedKeys, token: str) -> list[KeyRunRef]:
    runs = read_keys(noted.task, token)
    save_runs(noted.task.storage, noted.number, runs)
    return runs


def _noted_base(task: IndexBaseTask, token: str) -> WrittenBase:
    written = write_index_base(task, token)
    save_shard(task.storage, written)
    return written


def _tasks(slices: Sequence[FileSlice], counts: Sequence[int]) -> tuple[tuple[FileSlice, ...], ...]:
    """The slices by task: neighbouring slices with up to `_KEYS_PER_TASK` keys together, or one larger slice."""
    packed = pack(zip(slices, counts, strict=True), lambda counted: counted[1], _KEYS_PER_TASK)
    return tuple(tuple(one for one, _ in some) for some in packed)
