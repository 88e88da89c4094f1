"""Works on several tables at the same time, of which none keeps the others waiting for ever.

There are some places, and a turn of work takes one. A turn that lasts longer than its limit goes on, and gives up its
place to the next one. So the slow ones cost memory, not the time of the others; there may be four times as many of them
as places.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Set
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..concurrency import begin_beside

T = TypeVar("T")

_SLOW_FOR_EACH = 4
_LOOK_SECONDS = 0.2
_SOON_SECONDS = 0.01
_IMPORTING = "<frozen importlib"
_SECONDS_TO_END = 20.0
"""After an interrupt: what takes longer is left behind, as if the process had been killed."""


@dataclass(slots=True)
class _Running(Generic[T]):
    turn: T
    began: float
    gave_place: bool = False


@dataclass(slots=True)
class Places(Generic[T]):
    """Calls `work` for turns in their order, up to `most` at once and for each `key` one at a time.

    `work` raises nothing but interrupts.
    """

    work: Callable[[T], None]
    key: Callable[[T], Hashable]
    most: int
    limit: float
    """Seconds after which a turn gives up its place."""
    on_interrupt: Callable[[], object] = lambda: None
    """Ends what threads at work wait for, where an interrupt does not reach them."""
    _waiting: list[T] = field(default_factory=list)
    _running: dict[int, _Running[T]] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _places: int = 0
    _ends: bool = False

    def run(self, turns: Iterable[T], *, leaves_slow: bool) -> list[T]:
        """Work on all turns; returns those that were not finished, in no order.

        `leaves_slow`: do not wait, in the end, for turns that have given up their places; they end with the process.
        Otherwise this returns when all have ended. An interrupt of this thread interrupts all work, and is raised.
        """
        self._waiting = list(turns)
        for _ in range(min(self.most, len(self._waiting))):
            self._begin_place()
        try:
            with self._changed:
                while not self._is_over(leaves_slow):
                    self._changed.wait(_LOOK_SECONDS)
                    self._give_places()
                self._ends = True
                return [*self._waiting, *(one.turn for one in self._running.values())]
        except BaseException:
            self._interrupt()
            raise

    def again(self, turn: T) -> None:
        """Put a turn behind all others."""
        with self._changed:
            self._waiting.append(turn)

    def _is_over(self, leaves_slow: bool) -> bool:
        slow = [one for one in self._running.values() if one.gave_place]
        if len(self._running) > len(slow):
            return False
        # With too many slow ones nothing else begins.
        waits = self._waiting and len(slow) < _SLOW_FOR_EACH * self.most
        return not waits and (leaves_slow or not slow)

    def _give_places(self) -> None:
        for one in self._running.values():
            slow = sum(other.gave_place for other in self._running.values())
            if not one.gave_place and self._is_slow(one) and slow < _SLOW_FOR_EACH * self.most:
                one.gave_place = True
                self._places -= 1
        while self._places < min(self.most, len(self._waiting)) and self._next() is not None:
            self._begin_place()

    def _is_slow(self, running: _Running[T]) -> bool:
        return time.monotonic() - running.began >= self.limit

    def _begin_place(self) -> None:
        self._places += 1
        begin_beside(self._serve, "table")

    def _next(self) -> T | None:
        """The first turn whose key no other one has that is worked on."""
        busy = {self.key(one.turn) for one in self._running.values()}
        return next((turn for turn in self._waiting if self.key(turn) not in busy), None)

    def _serve(self) -> None:
        """One place: take turns until there are none, or the place is given away."""
        me = threading.get_ident()
        while True:
            with self._changed:
                turn = None if self._ends else self._next()
                if turn is None:
                    self._places -= 1
                    self._changed.notify_all()
                    return
                self._waiting.remove(turn)
                self._running[me] = running = _Running(turn, time.monotonic())
            try:
                self.work(turn)
            except KeyboardInterrupt:
                return
            finally:
                with self._changed:
                    del self._running[me]
                    self._changed.notify_all()
            if running.gave_place:
                return

    def _interrupt(self) -> None:
        """Begin nothing any more, and raise KeyboardInterrupt in all threads at work, as in one that is alone: leases
        and locks are released on the way."""
        ends, told = time.monotonic() + _SECONDS_TO_END, set[int]()
        with self._changed:
            self._ends = True
            told |= self._raise_in_others(told)
        self.on_interrupt()
        with self._changed:
            while self._running and time.monotonic() < ends:
                told |= self._raise_in_others(told)
                all_told = told >= self._running.keys()
                self._changed.wait(_LOOK_SECONDS if all_told else _SOON_SECONDS)

    def _raise_in_others(self, seen: Set[int]) -> set[int]:
        """Raise KeyboardInterrupt in threads at work; returns which. Those that would not hear it come next time."""
        threads = {one for one in self._running if one not in seen and not _is_deaf(one)}
        for one in threads:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(one), ctypes.py_object(KeyboardInterrupt))
        return threads


def _is_deaf(thread: int) -> bool:
    """Whether an interrupt would be lost now.

    A thread that begins another one: until Python 3.12 that one has the same number until it runs, and would be
    interrupted in place of this one, which would then wait for ever. And one that imports a module, whose locks have
    callbacks in which all exceptions are ignored.
    """
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code is threading.Thread.start.__code__ or frame.f_code.co_filename.startswith(_IMPORTING):
            return True
        frame = frame.f_back
    return False
