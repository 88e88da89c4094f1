"""Which log blocks count: those of the instants that the readers of a table see."""

from collections.abc import Callable
from dataclasses import dataclass

from ..table.facts import TimelineFacts
from ..table.log_naming import log_naming
from ..table_config import TableConfig
from ..timeline.active import Timeline


@dataclass(frozen=True, slots=True)
class CountedInstants:
    """The instants whose log blocks are read. A plain value, which is sent to the executors."""

    until: str | None = None
    """The query instant: blocks of later ones are not read; None for no limit."""
    is_committed: Callable[[str], bool] | None = None
    """Whether an instant is completed, or older than the timeline; None where the names of log files say it."""
    also: str = ""
    """An instant that counts as completed."""

    def __call__(self, instant: str) -> bool:
        if self.until is not None and instant > self.until:
            return False
        return self.is_committed is None or instant == self.also or self.is_committed(instant)


def counted_instants(config: TableConfig, timeline: Timeline) -> CountedInstants:
    """The instants whose log blocks the readers of a table see."""
    # Where names say who wrote a log file, the view has left out those that do not count.
    tells = log_naming(config.version).tells_writers
    return CountedInstants(is_committed=None if tells else TimelineFacts(timeline).is_committed)
