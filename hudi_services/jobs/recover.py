"""The recovery job: report which instants of a table are stuck and why, and repair them."""

from ..attempts.clean import pending_cleans, run_clean
from ..attempts.late_attempts import late_attempts, take_back_staged
from ..clock import duration
from ..commit.critical_section import critical_section
from ..commit.rollback.execution import plan_rollback, resume_rollback, roll_back
from ..commit.settings import TransactionSettings, transaction_settings
from ..commit.timeline_copies import remove_instant
from ..commit.times import Times
from ..errors import ConfigError, ConflictError, HudiServicesError, LockBusy, NothingToDo, PartlyDone
from ..merging.rules import turned_by_upgrade
from ..options import commit_keys
from ..recovery.findings import Decision, Finding, find, judge
from ..runs.opening import open_supported
from ..runs.report import Report, sentence
from ..runs.report_rows import PendingInstantRow, RepairedInstantRow
from ..runs.request import RecoverRequest
from ..snapshot import Snapshot, refresh
from ..storage import Storage
from ..timeline.instant import Action

_DRY_RUN = "dry run: nothing was changed; add --apply to carry out the decisions"


def recover(wanted: RecoverRequest, storage: Storage | None = None) -> Report:
    """Decide what to do about every pending instant, and with `apply` do it; starts no JVM."""
    report = Report.start(wanted)
    table, wanted = open_supported(wanted, storage, report, repairs=True)
    # Told here alone: what stays as it is would be told by every scheduled run.
    report.warnings += filter(None, [turned_by_upgrade(table.config)])
    settings = transaction_settings(wanted.options, table.storage)
    left = [] if wanted.instant else [one.ts for one in late_attempts(table) if not one.holder and not one.is_reserved]
    if wanted.apply and left:
        report.warnings += _take_back(table, left, settings)
        table = refresh(table)
    elif left:
        report.warnings.append(_left_behind(left, taken_back=False))
    with report.phase("look"):
        findings = [one for one in find(table, settings) if wanted.instant in (None, one.instant.ts)]
    if not findings:
        if left:
            return report.completed(None) if wanted.apply else report.looked(_DRY_RUN)
        raise _nothing(wanted, table)
    if not wanted.apply:
        report.show(PendingInstantRow, map(_row, findings))
        return report.looked(_DRY_RUN, wanted.instant)
    with report.phase("repair"):
        outcomes = _repair(wanted, table, findings, settings)
    report.show(PendingInstantRow, (RepairedInstantRow(**vars(_row(one)), done=done) for one, done, _ in outcomes))
    failed = [error for _, _, error in outcomes if error is not None]
    if failed:
        hint = failed[0].hint or "run the command again: what was done stays done"
        message = f"{len(failed)} of {len(outcomes)} instants could not be repaired; the first: {sentence(failed[0])}"
        raise PartlyDone(message, hint=hint)
    if all(one.decision is Decision.WAIT for one in findings):
        raise NothingToDo("every pending instant must wait: see the reasons")
    return report.completed(wanted.instant)


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


def _nothing(wanted: RecoverRequest, table: Snapshot) -> HudiServicesError:
    if wanted.instant is None:
        return NothingToDo("nothing is pending on this table")
    known = ", ".join(one.ts for one in table.timeline.pending()) or "none"
    return ConfigError(f"{table.storage.root} has no pending instant {wanted.instant}", hint=f"pending are: {known}")


_Outcome = tuple[Finding, str, HudiServicesError | None]
"""A finding, what was done about it, and the error, if there was one."""


def _repair(
    wanted: RecoverRequest, table: Snapshot, findings: list[Finding], settings: TransactionSettings
) -> list[_Outcome]:
    outcomes: list[_Outcome] = []
    for number, finding in enumerate(findings, 1):
        try:
            outcomes.append(
                (finding, _act(table, finding, settings, wanted.options[commit_keys.ROLLBACK_USING_MARKERS]), None)
            )
        except HudiServicesError as error:
            outcomes.append((finding, f"failed: {sentence(error)}", error))
        wanted.progress("repair", number, len(findings))
    return outcomes


def _act(table: Snapshot, finding: Finding, settings: TransactionSettings, using_markers: bool) -> str:
    if finding.decision is Decision.WAIT:
        return "left alone"
    if finding.instant.action is Action.CLEAN and finding.decision is Decision.RESUME:
        run_clean(refresh(table), finding.instant, settings, lambda done, total: None)
        return "finished"
    own, done = finding.instant.ts, f"the recovery of {finding.instant.ts}"
    target = _repaired(table, finding)
    with critical_section(table, "recover", settings, own=own, repairs=target, completes=done) as current:
        found = current.timeline.find(finding.instant.ts, finding.instant.action)
        if found is None:
            return "gone already"
        # The writer of the instant may have come back since, or have ended.
        is_pending = found in {*current.timeline.pending(), *pending_cleans(current)}
        if not is_pending or judge(current, found, settings).decision is not finding.decision:
            return "left alone: it changed since the decision"
        if finding.decision is Decision.DROP:
            remove_instant(current, found)
            return "dropped"
        times = Times(current, settings.skew_millis)
        if finding.decision is Decision.RESUME:
            return f"finished: {resume_rollback(current, found, times)}"
        plan = plan_rollback(current, found, using_markers=using_markers)
        return f"rolled back by {roll_back(current, found, times, keep_plan=False, plan=plan)}"


def _repaired(table: Snapshot, finding: Finding) -> str:
    """The instant that does not count as another writer's: the finding's own, or the target of its rollback."""
    if finding.instant.action is Action.ROLLBACK and finding.decision is Decision.RESUME:
        return table.timeline.read_rollback_plan(finding.instant).ts
    return finding.instant.ts


def _row(finding: Finding) -> PendingInstantRow:
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
        why=finding.why,
        blocks=finding.blocks,
    )
