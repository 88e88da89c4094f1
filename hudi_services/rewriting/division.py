"""Dividing a group into parts: each new file is a task of its own, so that several cores share the group.

Tasks open the slices, and count the rows of those that have log files; their outlines decide all that needs all files
of the group: the form of the new files, which row groups are copied, and where each new file begins. A part reads its
own slices alone. Rows of a row group that two new files share are decoded by both parts, and counted by the one that
writes them. A slice with log files is merged as a whole, so that it is in one part.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt

from ..base_files.row_selection import Numbers
from ..base_files.slice_outline import SegmentOutline, SliceOutline
from ..file_names import new_file_id
from ..model import FileSlice
from ..options.value_types import is_code
from ..packing import pack
from ..rows.file_sizing import (
    Written,
    even_cuts,
    files_needed,
    footer_bytes,
    sampled_slices,
    segments_of,
    weighed_slices,
    written_samples,
)
from .copy_plan import CopyPlan, copy_plan
from .data_skipping import ColumnBounds, joined_bounds
from .execution_strategies import execution_called
from .inputs import open_slices, with_form
from .rewrite import skipping_bounds
from .task import Copied, GroupForm, Part, RewriteTask

_SURVEYED_BYTES = 128 << 20
"""Bytes of old files that one task opens, at most; it reads little more of them than their footers."""
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
    is_several = len(task.file_ids) > 1 and not task.keeps_group and task.appended is None and task.split is None
    is_ours = execution_called(task.execution).own is None and not (task.sort and is_code(task.layout))
    return is_several and is_ours


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Some slices of a group, in the order of the group; `group` has no others.

    `sampled`: as `sampled_slices`, by their numbers among these.
    """

    group: RewriteTask
    sampled: Mapping[int, int]

    @classmethod
    def of_group(cls, task: RewriteTask) -> "list[SurveyTask]":
        """The tasks of all slices of a group; they are the same, however many cores there are."""
        sampled = {} if task.sort else sampled_slices(len(task.slices))
        found, first = [], 0
        for some in pack(task.slices, lambda one: one.size, _SURVEYED_BYTES):
            own = {at - first: most for at, most in sampled.items() if first <= at < first + len(some)}
            found.append(cls(replace(task, slices=tuple(some)), own))
            first += len(some)
        return found


@dataclass(frozen=True, slots=True)
class Survey:
    """The outlines of some slices, the samples of some of them, and the bounds of their sort columns."""

    slices: tuple[SliceOutline, ...]
    written: tuple[Written, ...]
    bounds: tuple[ColumnBounds, ...]


def survey(task: SurveyTask, write_token: str) -> Survey:
    """Open slices of a group that is to be divided. Raises as `rewrite_group` for inputs that cannot be read."""
    group = task.group
    readers = open_slices(group)
    slices: list[SliceOutline] = []
    for reader in readers:
        slices.append(SliceOutline.of(reader))
        # A merge that counts the rows holds log records.
        reader.release()
    written = written_samples(readers, task.sampled, group.settings.codec, group.memory.stored)
    return Survey(tuple(slices), tuple(written), skipping_bounds(group, readers, ()))


def divided(task: RewriteTask, digest: str, surveys: Sequence[Survey]) -> GroupParts | GroupSources:
    """The parts of a group, whose digest is given, by the surveys of its slices. Raises UnsupportedTable."""
    group = _GroupOutline(task, digest, [one for some in surveys for one in some.slices])
    if task.sort:
        bounds, sources = joined_bounds(some.bounds for some in surveys), tuple(_sources(group))
        return GroupSources(digest, group.form, sources, group.bytes, footer_bytes(group.slices), bounds)
    pieces = weighed_slices(group.slices, task.settings.codec, (one for some in surveys for one in some.written))
    plan = copy_plan(task, group.slices, group.form.target, group.segments, pieces)
    if isinstance(plan, CopyPlan):
        ends = np.cumsum([sum(group.segments[one.number].rows for one in file) for file in plan.files])
    else:
        count = files_needed(len(task.file_ids), pieces, group.slices, task.settings)
        ends = group.near_ends(np.cumsum(even_cuts(pieces, count)))
    if len(ends) < 2 or group.in_merged(ends).any() or not (np.diff(ends, prepend=0) > 0).all():
        return GroupParts((task,))
    windows = enumerate(pairwise([0, *ends.tolist()]))
    parts = [_part(group, plan, number, start, end) for number, (start, end) in windows]
    return GroupParts(tuple(parts), group.rows, group.bytes)


