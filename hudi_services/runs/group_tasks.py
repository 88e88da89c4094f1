"""The tasks of groups that are rewritten: a group is one task, or several where cores would be idle otherwise.

A group is divided only where that makes the whole plan end earlier: with as many groups as cores, or more, none is.
Then an engine has nothing to do but what it had without parts; a divided group costs one more look at its footers.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..engine import Engine
from ..rewriting.division import GroupParts, may_divide
from ..rewriting.resume import divide_once, rewrite_once
from ..rewriting.rewrite import RewriteResult, of_parts
from ..rewriting.task import RewriteTask

_LEAST_BYTES = 64 << 20
"""Bytes of the old files of a group that is worth dividing."""
_IDLE = 1.1
"""Groups are divided while the plan takes this many times as long as with all cores at work."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The results of groups, in their order; the groups were so many `tasks`."""

    results: list[RewriteResult]
    tasks: int


def rewrite_groups(engine: Engine, groups: Sequence[RewriteTask], progress: Progress) -> Rewritten:
    """Rewrite all groups. Raises the first error of a task."""
    chosen = _to_divide(groups, engine.cores)
    chosen_groups = [groups[at] for at in chosen]
    found = engine.map(divide_once, chosen_groups, "divide groups", lambda done, total: None) if chosen else []
    divisions = {at: division for at, division in zip(chosen, found, strict=True) if len(division.tasks) > 1}
    tasks = [divisions[at].tasks if at in divisions else (group,) for at, group in enumerate(groups)]
    flat = [task for some in tasks for task in some]
    results = iter(engine.map(rewrite_once, flat, "rewrite file slices", progress))
    of_groups = [[next(results) for _ in some] for some in tasks]
    joined = [_joined(some, divisions.get(at)) for at, some in enumerate(of_groups)]
    return Rewritten(joined, len(flat))


def _joined(results: Sequence[RewriteResult], division: GroupParts | None) -> RewriteResult:
    return results[0] if division is None else of_parts(results, division.rows, division.bytes)


def _to_divide(groups: Sequence[RewriteTask], cores: int) -> list[int]:
    """The numbers of the groups to divide, the largest ones; () where cores are busy anyway."""
    sizes = [sum(one.size for one in group.slices) for group in groups]
    able = [at for at in sorted(range(len(groups)), key=sizes.__getitem__, reverse=True) if may_divide(groups[at])]
    chosen: list[int] = []
    for at in able:
        if sizes[at] < _LEAST_BYTES or _makespan(groups, sizes, chosen, cores) <= _IDLE * sum(sizes) / cores:
            break
        chosen.append(at)
    return sorted(chosen)


def _makespan(groups: Sequence[RewriteTask], sizes: Sequence[int], divided: Sequence[int], cores: int) -> float:
    """About how many bytes the busiest core rewrites when each free core takes the largest task that is left."""
    each: list[float] = []
    for at, size in enumerate(sizes):
        parts = len(groups[at].file_ids) if at in divided else 1
        each += [size / parts for _ in range(parts)]
    busy = [0.0] * cores
    for share in sorted(each, reverse=True):
        heapq.heappushpop(busy, busy[0] + share)
    return max(busy)
