"""The rows of a data frame, which the tasks of its engine keep, assign and write: no row passes through the driver.

    BulkRows    a bulk insert: each task writes the rows of one partition of the frame, into a file for each path
                (not where all rows of a path are to be sorted together)
    FrameRows   every other operation:
                keep     the rows with their keys and partition paths
                look up  where each row goes: see `frame_lookup` (only for look-ups; again after a conflict)
                write    divided by the tasks of the write, each of which writes a bucket or a file group

The rows of each step are computed once and kept by the engine. The driver has their counts, by which it sizes files.
Rows that are looked up have numbers, by which their order is the same whenever the engine has to compute them again.
Source: BulkInsertDataInternalWriterHelper, BaseSparkCommitActionExecutor, UpsertPartitioner of Apache Hudi.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from ..engine import Frame, Labelled, Pieces, number_of
from ..errors import CheckFailed, NothingToDo
from ..merging.rules import MergeRule
from ..model import FileSlice
from ..options import Options
from ..rows.conservation import Checksum, checksum
from ..rows.memory import TaskMemory
from ..runs.request import WriteOperation
from ..snapshot import Snapshot
from ..table.partition_metafile import create_metafiles
from ..writing.assignment import Assigned, DuplicatePolicy
from ..writing.distinct_rows import DistinctRows
from ..writing.inserted_files import InsertTask, Written
from ..writing.row_keys import with_keys
from ..writing.row_store import Place, Portion, RowStore
from ..writing.write_form import WriteForm
from ..writing.write_index import Index
from .frame_lookup import AssignTask, looked_up
from .frame_pieces import pieces_of
from .write_rows import KeepTask, Progress
from .write_settings import bulk_sort
from .write_tasks import WriteTask, inserted, write_form

_MOST_PATHS = 1 << 20
"""Partition paths of one task: the numbers of its files are those of no other task."""
_MOST_ROWS = 1 << 40
"""Rows of one task: their numbers are those of no other task."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows of places, their bytes in memory, and the checksum of all of them; other processes have the rows."""

    counts: Mapping[Place, int] = field(default_factory=dict)
    sizes: Mapping[Place, int] = field(default_factory=dict)
    checked: Checksum = field(default_factory=Checksum)
    spilled_bytes: int = 0


class BulkRows:
    """The rows of a bulk insert, which are counted when they are written."""

    rule: MergeRule | None = None

    def __init__(self, frame: Frame, task: KeepTask, options: Options, progress: Progress) -> None:
        self.kept = task.kept(Counts())
        self.task_memory = task.memory
        self.limit = task.memory.limit
        self._frame = frame
        self._task = task
        self._options = options
        self._progress = progress

    @contextmanager
    def assigned(self, table: Snapshot, index: Index, known: DuplicatePolicy) -> Iterator[None]:
        yield None

    def write(self, table: Snapshot, ts: str, tasks: Sequence[WriteTask]) -> list[Written]:
        sort = bulk_sort(self._options, WriteOperation.BULK_INSERT)
        form = write_form(table, ts, self.kept.schema, self._options, self.task_memory, sort)
        task = BulkTask(self._task, form, table.config.partition_metafile_in_base_format)
        done = self._frame.pieces().results(write_partition, task, "write", partial(self._progress, "write"))
        if not done:
            raise NothingToDo("there are no rows to write")
        return done


@dataclass(frozen=True, slots=True)
class BulkTask:
    """What the tasks of one bulk insert have in common."""

    keep: KeepTask
    form: WriteForm
    metafiles_in_base_format: bool


