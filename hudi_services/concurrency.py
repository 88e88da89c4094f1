"""Several requests at once: a store answers many in the time of one; and work beside other work."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 16
SHORT_REQUESTS = 64
"""How many requests go out at once that carry no bytes, and that others wait for."""


def at_once(function: Callable[[T], R], values: Iterable[T], most: int = _AT_ONCE) -> list[R]:
    """The results of `function` for the values, in their order, up to `most` at a time.

    Raises the first error in order.
    """
    tasks = list(values)
    if len(tasks) < 2:
        return [function(one) for one in tasks]
    with ThreadPoolExecutor(min(len(tasks), most)) as pool:
        return list(pool.map(function, tasks))


def one_ahead(values: Iterable[T]) -> Iterator[T]:
    """The values; the next one is computed in another thread while the caller works on one. Raises what they raise."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        iterator = iter(values)
        waiting = pool.submit(next, iterator, end)
        while (value := waiting.result()) is not end:
            waiting = pool.submit(next, iterator, end)
            yield value
