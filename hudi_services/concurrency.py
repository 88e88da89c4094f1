"""Several requests at once: a store answers many in the time of one."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 16


def at_once(function: Callable[[T], R], values: Iterable[T]) -> list[R]:
    """The results of `function` for the values, in their order, several at a time. Raises the first error in order."""
    tasks = list(values)
    if len(tasks) < 2:
        return [function(one) for one in tasks]
    with ThreadPoolExecutor(min(len(tasks), _AT_ONCE)) as pool:
        return list(pool.map(function, tasks))
