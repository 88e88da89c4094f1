"""The recovery job: report which instants of a table are stuck and why, and repair them."""

from ..attempts.late_attempts import late_attempts, take_back_staged
from ..clock import duration
from ..commit.settings import TransactionSettings
from ..errors import ConfigError, ConflictError, HudiServicesError, LockBusy, NothingToDo, PartlyDone
from ..merging.rules import turned_by_upgrade
from ..options import commit_keys
from ..recovery.findings import Decision, Finding, find
from ..recovery.repairs import carry_out
from ..runs.opening import open_supported
from ..runs.report import Report, sentence
from ..runs.report_rows import PendingInstantRow, RepairedInstantRow
from ..runs.request import RecoverRequest
from ..snapshot import Snapshot, refresh
from ..storage import Storage, check_creates
from ..units import counted

_DRY_RUN = "dry run: nothing was changed; add --apply to carry out the decisions"


def recover(request: RecoverRequest, storage: Storage | None = None) -> Report:
    """Decide what to do about every pending instant, and with `apply` do it; starts no JVM."""
    report = Report.start(request)
    run = open_supported(request, storage, report, repairs=True)
    table = run.table
    if request.apply:
        check_creates(table.storage)
    # Told here alone: what stays as it is would be told by every scheduled run.
    report.warnings += filter(None, [turned_by_upgrade(table.config)])
    left = [] if request.instant else [one.ts for one in late_attempts(table) if not one.holder and not one.is_reserved]
    if request.apply and left:
        report.warnings += _take_back(table, left, run.settings)
        table = refresh(table)
    elif left:
        report.warnings.append(_left_behind(left, taken_back=False))
    with report.phase("look"):
        findings = [one for one in find(table, run.settings) if request.instant in (None, one.instant.ts)]
    if not findings:
        if left:
            return report.completed(None) if request.apply else report.looked(_DRY_RUN)
        raise _nothing(request, table)
    if not request.apply:
        report.show(PendingInstantRow, (_row(report, one) for one in findings))
        return report.looked(_DRY_RUN, request.instant)
    with report.phase("repair"):
        outcomes = carry_out(
            table,
            findings,
            run.settings,
            using_markers=run.options[commit_keys.ROLLBACK_USING_MARKERS],
            progress=lambda done: request.progress("repair", done, len(findings)),
        )
    report.show(
        PendingInstantRow,
        (RepairedInstantRow(**vars(_row(report, one.finding)), done=one.done) for one in outcomes),
    )
    failed = [one.error for one in outcomes if one.error is not None]
    if failed:
        hint = failed[0].hint or "run the command again: what was done stays done"
        of_all = f"{len(failed)} of {counted(len(outcomes), 'instant')}"
        message = f"{of_all} could not be repaired; the first: {sentence(failed[0])}"
        raise PartlyDone(message, hint=hint)
    if all(one.decision is Decision.WAIT for one in findings):
        raise NothingToDo("every pending instant must wait: see the reasons")
    return report.completed(request.instant)


def _take_back(table: Snapshot, attempts: list[str], settings: TransactionSettings) -> list[str]:
    """Take back what killed runs have left, and tell of it; where somebody is at work, it stays for the next run."""
    done, told = list[str](), list[str]()
    for ts in attempts:
        try:
            take_back_staged(table, ts, settings)
            done.append(ts)
        except (LockBusy, ConflictError) as error:
            told.append(f"what the clustering {ts} has left stays: {sentence(error)}")
    return [*([_left_behind(done, taken_back=True)] if done else []), *told]


def _left_behind(attempts: list[str], *, taken_back: bool) -> str:
    done = "was deleted" if taken_back else "is deleted with --apply"
    times = ", ".join(attempts)
    return f"what was left of clusterings that were killed before they had published their plan {done} ({times})"


def _nothing(request: RecoverRequest, table: Snapshot) -> HudiServicesError:
    if request.instant is None:
        return NothingToDo("nothing is pending on this table")
    known = ", ".join(one.ts for one in table.timeline.pending()) or "none"
    return ConfigError(f"{table.storage.root} has no pending instant {request.instant}", hint=f"pending are: {known}")


def _row(report: Report, finding: Finding) -> PendingInstantRow:
    signs, instant = finding.signs, finding.instant
    return PendingInstantRow(
        instant=instant.ts,
        action=instant.action.value,
        state=instant.state.name.lower(),
        age=duration(finding.age_millis),
        last_sign=f"{duration(finding.silent_millis)} ago" if signs.last_sign_millis else "none",
        heartbeat=finding.heartbeat,
        markers=finding.markers,
        files=finding.files,
        decision=finding.decision.value,
        why=report.with_options(finding.why),
        blocks=finding.blocks,
    )
