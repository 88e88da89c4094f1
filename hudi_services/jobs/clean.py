"""The clean job: finish what is pending, plan, delete. Mirrors HoodieCleaner and run_clean of Apache Hudi."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from ..archival.selection import archive_rules, bounds_of_table, select
from ..attempts.clean import pending_cleans, run_clean
from ..cleaning.plan import CleanPlanning, CleanRules, plan_clean
from ..codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from ..commit.conflicts import recover_hint
from ..commit.expectations import FilesSuperseded
from ..commit.newest_files import groups_of, read_ahead
from ..errors import ConfigError, NeedsRecovery, NothingToDo
from ..options import Options, clean_keys, lock_keys
from ..recovery.findings import abandoned
from ..rollback.failed_writes import is_left_to_writers, roll_back_failed_writes
from ..runs.opening import open_supported
from ..runs.report import InOut, Report
from ..runs.report_rows import DeletedRow, KeptRow, PendingCleanRow, RetentionRow
from ..runs.request import CleanRequest
from ..runs.run import Run
from ..snapshot import Snapshot, refresh
from ..storage import Storage
from ..timeline.instant import Action, Instant
from .archive import checkpoint_warnings
from .planning import Planner

_DRY_RUN = "dry run: nothing was deleted"


def clean(request: CleanRequest, storage: Storage | Snapshot | None = None) -> Report:
    """Clean the table; starts no JVM.

    `storage` replaces that of `request.base_path`; or it is the table, as it is known.
    """
    report = Report.start(request)
    run = open_supported(request, storage, report, commits=True)
    rules = run.options.of(CleanRules)
    _warn_of_checkpoint(run)
    pending = pending_cleans(run.table)
    plan_anew = not pending or run.options[clean_keys.CLEAN_MULTIPLE]
    if request.dry_run:
        return _dry_run(_CleanPlanner(run, rules) if plan_anew else None, run, pending)
    rolled_back = _failed_writes_are_ours(run.options) and _roll_back_failed_writes(run)
    if rolled_back:
        run = run.at(refresh(run.table))
    planned = ""
    if plan_anew:
        planned, table, why_idle = _schedule(_CleanPlanner(run, rules))
        run = run.at(table)
        pending = pending_cleans(table)
        if why_idle and not pending:
            if not rolled_back:
                raise NothingToDo(why_idle)
            report.reason = f"failed writes were rolled back; {why_idle}"
            return report.completed(None)
    report = _execute(run, pending, planned)
    if not plan_anew:
        report.warnings.append("the next run cleans what changed since this clean was planned")
    return report


def _failed_writes_are_ours(options: Options) -> bool:
    """Whether writers leave the rollback of failed writes to cleans: as set, and always with several writers."""
    several = options[lock_keys.CONCURRENCY_MODE] != lock_keys.CONCURRENCY_MODE.default
    return several or options[clean_keys.CLEAN_FAILED_WRITES] == "LAZY"


def _roll_back_failed_writes(run: Run[CleanRequest]) -> bool:
    """Roll back failed writes; return whether there were any."""
    options, report = run.options, run.report
    minutes = options[clean_keys.CLUSTERING_EXPIRY_MINUTES] if options[clean_keys.CLUSTERING_EXPIRES] else None
    with report.phase("roll back"):
        failed = roll_back_failed_writes(run.table, run.settings, expiry_minutes=minutes)
    if failed:
        report.warnings.append(f"failed writes were rolled back: {', '.join(failed)}")
    return bool(failed)


@dataclass(frozen=True)
class _CleanPlanner(Planner[CleanRequest, CleanerPlan]):
    rules: CleanRules

    name = activity = "clean"
    rewrites = False

    @property
    def action(self) -> Action:
        return Action.CLEAN

    def look(self) -> CleanPlanning:
        """The plan of the table as it is, without a lock, and why it has not more files. Raises NeedsRecovery."""
        with self.run.report.phase("plan"):
            found = self._found(self.run.table)
            _warn_of_savepoints(found, self.run.report)
            _look_at_what_holds_back(self.run, found)
        return found

    def build(self, table: Snapshot) -> CleanerPlan:
        found = self._found(table)
        if found.plan is None:
            raise NothingToDo(found.why_empty)
        return found.plan

    def check(self, table: Snapshot, plan: CleanerPlan) -> None:
        """Raise CheckFailed unless all sources agree that newer files replace every file to be deleted."""
        FilesSuperseded(plan.names, self.run.settings).check(table)

    def encode(self, table: Snapshot, plan: CleanerPlan) -> bytes:
        return encode_cleaner_plan(plan, table.config.version.release)

    def _found(self, table: Snapshot) -> CleanPlanning:
        found = plan_clean(table, self.rules, self.run.progress("plan"))
        _describe(self.run.report, self.rules, found)
        return found


def _schedule(planner: _CleanPlanner) -> tuple[str, Snapshot, str]:
    """Publish a plan; return its instant and the table with it, or the reason when there is nothing to plan.

    Raises NeedsRecovery and ConflictError.
    """
    try:
        found = planner.look()
        if found.plan is None:
            return "", planner.run.table, found.why_empty
        read_ahead(planner.run.table, groups_of(found.plan.names))
        return *planner.publish(found.plan), ""
    except NothingToDo as idle:
        return "", refresh(planner.run.table), idle.message


def _look_at_what_holds_back(run: Run[CleanRequest], planning: CleanPlanning) -> None:
    """Raise NeedsRecovery when an abandoned instant keeps all files from being cleaned; warn when it keeps some."""
    table, settings, pending = run.table, run.settings, planning.horizon.held_back_by
    if pending is None or abandoned(table, [pending], settings) is None:
        return
    if _failed_writes_are_ours(run.options) and is_left_to_writers(table, pending, settings):
        return
    held = f"the {pending.action.value} {pending.ts} was abandoned, and keeps files from being cleaned"
    if planning.plan is None:
        raise NeedsRecovery(f"{table.storage.root}: {held}", hint=recover_hint(table))
    run.report.warnings.append(f"{held}; {recover_hint(table)}")


def _warn_of_savepoints(planning: CleanPlanning, report: Report) -> None:
    # Deleting more than Hudi 0.15 in the same clean would surprise; silence would let rows come back.
    if planning.half_released:
        report.warnings.append(
            f"the savepoint at {', '.join(planning.half_released)} was deleted: files that it held in other "
            "partitions stay, and on this table version replaced rows come back once they are archived; run once with "
            f"--hoodie-conf {clean_keys.CLEAN_INCREMENTAL.key}=false "
            f"--hoodie-conf {clean_keys.CLEAN_TRIGGER_COMMITS.key}=0"
        )


def _warn_of_checkpoint(run: Run[CleanRequest]) -> None:
    """Warn of what the next archival of a writer would move: replacecommits may go as soon as they are cleaned."""
    # A wrong option of archivals is no reason not to clean.
    with suppress(ConfigError):
        table = run.table
        rules = archive_rules(run.options, table.config)
        found = select(table.timeline, rules, bounds_of_table(table.timeline, table.metadata))
        run.report.warn(checkpoint_warnings(found))


def _execute(run: Run[CleanRequest], pending: Iterable[Instant], planned: str) -> Report:
    """Carry out the `pending` cleans; this run has planned that of the time `planned`."""
    report, progress = run.report, run.progress("delete")
    files, last = 0, None
    for instant in pending:
        with report.phase("delete"):
            done = run_clean(run.table, instant, run.settings, progress, is_own=instant.ts == planned)
        if done is None:
            report.warnings.append(f"the clean {instant.ts} had an empty plan, and was dropped")
            continue
        files, last = files + sum(map(len, done.deleted.values())), instant.ts
    if last is None:
        raise NothingToDo("there was an empty clean plan, which was dropped; run again for a new one")
    report.files = InOut(files, None)
    return report.completed(last)


def _dry_run(planner: _CleanPlanner | None, run: Run[CleanRequest], pending: Iterable[Instant]) -> Report:
    table, report = run.table, run.report
    planned = [
        _pending_row(instant, table.timeline.read_cleaner_plan(instant))
        for instant in pending
        if table.timeline.has_plan(instant)
    ]
    report.show(PendingCleanRow, planned)
    found = planner.look() if planner is not None else None
    if _failed_writes_are_ours(run.options):
        report.warnings.append("a real run first rolls back failed writes, and may then delete more files")
    if found is not None and found.plan is None and not planned:
        raise NothingToDo(found.why_empty)
    return report.looked(_DRY_RUN)


def _pending_row(instant: Instant, plan: CleanerPlan) -> PendingCleanRow:
    files = sum(map(len, plan.files.values()))
    return PendingCleanRow(instant.ts, instant.state.name.lower(), plan.policy, files)


def _describe(report: Report, rules: CleanRules, planning: CleanPlanning) -> None:
    gone = [(choice, why, tally) for choice in planning.choices for why, tally in choice.gone.items()]
    report.files = InOut(sum(tally.files for _, _, tally in gone), None)
    report.bytes = InOut(sum(tally.bytes for _, _, tally in gone), None)
    earliest, pending = planning.horizon.earliest, planning.horizon.held_back_by
    retention = RetentionRow(
        policy=rules.retention.policy.value,
        earliest_to_retain=earliest.ts if earliest else None,
        held_back_by=f"{pending.action.value} {pending.ts}" if pending else None,
        partitions=planning.looked_at,
    )
    report.show(RetentionRow, [retention])
    whole = set(planning.plan.partitions_to_delete) if planning.plan else set()
    report.show(
        DeletedRow,
        (
            DeletedRow(choice.partition, why.value, tally.files, tally.bytes, choice.partition in whole)
            for choice, why, tally in gone
        ),
    )
    report.show(KeptRow, (KeptRow(why.value, tally.files, tally.bytes) for why, tally in planning.kept.items()))
