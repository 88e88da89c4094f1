"""Whether row groups of a group are copied into the new files as they are, and into which ones."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ..base_files.file_writer import CREATED_BY
from ..base_files.page_copy import can_be_copied, joint_writer
from ..base_files.slice_outline import SegmentSizes, SliceSizes
from ..parquet.file_schema import FileSchema
from ..rows.file_sizing import Piece, files_needed
from .task import Part, RewriteTask

_SMALLEST_PART = 16
"""Row groups are copied when their average size is at least the wanted size divided by this: smaller row groups make
reading slow, and are merged."""
_LARGEST_TIMES = 2
"""Row groups larger than this many times the wanted size are decoded and cut."""
_UNEVEN = 0.05
"""The share of a file's bytes by which a cut between row groups may differ from an even cut."""


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """A segment, by its number in the group, and whether it is copied as it is stored."""

    number: int
    is_copied: bool


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Which segments go into which new file: row groups that are copied, and rows that are merged and encoded."""

    files: tuple[tuple[PlannedSegment, ...], ...]
    created_by: str
    """The writer that the new footers name."""
    decoded: str | None
    """Why some rows are decoded, None when all row groups are copied."""


def copy_plan(
    task: RewriteTask,
    slices: Sequence[SliceSizes],
    target: FileSchema,
    segments: Sequence[SegmentSizes],
    pieces: Sequence[Piece],
) -> CopyPlan | str:
    """How to copy the group, or the reason why all its rows must be decoded; `pieces` are its `segments`, weighed."""
    if task.sort:
        return "sorted"
    if any(one.is_converted for one in slices):
        return "values converted"
    if any(one.schema != target for one in slices):
        return "schemas differ"
    wanted = task.settings.row_group_bytes
    if all(one.stored is None for one in segments):
        return "log files" if segments else "no rows"
    planned = _planned(segments, wanted // _SMALLEST_PART)
    stored = (segments[one.number].stored for one in planned if one.is_copied)
    sources = [one for one in stored if one is not None]
    is_merged = len(sources) < len(segments)
    if not sources:
        return "small row groups"
    created_by = joint_writer({one.created_by for one in sources}.union([CREATED_BY] if is_merged else []))
    if created_by is None:
        return "different parquet writers"
    if not can_be_copied(frozenset.union(*(one.codecs for one in sources))):
        return "unknown codec"
    sizes = [one.uncompressed_bytes for one in sources]
    if sum(sizes) * _SMALLEST_PART < wanted * len(sizes):
        return "small row groups"
    if max(sizes) > wanted * _LARGEST_TIMES:
        return "large row groups"
    if max(one.compressed_bytes for one in sources) > task.memory.stored:
        return "row groups too large for the memory"
    count = files_needed(len(task.file_ids), pieces, slices, task.settings)
    cut = _cut(planned, [weight for _, weight in pieces], count)
    if cut is None:
        return "large row groups"
    return CopyPlan(cut, created_by, "log files in some row groups" if is_merged else None)


def part_plan(part: Part) -> CopyPlan | str:
    """How to copy one new file of a divided group, as was decided for all of it."""
    if part.copied is None:
        return part.decoded or "divided"
    file = tuple(PlannedSegment(number, is_copied) for number, is_copied in enumerate(part.copied.segments))
    return CopyPlan((file,), part.copied.created_by, part.decoded)


def _planned(segments: Sequence[SegmentSizes], smallest: int) -> list[PlannedSegment]:
    """The segments, where row groups of less than `smallest` bytes right before rows that are encoded are not copied.

    They are encoded together: otherwise each write of a few rows to a file would leave one more small row group.
    """
    found = [PlannedSegment(number, one.stored is not None) for number, one in enumerate(segments)]
    for at in range(len(found) - 1, 0, -1):
        stored = segments[at - 1].stored
        if not found[at].is_copied and stored is not None and stored.uncompressed_bytes < smallest:
            found[at - 1] = PlannedSegment(at - 1, False)
    return found


def _cut(
    segments: Sequence[PlannedSegment], weights: Sequence[float], count: int
) -> tuple[tuple[PlannedSegment, ...], ...] | None:
    """`segments` in `count` runs of about equal weight; None when row groups are too large for even runs."""
    ends = [0.0, *itertools.accumulate(weights)]
    total = ends[-1]
    cuts = [0]
    for i in range(1, count):
        wanted = total * i / count
        cut = min(range(len(ends)), key=lambda at: abs(ends[at] - wanted))
        if abs(ends[cut] - wanted) > _UNEVEN * total / count:
            return None
        cuts.append(cut)
    cuts.append(len(segments))
    return tuple(tuple(segments[low:high]) for low, high in itertools.pairwise(cuts))
