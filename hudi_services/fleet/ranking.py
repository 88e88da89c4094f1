"""The order in which the services of a fleet run: what costs nothing, then what gains most for each byte."""

from collections.abc import Iterable
from dataclasses import dataclass

from .due import DueService
from .model import FleetTable


@dataclass(frozen=True, slots=True)
class TableTurn:
    """Services of one table that run one after the other: all that rewrite no data, or one that does."""

    table: FleetTable
    services: tuple[DueService, ...]
    is_again: bool = False
    """Whether it was put off once, because somebody else was at work."""

    @property
    def rewrites(self) -> bool:
        return any(one.cost for one in self.services)

    @property
    def order(self) -> tuple[bool, float]:
        """Smaller comes first."""
        return self.rewrites, -sum(one.gain_per_byte if self.rewrites else one.gain for one in self.services)


def ranked(tables: Iterable[FleetTable]) -> list[TableTurn]:
    """All services that are due, in their order; of equal ones that of the table which is listed first."""
    turns = list[TableTurn]()
    for table in tables:
        free = tuple(one for one in table.due if not one.cost)
        turns += [TableTurn(table, free)] if free else []
        turns += [TableTurn(table, (one,)) for one in table.due if one.cost]
    return sorted(turns, key=lambda turn: turn.order)
