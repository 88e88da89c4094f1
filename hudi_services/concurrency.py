"""Several requests at once: a store answers many in the time of one; and work beside other work."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from threading import Thread
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 16
"""How many requests go out at once that carry bytes."""
SHORT_REQUESTS = 64
"""How many requests go out at once that carry no bytes, and that others wait for."""


_LEAST_FILES, _FILE_BYTES = 4, 64 << 20


def files_at_once(sizes: Iterable[int]) -> int:
    """How many files of these sizes, in bytes, are read at once where memory is limited: four, and more small ones."""
    return min(max(_LEAST_FILES, _FILE_BYTES // max([1, *sizes])), AT_ONCE)


def at_once(function: Callable[[T], R], values: Iterable[T], most: int = AT_ONCE) -> list[R]:
    """The results of `function` for the values, in their order, up to `most` at a time; the caller's thread works, too.

    Raises the first error in order; values after it may be left out.
    """
    tasks = list(values)
    if len(tasks) < 2:
        return [function(one) for one in tasks]
    return _Shared(function, tasks).results(min(len(tasks), most))


class _Shared(Generic[T, R]):
    """Tasks that threads take from one another, in order.

    The threads are those of the process: to start one takes longer than a request to a disk. Calls may be inside of
    each other, because the caller does what no other thread has begun.
    """

    def __init__(self, function: Callable[[T], R], tasks: Sequence[T]) -> None:
        self._function = function
        self._tasks = tasks
        self._numbers = count()
        self._found: dict[int, R] = {}
        self._errors: dict[int, BaseException] = {}

    def results(self, threads: int) -> list[R]:
        helpers = [_threads().submit(self._work) for _ in range(threads - 1)]
        self._work()
        begun = [helper for helper in helpers if not helper.cancel()]
        try:
            wait(begun)
        except BaseException as interrupted:
            # What has begun ends before the caller cleans up.
            self._errors[len(self._tasks)] = interrupted
            wait(begun)
            raise
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._found[number] for number in range(len(self._tasks))]

    def _work(self) -> None:
        while not self._errors and (number := next(self._numbers)) < len(self._tasks):
            try:
                self._found[number] = self._function(self._tasks[number])
            except BaseException as error:
                self._errors[number] = error


_beside: WeakSet[Thread] = WeakSet()


def begin_beside(work: Callable[[], object], name: str) -> None:
    """Begin a thread for which the end of the process does not wait."""
    thread = Thread(target=work, name=name, daemon=True)
    _beside.add(thread)
    thread.start()


def are_left_behind(seconds: float = 0.5) -> bool:
    """Whether some of these threads are still at work, also after so many seconds.

    The threads that do requests for them may never end, too, and the interpreter would wait for those.
    """
    ends = monotonic() + seconds
    for thread in list(_beside):
        thread.join(max(0.0, ends - monotonic()))
    return any(thread.is_alive() for thread in list(_beside))


_MOST_THREADS = 256
_pool: list[ThreadPoolExecutor] = []


def _threads() -> ThreadPoolExecutor:
    """The threads of the process; there are as many as were ever at work at the same time."""
    if not _pool:
        _pool.append(ThreadPoolExecutor(_MOST_THREADS, "at once"))
    return _pool[0]


# A child has none of its parent's threads.
os.register_at_fork(after_in_child=_pool.clear)


def one_ahead(values: Iterable[T]) -> Iterator[T]:
    """The values; the next one is computed in another thread while the caller works on one. Raises what they raise."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        iterator = iter(values)
        waiting = pool.submit(next, iterator, end)
        while (value := waiting.result()) is not end:
            waiting = pool.submit(next, iterator, end)
            yield value