class _GroupOutline:
    """A group by the outlines of its slices. Rows are numbered in the order of the slices."""

    def __init__(self, task: RewriteTask, digest: str, slices: list[SliceOutline]) -> None:
        self.task = task
        self.digest = digest
        self.slices, self.form = with_form(task, slices)
        self.segments = segments_of(self.slices)
        self.bytes = sum(one.size for one in self.slices)
        self.firsts: Numbers = np.cumsum([0, *(one.num_rows for one in self.slices)])
        """The number of the first row of each slice, and the number of all rows."""
        self.rows = int(self.firsts[-1])

    def near_ends(self, cuts: Numbers) -> Numbers:
        """The `cuts` (numbers of rows); those near the end of a row group, or of a merged slice, are moved there."""
        ends = np.cumsum([0, *(one.rows for one in self.segments)])
        ends = ends[~self.in_merged(ends)]
        near = ends[np.abs(ends[None, :] - cuts[:, None]).argmin(axis=1)]
        most = np.where(self.in_merged(cuts), _UNEVEN, _NEAR) * self.rows / max(1, len(cuts))
        return np.where(np.abs(near - cuts) <= most, near, cuts)

    def in_merged(self, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Whether each row has rows of its slice before it, and the slice has log files."""
        firsts = self.firsts
        at = np.minimum(np.searchsorted(firsts, rows, "right") - 1, len(self.slices) - 1)
        has_logs = np.array([bool(one.log_files) for one in self.task.slices])
        found: npt.NDArray[np.bool_] = has_logs[at] & (rows > firsts[at]) & (rows < firsts[at + 1])
        return found


def _sources(group: _GroupOutline) -> Iterator[RewriteTask]:
    """Parts of the old rows: some row groups of slices that follow each other, or one slice with log files."""
    task, number = group.task, 0

    def part(slices: Sequence[FileSlice], size: int, start: int = 0, rows: int | None = None) -> RewriteTask:
        nonlocal number
        number += 1
        of = Part(group.digest, number - 1, group.form, "sorted", start, rows, bytes=size)
        return replace(task, slices=tuple(slices), part=of)

    pairs = zip(task.slices, group.slices, strict=True)
    for has_logs, some in groupby(pairs, key=lambda pair: bool(pair[0].log_files)):
        if has_logs:
            yield from (part([one], outline.size) for one, outline in some)
            continue
        for packed in pack(_placed(some), lambda item: item[2].stored_bytes, _SOURCE_BYTES):
            slices = list(dict.fromkeys(one for one, _, _ in packed))
            size = sum(segment.stored_bytes for _, _, segment in packed)
            yield part(slices, size, packed[0][1], sum(segment.rows for _, _, segment in packed))


def _placed(slices: Iterable[tuple[FileSlice, SliceOutline]]) -> Iterator[tuple[FileSlice, int, SegmentOutline]]:
    """The segments of some slices, each with its slice, and the number of rows before it in the slice."""
    for one, outline in slices:
        before = 0
        for segment in segments_of([outline]):
            yield one, before, segment
            before += segment.rows


def _part(group: _GroupOutline, plan: CopyPlan | str, number: int, start: int, end: int) -> RewriteTask:
    task, copied, decoded = group.task, None, plan if isinstance(plan, str) else plan.decoded
    if isinstance(plan, CopyPlan):
        copied = Copied(tuple(one.is_copied for one in plan.files[number]), plan.created_by)
    firsts = group.firsts
    wanted = np.flatnonzero((firsts[:-1] < end) & (firsts[1:] > start))
    slices = tuple(task.slices[at] for at in wanted)
    share = group.bytes * (end - start) // max(1, group.rows)
    part = Part(group.digest, number, group.form, decoded, start - int(firsts[wanted[0]]), end - start, copied, share)
    file_id = task.file_ids[number] if number < len(task.file_ids) else new_file_id()
    return replace(task, slices=slices, file_ids=(file_id,), part=part)
