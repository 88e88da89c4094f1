"""Plans a compaction, publishes the plan, and reports which file slices are in it and which are not."""

import logging

from ..codecs.compaction_plan import encode_compaction_plan
from ..commit.conflicts import refuse_beside_index_builds, refuse_beside_writers
from ..commit.critical_section import request
from ..commit.newest_files import check_newest, read_ahead
from ..compaction.plan import WAITING, CompactionRules, Planned, Reason, build, why_not_due
from ..errors import NothingToDo
from ..options import commit_keys
from ..runs.report import InOut, Report
from ..runs.report_rows import CompactionSliceRow
from ..runs.request import CompactionRequest
from ..runs.run import Run
from ..snapshot import Snapshot, is_unchanged
from ..timeline.instant import Action
from .plan_instants import check_new_instant, zone_warnings

_log = logging.getLogger(__name__)

_LEFT = "file slices are left for the next plan"


def schedule_plan(run: Run[CompactionRequest]) -> Snapshot:
    """Plan and publish, and tell the report; returns the table with the plan, or of a dry run as it is."""
    table, report, settings = run.table, run.report, run.settings
    report.dry_run = run.request.dry_run
    rules = run.options.of(CompactionRules)
    if run.request.instant is not None:
        check_new_instant(run.request.instant, table, run.options[commit_keys.CLOCK_SKEW_MILLIS])
    waiting = why_not_due(table, rules.trigger)
    if waiting:
        raise NothingToDo(waiting)
    with report.phase("plan"):
        # First without the lock: an idle or wrong call leaves no trace, and locks are held for no longer than needed.
        planned = build(table, rules)
        _describe(planned, report, explain=run.request.dry_run)
        if not planned.slices:
            raise NothingToDo(planned.why_empty)
        if not run.request.dry_run:
            refuse_beside_writers(table, settings, plan="")
            refuse_beside_index_builds(table)
            read_ahead(table, [(one.partition, one.file_id) for one in planned.slices])
    if run.request.dry_run:
        _check_inputs(table, planned)
        report.looked("dry run: no plan was written")
        return table
    with report.phase("publish"):

        def plan(current: Snapshot) -> bytes:
            # Planning may take long, and the lock is held: plan again only when the table has changed.
            final = planned
            if not is_unchanged(current, table):
                if again := why_not_due(current, rules.trigger):
                    raise NothingToDo(again)
                final = build(current, rules)
                _describe(final, report, explain=False)
                if not final.slices:
                    raise NothingToDo(final.why_empty)
            _check_inputs(current, final)
            return encode_compaction_plan(final.plan, current.config.version.release)

        ts, after = request(table, Action.COMPACTION, "schedule", plan, settings, rewrites=True, ts=run.request.instant)
    report.warnings += zone_warnings(run.request.instant, table)
    _log.info("scheduled the compaction %s", ts)
    report.requested(ts)
    return after


def _check_inputs(table: Snapshot, planned: Planned) -> None:
    """Raise CheckFailed when not all sources agree that the plan's slices are the newest."""
    check_newest(table, [(one.partition, one.file_id) for one in planned.slices])


def _describe(planned: Planned, report: Report, *, explain: bool) -> None:
    slices = planned.slices
    report.groups = len(slices)
    report.files = InOut(sum(len(one.files) for one in slices), len(slices))
    report.bytes = InOut(sum(one.size for one in slices), None)
    report.left_out = {reason: n for reason, n in planned.reasons.items() if reason != Reason.PICKED.value}
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
    if count := planned.reasons[WAITING]:
        report.warnings.append(f"{count} {_LEFT}: {WAITING}")
