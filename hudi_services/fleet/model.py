"""What is known of each table of a fleet: what a look found, what was due, and what became of it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from ..errors import ConflictError, HudiServicesError
from ..health.model import Level
from ..options import Options
from ..runs.report import Report, RunState, TableFacts, sentence
from ..runs.report_rows import FleetServiceRow, FleetTableRow, HealthFindingRow
from ..urls import message_without_secrets, without_secrets
from .discovery import ListedTable
from .due import MENDING, DueService
from .results import LINE_VERSION
from .tables_file import TablesLine

_ENDED_BY = {"execute": ("schedule", "execute"), "compact": ("schedule", "compact")}
"""The commands that findings name, by the service of a fleet that does the same."""
LEFT = "left"
"""The state of a service that did not begin; the others are those of reports."""


class FleetState(str, Enum):
    """What became of a table; the one that is first here where several are true."""

    SLOW = "slow"
    """The look at it has not ended."""
    FAILED = "failed"
    """It cannot be read, or a service failed."""
    BUSY = "busy"
    """Somebody else is at work."""
    LEFT = "left"
    """A service that is due did not begin, or did not do all: the budget or the time was over."""
    DUE = "due"
    """A run that only looks: services are due."""
    DONE = "done"
    NOTHING_DUE = "nothing due"

    @property
    def is_finished(self) -> bool:
        """Whether a run that goes on where another one ended leaves the table out."""
        return self in (FleetState.DUE, FleetState.DONE, FleetState.NOTHING_DUE)


@dataclass(frozen=True, slots=True)
class ServiceOutcome:
    """What became of a service that was due; sizes in bytes, None where they are not known."""

    due: DueService
    state: str
    exit_code: int = 0
    instant: str | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    freed_bytes: int | None = None
    """Of a service that rewrites nothing."""
    files_before: int | None = None
    files_after: int | None = None
    seconds: float = 0.0
    reason: str = ""
    hint: str = ""
    warnings: Sequence[str] = ()

    @classmethod
    def of(cls, due: DueService, report: Report, seconds: float) -> "ServiceOutcome":
        error = sentence(report.error) if report.error else report.reason or ""
        found = cls(
            due,
            report.state.value,
            report.exit_code,
            report.instant,
            files_before=report.files.before,
            files_after=report.files.after,
            seconds=round(seconds, 3),
            reason=message_without_secrets(error),
            hint=message_without_secrets(report.hint),
            warnings=[message_without_secrets(one) for one in report.warnings],
        )
        if not due.cost:
            return replace(found, freed_bytes=report.bytes.before)
        return replace(found, read_bytes=report.bytes.before, written_bytes=report.bytes.after)

    @property
    def is_left(self) -> bool:
        return self.state in (LEFT, RunState.PARTLY_DONE.value)

    @property
    def is_busy(self) -> bool:
        return self.state == RunState.FAILED.value and self.exit_code == ConflictError.exit_code

    @property
    def has_failed(self) -> bool:
        return self.state == RunState.FAILED.value and not self.is_busy


@dataclass(slots=True)
class FleetTable:
    """A table of the list, from the look at it to its last service."""

    listed: ListedTable
    facts: TableFacts
    findings: list[HealthFindingRow] = field(default_factory=list)
    warnings: Sequence[str] = ()
    """Of the look."""
    unable: int = 0
    """Checks that could not be made."""
    due: Sequence[DueService] = ()
    outcomes: list[ServiceOutcome] = field(default_factory=list)
    error: str = ""
    hint: str = ""
    is_slow: bool = False
    """Whether the look at it did not end in time."""
    seconds: float = 0.0
    """Of the look, and of all services."""

    @classmethod
    def of_failed_line(cls, line: TablesLine, error: HudiServicesError, options: Options) -> "FleetTable":
        """A pattern that could not be looked up, in place of its tables."""
        place = without_secrets(line.place)
        found = cls(ListedTable(place, line.source, options), TableFacts(place))
        found.error, found.hint = sentence(error), message_without_secrets(error.hint)
        return found

    @property
    def is_mended(self) -> bool:
        """Whether rows were hidden or in danger, and a service ran that may have mended that: a second look tells."""
        has_run = any(one.due.command in MENDING and one.state != LEFT for one in self.outcomes)
        return has_run and self.is_in_danger

    @property
    def severity(self) -> tuple[bool, bool, int, int]:
        """Tables with a smaller one come first: with rows in danger, then those that need somebody, then by state."""
        state = [*FleetState].index(self.state)
        return not self.is_in_danger, not self.why[0], state, -sum(one.gain for one in self.due)

    @property
    def counts(self) -> "Counter[Level]":
        return Counter(Level(row.level) for row in self.findings)

    @property
    def state(self) -> FleetState:
        if self.is_slow:
            return FleetState.SLOW
        if self.error or any(one.has_failed for one in self.outcomes):
            return FleetState.FAILED
        if any(one.is_busy for one in self.outcomes):
            return FleetState.BUSY
        if any(one.is_left for one in self.outcomes):
            return FleetState.LEFT
        if self.outcomes:
            return FleetState.DONE
        return FleetState.DUE if self.due else FleetState.NOTHING_DUE

    @property
    def why(self) -> tuple[str, str]:
        """The sentence that matters most, and what to do about it; "" for none."""
        worst = self.worst
        return self._undone or ((worst.finding, worst.command) if worst is not None else ("", ""))

    @property
    def is_in_danger(self) -> bool:
        """Whether rows are hidden or in danger."""
        return bool(self.counts[Level.CRITICAL])

    @property
    def is_warned(self) -> bool:
        """Whether a warning, and nothing that matters more, needs somebody."""
        worst = self.worst
        return not self._undone and worst is not None and worst.level == Level.WARNING.value

    @property
    def _undone(self) -> tuple[str, str] | None:
        """What kept the run from a look or a service, and what to do about it."""
        if self.error:
            return self.error, self.hint
        for kind in ("has_failed", "is_busy", "is_left"):
            for one in self.outcomes:
                if getattr(one, kind):
                    return f"{one.due.command}: {one.reason}", one.hint
        return None

    @property
    def worst(self) -> HealthFindingRow | None:
        """The first finding that needs somebody: no note, and no warning that a due service ends."""
        ended = {word for one in self.due for word in _ENDED_BY.get(one.command, (one.command,))}
        for row in self.findings:
            is_ended = row.command.split()[1] in ended if row.command else False
            if row.level == Level.CRITICAL.value or (row.level == Level.WARNING.value and not is_ended):
                return row
        return None

    def told_warnings(self) -> Iterator[tuple[str, str]]:
        """The place of the table, and a warning of the look or of a service, each once."""
        place, told = self.listed.url, set[str]()
        of_services = ((f"{one.due.command}: ", one.warnings) for one in self.outcomes)
        for command, warnings in [("", self.warnings), *of_services]:
            for warning in warnings:
                if warning not in told:
                    told.add(warning)
                    yield place, f"{place}: {command}{warning}"

    def row(self) -> FleetTableRow:
        counts, (why, hint) = self.counts, self.why
        return FleetTableRow(
            base_path=self.listed.url,
            state=self.state.value,
            critical=counts[Level.CRITICAL],
            warnings=counts[Level.WARNING],
            due=", ".join(dict.fromkeys(one.command for one in self.due)),
            gain_bytes=sum(one.gain for one in self.due),
            cost_bytes=sum(one.cost for one in self.due),
            read_bytes=sum(one.read_bytes or 0 for one in self.outcomes),
            seconds=round(self.seconds, 3),
            why=why or None,
            next=hint or None,
        )

    def service_rows(self, services: Sequence[DueService]) -> list[FleetServiceRow]:
        """A row for each of these services: what became of it, or what is expected of it."""
        outcomes = [one for one in self.outcomes if one.due in services]
        if not outcomes:
            outcomes = [ServiceOutcome(one, FleetState.DUE.value, reason=one.why) for one in services]
        return [
            FleetServiceRow(
                base_path=self.listed.url,
                service=one.due.command,
                state=one.state,
                gain_bytes=one.due.gain or None,
                cost_bytes=one.due.cost or None,
                read_bytes=one.read_bytes,
                seconds=one.seconds,
                why=one.reason or None,
            )
            for one in outcomes
        ]

    def line(self, *, applies: bool) -> dict[str, Any]:
        """The table as JSON values, as docs/fleet.md describes them."""
        counts = self.counts
        return {
            "version": LINE_VERSION,
            "base_path": self.listed.url,
            "listed": self.listed.source,
            "table": {"name": self.facts.name, "type": self.facts.type, "table_version": self.facts.table_version},
            "dry_run": not applies,
            "state": self.state.value,
            "finished": self.state.is_finished,
            "findings": {level.value: counts[level] for level in Level},
            "worst": [row.values() for row in self.findings[:3]],
            "checks_skipped": self.unable,
            "warnings": [*self.warnings],
            "due": [asdict(one) for one in self.due],
            "services": [_values(one) for one in self.outcomes],
            "error": {"message": self.error, "hint": self.hint} if self.error else None,
            "seconds": round(self.seconds, 3),
        }


def _values(outcome: ServiceOutcome) -> dict[str, Any]:
    values = asdict(outcome)
    del values["due"]
    return {"command": outcome.due.command, **values}
