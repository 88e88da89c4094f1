"""The record keys of new base files, read by an engine's tasks, for the commit that adds the files.

The log files of the record index can be written ahead of the commit, to a scratch folder: its work under the lock is
then a move for each shard, however many rows there are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..commit.new_files import NewFiles
from ..concurrency import SHORT_REQUESTS, at_once
from ..engine import Engine
from ..errors import ConflictError
from ..file_names import written_file, written_slice
from ..metadata.record_index.key_reading import KeyReader, KeyRunRef, KeySource, key_tasks, read_keys
from ..metadata.record_index.locations import millis_of
from ..metadata.record_index.log_writing import IndexDelta, IndexLogTask, write_index_log
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..model import FileSlice, LogFile, WriteStat
from ..snapshot import Snapshot

_WRITING = "write the record index"
WriteRuns: TypeAlias = Callable[[KeySource, Sequence[FileSlice], str], tuple[KeyRunRef, ...]]
"""Writes the keys of slices from a source to runs with a name."""


def record_shards(table: Snapshot) -> Shards | None:
    """The shards of the table's record index; None when it has none."""
    if table.metadata is None or RECORD_INDEX not in table.metadata.partitions:
        return None
    return Shards.of_groups(table.metadata.file_groups(RECORD_INDEX))


class IndexBuilt(ConflictError):
    """The table has a record index that was built since the keys of the new files were to be read."""


@dataclass(frozen=True, slots=True)
class RecordIndexKnown:
    """Whether the table has a record index is as it was when the keys were read for it: `has_one`."""

    sentence: ClassVar[str] = "the record index was not built since the keys of the new files were read"
    has_one: bool

    def check(self, current: Snapshot) -> None:
        """Raise IndexBuilt for a record index that is new: the keys are to be read for it."""
        if not self.has_one and current.metadata is not None and RECORD_INDEX in current.metadata.partitions:
            raise IndexBuilt(f"{current.storage.root} has got a record index meanwhile", hint="run again")


def moved_keys(
    engine: Engine,
    table: Snapshot,
    shards: Shards,
    files: NewFiles,
    written: Sequence[WriteStat],
    before: Sequence[FileSlice] = (),
    rewritten: Sequence[tuple[FileSlice, WriteStat]] = (),
    grown: Sequence[tuple[FileSlice, WriteStat]] = (),
) -> IndexDelta:
    """Read the keys of the new base files `written`; keys that only slices of `before` have are gone.

    `rewritten` are slices with the next base file, `grown` slices with the log file that each of them got: of these,
    only keys that came or went are moved.
    """

    runs = key_runs(engine, table, shards, f"{files.scratch}/record_keys")
    new = runs(files.source, [written_slice(one) for one in written], "run")
    old = runs(table.slices, before, "old")
    grown_slices = [(one, with_log(one, log)) for one, log in grown]
    next_slices = [(one, written_slice(base)) for one, base in rewritten]
    changed = (("", table.slices.counting(files.instant), grown_slices), ("next-", files.source, next_slices))
    for name, after, changes in changed:
        came, went = compared_runs(runs, table.slices, after, changes, name)
        new, old = new + came, old + went
    return IndexDelta(shards, new, log_writer(engine, _WRITING), old)


def key_runs(
    engine: Engine,
    table: Snapshot,
    shards: Shards,
    folder: str,
    hashed_part: Callable[[pa.ChunkedArray], pa.ChunkedArray] | None = None,
) -> WriteRuns:
    """A function that writes the keys of slices from a source to runs in `folder`, named after its third argument."""

    def runs(source: KeySource, slices: Sequence[FileSlice], name: str) -> tuple[KeyRunRef, ...]:
        tasks = key_tasks(table.storage, source, slices, shards, f"{folder}/{name}", hashed_part)
        found = engine.map(read_keys, tasks, "read keys", _silent) if tasks else []
        return tuple(run for of_task in found for run in of_task)

    return runs


