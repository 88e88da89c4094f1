"""What the services of one run may use: bytes, which they reserve before they begin, and time."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ..units import size_text

_LOOK_SECONDS = 0.5


@dataclass(slots=True)
class Budget:
    """The bytes that rewriting services may read, and the time after which none begins; None for no limit.

    What is reserved counts as used until it is settled: services that run side by side never have more together than
    is left. Any thread may ask.
    """

    most_bytes: int | None
    most_seconds: float | None
    patience: float = float("inf")
    """Seconds after which nobody waits any more for what others may give back: they may never end."""
    clock: Callable[[], float] = time.monotonic
    used: int = 0
    _began: float = field(init=False)
    _reserved: int = 0
    """How many reservations are not settled."""
    _settled: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def reserve(self, size: int) -> int | None:
        """So many bytes, or what is left, at least 1; None where nothing is left, or it is too late.

        Where less is left, this waits for those who may give some back.
        """
        size = max(1, size)
        ends = self.clock() + self.patience
        with self._settled:
            while self._left < size and self._reserved and not self.is_late and self.clock() < ends:
                # An interrupt reaches a thread between two waits.
                self._settled.wait(_LOOK_SECONDS)
            given = min(size, self._left)
            if given <= 0 or self.is_late:
                return None
            self.used += given
            self._reserved += 1
            return given

    def settle(self, reserved: int, used: int) -> None:
        """Give back what was reserved, and count what was used of it."""
        with self._settled:
            self.used += used - reserved
            self._reserved -= 1
            self._settled.notify_all()

    @property
    def _left(self) -> int:
        return sys.maxsize if self.most_bytes is None else self.most_bytes - self.used

    @property
    def seconds_left(self) -> float | None:
        """None for no limit."""
        return None if self.most_seconds is None else self.most_seconds - (self.clock() - self._began)

    @property
    def is_late(self) -> bool:
        left = self.seconds_left
        return left is not None and left <= 0

    @property
    def why_none(self) -> str:
        """Why nothing could be reserved."""
        if self.is_late:
            return "the time limit is over"
        return f"the budget of {size_text(self.most_bytes or 0)} is used up"
