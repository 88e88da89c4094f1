"""What the services of one run may use: bytes, which they reserve before they begin, and time."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ..units import size_text


@dataclass(slots=True)
class Budget:
    """The bytes that rewriting services may read, and the time after which none begins; None for no limit.

    What is reserved counts as used until it is settled: services that run side by side never have more together than
    is left. Any thread may ask.
    """

    most_bytes: int | None
    most_seconds: float | None
    clock: Callable[[], float] = time.monotonic
    used: int = 0
    _began: float = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def reserve(self, size: int) -> int | None:
        """So many bytes, or what is left, at least 1; None where nothing is left."""
        with self._lock:
            given = max(1, size) if self.most_bytes is None else min(max(1, size), self.most_bytes - self.used)
            if given <= 0:
                return None
            self.used += given
            return given

    def settle(self, reserved: int, used: int) -> None:
        """Give back what was reserved, and count what was used of it."""
        with self._lock:
            self.used += used - reserved

    @property
    def seconds_left(self) -> float | None:
        """None for no limit."""
        return None if self.most_seconds is None else self.most_seconds - (self.clock() - self._began)

    @property
    def is_late(self) -> bool:
        left = self.seconds_left
        return left is not None and left <= 0

    @property
    def why_no_bytes(self) -> str:
        return f"the budget of {size_text(self.most_bytes or 0)} is used up"
