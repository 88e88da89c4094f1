"""Dividing a group into parts: each new file is a task of its own, so that several cores share the group.

Whoever divides opens the group once, and decides all that needs all of its files: the form of the new files, which row
groups are copied, and where each new file begins. A part reads its own slices alone. Rows of a row group that two new
files share are decoded by both parts, and counted by the one that writes them. A slice with log files is merged as a
whole, so that it is in one part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, takewhile

import numpy as np
import numpy.typing as npt

from ..base_files.row_selection import Numbers
from ..base_files.slices import Segment
from ..file_names import new_file_id
from ..model import FileSlice
from ..options.value_types import is_code
from ..packing import pack
from ..rows.file_sizing import footer_bytes, segments_of
from .copy_plan import CopyPlan, copy_plan
from .data_skipping import ColumnBounds
from .execution_strategies import execution_called
from .group import Group
from .rewrite import skipping_bounds
from .task import Copied, GroupForm, Part, RewriteTask

_SOURCE_BYTES = 32 << 20
"""Bytes of old files that one task reads and divides by key, about at most."""
_NEAR = 0.01
"""The share of a file's rows by which a cut is moved to the end of a row group, so that nobody decodes it twice."""
_UNEVEN = 0.05
"""The share of a file's rows by which a cut is moved to the end of a slice with log files."""


@dataclass(frozen=True, slots=True)
class GroupParts:
    """The parts of a group, or the whole group again. `rows` and `bytes` are those of its old files."""

    tasks: tuple[RewriteTask, ...]
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class GroupSources:
    """The parts of the old rows of a group that is sorted, which are still to be divided by their keys.

    `digest` is that of the group, `form` that of its new files, whose footers have about `footer` bytes; `bytes` are
    those of the old files, and `bounds` those of their sort columns.
    """

    digest: str
    form: GroupForm
    sources: tuple[RewriteTask, ...]
    bytes: int
    footer: int
    bounds: tuple[ColumnBounds, ...]


def may_divide(task: RewriteTask) -> bool:
    """Whether a group may become parts: several new files, in an order that this program knows."""
    is_several = len(task.file_ids) > 1 and not task.keeps_group and task.appended is None
    is_ours = execution_called(task.execution).own is None and not (task.sort and is_code(task.layout))
    return is_several and is_ours


def divided(task: RewriteTask, digest: str) -> GroupParts | GroupSources:
    """The parts of a group, whose digest is given. Raises as `rewrite_group` for inputs that cannot be read."""
    group = Group(task)
    if task.sort:
        bounds, sources = skipping_bounds(task, group.readers, ()), tuple(_sources(group, digest))
        return GroupSources(digest, group.form, sources, group.bytes, footer_bytes(group.readers), bounds)
    plan = copy_plan(task, group.readers, group.target, group.segments, group.pieces)
    if isinstance(plan, CopyPlan):
        ends = np.cumsum([sum(one.rows for one in file) for file in plan.files])
    else:
        ends = _near_ends(group, np.cumsum(group.cuts(group.pieces)))
    if len(ends) < 2 or _in_merged(group, ends).any() or not (np.diff(ends, prepend=0) > 0).all():
        return GroupParts((task,))
    windows = enumerate(pairwise([0, *ends.tolist()]))
    parts = [_part(group, digest, plan, number, start, end) for number, (start, end) in windows]
    return GroupParts(tuple(parts), group.rows, group.bytes)


def _sources(group: Group, digest: str) -> Iterator[RewriteTask]:
    """Parts of the old rows: some row groups of slices that follow each other, or one slice with log files."""
    task, number = group.task, 0

    def part(slices: Sequence[FileSlice], size: int, start: int = 0, rows: int | None = None) -> RewriteTask:
        nonlocal number
        number += 1
        of = Part(digest, number - 1, group.form, "sorted", start, rows, bytes=size)
        return replace(task, slices=tuple(slices), part=of)

    pairs = zip(task.slices, group.readers, strict=True)
    for has_logs, some in groupby(pairs, key=lambda pair: bool(pair[0].log_files)):
        if has_logs:
            yield from (part([one], one.size) for one, _ in some)
            continue
        segments = [(one, segment) for one, reader in some for segment in segments_of([reader])]
        for packed in pack(segments, lambda item: item[1].stored_bytes, _SOURCE_BYTES):
            begin, slices = packed[0][1], list(dict.fromkeys(one for one, _ in packed))
            size = sum(segment.stored_bytes for _, segment in packed)
            yield part(slices, size, _rows_before(begin), sum(segment.rows for _, segment in packed))


def _rows_before(segment: Segment) -> int:
    """The number of rows of its slice that come before those of a segment."""
    return sum(one.rows for one in takewhile(lambda other: other.index != segment.index, segments_of([segment.slice])))


def _part(group: Group, digest: str, plan: CopyPlan | str, number: int, start: int, end: int) -> RewriteTask:
    task, copied, decoded = group.task, None, plan if isinstance(plan, str) else plan.decoded
    if isinstance(plan, CopyPlan):
        copied = Copied(tuple(one.stored is not None for one in plan.files[number]), plan.created_by)
    firsts = _firsts(group)
    wanted = np.flatnonzero((firsts[:-1] < end) & (firsts[1:] > start))
    slices = tuple(task.slices[at] for at in wanted)
    share = group.bytes * (end - start) // max(1, group.rows)
    part = Part(digest, number, group.form, decoded, start - int(firsts[wanted[0]]), end - start, copied, share)
    file_id = task.file_ids[number] if number < len(task.file_ids) else new_file_id()
    return replace(task, slices=slices, file_ids=(file_id,), part=part)


def _firsts(group: Group) -> Numbers:
    """The number of the first row of each slice, and the number of all rows."""
    return np.cumsum([0, *(reader.num_rows for reader in group.readers)])


def _near_ends(group: Group, cuts: Numbers) -> Numbers:
    """The `cuts` (numbers of rows); those near the end of a row group, or of a merged slice, are moved there."""
    ends = np.cumsum([0, *(one.rows for one in group.segments)])
    ends = ends[~_in_merged(group, ends)]
    near = ends[np.abs(ends[None, :] - cuts[:, None]).argmin(axis=1)]
    most = np.where(_in_merged(group, cuts), _UNEVEN, _NEAR) * group.rows / max(1, len(cuts))
    return np.where(np.abs(near - cuts) <= most, near, cuts)


def _in_merged(group: Group, rows: Numbers) -> npt.NDArray[np.bool_]:
    """Whether each row has rows of its slice before it, and the slice has log files."""
    firsts = _firsts(group)
    at = np.minimum(np.searchsorted(firsts, rows, "right") - 1, len(group.readers) - 1)
    has_logs = np.array([bool(one.log_files) for one in group.task.slices])
    found: npt.NDArray[np.bool_] = has_logs[at] & (rows > firsts[at]) & (rows < firsts[at + 1])
    return found
