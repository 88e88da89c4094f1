"""Greedy packing of weighted items into bins, in the order given."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def pack(items: Iterable[T], weight: Callable[[T], int], capacity: int, most: int | None = None) -> list[list[T]]:
    """Bins of consecutive items whose weights add up to at most `capacity`, with at most `most` items each.

    An item heavier than the capacity gets a bin of its own, so nothing is left out.
    """
    bins: list[list[T]] = []
    load = 0
    for item in items:
        size = weight(item)
        if not bins or load + size > capacity or len(bins[-1]) == most:
            bins.append([])
            load = 0
        bins[-1].append(item)
        load += size
    return bins
