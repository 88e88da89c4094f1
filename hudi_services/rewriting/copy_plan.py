"""Whether row groups of a group are copied into the new files as they are, and into which ones."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..base_files.file_writer import CREATED_BY
from ..base_files.page_copy import can_be_copied, joint_writer
from ..base_files.slices import Segment, SliceReader
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
class CopyPlan:
    """Which rows go into which new file: row groups that are copied, and rows that are merged and encoded."""

    files: tuple[tuple[Segment, ...], ...]
    created_by: str
    """The writer that the new footers name."""
    decoded: str | None
    """Why some rows are decoded, None when all row groups are copied."""


def copy_plan(
    task: RewriteTask,
    readers: Sequence[SliceReader],
    target: FileSchema,
    segments: Sequence[Segment],
    pieces: Sequence[Piece],
) -> CopyPlan | str:
    """How to copy the group, or the reason why all its rows must be decoded; `pieces` are its `segments`, weighed."""
    if task.sort:
        return "sorted"
    if any(reader.is_rebased for reader in readers):
        return "two calendars"
    if any(reader.schema != target for reader in readers):
        return "schemas differ"
    wanted = task.settings.row_group_bytes
    if all(one.stored is None for one in segments):
        return "log files" if segments else "no rows"
    segments = _with_small_ones(segments, wanted // _SMALLEST_PART)
    sources = [one.stored for one in segments if one.stored is not None]
    is_merged = len(sources) < len(segments)
    if not sources:
        return "small row groups"
    files = {source.reader for source in sources}
    created_by = joint_writer({file.created_by for file in files}.union([CREATED_BY] if is_merged else []))
    if created_by is None:
        return "different parquet writers"
    if not all(can_be_copied(file) for file in files):
        return "unknown codec"
    sizes = [source.facts.uncompressed_bytes for source in sources]
    if sum(sizes) * _SMALLEST_PART < wanted * len(sizes):
        return "small row groups"
    if max(sizes) > wanted * _LARGEST_TIMES:
        return "large row groups"
    if max(source.facts.compressed_bytes for source in sources) > task.memory.stored:
        return "row groups too large for the memory"
    count = files_needed(len(task.file_ids), pieces, readers, task.settings)
    cut = _cut(segments, [weight for _, weight in pieces], count)
    if cut is None:
        return "large row groups"
    return CopyPlan(cut, created_by, "log files in some row groups" if is_merged else None)


def part_plan(part: Part, segments: Sequence[Segment]) -> CopyPlan | str:
    """How to copy one new file of a divided group, as was decided for all of it."""
    if part.copied is None:
        return part.decoded or "divided"
    pairs = zip(segments, part.copied.segments, strict=True)
    file = tuple(one if is_copied else replace(one, stored=None) for one, is_copied in pairs)
    return CopyPlan((file,), part.copied.created_by, part.decoded)


def _with_small_ones(segments: Sequence[Segment], smallest: int) -> list[Segment]:
    """The segments, where row groups of less than `smallest` bytes right before rows that are encoded are not copied.

    They are encoded together: otherwise each write of a few rows to a file would leave one more small row group.
    """
    found = list(segments)
    for at in range(len(found) - 1, 0, -1):
        stored = found[at - 1].stored
        if found[at].stored is None and stored is not None and stored.facts.uncompressed_bytes < smallest:
            found[at - 1] = replace(found[at - 1], stored=None)
    return found


def _cut(segments: Sequence[Segment], weights: Sequence[float], count: int) -> tuple[tuple[Segment, ...], ...] | None:
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
