"""What a look at a table finds: the level of each finding, its numbers, and the command that mends it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .examination import Examination

Number: TypeAlias = int | float


class Level(Enum):
    """How much a finding matters, by its word for people."""

    NOTE = "note"
    """Worth knowing; nothing has to be done."""
    WARNING = "warning"
    """It costs something, or will: bytes, time, or a service that does not go on."""
    CRITICAL = "critical"
    """Rows are hidden from readers, or lost by what is set, or a command cannot work."""

    @property
    def rank(self) -> int:
        """0 for what comes first."""
        return (Level.CRITICAL, Level.WARNING, Level.NOTE).index(self)


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """What a check has found of one subject of the table."""

    level: Level
    subject: str
    """An instant, a partition, a column or an option; "" for the table."""
    sentence: str
    numbers: Mapping[str, Number]
    """The evidence. The names tell the units."""
    command: str = ""
    """The command that mends it, without `hudi-services` and the base path, its values quoted for a shell. Where a
    person has to decide first, one that changes nothing and shows more. "" where another program has to mend it."""


Check: TypeAlias = Callable[["Examination"], Iterator[HealthFinding]]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A check by its name, which is that of its function; docs/doctor.md says what each one asks."""

    name: str
    look: Check


@dataclass(slots=True)
class CheckOutcome:
    """What became of one check; `unable` says why it could not be made."""

    check: HealthCheck
    findings: list[HealthFinding] = field(default_factory=list)
    unable: str = ""
