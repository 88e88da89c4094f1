"""Carrying out the decisions of `recover`: many under one lock, each looked at again right before its first step.

A critical section takes time to begin by the number of instants, so that one serves as many findings as fit into it.
Within it the table is not opened again: a finding needs its own instant, which no other finding changes.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..attempts.clean import pending_cleans, run_clean
from ..commit.critical_section import critical_section
from ..commit.settings import TransactionSettings
from ..commit.timeline_copies import remove_instant
from ..commit.times import Times
from ..errors import HudiServicesError
from ..rollback.execution import Rollbacks, pending_rollback
from ..rollback.requests import BlockInstants
from ..snapshot import Snapshot, refresh
from ..timeline.instant import Action
from ..urls import message_without_secrets
from .findings import Decision, Finding, decide

_SECTION_SECONDS = 20.0
"""After this a critical section takes up no other finding: others wait for the lock."""
_PAUSE_SECONDS = 1.0
"""Between two sections: who waits for the lock asks for it about so often."""
_CHANGED = "left alone: it changed since the decision"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done about a finding, and the error, if there was one."""

    finding: Finding
    done: str
    error: HudiServicesError | None = None

    @classmethod
    def failed(cls, finding: Finding, error: HudiServicesError) -> "Outcome":
        return cls(finding, f"failed: {message_without_secrets(error.line)}", error)


def carry_out(
    table: Snapshot,
    findings: Sequence[Finding],
    settings: TransactionSettings,
    *,
    using_markers: bool,
    progress: Callable[[int], None],
) -> list[Outcome]:
    """Carry out the decisions in their order; an error is part of the outcome.

    `progress` is called with the number of findings that are done. All that is left fails with the error of a critical
    section that cannot be entered.
    """
    blocks = BlockInstants(table.storage)
    waiting = [one for one in findings if one.decision is Decision.WAIT]
    outcomes = {one.instant: Outcome(one, "left alone") for one in waiting}

    def note(outcome: Outcome) -> None:
        outcomes[outcome.finding.instant] = outcome
        progress(len(outcomes))

    while left := [one for one in findings if one.instant not in outcomes]:
        began = time.monotonic()
        try:
            _carry_out_some(table, left, settings, using_markers, blocks, note)
        except HudiServicesError as error:
            # Where something was done, the lock could not be given back.
            done = [one for one in left if one.instant in outcomes]
            for one in done[-1:] or left:
                note(Outcome.failed(one, error))
        if time.monotonic() - began > _SECTION_SECONDS:
            table.clock.sleep(_PAUSE_SECONDS)
    return [outcomes[one.instant] for one in findings]


def _carry_out_some(
    table: Snapshot,
    findings: Sequence[Finding],
    settings: TransactionSettings,
    using_markers: bool,
    blocks: BlockInstants,
    note: Callable[[Outcome], None],
) -> None:
    """Carry out the first decision, and as many after it as one critical section serves. Raises its errors."""
    first = findings[0]
    if first.instant.action is Action.CLEAN and first.decision is Decision.RESUME:
        note(_attempt(first, lambda: _finish_clean(table, first, settings)))
        return
    own, target = first.instant.ts, _repaired(table, first)
    done = "what was repaired"
    with critical_section(table, "recover", settings, own=own, repairs=target, completes=done) as current:
        until, section = time.monotonic() + _SECTION_SECONDS, _Section(current, settings, using_markers, blocks)
        for finding in findings:
            is_alone = section.is_alone(finding)
            if finding is not first and (is_alone or time.monotonic() > until):
                return
            outcome = _attempt(finding, partial(section.act, finding))
            note(outcome)
            if is_alone or outcome.error is not None:
                return


def _attempt(finding: Finding, act: Callable[[], str]) -> Outcome:
    try:
        return Outcome(finding, act())
    except HudiServicesError as error:
        return Outcome.failed(finding, error)


def _finish_clean(table: Snapshot, finding: Finding, settings: TransactionSettings) -> str:
    run_clean(refresh(table), finding.instant, settings, lambda done, total: None)
    return "finished"


class _Section:
    """Carries out decisions under the lock under which `table` was opened."""

    def __init__(
        self, table: Snapshot, settings: TransactionSettings, using_markers: bool, blocks: BlockInstants
    ) -> None:
        self._table = table
        self._settings = settings
        self._using_markers = using_markers
        self._rollbacks = Rollbacks(table, Times(table, settings.skew_millis), blocks)
        self._pending = {*table.timeline.pending(), *pending_cleans(table)}

    def is_alone(self, finding: Finding) -> bool:
        """Whether a finding needs a table that was just opened: it is, or has, a rollback that was begun."""
        return finding.decision is Decision.RESUME or pending_rollback(self._table, finding.instant.ts) is not None

    def act(self, finding: Finding) -> str:
        """Carry out one decision, and say what was done."""
        table = self._table
        found = table.timeline.find(finding.instant.ts, finding.instant.action)
        if found is None:
            return "gone already"
        # The writer of the instant may have come back since, or have ended.
        if found not in self._pending or decide(table, found, self._settings).decision is not finding.decision:
            return _CHANGED
        if finding.decision is Decision.DROP:
            if self._rollbacks.new_files_at(found.ts):
                return _CHANGED
            remove_instant(table, found)
            return "dropped"
        if finding.decision is Decision.RESUME:
            return f"finished: {self._rollbacks.resume(found, keep_plan=False)}"
        plan = self._rollbacks.plan(found, using_markers=self._using_markers)
        return f"rolled back by {self._rollbacks.roll_back(found, keep_plan=False, plan=plan)}"


def _repaired(table: Snapshot, finding: Finding) -> str:
    """The instant that does not count as another writer's: the finding's own, or the target of its rollback."""
    if finding.instant.action is Action.ROLLBACK and finding.decision is Decision.RESUME:
        return table.timeline.read_rollback_plan(finding.instant).ts
    return finding.instant.ts
