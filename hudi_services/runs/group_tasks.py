"""The tasks of groups that are rewritten: a group is one task, or several where cores would be idle otherwise.

A group is divided only where that makes the whole plan end earlier: with as many groups as cores, or more, none is.
Then an engine has nothing to do but what it had without parts; a divided group costs one more look at its footers,
which tasks share, too.
"""

import heapq
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..concurrency import at_once
from ..engine import Engine
from ..rewriting.division import GroupParts, GroupSources, SurveyTask, may_divide, survey
from ..rewriting.exchange import Exchange, SortedGroup, send_rows
from ..rewriting.key_sample import SampleTask, ranges_of, sample_source
from ..rewriting.resume import has_checkpoint, parts_of, rewrite_once, sorted_group, write_once
from ..rewriting.rewrite import RewriteResult, of_parts
from ..rewriting.task import RewriteTask
from ..rewriting.time_limit import TimedTask, has_time, rewrite_in_time

_LEAST_BYTES = 64 << 20
"""Bytes of the old files of a group that is worth dividing."""
_REWRITE = "rewrite file slices"
_IDLE = 1.1
"""Groups are divided while the plan takes this many times as long as with all cores at work."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The results of groups, by number: those that had no time are not there. They were so many `tasks`."""

    results: dict[int, RewriteResult]
    tasks: int


def rewrite_groups(
    engine: Engine, groups: Sequence[RewriteTask], progress: Progress, end: float | None = None
) -> Rewritten:
    """Rewrite all groups; no more than have time until `end` (epoch seconds). Raises the first error of a task."""
    divisions = _divided(engine, groups)
    sources = {at: one for at, one in divisions.items() if isinstance(one, GroupSources)}
    found, tasks = _sorted_by_tasks(engine, groups, sources, progress, end) if sources else ({}, 0)
    parts = {at: one for at, one in divisions.items() if isinstance(one, GroupParts)}
    alone = {at: (group,) for at, group in enumerate(groups) if at not in parts and at not in sources}
    left = dict(sorted({**alone, **{at: one.tasks for at, one in parts.items()}}.items()))
    flat = [task for some in left.values() for task in some]
    results = iter(_mapped(engine, flat, progress, end))
    for at, some in left.items():
        done = [one for _ in some if (one := next(results)) is not None]
        if len(done) == len(some):
            found[at] = done[0] if len(done) == 1 else of_parts(done, parts[at].bytes, parts[at].rows)
    return Rewritten(found, tasks + len(flat))


def _divided(engine: Engine, groups: Sequence[RewriteTask]) -> dict[int, GroupParts | GroupSources]:
    """The groups that are divided, by number; those that an earlier attempt has finished are not."""
    chosen = _to_divide(groups, engine.cores)
    finished = at_once(lambda at: has_checkpoint(groups[at]), chosen)
    tasks = {at: SurveyTask.of_group(groups[at]) for at, done in zip(chosen, finished, strict=True) if not done}
    flat = [task for some in tasks.values() for task in some]
    surveys = iter(engine.map(survey, flat, "look at the groups to divide", _unseen) if flat else [])
    return {at: parts_of(groups[at], [next(surveys) for _ in some]) for at, some in tasks.items()}


def _mapped(
    engine: Engine, tasks: Sequence[RewriteTask], progress: Progress, end: float | None
) -> Sequence[RewriteResult | None]:
    if end is None:
        return engine.map(rewrite_once, tasks, _REWRITE, progress)
    return engine.map(rewrite_in_time, [TimedTask(task, end) for task in tasks], _REWRITE, progress)


def _sorted_by_tasks(
    engine: Engine,
    groups: Sequence[RewriteTask],
    divided: Mapping[int, GroupSources],
    progress: Progress,
    end: float | None,
) -> tuple[dict[int, RewriteResult], int]:
    """The results of sorted groups, by number, and how many tasks they were: in one exchange, or where the time is
    limited one after the other."""
    if end is None:
        return _exchanged(engine, groups, divided, progress)
    found: dict[int, RewriteResult] = {}
    tasks, rate = 0, 0.0
    for at, of in divided.items():
        if not has_time(end, of.bytes, rate):
            continue
        began = time.monotonic()
        done, count = _exchanged(engine, groups, {at: of}, progress)
        rate = max(rate, (time.monotonic() - began) / max(1, of.bytes))
        found |= done
        tasks += count
    return found, tasks


def _exchanged(
    engine: Engine, groups: Sequence[RewriteTask], divided: Mapping[int, GroupSources], progress: Progress
) -> tuple[dict[int, RewriteResult], int]:
    sampled = [task for of in divided.values() for task in SampleTask.of_group(of.sources)]
    samples = iter(engine.map(sample_source, sampled, "sample the keys", _unseen))
    exchanged: dict[int, SortedGroup] = {}
    files = 0
    for at, of in divided.items():
        own = [one for _ in of.sources if (one := next(samples)) is not None]
        ranges = ranges_of(groups[at], of.form, of.footer, own)
        exchanged[at] = sorted_group(groups[at], of, ranges, files)
        files += ranges.count
    exchange = Exchange(tuple(exchanged.values()))
    sent = engine.labels(exchange.labels).then(send_rows, exchange).divided(files, "sort and send rows")
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
    sizes = [group.bytes for group in groups]
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
