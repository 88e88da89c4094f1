"""The tasks of groups that are rewritten: a group is one task, or several where cores would be idle otherwise.

A group is divided only where that makes the whole plan end earlier: with as many groups as cores, or more, none is.
Then an engine has nothing to do but what it had without parts; a divided group costs one more look at its footers.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..engine import Engine
from ..rewriting.division import GroupParts, GroupSources, may_divide
from ..rewriting.exchange import Exchange, SortedGroup, send_rows
from ..rewriting.key_sample import SampleTask, ranges_of, sample_source
from ..rewriting.resume import divide_once, rewrite_once, sorted_group, write_once
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
    divisions = engine.map(divide_once, chosen_groups, "divide groups", _unseen) if chosen else []
    sources = {at: one for at, one in zip(chosen, divisions, strict=True) if isinstance(one, GroupSources)}
    found, tasks = _sorted_by_tasks(engine, groups, sources, progress) if sources else ({}, 0)
    parts = {at: one for at, one in zip(chosen, divisions, strict=True) if isinstance(one, GroupParts)}
    left = {at: parts[at].tasks if at in parts else (group,) for at, group in enumerate(groups) if at not in found}
    flat = [task for some in left.values() for task in some]
    results = iter(engine.map(rewrite_once, flat, "rewrite file slices", progress) if flat else ())
    for at, some in left.items():
        done = [next(results) for _ in some]
        found[at] = done[0] if len(done) == 1 else of_parts(done, parts[at].bytes, parts[at].rows)
    return Rewritten([found[at] for at in range(len(groups))], tasks + len(flat))


def _sorted_by_tasks(
    engine: Engine, groups: Sequence[RewriteTask], divided: Mapping[int, GroupSources], progress: Progress
) -> tuple[dict[int, RewriteResult], int]:
    """The results of sorted groups, by number, and how many tasks they were; groups without rows are left out."""
    samples = iter(
        engine.map(
            sample_source,
            [SampleTask(source, len(of.sources)) for of in divided.values() for source in of.sources],
            "sample the keys",
            _unseen,
        )
    )
    exchanged: dict[int, SortedGroup] = {}
    files = 0
    for at, of in divided.items():
        sampled = [one for _ in of.sources if (one := next(samples)) is not None]
        if sampled:
            ranges = ranges_of(groups[at], of.form, of.footer, sampled)
            exchanged[at] = sorted_group(groups[at], of, ranges, files)
            files += ranges.count
    exchange = Exchange(tuple(exchanged.values()))
    if not files:
        return {}, 0
    sent = engine.labels(exchange.labels).then(send_rows, exchange).divided(files)
    results = iter(sent.results(write_once, exchange, "sort and rewrite file slices", progress))
    found = {}
    for at, group in exchanged.items():
        done = [next(results) for _ in group.files]
        found[at] = of_parts(done, divided[at].bytes, bounds=divided[at].bounds)
    return found, len(exchange.labels) + files


def _unseen(done: int, total: int) -> None:
    """The progress of what takes no time."""


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
