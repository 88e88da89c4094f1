"""What every build of file groups of the record index does: it keeps checkpoints, and has tasks write the files.

The files are written aside. Base files come from runs of keys; what writers change meanwhile is written as log files on
top of them, until under the table's lock no change is left. `Build` takes the keys from the files of the table, and
`Rescale` from the file groups that the index has.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from ..base_files.slices import SliceSource
from ..concurrency import at_once
from ..engine import Engine, WeighedTask
from ..errors import ConflictError
from ..metadata.file_groups.new_groups import base_path, log_path
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.entry_reading import EntriesRead
from ..metadata.record_index.key_hash import HUDI
from ..metadata.record_index.key_reading import KeyRunRef, KeyTask, read_keys
from ..metadata.record_index.locations import Location, millis_of
from ..metadata.record_index.log_writing import IndexDelta, IndexLogTask, write_index_log
from ..metadata.record_index.shard_base_file import IndexBaseTask, WrittenBase, write_index_base
from ..metadata.record_index.shards import Shards
from ..metadata_updates.new_partition import LostWork, Placed, place_groups, why_unfit
from ..model import FileSlice
from ..snapshot import Snapshot
from .checkpoints import BuildPlan, Checkpoints
from .kinds import RECORDS, IndexKind

Progress = Callable[[str, int, int], None]
T = TypeVar("T", bound=WeighedTask)
Read: TypeAlias = Callable[[T, str], EntriesRead]
"""Reads the keys of a task into runs."""

_FIRST_FREE_LOG = 2
_NEW_PARTITION_GROUPS = 1
"""The file groups of a data partition that comes while a partitioned index is built, as Hudi begins them."""


class GroupBuild(ABC):
    """One build of an index of a `kind`, new or resumed; `engine` runs its tasks, `folder` has its checkpoints."""

    def __init__(
        self,
        table: Snapshot,
        metadata: MetadataTable,
        engine: Engine,
        progress: Progress,
        folder: str,
        kind: IndexKind = RECORDS,
    ) -> None:
        self.kind = kind
        self._storage = table.storage
        self._metadata = metadata
        self._engine = engine
        self._progress = progress
        self._kept = Checkpoints(table.storage, folder)
        self._plan: BuildPlan | None = None
        self._shards: Shards | None = None
        self._read: dict[int, EntriesRead] = {}
        self._bases: dict[int, WrittenBase] = {}
        """What is done, by task of the plan and by shard: that of a resumed build by its checkpoints, and what tasks do
        now by their results: a listing may miss what was written just before."""
        self._next_log = _FIRST_FREE_LOG
        self._logs: dict[tuple[int, int], int] = {}
        """Bytes of the log files that follow the table, by shard and version."""
        self._source: SliceSource = table.slices
        self._known: list[FileSlice] = []
        """The file slices of the table whose keys are in the index now."""
        self._ever: set[FileSlice] = set()
        """Those whose keys were ever in it."""
        self._followed: tuple[KeyRunRef, ...] = ()
        """The runs of all that was added since the tasks of the plan."""

    def resume(self, table: Snapshot) -> str:
        """Resume a killed build; return "" or the reason why it cannot be resumed."""
        plan = self._kept.load_plan()
        if plan is None:
            return "there is no build to go on with"
        self._take(plan)
        self._read, self._bases = self._kept.load_read(), self._kept.load_shards()
        unfit = self._why_unfit(plan, self._metadata)
        if unfit:
            return unfit
        lost = self._lost()
        if lost is not None:
            return f"{self._storage.full_path(lost.path)} is not there as it was written"
        return self._why_not_resumed()

    @property
    def plan(self) -> BuildPlan:
        assert self._plan is not None, "begin or resume first"
        return self._plan

    @property
    def shards(self) -> Shards:
        """Those of the plan, and of data partitions that are new since then."""
        assert self._shards is not None, "begin or resume first"
        return self._shards

    def _read_noted(self, tasks: Mapping[int, T], read: Read[T], description: str) -> None:
        """Carry out tasks of the plan, given by number; what each has read is noted."""
        noted = [_NotedRead(number, self._kept, task, read) for number, task in tasks.items()]
        found = self._engine.map(_noted_read, noted, description, self._tell("read keys"))
        self._read.update(zip(tasks, found, strict=True))

    def write_shards(self) -> list[WrittenBase]:
        """Write the base file of every shard that has keys and is not done; return all base files, ordered by shard."""
        runs = [run for read in self._read.values() for run in read.runs]
        wanted = sorted({shard for run in runs for shard in run.rows} - self._bases.keys())
        tasks = [_NotedBase(self._kept, self._base_task(shard, runs)) for shard in wanted]
        made = self._engine.map(_noted_base, tasks, "write the record index", self._tell("write shards"))
        self._bases.update((base.shard, base) for base in made)
        return self.bases

    @property
    def bases(self) -> list[WrittenBase]:
        """The base files that are done, ordered by shard."""
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
        unseen = self._ever.difference(now)
        places = frozenset(map(_place, unseen))
        # The keys of an older version of a slice, without its newest log files, are in runs with the same place.
        added = [one for one in now if one not in before or _place(one) in places]
        gone = [one for one in self._known if one not in after]
        lost = next(filter(None, at_once(self._lacks, gone)), "")
        if lost:
            raise ConflictError(
                f"{self._storage.full_path(lost)} was replaced and cleaned while the index was built",
                hint="run index-bootstrap without --resume, and let cleans retain more commits meanwhile",
            )
        self._shards = self.shards.holding([one.partition for one in added], _NEW_PARTITION_GROUPS)
        number = self._next_log
        new_runs, old_runs = (self._runs(f"{number}-{which}", some) for which, some in (("new", added), ("old", gone)))
        self._ever.update(added)
        self._follow(new_runs, old_runs, self._others(now, gone), places)
        self._followed += new_runs
        self._known = now

    def place(self, metadata: MetadataTable) -> None:
        """Move all files of the build into the metadata table, where no reader uses them yet.

        Raises LostWork when a file is missing, or the build was made for another metadata table.
        """
        unfit = self._why_unfit(self.plan, metadata)
        if unfit:
            raise LostWork(unfit)
        place_groups(metadata.storage, self.kind.partition, self.shards.file_ids, self.plan.instant, self._files)

    @property
    def _files(self) -> dict[str, Placed]:
        """The files of the build by their paths in the metadata table."""
        index, ids, instant = self.kind.partition, self.shards.file_ids, self.plan.instant
        found = {base_path(index, ids[one.shard], instant): Placed(one.path, one.size) for one in self.bases}
        return found | {
            log_path(index, ids[shard], instant, version): Placed(self._kept.log_path(shard, version), size)
            for (shard, version), size in self._logs.items()
        }

    def forget(self) -> None:
        """Delete the work files of the build; to be called after the index is published."""
        self._kept.forget()

    # ---- for the kinds of build

    @abstractmethod
    def _why_not_resumed(self) -> str:
        """The reason why the tasks that are not done can no longer be done; "" when they can."""

    def _others(self, now: Sequence[FileSlice], gone: Sequence[FileSlice]) -> Sequence[KeyRunRef]:
        """Runs that have the keys of `gone` slices which other slices have, too, with their places there; `now`: all
        slices."""
        return [*(run for read in self._read.values() for run in read.runs), *self._followed]

    @property
    def _hash(self) -> str:
        """The name of the function that spreads keys."""
        return HUDI

    def _why_unfit(self, plan: BuildPlan, metadata: MetadataTable) -> str:
        """The reason why a build by `plan` can no longer be published; "" when it can be."""
        if plan.metadata != metadata.config.file_digest(self._storage):
            return "the metadata table was built anew since it began"
        return why_unfit(metadata, plan.instant, begun=self._is_begun(metadata))

    def _is_begun(self, metadata: MetadataTable) -> bool:
        """Whether the delta commit of the build may be completed already, though no reader uses the index."""
        return False

    def _begin(self, plan: BuildPlan) -> None:
        self._kept.save_plan(plan)
        self._take(plan)

    def _take(self, plan: BuildPlan) -> None:
        self._plan, self._shards = plan, plan.shards
        self._read, self._bases = {}, {}
        self._next_log, self._logs = _FIRST_FREE_LOG, {}
        self._known, self._ever, self._followed = [], set(), ()

    @property
    def _undone(self) -> list[int]:
        return [number for number in range(len(self.plan.tasks)) if number not in self._read]

    def _lost(self) -> WrittenBase | None:
        """A base file that has a checkpoint, but is neither in the work folder nor in the metadata table; else None."""

        def is_lost(written: tuple[int, WrittenBase]) -> bool:
            shard, base = written
            places = (base.path, self._base_path(shard))
            return not any((info := self._storage.head(path)) and info.size == base.size for path in places)

        done = sorted(self._bases.items())
        lost = at_once(is_lost, done)
        return next((base for (_, base), gone in zip(done, lost, strict=True) if gone), None)

    def _base_path(self, shard: int) -> str:
        """The path of the base file of a shard in the metadata table."""
        return base_path(self.kind.partition, self.shards.file_ids[shard], self.plan.instant)

    def _lacks(self, file_slice: FileSlice) -> str:
        """The path of a file of the slice that does not exist any more; "" when all files exist."""
        return next((file.path for file in file_slice.files if self._storage.head(file.path) is None), "")

    def _base_task(self, shard: int, runs: Collection[KeyRunRef]) -> IndexBaseTask:
        of_shard = [run for run in runs if shard in run.rows]
        paths = tuple(run.path for run in of_shard)
        hashes = None
        if all(run.hashes for run in of_shard):
            hashes = sum(run.hashes[shard] for run in of_shard) % (1 << 64)
        path, schema = self._kept.shard_path(shard), self._metadata.writer_schema.text
        return IndexBaseTask(self._storage, path, schema, shard, paths, hashes, self.kind.partition)

    def _follow(
        self,
        new: Sequence[KeyRunRef],
        old: Sequence[KeyRunRef],
        others: Sequence[KeyRunRef] = (),
        gone: Collection[Location] = (),
    ) -> None:
        """Write the next log file of each shard with keys in `new`, or in `old` alone, which are deleted.

        `others` and `gone` as for `IndexLogTask`.
        """
        number, schema = self._next_log, self._metadata.writer_schema.text
        index = self.kind.partition
        moved = IndexDelta(self.shards, tuple(new), self._write_logs, tuple(old), index=index)
        touched = sorted(moved.counts())

        def task(shard: int) -> IndexLogTask:
            added, before, other = (tuple(run.path for run in runs if shard in run.rows) for runs in (new, old, others))
            path, instant = self._kept.log_path(shard, number), self.plan.instant
            return IndexLogTask(
                self._storage, path, instant, schema, shard, added, before, other, frozenset(gone), index=index
            )

        sizes = moved.write([task(shard) for shard in touched])
        self._logs |= {(shard, number): size for shard, size in zip(touched, sizes, strict=True)}
        self._next_log = number + 1

    def _key_task(self, name: str, slices: Sequence[FileSlice]) -> KeyTask:
        dated = tuple((one, millis_of(one.base_instant)) for one in slices)
        source, prefix = self.kind.source(self._source), self._kept.run_prefix(name)
        return KeyTask(self._storage, source, dated, self.shards, prefix, self._hash, self.kind.hashed_part)

    def _runs(self, name: str, slices: Sequence[FileSlice]) -> tuple[KeyRunRef, ...]:
        tasks = [self._key_task(f"{name}-{i}", [one]) for i, one in enumerate(slices)]
        found = self._engine.map(read_keys, tasks, "read changed keys", self._tell("catch up"))
        return tuple(run for of_task in found for run in of_task)

    def _write_logs(self, tasks: Sequence[IndexLogTask]) -> list[int]:
        return self._engine.map(write_index_log, tasks, "follow the table", self._tell("catch up"))

    def _tell(self, phase: str) -> Callable[[int, int], None]:
        return lambda done, total: self._progress(phase, done, total)


def _place(file_slice: FileSlice) -> Location:
    return Location(file_slice.partition, file_slice.file_id, millis_of(file_slice.base_instant))


@dataclass(frozen=True, slots=True)
class _NotedRead(Generic[T]):
    """A task whose runs are noted under its number."""

    number: int
    kept: Checkpoints
    task: T
    read: Read[T]

    @property
    def bytes(self) -> int:
        return self.task.bytes


def _noted_read(noted: _NotedRead[Any], token: str) -> EntriesRead:
    found = noted.read(noted.task, token)
    noted.kept.save_read(noted.number, found)
    return found


@dataclass(frozen=True, slots=True)
class _NotedBase:
    """A task whose base file is noted."""

    kept: Checkpoints
    task: IndexBaseTask


def _noted_base(noted: _NotedBase, token: str) -> WrittenBase:
    written = write_index_base(noted.task, token)
    noted.kept.save_shard(written)
    return written
