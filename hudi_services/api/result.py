"""The result of a call of the Python API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..runs.report import Report, RunState
from ..runs.report_rows import Row, columns

_TYPES: dict[type, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result:
    """How a run ended, and what it reported."""

    service: str
    """What the run was of: clustering, compaction, clean, write, …"""
    action: str
    """What it did of it: schedule, execute, upsert, …; else the name of the service."""
    state: RunState
    """Equal to its text: `result.state == "idle"`."""
    exit_code: int
    """The exit code of the command line for the same run."""
    instant: str | None
    """The instant of the plan that was written or executed, or the instant that was rolled back."""
    reason: str | None
    """Why there was nothing to do, what is left to do, or a word on what was done."""
    dry_run: bool
    """Whether the run only looked."""
    warnings: tuple[str, ...]
    """Sentences about what the caller should know, although the run did not fail."""
    tables: Mapping[str, pa.Table] = field(compare=False)
    """The lists of the report by name, as Arrow: with the same columns and types in every run, empty lists included."""
    report: Mapping[str, Any] = field(compare=False)
    """The whole report as JSON values, see docs/report.md."""

    @classmethod
    def of(cls, report: Report) -> "Result":
        document = report.document()
        return cls(
            service=report.service,
            action=report.action,
            state=report.state,
            exit_code=report.exit_code,
            instant=document["instant"],
            reason=document["reason"],
            dry_run=report.dry_run,
            warnings=tuple(document["warnings"]),
            tables={kind.list_name: _table(kind, rows) for kind, rows in report.lists.items()},
            report=document,
        )

    @property
    def ok(self) -> bool:
        """Whether the run did what was asked, or there was nothing to do."""
        return self.exit_code == 0

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do."""
        return self.state is RunState.IDLE

    def __repr__(self) -> str:
        shown = {"instant": self.instant, "reason": self.reason}
        more = "".join(f", {name}={value!r}" for name, value in shown.items() if value)
        tables = f", tables={sorted(self.tables)}" if self.tables else ""
        return f"<Result of {self.service} {self.action}: {self.state.value}{more}{tables}>"


def _table(kind: type[Row], rows: Sequence[Row]) -> pa.Table:
    values = [row.values() for row in rows]
    return pa.table(
        {name: pa.array([row.get(name) for row in values], _TYPES[one]) for name, one in columns(kind).items()}
    )
