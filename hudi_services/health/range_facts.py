"""How much the ranges of files overlap in the sort column: now, and before the last clustering where that is known."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any

from ..clustering.strategies import Range
from ..clustering.value_ranges import ValueRanges
from ..codecs.clustering_plan import SliceInfo
from ..errors import ConfigError, NotFound
from ..model import FileSlice
from ..options import Options, clustering_keys
from ..own_commands import setting
from ..paths import bare_name
from ..rows.sort_order import LINEAR, SortColumn, from_strategy_params, layout_of, parse_sort_columns
from ..snapshot import Snapshot
from ..table.view import FileSystemView
from ..timeline.active import Timeline

_STEPS = 60
"""Places along the values at which a curve tells the depth."""
_MOST_PARTITIONS, _MOST_SLICES = 8, 4_000


@dataclass(frozen=True, slots=True)
class Depth:
    """In how many files a value is, by their ranges, on average of some partitions."""

    files: int
    average: float
    """At the lower bounds of all ranges."""
    curve: tuple[float, ...]
    """At equal steps through the bounds of a partition in their order, from the least to the greatest."""


@dataclass
class _Depths:
    """The sums of what becomes a `Depth`."""

    files: int = 0
    held: float = 0
    partitions: int = 0
    curve: list[float] = field(default_factory=lambda: [0.0] * _STEPS)

    def add(self, ranges: Sequence[tuple[Any, Any]], places: Sequence[Any]) -> None:
        lows, highs = sorted(one[0] for one in ranges), sorted(one[1] for one in ranges)
        self.files += len(ranges)
        self.held += depth(ranges) * len(ranges)
        self.partitions += 1
        self.curve = [
            sum_ + bisect_right(lows, place) - bisect_left(highs, place)
            for sum_, place in zip(self.curve, places, strict=True)
        ]

    @property
    def depth(self) -> Depth | None:
        if not self.files:
            return None
        return Depth(self.files, self.held / self.files, tuple(one / self.partitions for one in self.curve))


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """The ranges of a column in some partitions: `now` of the files that readers see, `before` of those that they saw
    before the clustering `instant`; None where that is not known."""

    column: str
    partitions: int
    now: Depth | None
    before: Depth | None
    instant: str | None


def range_facts(table: Snapshot, options: Options, sample: Sequence[str]) -> RangeFacts | None:
    """Read the ranges, of the index or of footers, in partitions of the last clustering, else in those of `sample`.

    None where no sort column is known. Raises CorruptFile and StorageError.
    """
    layout = known_layout(table.timeline, options)
    if layout is None:
        return None
    column = layout.column
    planned = _last_plan(table.timeline)
    now, before = _Depths(), _Depths()
    ranges = ValueRanges(table)
    partitions = sorted(_largest(planned) or sample)
    for partition, view in table.view.each(partitions):
        live = view.latest_slices(partition)
        found = _ranges(ranges, live, column)
        if not found:
            continue
        old = _ranges_before(ranges, view, partition, live, planned, column)
        bounds = sorted(bound for pair in (*found, *old) for bound in pair)
        places = [bounds[step * (len(bounds) - 1) // (_STEPS - 1)] for step in range(_STEPS)]
        now.add(found, places)
        if old:
            before.add(old, places)
    last = table.timeline.last_clustering() if planned else None
    return RangeFacts(column, now.partitions, now.depth, before.depth, last.ts if last is not None else None)


@dataclass(frozen=True, slots=True)
class KnownLayout:
    """The first sort column of the table, and the flags with which a clustering sorts as the last one did."""

    column: str
    flags: str = ""


def known_layout(timeline: Timeline, options: Options) -> KnownLayout | None:
    """That of the options, which need no flags, else that of the last clustering's plan; None without one."""
    given = parse_sort_columns(options[clustering_keys.SORT_COLUMNS])
    if given:
        return KnownLayout(given[0].name)
    last = timeline.last_clustering()
    if last is None or not timeline.has_plan(last):
        return None
    params = timeline.read_plan(last).strategy_params
    planned = from_strategy_params(params)
    if not planned:
        return None
    columns = ",".join(one.name if one == SortColumn(one.name) else str(one) for one in planned)
    flags = [setting(clustering_keys.SORT_COLUMNS.key, columns)]
    if (name := layout_of(params)) != LINEAR:
        flags.append(setting(clustering_keys.LAYOUT_STRATEGY.key, name))
    return KnownLayout(planned[0].name, " ".join(flags))


