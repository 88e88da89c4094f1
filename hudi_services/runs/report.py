"""The report of a run: the one document that every service gives, in a stable form (docs/report.md).

The job fills the report, and ends it with one of `requested`, `completed`, `looked`, `idle`, `partly_done` and
`failed`.
"""

import enum
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .._version import __version__
from ..clock import counted
from ..errors import HudiServicesError, NothingToDo, PartlyDone
from ..options import Options, Setting
from ..options.option import Phase
from ..urls import message_without_secrets, without_secrets
from .next_command import with_options
from .report_rows import Row, Values
from .request import Request

L = TypeVar("L", bound=Row)

DOCUMENT_VERSION = 1


class RunState(str, enum.Enum):
    """How a run ended. Equal to its text, too."""

    REQUESTED = "requested"
    """A plan was written."""
    COMPLETED = "completed"
    """The work was done; also a dry run that has something to show."""
    IDLE = "idle"
    """There was nothing to do."""
    PARTLY_DONE = "partly_done"
    """The work was done, except for a step that is left."""
    FAILED = "failed"
    """The run ended with an error."""


class CheckResult(enum.Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The table, as far as it could be read."""

    base_path: str
    name: str | None = None
    type: str | None = None
    table_version: int | None = None


@dataclass(frozen=True, slots=True)
class InOut:
    """A quantity before and after; None where it is not known (a plan does not know its rows)."""

    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class NamedCheck:
    name: str
    result: CheckResult
    detail: str = ""


@dataclass
class Report:
    """One run of one service. Sizes in bytes, times in seconds."""

    service: str
    action: str
    table: TableFacts
    instant: str | None = None
    state: RunState = RunState.FAILED
    exit_code: int = HudiServicesError.exit_code
    dry_run: bool = False
    """Whether nothing was to be changed."""
    groups: int | None = None
    tasks: int | None = None
    """The tasks that the groups were: more than groups where some were divided."""
    resumed_groups: int | None = None
    """How many of the groups an earlier attempt had finished."""
    files: InOut = InOut()
    bytes: InOut = InOut()
    rows: InOut = InOut()
    left_out: dict[str, int] = field(default_factory=dict)
    """File slices that are not in the plan, by reason."""
    decoded: dict[str, int] = field(default_factory=dict)
    """Groups whose rows were decoded, by reason; the others were copied as they were."""
    lists: dict[type[Row], list[Any]] = field(default_factory=dict)
    """The lists of the service by the class of their rows, see `show`."""
    checks: list[NamedCheck] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    phases_began: dict[str, float] = field(default_factory=dict)
    """Epoch seconds at which a phase of `seconds` was first entered; sums over tasks have none."""
    requests: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of stores, by who made them and by kind, see `request_counts`."""
    peak_bytes: int | None = None
    """The most memory that this process and those that it has started on this machine had together."""
    options: Options | None = None
    warnings: list[str] = field(default_factory=list)
    reason: str | None = None
    """Why there was nothing to do, or what is left to do."""
    hint: str = ""
    error: BaseException | None = None
    phase_of_options: Phase = Phase.ANY
    began: float = field(default_factory=time.time)
    """Epoch seconds."""

    @classmethod
    def start(cls, request: Request) -> "Report":
        """An unfinished report; it counts as failed until it is ended."""
        report = cls(
            request.service,
            request.action,
            TableFacts(without_secrets(request.base_path)),
            instant=request.instant,
            # Not every service has dry runs.
            dry_run=getattr(request, "dry_run", False),
            options=request.options,
            phase_of_options=request.phase,
        )
        request.on_report(report)
        return report

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that the context lasts to `seconds[name]`."""
        self.phases_began.setdefault(name, time.time())
        with counted(self.seconds, name):
            yield

    def show(self, kind: type[L], rows: Iterable[L]) -> None:
        """Give the report a list, in place of an earlier one of that kind."""
        self.lists[kind] = list(rows)

    def shown(self, kind: type[L]) -> list[L]:
        """The list of that kind, empty where there is none."""
        return self.lists.get(kind, [])

    def requested(self, instant: str) -> "Report":
        """End the report: a plan was written."""
        return self._end(RunState.REQUESTED, 0, instant)

    def completed(self, instant: str | None) -> "Report":
        """End the report: the action is done."""
        return self._end(RunState.COMPLETED, 0, instant)

    def looked(self, reason: str, instant: str | None = None) -> "Report":
        """End the report: a dry run found something to do; `reason` says that nothing was done."""
        self.dry_run, self.reason = True, reason
        return self._end(RunState.COMPLETED, 0, instant)

    def idle(self, reason: str) -> "Report":
        """End the report: there was nothing to do."""
        self.reason = reason
        return self._end(RunState.IDLE, NothingToDo.exit_code, self.instant)

    def partly_done(self, reason: str, hint: str = "") -> "Report":
        """End the report: the action is complete, but a step after it is not."""
        self.reason, self.hint = reason, hint
        return self._end(RunState.PARTLY_DONE, PartlyDone.exit_code, self.instant)

    def failed(self, error: BaseException) -> "Report":
        """End the report with `error`: as idle for NothingToDo, as partly done for PartlyDone, else as failed."""
        if isinstance(error, NothingToDo):
            return self.idle(error.message)
        self.error = error
        if isinstance(error, PartlyDone):
            return self.partly_done(error.message, error.hint)
        code = HudiServicesError.exit_code
        if isinstance(error, HudiServicesError):
            code, self.hint = error.exit_code, error.hint
        return self._end(RunState.FAILED, code, self.instant)

    def _end(self, state: RunState, exit_code: int, instant: str | None) -> "Report":
        self.state, self.exit_code, self.instant = state, exit_code, instant
        self.hint = self.with_options(self.hint)
        self.warnings = [self.with_options(one) for one in self.warnings]
        return self

    def with_options(self, text: str) -> str:
        """`text`, in which the commands of this program have the base path and the options of this run."""
        return with_options(text, self.options, self.table.base_path)

    def warn(self, warnings: Iterable[str]) -> None:
        """Add warnings, each one once: the services after a write, and a table that is opened again, say the same."""
        self.warnings += [one for one in warnings if one not in self.warnings]

    @property
    def all_warnings(self) -> list[str]:
        """All warnings, those about the options first."""
        return [*(self.options.warnings if self.options else ()), *self.warnings]

    @property
    def tables(self) -> dict[str, list[Values]]:
        """The lists by name, as JSON values by column."""
        return {kind.list_name: [row.values() for row in rows] for kind, rows in self.lists.items()}

    @property
    def settings(self) -> list[Setting]:
        """The options in force for this action."""
        return self.options.in_force(self.phase_of_options) if self.options else []

    def document(self) -> dict[str, Any]:
        """The report as JSON values, in the form that docs/report.md promises."""
        return {
            "version": DOCUMENT_VERSION,
            "tool": {"name": "hudi-services", "version": __version__},
            "service": self.service,
            "action": self.action,
            "table": {
                "base_path": self.table.base_path,
                "name": self.table.name,
                "type": self.table.type,
                "table_version": self.table.table_version,
            },
            "instant": self.instant and message_without_secrets(self.instant),
            "state": self.state.value,
            "exit_code": self.exit_code,
            "dry_run": self.dry_run,
            "reason": self.reason and message_without_secrets(self.reason),
            "error": self._error(),
            "groups": self.groups,
            "tasks": self.tasks,
            "resumed_groups": self.resumed_groups,
            "files": _in_out(self.files),
            "bytes": _in_out(self.bytes),
            "rows": _in_out(self.rows),
            "left_out": dict(self.left_out),
            "decoded": dict(self.decoded),
            "tables": self.tables,
            "checks": [{"name": c.name, "result": c.result.value, "detail": c.detail} for c in self.checks],
            "seconds": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            "requests": self.requests,
            "peak_bytes": self.peak_bytes,
            "options": [{"key": s.key, "value": s.value, "source": s.source} for s in self.settings],
            "warnings": [message_without_secrets(warning) for warning in self.all_warnings],
        }

    def _error(self) -> dict[str, str] | None:
        if self.error is None:
            return None
        return {
            "type": type(self.error).__name__,
            "message": sentence(self.error),
            "hint": message_without_secrets(self.hint),
        }


def sentence(error: BaseException) -> str:
    """One line about `error`, with its type when it is not a HudiServicesError."""
    if isinstance(error, HudiServicesError):
        return message_without_secrets(error.line)
    lines = str(error).strip().splitlines()
    return message_without_secrets(f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__)


def _in_out(quantity: InOut) -> dict[str, int | None]:
    return {"in": quantity.before, "out": quantity.after}
