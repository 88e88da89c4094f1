"""Rewriting a group once: a group that an earlier attempt, or an earlier try of this task, has finished is taken over.

The checkpoint of a group (`commit.checkpoints`) is found by a digest of all that decides its rewrite. With other
options, another schema or another release of this tool, or when a file is not stored as it was written, the group is
rewritten.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace

from .._version import __version__
from ..base_files.base_file_slices import BaseFileSlices
from ..base_files.new_file import NewFile
from ..commit.checkpoints import Checkpoint, CheckpointFile, read_checkpoint, save_checkpoint
from ..commit.markers import create_marker
from ..concurrency import at_once
from ..engine import Labelled, number_of
from ..errors import CorruptFile, HudiServicesError, StorageError
from ..file_names import new_file_id
from ..rows.conservation import Checksum
from ..rows.file_output import Stopwatch
from ..rows.key_ranges import KeyRanges
from .division import GroupParts, GroupSources, Survey, divided
from .exchange import Exchange, SortedGroup, write_range
from .inputs import open_group
from .outputs import new_slice
from .rewrite import RewriteResult, rewrite_group, skipping_bounds
from .task import Part, RewriteTask

_DECIDES_NOTHING = {"storage", "source", "file_ids", "memory", "staging", "resumes"}
"""Fields of a task that are not in the digest; of `file_ids` only the number is."""


def rewrite_once(task: RewriteTask, write_token: str) -> RewriteResult:
    """Take the group over if it is finished, else rewrite it. Raises the errors of `rewrite_group`."""
    digest = _digest(task)
    if task.resumes:
        # After any error with a checkpoint the group is rewritten.
        with suppress(HudiServicesError):
            return _taken_over(task, read_checkpoint(task.storage, task.instant, digest))
    result = rewrite_group(task, write_token)
    # Without its checkpoint, the group is finished all the same.
    with suppress(StorageError):
        save_checkpoint(task.storage, task.instant, _done(result, digest))
    return result


def has_checkpoint(task: RewriteTask) -> bool:
    """Whether an earlier attempt has finished the group, by its checkpoint alone."""
    if not task.resumes:
        return False
    try:
        _checkpoint(task)
    except HudiServicesError:
        return False
    return True


def parts_of(task: RewriteTask, surveys: Sequence[Survey]) -> GroupParts | GroupSources:
    """The parts of a group, or the group itself where it has none. Raises as `divided`."""
    return divided(task, _digest(task), surveys)


def sorted_group(task: RewriteTask, of: GroupSources, ranges: KeyRanges, first: int) -> SortedGroup:
    """The tasks of a sorted group: its files are named by the ranges, and those that are finished are found."""
    digest = hashlib.sha256(f"{of.digest} {ranges.numbers} {ranges.bounds.to_pydict()}".encode()).hexdigest()[:32]
    ids = [*task.file_ids, *(new_file_id() for _ in range(ranges.count - len(task.file_ids)))]
    files = tuple(
        replace(task, slices=(), file_ids=(file_id,), part=Part(digest, number, of.form, "sorted"))
        for number, file_id in enumerate(ids[: ranges.count])
    )
    written = at_once(is_written, files) if task.resumes else []
    finished = frozenset(number for number, done in enumerate(written) if done)
    return SortedGroup(ranges, of.sources, files, first, finished)


def is_written(task: RewriteTask) -> bool:
    """Whether an earlier attempt, or try, has finished the group or part."""
    try:
        _taken_over(task, _checkpoint(task))
    except HudiServicesError:
        return False
    return True


def write_once(exchange: Exchange, rows: Labelled, token: str) -> Iterator[RewriteResult]:
    """Write the file whose number begins the token; one that is finished is taken over. Raises as `write_range`."""
    group, number = exchange.file(number_of(token))
    task = group.files[number]
    if number in group.written:
        for _ in rows:
            pass
        yield _taken_over(task, _checkpoint(task))
        return
    result = write_range(group, number, rows, token)
    with suppress(StorageError):
        save_checkpoint(task.storage, task.instant, _done(result, _digest(task)))
    yield result


def _checkpoint(task: RewriteTask) -> Checkpoint:
    """The checkpoint of the group or part. Raises NotFound and the other StorageErrors, and CorruptFile."""
    return read_checkpoint(task.storage, task.instant, _digest(task))


def _digest(task: RewriteTask) -> str:
    deciding = {f.name: getattr(task, f.name) for f in fields(task) if f.name not in _DECIDES_NOTHING}
    text = repr((__version__, len(task.file_ids), sorted(deciding.items())))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _done(result: RewriteResult, digest: str) -> Checkpoint:
    files = [CheckpointFile(new.file_id, new.path, new.size, new.rows, new.stat.create_millis) for new in result.files]
    before, after = ((one.rows, one.total) for one in (result.before, result.after))
    return Checkpoint(digest, tuple(files), result.rows_in, result.bytes_in, before, after, result.decoded, result.logs)


def _taken_over(task: RewriteTask, done: Checkpoint) -> RewriteResult:
    """The result of a finished group. Raises CorruptFile and StorageError when it is not stored as it was written."""
    clock = Stopwatch()
    before, after = Checksum(*done.before), Checksum(*done.after)
    with clock.phase("take over"):
        if before != after or before.rows != sum(file.rows for file in done.files):
            raise CorruptFile(f"the checkpoint of a group in {task.partition!r} is inconsistent")
        files = tuple(_new_file(task, file) for file in done.files)
        bounds = skipping_bounds(task, open_group(task).readers if task.sort else (), files)
        # The marker may have been deleted with an attempt that was rolled back while one of its tasks still ran.
        for file in done.files if task.staging is None else ():
            create_marker(task.storage, task.instant, file.path)
    return RewriteResult(
        partition=task.partition,
        files=files,
        rows_in=done.rows,
        bytes_in=done.bytes,
        before=before,
        after=after,
        seconds=clock.seconds,
        decoded=done.decoded,
        logs=done.logs,
        bounds=bounds,
        taken_over=True,
    )


def _new_file(task: RewriteTask, done: CheckpointFile) -> NewFile:
    reader = BaseFileSlices(task.output).open(new_slice(task.partition, task.instant, done.file_id, done.path))
    if (reader.size, reader.num_rows) != (done.size, done.rows):
        raise CorruptFile(f"{reader.full_path} is not as it was written")
    # The same statistics as from the writer, which knew the values: values are read where the footer has no range.
    new = NewFile.of(done.path, done.size, done.rows, reader.column_stats(complete=task.ranged), done.file_id)
    return replace(new, stat=replace(new.stat, create_millis=done.millis))
