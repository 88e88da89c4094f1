"""The orphan-files job: find files of no instant, move them to a quarantine, restore them, delete them for good."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone

from ..commit.critical_section import critical_section
from ..commit.lease import Lease
from ..errors import ConfigError, NothingToDo
from ..orphan_files.find import find_orphan_files
from ..orphan_files.model import Ages, Item, OrphanFindings, ReasonToStay, Total
from ..orphan_files.quarantine import Moved, Quarantine, check_restore, create, delete, fill, list_quarantines, restore
from ..runs.opening import open_supported
from ..runs.report import InOut, Report
from ..runs.report_rows import AttemptRow, NoOrphansRow, QuarantineRow
from ..runs.request import OrphanFilesMode, OrphanFilesRequest
from ..runs.run import Run
from ..storage import Storage
from ..units import counted

_MINUTE = 60_000
_PROBLEMS_TOLD = 10


def manage_orphan_files(request: OrphanFilesRequest, storage: Storage | None = None) -> Report:
    """Do what `request.mode` says; `storage` replaces the storage of `request.base_path`.

    QUARANTINE searches twice, the second time under the lock, and moves the files that both searches found. When the
    first search finds nothing, it takes no lock. Raises NothingToDo when there is nothing to do.
    """
    run = open_supported(request, storage, Report.start(request))
    jobs: dict[OrphanFilesMode, Callable[[Run[OrphanFilesRequest]], Report]] = {
        OrphanFilesMode.FIND: _find,
        OrphanFilesMode.QUARANTINE: _quarantine,
        OrphanFilesMode.RESTORE: _restore,
        OrphanFilesMode.DELETE: _delete,
    }
    return jobs[request.mode](run)


def _find(run: Run[OrphanFilesRequest]) -> Report:
    _look(run)
    _list_quarantines(run.table.storage, run.report)
    return run.report.looked("dry run: nothing was moved")


def _quarantine(run: Run[OrphanFilesRequest]) -> Report:
    seen, report = _look(run), run.report
    with critical_section(run.table, "quarantine orphan files", run.settings) as current:
        again = _look(run.at(current))
        items = _agreed(seen, again)
        _describe(items, again, report)
        if not items:
            raise NothingToDo("the orphan files that were found had changed when the table was locked")
        current.check_held()
        name = create(current, items)
        with report.phase("move"):
            moved = fill(current.storage, name, items, run.progress("move"))
    return _end(report, moved, f"moved to the quarantine {name}", "the next run finds the other files again")


def _restore(run: Run[OrphanFilesRequest]) -> Report:
    name, report = run.request.quarantine, run.report
    if name is None:
        raise ConfigError("a restore needs the name of a quarantine")
    if run.request.dry_run:
        held = check_restore(run.table, name)
        report.files, report.bytes = InOut(held.files, None), InOut(held.bytes, None)
        report.show(QuarantineRow, [QuarantineRow(name, held.files, held.bytes)])
        return report.looked("dry run: nothing was put back")
    with critical_section(run.table, "restore orphan files", run.settings) as current:
        report.files = InOut(sum(one.held.files for one in list_quarantines(current.storage) if one.id == name), None)
        with report.phase("move"):
            moved = restore(current, name, run.progress("move"))
    what = f"restored from the quarantine {name}"
    return _end(
        report,
        moved,
        what,
        f"the quarantine {name} still has the other files: restore it again when their places are free",
    )


def _delete(run: Run[OrphanFilesRequest]) -> Report:
    table, report = run.table, run.report
    wait_seconds = run.settings.lock_wait.wait_millis / 1000
    limit = table.clock.now() - timedelta(days=run.request.delete_older_than_days or 0)
    if run.request.dry_run:
        old = _old_quarantines(run, limit)
        report.files = InOut(sum(one.held.files for one in old), None)
        report.bytes = InOut(sum(one.held.bytes for one in old), None)
        return report.looked("dry run: nothing was deleted")
    # No file of the table is touched, so only another run of this program must wait.
    with Lease(table.storage, "table", "delete quarantines", wait_seconds, table.on_wait):
        old = _old_quarantines(run, limit)
        with report.phase("delete"):
            deleted = [delete(table.storage, one.id, run.progress("delete")) for one in old]
    report.files = InOut(sum(total.files for total in deleted), 0)
    report.bytes = InOut(sum(total.bytes for total in deleted), 0)
    return report.completed(None)


def _old_quarantines(run: Run[OrphanFilesRequest], limit: datetime) -> list[Quarantine]:
    """The quarantines that were made up to `limit`. Raises NothingToDo when there is none."""
    old = [one for one in list_quarantines(run.table.storage) if one.created <= limit]
    if not old:
        raise NothingToDo(f"no quarantine is {run.request.delete_older_than_days or 0} days old")
    run.report.show(QuarantineRow, map(_quarantine_row, old))
    return old


def _look(run: Run[OrphanFilesRequest]) -> OrphanFindings:
    """Find the orphan files and add them to the report. Raises NothingToDo when there are none."""
    report = run.report
    ages = Ages(run.request.min_age_minutes * _MINUTE, run.settings.heartbeat_expires_millis)
    with report.phase("look"):
        findings = find_orphan_files(run.table, ages, run.progress("look"))
    report.warn(findings.warnings)
    _describe(findings.items, findings, report)
    if not findings.items:
        _list_quarantines(run.table.storage, report)
        raise NothingToDo("there are no orphan files")
    return findings


def _agreed(seen: OrphanFindings, again: OrphanFindings) -> tuple[Item, ...]:
    known = {(item.path, item.size, item.mtime_millis) for item in seen.items}
    return tuple(item for item in again.items if (item.path, item.size, item.mtime_millis) in known)


def _describe(items: Sequence[Item], findings: OrphanFindings, report: Report) -> None:
    """Add the orphan files, by attempt and reason, and the files that were kept to the report."""
    groups: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        groups.setdefault((item.attempt, item.reason.value), []).append(item)
    report.show(AttemptRow, (_attempt_row(*attempt, group) for attempt, group in sorted(groups.items())))
    kept = dict(findings.kept)
    changed = [item for item in findings.items if item not in set(items)]
    if changed:
        kept[ReasonToStay.CHANGED] = Total(len(changed), sum(item.size for item in changed))
    by_reason = sorted(kept.items(), key=lambda pair: pair[0].value)
    report.show(NoOrphansRow, (NoOrphansRow(why.value, total.files, total.bytes) for why, total in by_reason))
    report.files = InOut(len(items), None)
    report.bytes = InOut(sum(item.size for item in items), None)


def _end(report: Report, quarantined: Moved, what: str, hint: str) -> Report:
    report.files = InOut(report.files.before, quarantined.total.files)
    report.bytes = InOut(report.bytes.before, quarantined.total.bytes)
    if quarantined.problems:
        report.warnings += quarantined.problems[:_PROBLEMS_TOLD]
        return report.partly_done(
            f"{what}, except {counted(len(quarantined.problems), 'file')} ({quarantined.problems[0]})", hint
        )
    report.completed(None)
    report.reason = what
    return report


def _list_quarantines(storage: Storage, report: Report) -> None:
    found = list_quarantines(storage)
    if found:
        report.show(QuarantineRow, map(_quarantine_row, found))


def _quarantine_row(quarantine: Quarantine) -> QuarantineRow:
    return QuarantineRow(quarantine.id, quarantine.held.files, quarantine.held.bytes)


def _attempt_row(attempt: str, reason: str, items: Sequence[Item]) -> AttemptRow:
    return AttemptRow(
        attempt=attempt or None,
        action=next((item.action for item in items if item.action), None),
        reason=reason,
        files=len(items),
        bytes=sum(item.size for item in items),
        oldest=_time(min(item.mtime_millis for item in items)),
        newest=_time(max(item.mtime_millis for item in items)),
    )


def _time(epoch_millis: int) -> str:
    return datetime.fromtimestamp(epoch_millis / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
