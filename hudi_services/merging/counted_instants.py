"""Which log blocks count: those of the instants that the readers of a table see."""

from collections.abc import Callable
from dataclasses import dataclass

from ..table.facts import TimelineFacts
from ..timeline.active import Timeline


@dataclass(frozen=True, slots=True)
class CountedInstants:
    """The instants whose log blocks are read. A plain value, which is sent to the executors."""

    is_committed: Callable[[str], bool]
    """Whether an instant is completed, or older than the timeline."""
    until: str | None = None
    """The query instant: blocks of later ones are not read; None for no limit."""
    also: str = ""
    """An instant that counts as completed."""

    def __call__(self, instant: str) -> bool:
        if self.until is not None and instant > self.until:
            return False
        return instant == self.also or self.is_committed(instant)


def counted_instants(timeline: Timeline) -> CountedInstants:
    """The instants whose log blocks the readers of a table see.

    On versions 8 and 9 the names of log files say it, too, but not those of files that version 6 has left: a file may
    have blocks of several instants, some of which have failed.
    """
    return CountedInstants(TimelineFacts(timeline).is_committed)
