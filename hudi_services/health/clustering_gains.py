"""What the newest clusterings have gained: how many files became how many, and how many of them a lookup opens.

A lookup asks for one value of the first sort column, and opens the files whose range holds it. The value is the lower
bound of a range, each as often as the others: `range_facts.depth`. The files are those of the clustering alone, as it
found and left them.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..clustering.completed_clusterings import CompletedClustering, UnreadableClustering, newest_clusterings
from ..clustering.strategies import Range
from ..clustering.value_ranges import ValueRanges
from ..errors import HudiServicesError
from ..model import FileSlice
from ..snapshot import Snapshot
from ..timeline.instant import Instant
from .range_facts import depth

_MOST_PARTITIONS, _MOST_INDEXED, _MOST_FOOTERS = 8, 4_000, 128
"""Of one clustering: how many ranges are looked at where the index tells them, and where footers do."""
_LEAST_SAMPLE = 16
"""Fewer files of a side of a partition tell nothing of the others."""


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The file slices of one side of a clustering; sizes in bytes, None where they are not known."""

    files: int
    bytes: int | None
    median: int | None
    is_planned: bool = False
    """Whether `bytes` are those of the plan, in whole MiB."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a lookup opens on average."""

    files: float
    bytes: float


@dataclass(frozen=True, slots=True)
class LookupGain:
    """A lookup before and after, on average of some partitions, each as often as it had old files."""

    before: Lookup
    after: Lookup
    partitions: int
    ranges: int
    """Of how many files, old and new, the ranges were taken."""


@dataclass(frozen=True, slots=True)
class ClusteringGain:
    """A completed clustering. `old` and `new` are None where it cannot be read, and `lookup` where it is not known, for
    the reason `why`."""

    instant: Instant
    layout: str = ""
    """"" where nothing was sorted."""
    columns: tuple[str, ...] = ()
    partitions: int = 0
    old: FileSizes | None = None
    new: FileSizes | None = None
    lookup: LookupGain | None = None
    why: str = ""

    @property
    def is_sample(self) -> bool:
        """Whether the lookup was measured on some of the files."""
        files = sum(side.files for side in (self.old, self.new) if side is not None)
        return self.lookup is not None and self.lookup.ranges < files


def clustering_gains(table: Snapshot, bytes_of: Mapping[str, int]) -> list[ClusteringGain]:
    """Look at up to five clusterings, the newest first. `bytes_of` has sizes of files that commits tell, by name.

    Raises CorruptFile and StorageError where it cannot be known which instants are clusterings.
    """
    return [_gain(table, one, bytes_of) for one in newest_clusterings(table)]


@dataclass(frozen=True, slots=True)
class RangedSample:
    """Some files of one side of a partition, with their ranges."""

    files: int
    """Of the side, with those that are not in the sample."""
    slices: Sequence[FileSlice]
    ranges: Sequence[Range]

    @property
    def known(self) -> int:
        return sum(one is not None for one in self.ranges)

    def lookup(self) -> Lookup | None:
        """None where too few ranges are known. The files beside the one with the value are as many as the sample has,
        times the files that are not in it: so large is the expectation over all samples."""
        known = self.known
        all_known = known * self.files / len(self.slices) if self.slices else 0.0
        if not known or (known == 1 < all_known):
            return None
        scale = (all_known - 1) / (known - 1) if known > 1 else 1.0
        sizes = [one.size for one in self.slices]
        own = float(np.mean([size for size, one in zip(sizes, self.ranges, strict=True) if one is not None]))
        return Lookup(
            1 + (depth(self.ranges) - 1) * scale,
            own + (depth(self.ranges, sizes) - own) * scale,
        )


def _gain(
    table: Snapshot, done: CompletedClustering | UnreadableClustering, bytes_of: Mapping[str, int]
) -> ClusteringGain:
    if isinstance(done, UnreadableClustering):
        return ClusteringGain(done.instant, why=done.why)
    try:
        lookup, why = _lookup_gain(table, done)
    except HudiServicesError as error:
        lookup, why = None, f"the ranges of its files cannot be read: {error.line}"
    return ClusteringGain(
        done.instant,
        done.layout,
        done.columns,
        len({one.partition for one in done.old}),
        _sizes(done.old, bytes_of, done.planned_bytes),
        _sizes(done.new, done.written_bytes, 0),
        lookup,
        why,
    )


