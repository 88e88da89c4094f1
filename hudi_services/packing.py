"""Greedy packing of weighted items into bins, in the order given."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def pack(items: Iterable[T], weight: Callable[[T], int], capacity: int) -> list[list[T]]:
    """Bins of consecutive items whose weights add up to at most `capacity`.

    An item heavier than the capacity gets a bin of its own, so nothing is left out.
    """
    bins: list[list[T]] = []
    load = 0
    for item in items:
        size = weight(item)
        if not bins or load + size > capacity:
            bins.append([])
            load = 0
        bins[-1].append(item)
        load += size
    return bins