def depth(ranges: Sequence[Range], sizes: Sequence[int] | None = None) -> float:
    """How many ranges hold the lower bound of a range, on average; with `sizes`, those of the ranges, the sum of the
    sizes of those that hold it."""
    known = [(one, size) for one, size in zip(ranges, sizes or [1] * len(ranges), strict=True) if one is not None]
    if not known:
        return 0.0
    (lows, begun), (highs, ended) = (_sums([(one[end], size) for one, size in known]) for end in (0, 1))
    return sum(begun[bisect_right(lows, low)] - ended[bisect_left(highs, low)] for low in lows) / len(known)


def _sums(bounds: Sequence[tuple[Any, int]]) -> tuple[list[Any], list[int]]:
    """Bounds in their order, and the sums of the sizes of the first 0, 1, 2, … of them."""
    ordered = sorted(bounds, key=itemgetter(0))
    return [bound for bound, _ in ordered], [0, *accumulate(size for _, size in ordered)]


@dataclass(frozen=True, slots=True)
class _LastPlan:
    """The plan of the last clustering, if that is completed."""

    instant: str
    slices: dict[str, list[SliceInfo]]
    """By partition."""


def _last_plan(timeline: Timeline) -> _LastPlan | None:
    last = timeline.last_clustering()
    if last is None or not last.is_completed or not timeline.has_plan(last):
        return None
    slices: dict[str, list[SliceInfo]] = defaultdict(list)
    for one in timeline.read_plan(last).slices:
        slices[one.partition].append(one)
    return _LastPlan(last.ts, dict(slices)) if slices else None


def _largest(planned: _LastPlan | None) -> list[str]:
    """The partitions of the plan with the most files, as many as may be looked at."""
    counts = Counter({name: len(slices) for name, slices in (planned.slices if planned else {}).items()})
    chosen: list[str] = []
    for partition, count in counts.most_common(_MOST_PARTITIONS):
        if chosen and sum(counts[one] for one in chosen) + count > _MOST_SLICES:
            break
        chosen.append(partition)
    return chosen


def _ranges(ranges: ValueRanges, slices: Sequence[FileSlice], column: str) -> list[tuple[Any, Any]]:
    try:
        return [one for one in ranges(slices, column) if one is not None]
    except (ConfigError, NotFound):
        # Values that do not compare; or a file is gone, which is for doctor's own checks to tell.
        return []


def _ranges_before(
    ranges: ValueRanges,
    view: FileSystemView,
    partition: str,
    live: Sequence[FileSlice],
    planned: _LastPlan | None,
    column: str,
) -> list[tuple[Any, Any]]:
    """Those of the files before the clustering: the replaced ones, and live ones that are older; [] if a clean took
    one of the replaced files."""
    if planned is None:
        return []
    old = list(_replaced(view, partition, planned.slices.get(partition, ())))
    if len(old) < len(planned.slices.get(partition, ())):
        return []
    stayed = [one for one in live if one.base_instant < planned.instant]
    return _ranges(ranges, [*old, *stayed], column)


def _replaced(view: FileSystemView, partition: str, planned: Sequence[SliceInfo]) -> Iterator[FileSlice]:
    """The planned slices that are still listed."""
    groups = view.all_slices(partition)
    for info in planned:
        name = bare_name(info.data_file)
        yield from (one for one in groups.get(info.file_id, ()) if one.base_name == name)
