"""Rewriting a group once: what an earlier attempt, or an earlier try of this task, has done is taken over.

The note of a group (`commit.done_groups`) is found by a digest of all that decides its rewrite, so that other options,
another schema or another release of this tool do it anew; and so does a file that is not there as it was written.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace

from .. import __version__
from ..commit.done_groups import DoneFile, DoneGroup, note_done, read_done
from ..commit.markers import create_marker
from ..errors import CorruptFile, HudiServicesError, StorageError
from ..files.column_stats import ColumnStats
from ..files.column_type import Kind
from ..files.names import parse_base_file
from ..files.parquet_reader import BaseFileReader, open_base_file
from ..files.parquet_writer import WrittenFile
from .output import NewFile, RewriteTask, Stopwatch
from .proof import Checksum
from .rewrite import RewriteResult, open_inputs, rewrite_group, skipping_bounds

_DECIDES_NOTHING = {"storage", "file_ids", "memory"}
"""Of a task; but how many file ids it has does."""
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)


def rewrite_once(task: RewriteTask, write_token: str) -> RewriteResult:
    """As `rewrite_group`, unless the group is done. Raises what that raises."""
    digest = _digest(task)
    # Whatever is wrong with what was left, doing it anew mends it.
    with suppress(HudiServicesError):
        return _taken_over(task, read_done(task.storage, task.instant, digest))
    result = rewrite_group(task, write_token)
    # Without its note, the group is done all the same.
    with suppress(StorageError):
        note_done(task.storage, task.instant, _done(result, digest))
    return result


def _digest(task: RewriteTask) -> str:
    deciding = {f.name: getattr(task, f.name) for f in fields(task) if f.name not in _DECIDES_NOTHING}
    text = repr((__version__, len(task.file_ids), sorted(deciding.items())))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _done(result: RewriteResult, digest: str) -> DoneGroup:
    files = [
        DoneFile(new.file_id, new.file.path, new.file.size, new.file.rows, new.millis, _float_ranges(new.file.columns))
        for new in result.files
    ]
    before, after = ((one.rows, one.total) for one in (result.before, result.after))
    return DoneGroup(digest, tuple(files), result.rows_in, result.bytes_in, before, after, result.decoded)


def _float_ranges(columns: Sequence[ColumnStats]) -> dict[str, tuple[float, float]]:
    return {one.column: (one.min, one.max) for one in columns if one.type.kind in _FLOATS and one.min is not None}


def _taken_over(task: RewriteTask, done: DoneGroup) -> RewriteResult:
    """Raises CorruptFile and StorageError when the group is not there as it was written."""
    clock = Stopwatch()
    before, after = Checksum(*done.before), Checksum(*done.after)
    with clock.phase("take over"):
        if before != after or before.rows != sum(file.rows for file in done.files):
            raise CorruptFile(f"the note of a group in {task.partition!r} does not add up")
        files = tuple(_new_file(task, file) for file in done.files)
        bounds = skipping_bounds(task, open_inputs(task) if task.sort else (), files)
        # Its marker may have gone with an attempt that was rolled back while a task of it ran on.
        for file in done.files:
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
        bounds=bounds,
        taken_over=True,
    )


def _new_file(task: RewriteTask, done: DoneFile) -> NewFile:
    partition, _, name = done.path.rpartition("/")
    named = parse_base_file(partition, name, done.size)
    if named is None or (named.partition, named.instant, named.file_id) != (task.partition, task.instant, done.file_id):
        raise CorruptFile(f"{done.path} is no new file of {task.instant}")
    reader = open_base_file(task.storage, done.path)
    if (reader.size, reader.num_rows) != (done.size, done.rows):
        raise CorruptFile(f"{reader.full_path} is not as it was written")
    return NewFile(done.file_id, WrittenFile(done.path, done.size, done.rows, _columns(reader, done)), done.millis)


def _columns(reader: BaseFileReader, done: DoneFile) -> tuple[ColumnStats, ...]:
    """As the writer told them: it leaves the range of a column with NaN out of the footer, for readers of footers."""
    return tuple(
        replace(one, min=done.ranges[one.column][0], max=done.ranges[one.column][1], has_range=True)
        if one.column in done.ranges
        else one
        for one in reader.column_stats()
    )