def write_partition(task: BulkTask, rows: Labelled, token: str) -> Iterator[Written]:
    """Write the rows of one partition of a data frame.

    Raises ConfigError for rows that the table cannot take, CheckFailed for files that do not hold them, StorageError.
    """
    in_base_format = task.metafiles_in_base_format
    with RowStore(task.keep.memory.limit // 4) as store:
        _keep_all(task.keep, store, rows, token)
        first = number_of(token) * _MOST_PATHS
        for number, (place, count) in enumerate(sorted(store.counts.items(), key=lambda item: item[0].partition)):
            path = place.partition
            create_metafiles(task.form.storage, [path], task.form.instant, in_base_format=in_base_format)
            insert = InsertTask(task.form, path, first + number, count)
            yield inserted(insert, store.read(place), token, 0 if number else store.spilled_bytes)


class FrameRows:
    """The rows of a data frame; `rule` is for look-ups, `table_name` for messages. To be closed at the end."""

    def __init__(
        self, frame: Frame, task: KeepTask, rule: MergeRule | None, table_name: str, progress: Progress
    ) -> None:
        """Computes and counts the rows. Raises ConfigError for a row that the table cannot take, StorageError."""
        self.rule = rule
        self.task_memory = task.memory
        self.limit = task.memory.limit
        self._progress = progress
        self._parts = frame.parallelism
        self._task = task
        self._table_name = table_name
        self._frame = frame
        self._held: list[Pieces] = [frame.pieces().then(keep, task).keep()]
        try:
            self._counted = self._count("keep rows")
            self.kept = task.kept(_total(self._counted))
            if rule is not None:
                # What cannot be merged is refused before anything is written; this rule knows its ordering fields.
                self.rule = DistinctRows(self.kept, rule, task.memory, table_name).rule
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the engine forget the rows."""
        self._release(self._held)

    @staticmethod
    def _release(held: Sequence[Pieces]) -> None:
        for one in held:
            one.release()

    @contextmanager
    def assigned(self, table: Snapshot, index: Index, known: DuplicatePolicy) -> Iterator[Assigned]:
        if self.rule is None:
            yield Assigned(self.kept.store)
            return
        table = with_keys(table, self.kept.file_keys)
        task = AssignTask(table, self._task, index, known, self.rule, self._table_name)
        kept, *assigned_before = self._held
        self._release(assigned_before)
        self._held = [kept]
        found_rows = looked_up(self._frame, kept, self.kept, self._parts, task, self._progress)
        self._held.append(found_rows.keep())
        self._counted = self._count("look up")
        total = _total(self._counted)
        found = {(place.partition, place.file_id) for place in total.counts if place.file_id}
        slices = table.view.latest_slices_of(sorted({partition for partition, _ in found}))
        known_groups = {group: one for one in slices if (group := (one.partition, one.file_id)) in found}
        # By consistent hashing a bucket has its name before it has a file.
        begun = {group: FileSlice(*group, "", None) for group in found - known_groups.keys()}
        if begun and index.ring is None:
            raise CheckFailed(f"{table.storage.root} has no file group {min(begun)}, to which rows were assigned")
        yield Assigned(total, {**known_groups, **begun})

    def write(self, table: Snapshot, ts: str, tasks: Sequence[WriteTask]) -> list[Written]:
        if not tasks:
            return []
        sent = self._held[-1].then(route, _Routes.of(tasks, self._counted))
        routed = sent.divided(len(tasks), "send rows to their files")
        wanted = WriteAll(tuple(tasks), self.task_memory)
        done = routed.results(write_task, wanted, "write", partial(self._progress, "write"))
        written = sum((checked for _, checked in done), start=Checksum())
        counted = sum((one.checked for one in self._counted), start=Checksum())
        if written != counted:
            raise _other_rows(f"{counted} when it was read first, and {written} then")
        return [one for one, _ in done]

    def _count(self, phase: str) -> list[Counts]:
        """The rows of each partition of what is held last."""
        counted: list[Counts] = self._held[-1].results(count, None, phase, partial(self._progress, phase))
        return counted


def keep(task: KeepTask, rows: Labelled, token: str) -> Labelled:
    """The rows of one partition of a data frame by partition path."""
    with RowStore(task.memory.limit // 4) as store:
        _keep_all(task, store, rows, token)
        for place in store.counts:
            for piece in pieces_of(store.read(place)):
                yield place, piece


def count(task: None, rows: Labelled, token: str) -> Iterator[Counts]:
    """The rows of one partition."""
    counts: dict[Place, int] = {}
    sizes: dict[Place, int] = {}
    checked = Checksum()
    for place, table in rows:
        counts[place] = counts.get(place, 0) + table.num_rows
        sizes[place] = sizes.get(place, 0) + table.nbytes
        checked += checksum(table)
    yield Counts(counts, sizes, checked)


@dataclass(frozen=True, slots=True)
class _Routes:
    """The portions of the tasks of a write. `before`: the new rows of earlier partitions, by partition and place."""

    portions: Mapping[Place, Sequence[tuple[int, Portion]]]
    before: Sequence[Mapping[Place, int]]

    @classmethod
    def of(cls, tasks: Sequence[WriteTask], counted: Sequence[Counts]) -> "_Routes":
        portions: dict[Place, list[tuple[int, Portion]]] = {}
        for number, task in enumerate(tasks):
            for one in task.portions:
                portions.setdefault(one.place, []).append((number, one))
        before: list[dict[Place, int]] = [{}]
        for counts in counted:
            last = before[-1]
            new = ((place, n) for place, n in counts.counts.items() if not place.file_id)
            before.append({**last, **{place: last.get(place, 0) + n for place, n in new}})
        return cls(portions, before)


def route(task: _Routes, rows: Labelled, token: str) -> Labelled:
    """The rows of one partition by the tasks that write them."""
    part = number_of(token)
    at = dict(task.before[part])
    for place, table in rows:
        first = at.get(place, 0)
        at[place] = first + table.num_rows
        for number, portion in task.portions.get(place, ()):
            start = max(first, portion.start) - first
            end = table.num_rows if portion.count is None else portion.start + portion.count - first
            if start < min(end, table.num_rows):
                yield (number, replace(place, part=part)), table.slice(start, end - start)


@dataclass(frozen=True, slots=True)
class WriteAll:
    """The tasks of a write, by the number of their partition."""

    tasks: tuple[WriteTask, ...]
    memory: TaskMemory


def write_task(write: WriteAll, rows: Labelled, token: str) -> Iterator[tuple[Written, Checksum]]:
    """Write the bucket or file group of one task, and give the checksum of its rows.

    Raises CheckFailed for another number of rows than was counted.
    """
    task = write.tasks[number_of(token)]
    checked = Checksum()
    with RowStore(write.memory.limit // 4) as store:
        for place, table in rows:
            store.add(place, table)
            checked += checksum(table)
        if checked.rows != task.inserts + task.changes:
            raise _other_rows(
                f"{task.inserts + task.changes} for {task.partition!r} when it was read first, and {checked.rows} then"
            )
        # In the order of the parts: two attempts of one task then write the same log file.
        order = {portion.place: number for number, portion in enumerate(task.portions)}
        places = sorted(store.counts, key=lambda place: (order[replace(place, part=0)], place.part))
        here = replace(task, portions=tuple(map(Portion, places)))
        written = here.run(store, token)
        yield replace(written, spilled=written.spilled + store.spilled_bytes), checked


def _other_rows(counts: str) -> CheckFailed:
    return CheckFailed(
        f"the data frame gave other rows when it was read again: {counts}",
        hint="nothing was committed; store the rows of the frame first: one that reads random or changing data gives "
        "others each time, and so may one of which an executor was lost",
    )


def _keep_all(task: KeepTask, store: RowStore, rows: Labelled, token: str) -> None:
    first = number_of(token) * _MOST_ROWS
    task.kept(store).add((batch for _, table in rows for batch in table.to_batches()), task.maker, first)


def _total(counted: Sequence[Counts]) -> Counts:
    counts: dict[Place, int] = {}
    sizes: dict[Place, int] = {}
    for one in counted:
        for place, rows in one.counts.items():
            counts[place] = counts.get(place, 0) + rows
            sizes[place] = sizes.get(place, 0) + one.sizes[place]
    return Counts(counts, sizes, sum((one.checked for one in counted), start=Checksum()))
