"""The compaction job: schedule a plan, execute a plan, or both. Mirrors HoodieCompactor of Apache Hudi."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..codecs.compaction_plan import CompactionPlan, encode_compaction_plan
from ..compaction.plan import WAITING, CompactionReason, CompactionRules, PlannedCompaction, build, why_not_due
from ..computed_once import cached_property
from ..engine import Engine
from ..errors import NothingToDo
from ..runs.report import InOut, Report
from ..runs.report_rows import CompactionSliceRow
from ..runs.request import CompactionRequest
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.view import FileGroupId
from ..timeline.instant import Action, Instant
from . import planned_service

if TYPE_CHECKING:
    from .plan_execution import PlanExecution

_LEFT = "file slices are left for the next plan"


def schedule(request: CompactionRequest, storage: Storage | Snapshot | None = None) -> Report:
    """Plan a compaction and publish it, unless it is a dry run; starts no JVM.

    `storage` replaces that of `request.base_path`; or it is the table, as it is known.
    """
    return planned_service.schedule(Compaction, request, storage)


def execute(
    request: CompactionRequest, storage: Storage | Snapshot | None = None, engine: Engine | None = None
) -> Report:
    """Execute the given or the earliest pending plan: as one Spark job, unless another `engine` is given."""
    return planned_service.execute(Compaction, request, storage, engine)


def schedule_and_execute(
    request: CompactionRequest, storage: Storage | Snapshot | None = None, engine: Engine | None = None
) -> Report:
    """Plan a compaction and execute it at once."""
    return planned_service.schedule_and_execute(Compaction, request, storage, engine)


class Compaction(planned_service.PlannedService[CompactionRequest, CompactionPlan]):
    """One run of compaction."""

    name = "compaction"

    @property
    def action(self) -> Action:
        return Action.COMPACTION

    @cached_property
    def rules(self) -> CompactionRules:
        return self.run.options.of(CompactionRules)

    def why_not_due(self, table: Snapshot) -> str:
        return why_not_due(table, self.rules.trigger)

    def build(self, table: Snapshot) -> CompactionPlan:
        planned = build(table, self.rules)
        _describe(planned, self.run.report, explain=self.run.request.dry_run)
        if not planned.slices:
            raise NothingToDo(planned.why_empty)
        return planned.plan

    def groups(self, plan: CompactionPlan) -> list[FileGroupId]:
        return [one.group for one in plan.operations]

    def encode(self, table: Snapshot, plan: CompactionPlan) -> bytes:
        return encode_compaction_plan(plan, table.config.version.release)

    def pending(self) -> Sequence[Instant]:
        return self.run.table.timeline.pending({Action.COMPACTION})

    def is_own(self, instant: Instant) -> bool:
        return self.run.table.timeline.began_as(instant) is Action.COMPACTION

    def execution(self) -> "type[PlanExecution[CompactionRequest]]":
        from .compaction_execution import CompactionExecution

        return CompactionExecution

    def left(self) -> Instant | None:
        request = self.run.request
        return self.choose(request.instant) if request.executes_pending and self.pending() else None


def _describe(planned: PlannedCompaction, report: Report, *, explain: bool) -> None:
    slices = planned.slices
    report.groups = len(slices)
    report.files = InOut(sum(len(one.files) for one in slices), len(slices))
    report.bytes = InOut(sum(one.size for one in slices), None)
    report.left_out = {reason: n for reason, n in planned.reasons.items() if reason != CompactionReason.PICKED.value}
    if explain:
        verdicts = sorted(planned.verdicts, key=lambda found: (found[0].partition, found[0].file_id))
        report.show(
            CompactionSliceRow,
            (
                CompactionSliceRow(
                    one.partition, one.file_id, one.base_bytes, len(one.log_files), one.log_bytes, reason
                )
                for one, reason in verdicts
            ),
        )
    report.warnings = [warning for warning in report.warnings if _LEFT not in warning]
    report.warnings += [f"{count} {_LEFT}: {why}" for why in WAITING if (count := planned.reasons[why])]
