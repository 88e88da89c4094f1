"""Checks of the services that keep a table small: cleans, the archive, compactions; and of what holds them back."""

from collections.abc import Iterator

from ..archival.selection import Why
from ..cleaning.retention import Policy
from ..options import archive_keys, clean_keys
from ..timeline.compaction_trigger import Trigger
from ..timeline.instant import Action
from ..timeline.stream_checkpoints import names_checkpoint
from ..units import size_text
from .examination import Examination
from .model import HealthFinding, Level


def cleaner_lags(seen: Examination) -> Iterator[HealthFinding]:
    """Old files that a clean would delete, and no clean runs."""
    files, retention = seen.files, seen.retention
    seen.measures |= {
        "commits_since_clean": seen.since_clean,
        "other_files": files.other_files,
        "other_bytes": files.other_bytes,
    }
    late = seen.since_clean > seen.limits.times_late * max(1, retention.commits)
    if retention.policy is not Policy.COMMITS or not late or not files.other_files:
        return
    if seen.horizon.held_back_by is not None:
        return
    yield HealthFinding(
        Level.WARNING,
        "",
        f"{seen.since_clean} commits came since the last clean, which retains {retention.commits} "
        f"({clean_keys.CLEAN_COMMITS_RETAINED.key}): {files.other_files} old files have "
        f"{size_text(files.other_bytes)}",
        {"commits": seen.since_clean, "files": files.other_files, "bytes": files.other_bytes},
        "clean",
    )


def cleaner_held_back(seen: Examination) -> Iterator[HealthFinding]:
    """A pending instant because of which cleans delete nothing of what came since."""
    holder = seen.horizon.held_back_by
    if holder is None:
        return
    behind = sum(one.ts > holder.ts for one in seen.writes)
    if behind <= seen.limits.times_late * max(1, seen.retention.commits):
        return
    yield HealthFinding(
        Level.WARNING,
        holder.ts,
        f"the pending {holder.action.value} {holder.ts} keeps cleans from the files of the {behind} commits after it",
        {"commits": behind, "age_minutes": seen.age_minutes(holder), "bytes": seen.files.other_bytes},
        "recover",
    )


def archive_lags(seen: Examination) -> Iterator[HealthFinding]:
    """A timeline that no archival shortens: each read of the table lists and reads all of it."""
    found = seen.archival
    seen.measures["commits_on_timeline"] = found.commits
    if found.held is None and found.commits > seen.limits.times_late * found.most:
        yield HealthFinding(
            Level.WARNING,
            "",
            f"{found.commits} commits are on the timeline, and an archival is due from {found.most + 1} on "
            f"({archive_keys.ARCHIVE_MOST.key})",
            {"commits": found.commits, "most": found.most},
            "archive",
        )


def archive_held_back(seen: Examination) -> Iterator[HealthFinding]:
    """What keeps the archive from taking commits that are due."""
    found = seen.archival
    held = found.held
    if held is None or held.why in (Why.REPLACED, Why.CHECKPOINT) or found.commits <= found.most:
        return
    is_metadata = held.why in (Why.METADATA, Why.NO_METADATA_COMPACTION)
    if is_metadata and found.commits <= seen.limits.times_late * found.most:
        # The metadata table is compacted after ten delta commits, and the archive goes on.
        return
    yield HealthFinding(
        Level.WARNING,
        held.ts,
        f"{found.commits} commits stay on the timeline, where {found.least} would: they are held by {held.why.value}",
        {"commits": found.commits, "least": found.least},
        {Why.PENDING: "recover", Why.ROLLBACK: "recover --apply", Why.CLEAN: "clean"}.get(
            held.why, "archive --dry-run"
        ),
    )


def clustering_holds_archive(seen: Examination) -> Iterator[HealthFinding]:
    """A replacecommit that the archive cannot pass, because no clean has deleted the files that it replaced."""
    found = seen.archival
    if found.held is not None and found.held.why is Why.REPLACED and found.commits > found.most:
        yield HealthFinding(
            Level.WARNING,
            found.held.ts,
            f"the archive cannot pass the replacecommit {found.held.ts}, whose old files no clean has deleted: "
            f"{found.commits} commits stay on the timeline, where {found.least} would",
            {"commits": found.commits, "least": found.least, "commits_since_clean": seen.since_clean},
            "clean",
        )


def checkpoint_about_to_go(seen: Examination) -> Iterator[HealthFinding]:
    """The last checkpoint of a stream in a commit that writers of Hudi archive next."""
    last = seen.archival.checkpoint
    if last is not None:
        yield HealthFinding(
            Level.WARNING,
            last.write.ts,
            f"the last checkpoint of {last.stream.reader} is in {last.write.ts}, {last.behind} commits back: the next "
            f"archival of a writer of Hudi moves it to the archive, where no stream looks",
            {"commits": last.behind},
            "archive --dry-run",
        )


def checkpoint_gone(seen: Examination) -> Iterator[HealthFinding]:
    """A stream whose last checkpoint is in the archive alone: it would begin anew, and write rows twice."""
    table = seen.table
    commits = (table.timeline.read_details(one.file_name) for one in reversed(seen.writes))
    last = table.timeline.layout.last_archived(table.storage, table.config.history_path, names_checkpoint)
    if last and not any(map(names_checkpoint, commits)):
        yield HealthFinding(
            Level.CRITICAL,
            last,
            f"a stream wrote its checkpoint with the commit {last}, which only the archive still has: started again, "
            "the stream does not find it, and reads its source from the beginning, or from its end",
            {"commits": len(seen.writes)},
        )


def compaction_lags(seen: Examination) -> Iterator[HealthFinding]:
    """Log files that no compaction merges: each read merges them."""
    if not seen.table.config.is_merge_on_read:
        return
    timeline, files = seen.table.timeline, seen.files
    last = next(iter(reversed(timeline.completed({Action.COMMIT}))), None)
    deltas = [one for one in timeline.completed({Action.DELTA_COMMIT}) if last is None or one.ts > last.ts]
    waits = seen.options.of(Trigger).commits
    logs = int(files.log_files.sum())
    seen.measures |= {
        "delta_commits_since_compaction": len(deltas),
        "log_files": logs,
        "log_bytes": int(files.log_bytes.sum()),
        "slices_with_log_files": int((files.log_files > 0).sum()),
    }
    if logs and len(deltas) > seen.limits.times_late * waits:
        yield HealthFinding(
            Level.WARNING,
            "",
            f"{len(deltas)} delta commits came since the last compaction, which waits for {waits}: {logs} log files "
            f"have {size_text(int(files.log_bytes.sum()))}, and every read merges them",
            {"delta_commits": len(deltas), "log_files": logs, "bytes": int(files.log_bytes.sum())},
            "compact --mode scheduleAndExecute",
        )


def savepoints(seen: Examination) -> Iterator[HealthFinding]:
    """Files that only a savepoint keeps."""
    points = seen.table.timeline.completed({Action.SAVEPOINT})
    held = seen.files.held_bytes
    seen.measures |= {"savepoints": len(points), "bytes_held_by_savepoints": held}
    if points and held:
        much = held >= seen.files.live_bytes / 2
        yield HealthFinding(
            Level.WARNING if much else Level.NOTE,
            points[0].ts,
            f"{len(points)} savepoints, the first {points[0].ts}, keep {seen.files.held_files} old files of "
            f"{size_text(held)} from cleans; delete those that nobody needs with Apache Hudi (call delete_savepoint)",
            {"savepoints": len(points), "files": seen.files.held_files, "bytes": held},
        )
