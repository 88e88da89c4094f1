"""How a run over many tables runs the services of one of them: within what is left of its budget."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..clustering.eligibility import ClusteringReason
from ..compaction.strategies import BEYOND_BUDGET
from ..engine import Engine
from ..errors import NeedsRecovery
from ..options import Options, clustering_keys, compaction_keys, file_keys
from ..runs.report import Report, RunState
from ..runs.request import (
    ArchiveRequest,
    CleanRequest,
    ClusteringRequest,
    CompactionRequest,
    Mode,
    OrphanFilesMode,
    OrphanFilesRequest,
    RecoverRequest,
    Request,
    ValidateRequest,
)
from ..runs.retries import run_with_retries
from ..units import counted, size_text
from .budget import Budget
from .due import DueService
from .model import LEFT, FleetTable, ServiceOutcome
from .ranking import TableTurn

_LAYER = "fleet"
_BEYOND_BUDGET = (BEYOND_BUDGET, ClusteringReason.BUDGET.value, ClusteringReason.LARGER_THAN_BUDGET.value)


@dataclass(frozen=True)
class TableTurns:
    """Runs turns; any thread may."""

    budget: Budget
    lent: Callable[[FleetTable], AbstractContextManager[Engine | None]]
    """Gives a context with an engine for a table, or None for the session of Spark that runs."""
    job_of: Callable[[Request], Callable[..., Report]]
    """Gives the function that carries a request out."""
    retries: int

    def run(self, turn: TableTurn) -> TableTurn | None:
        """Run the services of a turn, and note what became of each.

        Returns what is left of the turn where somebody else was at work for the first time: it is to be tried again.
        """
        table = turn.table
        for number, due in enumerate(turn.services):
            start = time.monotonic()
            outcome = self._outcome(table, due, start)
            table.seconds += time.monotonic() - start
            if outcome.is_busy and not turn.is_again:
                return TableTurn(table, turn.services[number:], is_again=True)
            table.outcomes.append(outcome)
            if outcome.has_failed and (due.command == "recover" or outcome.exit_code == NeedsRecovery.exit_code):
                why = f"{due.command} before it failed: {outcome.reason}"
                table.outcomes += [ServiceOutcome(one, LEFT, reason=why) for one in turn.services[number + 1 :]]
                break
        return None

    def _outcome(self, table: FleetTable, due: DueService, start: float) -> ServiceOutcome:
        if self.budget.is_late:
            return ServiceOutcome(due, LEFT, reason=self.budget.why_none)
        if not due.cost:
            report = self._report(due, table.listed.url, table.listed.options)
            return ServiceOutcome.of(due, report, time.monotonic() - start)
        reserved = self.budget.reserve(due.cost)
        if reserved is None:
            return ServiceOutcome(due, LEFT, reason=self.budget.why_none)
        used = 0
        try:
            if due.instant is not None and reserved < due.cost:
                left = f"the plan reads {size_text(due.cost)}, and {size_text(reserved)} of the budget are left"
                return ServiceOutcome(due, LEFT, reason=left)
            # Should it be interrupted, it may have read all.
            used = reserved
            options = table.listed.options.below([(_LAYER, self._limits(table.listed.options, reserved))])
            with self.lent(table) as engine:
                report = self._report(due, table.listed.url, options, engine=engine)
            used = _used(report, reserved)
            outcome = ServiceOutcome.of(due, report, time.monotonic() - start)
        finally:
            self.budget.settle(reserved, used)
        if self.budget.most_bytes is None or reserved == due.cost:
            return outcome
        if outcome.state == RunState.IDLE.value:
            return ServiceOutcome(due, LEFT, reason=f"{size_text(reserved)} of the budget are left: {outcome.reason}")
        beyond = sum(report.left_out.get(reason, 0) for reason in _BEYOND_BUDGET)
        if outcome.state == RunState.COMPLETED.value and beyond:
            left = f"{size_text(reserved)} of the budget were left"
            why = f"{left}: {counted(beyond, 'file slice')} did not fit, and wait for another run"
            return replace(outcome, state=RunState.PARTLY_DONE.value, reason=why)
        return outcome

    def _limits(self, options: Options, reserved: int) -> dict[str, str]:
        """The options that keep a service within what is left; those of the operator count where they are less."""
        limits: dict[str, str] = {}
        if self.budget.most_bytes is not None:
            for key in (clustering_keys.PLAN_BUDGET, compaction_keys.COMPACTION_BUDGET):
                limits[key.key] = str(min(reserved, options[key] or reserved))
        left, own = self.budget.seconds_left, options[file_keys.TIME_LIMIT]
        if left is not None:
            limits[file_keys.TIME_LIMIT.key] = f"{max(1, int(min(left, own or left)))}s"
        return limits

    def _report(self, due: DueService, url: str, options: Options, **engine: Engine | None) -> Report:
        request = request_of(due, url, options)
        return run_with_retries(partial(self.job_of(request), **engine), request, self.retries, time.sleep)


def request_of(due: DueService, url: str, options: Options) -> Request:
    common: dict[str, Any] = {"base_path": url, "options": options}
    mode = Mode.SCHEDULE_AND_EXECUTE if due.instant is None else Mode.EXECUTE
    match due.command:
        case "recover":
            return RecoverRequest(**common, apply=True)
        case "validate":
            return ValidateRequest(**common, repair=True)
        case "orphan-files":
            return OrphanFilesRequest(**common, mode=OrphanFilesMode.QUARANTINE)
        case "clean":
            return CleanRequest(**common)
        case "archive":
            return ArchiveRequest(**common)
        case "compact":
            return CompactionRequest(**common, mode=mode, instant=due.instant)
        case _:
            return ClusteringRequest(
                **common, mode=mode, instant=due.instant, publish_late=mode is Mode.SCHEDULE_AND_EXECUTE
            )


def _used(report: Report, reserved: int) -> int:
    """What counts of the bytes that were reserved: a plan's bytes also where it could not be carried out to the end."""
    planned = report.bytes.before
    if planned is None:
        return reserved if "rewrite" in report.seconds else 0
    return planned if "rewrite" in report.seconds or report.instant is not None else 0