def _sizes(slices: Sequence[FileSlice], bytes_of: Mapping[str, int], planned: int) -> FileSizes:
    """The sizes that the table lists, else those of `bytes_of`; where these do not tell all, what was planned."""
    sizes = []
    for one in slices:
        of_files = [file.size or bytes_of.get(file.name, 0) for file in one.files]
        if not all(of_files):
            return FileSizes(len(slices), planned or None, None, is_planned=planned > 0)
        sizes.append(max(one.size, sum(of_files)))
    return FileSizes(len(slices), sum(sizes), round(float(np.median(sizes))) if sizes else None)


def _lookup_gain(table: Snapshot, done: CompletedClustering) -> tuple[LookupGain | None, str]:
    """The gain, or None and why. Raises HudiServicesError."""
    if not done.columns:
        return None, "it has sorted nothing"
    measured = list(_measured(table, done))
    if not measured:
        if done.deleted_files:
            return None, f"a clean has deleted {done.deleted_files} files of it"
        return None, f"no ranges of the column {done.columns[0]} are known of its files"
    weights = [one.weight for one in measured]

    def average(lookups: Iterable[Lookup]) -> Lookup:
        files, sizes = zip(*((one.files, one.bytes) for one in lookups), strict=True)
        return Lookup(float(np.average(files, weights=weights)), float(np.average(sizes, weights=weights)))

    return LookupGain(
        average(one.before for one in measured),
        average(one.after for one in measured),
        len(measured),
        sum(one.ranges for one in measured),
    ), ""


@dataclass(frozen=True, slots=True)
class _MeasuredPartition:
    before: Lookup
    after: Lookup
    weight: int
    ranges: int


def _measured(table: Snapshot, done: CompletedClustering) -> Iterator[_MeasuredPartition]:
    """The partitions that can be measured, those with the most old files first, within the bounds."""
    old, new = (_by_partition(side) for side in (done.old, done.new))
    whole = [one for one in old if one in new and all(file.size for file in (*old[one], *new[one]))]
    whole.sort(key=lambda partition: (-len(old[partition]), partition))
    ranges, column, left = ValueRanges(table), done.columns[0], 1.0
    for partition in whole[:_MOST_PARTITIONS]:
        # Of a slice with log files the range is not known without a merge.
        sides = [[one for one in side[partition] if not one.log_files] for side in (old, new)]
        most = _MOST_INDEXED if ranges.are_indexed([*sides[0], *sides[1]], column) else _MOST_FOOTERS
        room = int(most * left)
        counts = [min(len(side), max(room // 2, room - len(other))) for side, other in (sides, sides[::-1])]
        if any(count < min(_LEAST_SAMPLE, len(side)) for count, side in zip(counts, sides, strict=True)):
            continue
        chosen = [
            _some(side, count, f"{done.instant.ts}/{partition}") for side, count in zip(sides, counts, strict=True)
        ]
        left -= sum(counts) / most
        found = ranges([*chosen[0], *chosen[1]], column)
        before = RangedSample(len(sides[0]), chosen[0], found[: len(chosen[0])])
        after = RangedSample(len(sides[1]), chosen[1], found[len(chosen[0]) :])
        opened_before, opened_after = before.lookup(), after.lookup()
        if opened_before is not None and opened_after is not None:
            yield _MeasuredPartition(opened_before, opened_after, len(old[partition]), before.known + after.known)


def _by_partition(slices: Sequence[FileSlice]) -> Mapping[str, list[FileSlice]]:
    found: dict[str, list[FileSlice]] = defaultdict(list)
    for one in slices:
        found[one.partition].append(one)
    return found


def _some(slices: Sequence[FileSlice], most: int, seed: str) -> Sequence[FileSlice]:
    """A sample, the same in each run. At random: neighbours in a plan may have neighbouring values."""
    return slices if len(slices) <= most else random.Random(seed).sample(slices, most)
