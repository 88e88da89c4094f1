"""One run over many tables: looks, then services in the order of their gain, and what became of each table."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from ..errors import CheckFailed, HudiServicesError, PartlyDone
from ..options import file_keys, fleet_keys, value_of
from ..request_pace import paced
from ..runs.health_rows import show_outcomes
from ..runs.memory_watch import MemoryWatch
from ..runs.report import CheckResult, InOut, Report, TableFacts, sentence
from ..runs.report_rows import FleetServiceRow, FleetTableRow, HealthFindingRow
from ..runs.request import DoctorRequest, FleetRequest, Request
from ..runs.retries import run_with_retries
from ..runs.table_look import look_at
from ..units import counted
from ..urls import message_without_secrets, without_secrets
from .budget import Budget
from .discovery import ListedTables, identity
from .due import DueService, due_or_why
from .engines import engines_of
from .model import FleetState, FleetTable
from .places import Places
from .ranking import TableTurn, ranked
from .results import ResultsFile
from .table_turns import TableTurns
from .warnings_told import told_once

_TABLE_SECONDS = 900
_WRONG = (FleetState.FAILED, FleetState.SLOW, FleetState.BUSY)


@dataclass(frozen=True, slots=True)
class FleetRules:
    """What a run may do and use."""

    services: tuple[str, ...] = value_of(fleet_keys.SERVICES)
    at_once: int = value_of(fleet_keys.AT_ONCE)
    most_bytes: int | None = value_of(fleet_keys.MOST_BYTES)
    requests_per_second: int | None = value_of(fleet_keys.REQUESTS_PER_SECOND)
    table_seconds: int = value_of(fleet_keys.TABLE_TIME, lambda given: given or _TABLE_SECONDS)
    most_seconds: int | None = value_of(file_keys.TIME_LIMIT)


@dataclass
class FleetRun:
    """A run, whose budget of time begins with it. `job_of` gives the function that carries a request out."""

    request: FleetRequest
    report: Report
    job_of: Callable[[Request], Callable[..., Report]]
    rules: FleetRules = field(init=False)
    budget: Budget = field(init=False)
    _results: ResultsFile | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turns: Counter[str] = field(default_factory=Counter)
    """How many turns of work a table waits for, by its place."""
    _unwritten: str = ""
    """Why the results could not be written."""

    def __post_init__(self) -> None:
        self.rules = self.request.options.of(FleetRules)
        self.budget = Budget(self.rules.most_bytes, self.rules.most_seconds, self.rules.table_seconds)

    def over(self, listed: ListedTables) -> Report:
        """Look at the tables, do what is due, and end the report.

        Raises ConfigError for a file of results that cannot be written, and ConflictError where another run writes it.
        """
        request = self.request
        with ExitStack() as ends:
            if request.results is not None:
                self._results = ResultsFile.open(request.results, resume=request.resume, applies=request.apply)
                ends.callback(self._results.close)
            ends.callback(MemoryWatch(self.report).close)
            return self._over(listed)

    def _over(self, listed: ListedTables) -> Report:
        before = {identity(place) for place in self._results.finished} if self._results is not None else ()
        failed = [FleetTable.of_failed_line(line, error, self.request.options) for line, error in listed.failed]
        left = [one for one in listed.tables if identity(one.url) not in before]
        tables = [FleetTable(one, TableFacts(without_secrets(one.url))) for one in left]
        for table in failed:
            self._write(table)
        with paced(self.rules.requests_per_second), self.report.phase("look"):
            self._look_at(tables)
        turns = ranked(tables) if self.request.apply else []
        self._turns = Counter(one.table.listed.url for one in turns)
        if turns:
            with self.report.phase("services"):
                self._serve(turns)
            self._look_again(tables)
        return self._end([*failed, *tables], len(listed.tables) - len(left))

    def _look_at(self, tables: Sequence[FleetTable]) -> None:
        begun, looked = set[int](), set[int]()

        def look(table: FleetTable) -> None:
            begun.add(id(table))
            self._look(table)
            with self._lock:
                if table.is_slow:
                    return
                looked.add(id(table))
                self.request.progress("look", len(looked), len(tables))
            if not self._goes_on(table):
                self._write(table)

        places = Places[FleetTable](look, id, self.rules.at_once, self.rules.table_seconds)
        for table in places.run(tables, leaves_slow=True):
            with self._lock:
                if id(table) in looked:
                    continue
                table.is_slow = True
            table.error = f"the look at it has not ended after {self.rules.table_seconds} seconds"
            if id(table) not in begun:
                table.error = "nobody looked at it: the looks at too many other tables have not ended"
            table.hint = "run doctor on it: its storage may answer slowly, or not at all"
            self._write(table)

    def _goes_on(self, table: FleetTable) -> bool:
        """Whether services are to follow the look."""
        return self.request.apply and bool(table.due) and not table.outcomes

    def _look(self, table: FleetTable) -> None:
        """Look at the table, as doctor does, and find what is due."""
        listed = table.listed
        due, unable = list[DueService](), ""

        def job(request: DoctorRequest) -> Report:
            nonlocal due, unable
            look = look_at(request, None, Report.start(request))
            due, unable = due_or_why(look.seen, look.outcomes, listed.options.of(FleetRules).services)
            report = look.run.report
            report.show(HealthFindingRow, show_outcomes(report, look.outcomes))
            return report.completed(None)

        start = time.monotonic()
        request = DoctorRequest(
            base_path=listed.url, options=listed.options, longest_query_minutes=self.request.longest_query_minutes
        )
        report = run_with_retries(job, request, self.request.retries, time.sleep)
        with self._lock:
            if table.is_slow:
                # It was given up, and is told so.
                return
            table.facts = report.table
            table.findings = report.shown(HealthFindingRow)
            table.warnings = report.warnings
            table.unable = sum(one.result is CheckResult.SKIPPED for one in report.checks)
            if not table.outcomes:
                # What is due after the services is for the next run.
                table.due = due
            table.error = sentence(report.error) if report.error is not None else unable
            table.hint = message_without_secrets(report.hint)
            table.seconds += time.monotonic() - start

    def _serve(self, turns: Sequence[TableTurn]) -> None:
        rewriting = Counter(turn.rewrites for turn in turns)
        with engines_of(self.request, self.rules.at_once, lambda: rewriting[True]) as engines:
            running = TableTurns(self.budget, engines.lent, self.job_of, self.request.retries)

            def work(turn: TableTurn) -> None:
                left = running.run(turn)
                if left is not None:
                    places.again(left)
                    return
                place = turn.table.listed.url
                with self._lock:
                    rewriting[turn.rewrites] -= 1
                    self._turns[place] -= 1
                    is_last = not self._turns[place]
                    self.request.progress("services", len(turns) - self._turns.total(), len(turns))
                if is_last and not turn.table.is_mended:
                    self._write(turn.table)

            places = Places[TableTurn](
                work, lambda turn: id(turn.table), self.rules.at_once, self.rules.table_seconds, engines.cancel
            )
            with paced(self.rules.requests_per_second, engines.tasks):
                places.run(turns, leaves_slow=False)

    def _look_again(self, tables: Sequence[FleetTable]) -> None:
        """Look again at tables of which rows were hidden or in danger, where a service was to mend that."""
        mended = [one for one in tables if one.is_mended]
        if mended:
            with paced(self.rules.requests_per_second), self.report.phase("look again"):
                self._look_at(mended)

    def _write(self, table: FleetTable) -> None:
        if self._results is not None and not self._unwritten:
            try:
                self._results.add(table.line(applies=self.request.apply))
            except HudiServicesError as error:
                self._unwritten = sentence(error)

    def _end(self, tables: Sequence[FleetTable], before: int) -> Report:
        report = self.report
        report.dry_run = not self.request.apply
        report.show(FleetTableRow, (one.row() for one in sorted(tables, key=lambda one: one.severity)))
        report.show(FleetServiceRow, (row for one in ranked(tables) for row in one.table.service_rows(one.services)))
        report.warn(told_once((pair for one in tables for pair in one.told_warnings()), "table"))
        if done := [one for table in tables for one in table.outcomes if one.due.cost]:
            report.bytes = InOut(sum(one.read_bytes or 0 for one in done), sum(one.written_bytes or 0 for one in done))
            report.files = InOut(sum(one.files_before or 0 for one in done), sum(one.files_after or 0 for one in done))
        states = Counter(one.state for one in tables)
        told = [f"{states[one]} {one.value}" for one in FleetState if states[one]]
        told += [f"{before} finished by an earlier run"] if before else []
        said = f"{counted(len(tables) + before, 'table')}: {', '.join(told)}"
        in_danger = sum(one.is_in_danger for one in tables)
        if in_danger:
            said = f"rows of {counted(in_danger, 'table')} are hidden or in danger; {said}"
        if warned := sum(one.is_warned for one in tables):
            said = f"{said}; {counted(warned, 'table')} with warnings that no service here ends"
        is_wrong = any(states[one] for one in _WRONG)
        if self._unwritten:
            report.partly_done(f"{said}; {self._unwritten}", "give another file as --results, and run it again")
        elif is_wrong:
            report.partly_done(said, _next_step([one for one in tables if one.state in _WRONG or one.is_in_danger]))
        elif not any(one.due for one in tables) and not in_danger:
            report.idle(said)
        elif self.request.apply:
            report.reason = said
            report.completed(None)
        else:
            report.looked(f"dry run: {said}")
        if in_danger:
            report.exit_code = CheckFailed.exit_code
        elif is_wrong or self._unwritten:
            report.exit_code = PartlyDone.exit_code
        return report


def _next_step(tables: Sequence[FleetTable]) -> str:
    if len(tables) == 1:
        place, hint = tables[0].listed.url, tables[0].why[1]
        # A hint without a command does not name its table.
        return f"{place}: {hint}" if hint and place not in hint else hint
    return "do what the list of tables says for each of them, after `next:`; the other tables went on"
