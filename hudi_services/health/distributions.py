"""Distributions of many values, bounded in size: a histogram by powers of two, and the five numbers of a group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Counts: TypeAlias = npt.NDArray[np.int64]

_MOST_BINS, _LEAST_BINS = 48, 8


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many of the values, all above 0, are between an edge (included) and the next one."""

    edges: tuple[float, ...]
    """One more than there are counts."""
    counts: tuple[int, ...]
    sums: tuple[int, ...]
    """The sum of the values between the edges."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Five numbers of a group of values."""

    least: float
    lower: float
    """A quarter of the values is not above it."""
    middle: float
    upper: float
    most: float


def histogram(values: Counts) -> Histogram:
    """The distribution of the values above 0; the edges are whole, half or smaller powers of two, up to 48 bins."""
    filled = values[values > 0]
    if not len(filled):
        return Histogram((), (), ())
    low, high = math.log2(int(filled.min())), math.log2(int(filled.max()))
    parts = 1.0
    while parts < 8 and (high - low) * parts < _LEAST_BINS:
        parts *= 2
    while (high - low) * parts > _MOST_BINS - 2:
        parts /= 2
    first = math.floor(low * parts)
    edges = np.exp2(np.arange(first, math.floor(high * parts) + 2) / parts)
    place = np.clip(np.searchsorted(edges, filled, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(place, minlength=len(edges) - 1)
    sums = np.zeros(len(edges) - 1, np.int64)
    np.add.at(sums, place, filled)
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), tuple(sums.tolist()))


def spread(values: Counts) -> Spread | None:
    """The five numbers of the values, which may be in any order; None without values."""
    if not len(values):
        return None
    return Spread(*np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist())


def spreads(values: Counts, groups: npt.NDArray[np.int32], chosen: Sequence[int]) -> list[Spread | None]:
    """The five numbers of the values of each chosen group; `groups` has the number of the group of each value."""
    return [spread(values[groups == number]) for number in chosen]
