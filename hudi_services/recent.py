"""What a look finds, for callers that ask very often."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_SERVES_TIMES = 4


class Recent(Generic[T]):
    """Gives what `look` finds, and for a while what it found last, where looking takes the processor long.

    A look serves for four times the time that it took the processor, so that looking takes at most a quarter of the
    time: a folder of very many files is not listed for each of them. Where a look is quick, and as a rule in a store,
    which is waited for, each call is a look. Raises what `look` raises.
    """

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._found: list[T] = []
        self._until = 0.0

    def __call__(self) -> T:
        if not self._found or time.monotonic() >= self._until:
            # Before the look: what comes while it goes on may not be in it.
            began, busy = time.monotonic(), time.process_time()
            self._found = [self._look()]
            self._until = began + (time.process_time() - busy) * _SERVES_TIMES
        return self._found[0]
