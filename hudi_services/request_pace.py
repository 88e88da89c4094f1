"""How many requests a second this process may make of stores: who would make one too soon waits for its turn.

Turns are handed out in order, a second of them at once at most: after a pause nobody catches up with more than that.
Tasks in other processes have a pace of their own, which goes to them with their work.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Pace:
    """Turns for `per_second` requests; any thread may take some. `clock` gives seconds, and `sleep` takes them."""

    per_second: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: float = float("-inf")
    """When the first turn is that nobody has taken."""

    def wait(self, requests: int) -> None:
        """Return when so many requests may be made."""
        with self._lock:
            now = self.clock()
            self._next = max(self._next, now - 1) + requests / self.per_second
            early = self._next - now
        if early > 0:
            self.sleep(early)


@dataclass(slots=True)
class _Paces:
    here: Pace | None = None
    of_tasks: float | None = None


_paces = _Paces()


def wait_for_turn(requests: int) -> None:
    """Wait until this process may make so many more requests; at once where nothing limits them."""
    pace = _paces.here
    if pace is not None:
        pace.wait(requests)


@contextmanager
def paced(per_second: float | None, tasks: int = 0) -> Iterator[None]:
    """A context in which this process, and up to `tasks` tasks at a time in other processes, together make at most
    `per_second` requests; None for any number.

    Nobody between the processes counts: with tasks, this process has one half, and each task an equal share of the
    other one, also while the others are idle.
    """
    before = _paces.here, _paces.of_tasks
    if per_second is not None:
        _paces.here = Pace(per_second / 2 if tasks else per_second)
        _paces.of_tasks = per_second / 2 / tasks if tasks else None
    try:
        yield
    finally:
        _paces.here, _paces.of_tasks = before


def pace_of_tasks() -> float | None:
    """What goes to a task with its work: how many requests a second it may make."""
    return _paces.of_tasks


def begin_task(per_second: float | None) -> None:
    """Keep to this pace from now on, in a process that does one task after the other; None for any."""
    here = _paces.here
    if (here.per_second if here is not None else None) != per_second:
        _paces.here = None if per_second is None else Pace(per_second)