def compared_runs(
    runs: WriteRuns, before: KeySource, after: KeySource, changes: Sequence[tuple[FileSlice, FileSlice]], name: str
) -> tuple[tuple[KeyRunRef, ...], tuple[KeyRunRef, ...]]:
    """The keys that came to file groups, and those that went, of slices before and after a change, by their sources."""
    olds = {(old.partition, old.file_id): old for old, _ in changes}
    news = {(new.partition, new.file_id): new for _, new in changes}
    came = runs(KeysBeside(after, before, olds), list(news.values()), f"{name}came")
    return came, runs(KeysBeside(before, after, news), list(olds.values()), f"{name}went")


def with_log(file_slice: FileSlice, stat: WriteStat) -> FileSlice:
    """The slice with the log file of a write stat."""
    log = written_file(stat)
    assert isinstance(log, LogFile), "the write stat is one of a log file"
    return replace(file_slice, log_files=(*file_slice.log_files, log))


@dataclass(frozen=True, slots=True)
class KeysBeside:
    """A source of the keys that a slice has, and the slice of `others` of the same file group has not."""

    source: KeySource
    source_of_others: KeySource
    others: Mapping[tuple[str, str], FileSlice]

    def open(self, file_slice: FileSlice) -> "_OwnKeys":
        other = self.source_of_others.open(self.others[file_slice.partition, file_slice.file_id])
        return _OwnKeys(self.source.open(file_slice), other)


@dataclass(frozen=True, slots=True)
class _OwnKeys:
    reader: KeyReader
    other: KeyReader

    def record_keys(self) -> Iterator[pa.ChunkedArray]:
        """The keys of all rows of the other one are in memory meanwhile: those of one file."""
        chunks = [chunk for some in self.other.record_keys() for chunk in some.chunks]
        known = pa.chunked_array(chunks, pa.string()).combine_chunks()
        self.other.release()
        for keys in self.reader.record_keys():
            own = keys.filter(pc.invert(pc.is_in(keys, value_set=known)))
            if len(own):
                yield own

    def release(self) -> None:
        self.reader.release()


def written_ahead(engine: Engine, table: Snapshot, files: NewFiles, delta: IndexDelta, instant: str) -> IndexDelta:
    """The same keys, whose log files for a commit at `instant` are written now."""
    if table.metadata is None:
        return delta
    delta = replace(delta, written_millis=millis_of(instant))
    storage, schema = table.storage, table.metadata.writer_schema.text
    tasks = [
        delta.task(storage, f"{files.scratch}/record_index/{instant}-{shard}.log", instant, schema, shard)
        for shard in sorted(delta.counts())
    ]
    write = log_writer(engine, _WRITING)
    sizes = write(tasks)
    ready = {_content(task): (task.path, size) for task, size in zip(tasks, sizes, strict=True)}

    def take(task: IndexLogTask) -> int | None:
        path, size = ready.pop(_content(task), ("", None))
        if size is not None:
            storage.move(path, task.path)
        return size

    def place(logs: Sequence[IndexLogTask]) -> list[int]:
        # What is asked for may differ, when the table was upgraded.
        placed = at_once(take, logs, SHORT_REQUESTS)
        others = iter(write([log for log, size in zip(logs, placed, strict=True) if size is None]))
        return [next(others) if size is None else size for size in placed]

    return replace(delta, write=place, ahead=instant)


def _content(task: IndexLogTask) -> IndexLogTask:
    """What decides the bytes of the log file of `task`: everything but its path."""
    return replace(task, path="")


def log_writer(engine: Engine, what: str) -> Callable[[Sequence[IndexLogTask]], list[int]]:
    """A `IndexDelta.write` by an engine's tasks, which are shown as `what`."""

    def write(logs: Sequence[IndexLogTask]) -> list[int]:
        return engine.map(write_index_log, logs, what, _silent) if logs else []

    return write


def _silent(done: int, total: int) -> None:
    """Show no progress: the work is short compared with the rewrite."""
