"""Executing a pending plan: what the services with plans do alike."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from ..attempts.attempt import Attempt
from ..commit.times import refuse_ahead
from ..model import FileSlice
from ..runs.report import Report
from ..runs.request import PlanRequest
from ..runs.rewriting import Rewrite, carry_out
from ..runs.run import Run
from ..runs.running import started
from ..timeline.instant import Instant, State

P = TypeVar("P", bound=PlanRequest)


class PlanExecution(ABC, Generic[P]):
    """The execution of one plan. Making it reads the plan, and refuses what cannot be rewritten."""

    name: ClassVar[str]
    """The service in messages."""

    def __init__(self, run: Run[P], instant: Instant) -> None:
        self.run = run
        self.instant = instant

    @property
    @abstractmethod
    def slices(self) -> Sequence[FileSlice]:
        """What is rewritten; without any, no engine is needed."""

    @abstractmethod
    def open(self) -> None:
        """Open the files that are rewritten, while the engine starts, and tell the report what they are."""

    @abstractmethod
    def look(self) -> None:
        """Check the inputs of a dry run, and report what executing the plan would do."""

    @abstractmethod
    def rewrite(self) -> Rewrite:
        """The tasks, and the commit that they end in."""

    @classmethod
    def execute(cls, run: Run[P], instant: Instant) -> Report:
        """Execute the plan of `instant`, or say what that would do."""
        report = run.report
        report.instant = instant.ts
        refuse_ahead(run.table, instant.ts)
        with report.phase("open"):
            execution = cls(run, instant)
            run.table.sources.check(run.table.storage, execution.slices)
        with started(cls.name, execution.slices, run) as running:
            with report.phase("open"):
                execution.open()
            if run.request.dry_run:
                return execution._dry_run()
            rewrite = execution.rewrite()
            attempt = Attempt(run.table, instant, rewrite.operation, [rewrite.unchanged], run.settings)
            return carry_out(rewrite, attempt, run, running)

    def _dry_run(self) -> Report:
        report = self.run.report
        self.look()
        if self.instant.state is State.INFLIGHT:
            report.warnings.append(
                "an earlier attempt at this plan is not finished: the next run continues it, or rolls it back"
            )
        return report.looked("dry run: the plan was not executed", self.instant.ts)
