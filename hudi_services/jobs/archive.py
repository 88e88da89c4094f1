"""The archival job: moves old instants from the active timeline to the archive, as writers of Apache Hudi do."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from ..archival.archive import Archived, archive_plan, look
from ..archival.archive import archive as run_archive
from ..archival.selection import ArchivalSelection
from ..errors import NothingToDo
from ..options import archive_keys, commit_keys
from ..runs.opening import open_supported
from ..runs.report import Report
from ..runs.report_rows import ArchivedRow, ArchiveFileRow, TimelineRow
from ..runs.request import ArchiveRequest
from ..snapshot import Snapshot
from ..storage import Storage
from ..timeline.instant import Instant

_TIMELINES = ("table", "metadata table")
_DRY_RUN = "dry run: nothing was archived"


def archive(request: ArchiveRequest, storage: Storage | Snapshot | None = None) -> Report:
    """Archive the timeline, and that of the metadata table; starts no JVM.

    `storage` replaces that of `request.base_path`; or it is the table, as it is known.
    """
    report = Report.start(request)
    run = open_supported(request, storage, report, commits=True)
    table, plan = run.table, archive_plan(run.options, run.table.config)
    with report.phase("select"):
        found = look(table, plan)
    _describe(report, found, [one.instants for one in found])
    report.warn(checkpoint_warnings(found[0]))
    if not any(one.instants for one in found):
        if found[0].checkpoint is not None:
            # The write that this archival follows must tell, and an error would have no warnings.
            return report.idle(_why_idle(found))
        raise NothingToDo(_why_idle(found))
    if request.dry_run:
        return report.looked(_DRY_RUN)
    with report.phase("archive"):
        done = run_archive(table, plan, run.settings)
    _describe(report, [one.first for one in done], [one.instants for one in done])
    _name_files(report, done)
    if not any(one.instants for one in done):
        raise NothingToDo("what could go is held back since, or another process has archived it")
    return report.completed(None)


def checkpoint_warnings(selection: ArchivalSelection) -> list[str]:
    """What to do about the checkpoint of a stream that an archival of the table keeps, and Hudi's does not."""
    last = selection.checkpoint
    if last is None:
        return []
    return [
        f"{last.write.ts} has the last checkpoint of {last.stream.reader} ({last.stream.key}), and {last.behind} "
        "commits are newer: archive keeps them all, but the next archival of a writer of Apache Hudi moves them to the "
        f"archive, where no stream looks; set {commit_keys.ROLLING_KEYS.key}={last.stream.key} in every writer and "
        f"service, with {commit_keys.ROLLING_LOOKBACK.key} above {last.behind}, or, if no stream needs the checkpoint "
        f"any more, {archive_keys.ARCHIVE_BEYOND_CHECKPOINT.key}=true"
    ]


def _why_idle(selections: Sequence[ArchivalSelection]) -> str:
    return "; ".join(
        f"{'the metadata table' if number else 'the table'}: {one.why_empty}" for number, one in enumerate(selections)
    )


def _describe(report: Report, selections: Sequence[ArchivalSelection], archived: Sequence[Sequence[Instant]]) -> None:
    timelines = [
        TimelineRow(
            timeline=name,
            commits=one.commits,
            max_commits=one.most,
            min_commits=one.least,
            archived_instants=len(instants),
            held_by=one.held.why.value if one.held else None,
            held_at=one.held.ts if one.held and one.held.ts else None,
        )
        for name, one, instants in zip(_TIMELINES, selections, archived, strict=False)
    ]
    report.show(TimelineRow, timelines)
    report.show(ArchivedRow, chain.from_iterable(map(_by_action, _TIMELINES, archived)))


def _by_action(name: str, instants: Sequence[Instant]) -> list[ArchivedRow]:
    counts = Counter(one.action.value for one in instants)
    times = {action: [one.ts for one in instants if one.action.value == action] for action in counts}
    return [ArchivedRow(name, action, counts[action], of[0], of[-1]) for action, of in sorted(times.items())]


def _name_files(report: Report, done: Sequence[Archived]) -> None:
    named = zip(_TIMELINES, done, strict=False)
    report.show(ArchiveFileRow, (ArchiveFileRow(name, file) for name, one in named for file in one.files))
