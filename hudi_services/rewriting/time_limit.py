"""Rewrites of a run that must end: one begins only where the time that is left will do, by those that ran before it.

The rate is that of the tasks of the same run in the same process; what nobody has measured yet begins as long as there
is time at all. A rewrite that has begun is finished.
"""

import time
from dataclasses import dataclass

from .resume import is_written, rewrite_once
from .rewrite import RewriteResult
from .task import RewriteTask

_rates: dict[str, float] = {}
"""The slowest rate of a task, in seconds for a byte of old files, by the instant that the process works for."""


@dataclass(frozen=True, slots=True)
class TimedTask:
    """A rewrite, and when the run is to end: epoch seconds of the driver's clock."""

    task: RewriteTask
    end: float

    @property
    def bytes(self) -> int:
        return self.task.bytes

    @property
    def rows(self) -> int | None:
        return self.task.rows


def rewrite_in_time(timed: TimedTask, write_token: str) -> RewriteResult | None:
    """As `rewrite_once`; None when the time that is left will not do. What is finished already is taken over."""
    task = timed.task
    size = task.bytes
    if not has_time(timed.end, size, _rates.get(task.instant)) and not (task.resumes and is_written(task)):
        return None
    began = time.monotonic()
    result = rewrite_once(task, write_token)
    if not result.taken_over:
        _measure(task.instant, (time.monotonic() - began) / max(1, size))
    return result


def has_time(end: float, size: int, rate: float | None) -> bool:
    """Whether `size` bytes can be rewritten until `end`, when a byte takes `rate` seconds; None where nobody knows."""
    return time.time() + size * (rate or 0.0) < end


def _measure(instant: str, rate: float) -> None:
    known = _rates.get(instant, 0.0)
    # A process works for one run at a time, and is to remember nothing of others.
    _rates.clear()
    _rates[instant] = max(known, rate)
