"""Checks of the services that keep a table small: cleans, the archive, compactions; and of what holds them back."""

from collections.abc import Iterator, Sequence

from ..archival.selection import Why
from ..cleaning.plan import CleanRules, plan_clean
from ..cleaning.retention import Policy
from ..options import archive_keys, clean_keys, commit_keys, compaction_keys
from ..own_commands import setting
from ..timeline.compaction_trigger import Trigger
from ..timeline.instant import Action, Instant
from ..timeline.stream_checkpoints import names_checkpoint
from ..units import counted, size_text
from .examination import Examination
from .model import HealthFinding, Level

_HOLDERS = {
    Why.ROLLBACK: "recover --apply",
    Why.CLEAN: "clean",
    Why.COMPACTION: "compact --mode scheduleAndExecute",
}
"""The commands after which the archive goes on; for other reasons somebody has to decide."""


def cleaner_lags(seen: Examination) -> Iterator[HealthFinding]:
    """Old files that a clean would delete, and no clean runs."""
    files, retention, since = seen.files, seen.retention, seen.since_clean
    seen.measures |= {
        "commits_since_clean": since,
        "other_files": files.other_files,
        "other_bytes": files.other_bytes,
    }
    late = since > seen.limits.times_late * max(1, retention.commits)
    if not late or not files.other_files or seen.horizon.held_back_by is not None:
        return
    # Old files alone say nothing: savepoints and plans hold them, and those of the last commits are retained.
    chosen = plan_clean(seen.table, seen.options.of(CleanRules), lambda done, all_: None).choices
    count = sum(len(one.names) for one in chosen)
    size = sum(tally.bytes for one in chosen for tally in one.gone.values())
    if not count:
        return
    last = "since the last clean" if seen.last_clean is not None else "and no clean"
    rule = (
        f"cleans retain {counted(retention.commits, 'commit')} ({clean_keys.CLEAN_COMMITS_RETAINED.key})"
        if retention.policy is Policy.COMMITS
        else f"the policy is {retention.policy.value} ({clean_keys.CLEAN_POLICY.key})"
    )
    yield HealthFinding(
        Level.WARNING,
        "",
        f"{counted(since, 'commit')} came {last}, and {rule}: a clean would delete {counted(count, 'old file')} of "
        f"{size_text(size)}",
        {"commits": since, "files": count, "bytes": size},
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
        f"the pending {holder.action.value} {holder.ts} keeps cleans from the files of the "
        f"{counted(behind, 'commit')} after it",
        {"commits": behind, "age_minutes": seen.age_minutes(holder), "bytes": seen.files.other_bytes},
        seen.way_out(holder.ts),
    )


def archive_lags(seen: Examination) -> Iterator[HealthFinding]:
    """A timeline that no archival shortens: each read of the table lists and reads all of it."""
    found = seen.archival
    seen.measures["commits_on_timeline"] = found.commits
    if found.held is None and found.commits > seen.limits.times_late * found.most:
        yield HealthFinding(
            Level.WARNING,
            "",
            f"{found.commits:,} commits are on the timeline, and an archival is due from {found.most + 1} on "
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
        f"{found.commits:,} commits stay on the timeline, where {found.least} would: they are held by {held.why.value}",
        {"commits": found.commits, "least": found.least},
        seen.way_out(held.ts) if held.why is Why.PENDING else _HOLDERS.get(held.why, "archive --dry-run"),
    )


def clustering_holds_archive(seen: Examination) -> Iterator[HealthFinding]:
    """A replacecommit that the archive cannot pass, because no clean has deleted the files that it replaced."""
    found = seen.archival
    if found.held is not None and found.held.why is Why.REPLACED and found.commits > found.most:
        yield HealthFinding(
            Level.WARNING,
            found.held.ts,
            f"the archive cannot pass the replacecommit {found.held.ts}, whose old files no clean has deleted: "
            f"{found.commits:,} commits stay on the timeline, where {found.least} would",
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
            f"the last checkpoint of {last.stream.reader} is in {last.write.ts}, {counted(last.behind, 'commit')} "
            "back: the next archival of a writer of Hudi moves it to the archive, where no stream looks; set "
            f"{commit_keys.ROLLING_KEYS.key}={last.stream.key} in every writer and service",
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
    files, waits = seen.files, seen.options.of(Trigger).commits
    last, deltas = _compacted(seen)
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
            f"{counted(len(deltas), 'delta commit')} came {'since the last' if last is not None else 'and no'} "
            f"compaction, which is due after {waits} ({compaction_keys.COMPACTION_COMMITS.key}): "
            f"{counted(logs, 'log file')} of {size_text(int(files.log_bytes.sum()))}, and every read merges them",
            {"delta_commits": len(deltas), "log_files": logs, "bytes": int(files.log_bytes.sum())},
            compaction_command(seen),
        )


def compaction_command(seen: Examination) -> str:
    """The command that merges log files now; a plan that waits keeps others from their file slices."""
    waiting = seen.table.timeline.pending({Action.COMPACTION})
    if waiting:
        return seen.way_out(waiting[0].ts)
    option = compaction_keys.COMPACTION_COMMITS
    is_due = len(_compacted(seen)[1]) >= seen.options[option]
    return "compact --mode scheduleAndExecute" + ("" if is_due else f" {setting(option.key, 1)}")


def _compacted(seen: Examination) -> tuple[Instant | None, Sequence[Instant]]:
    """The last compaction, and the delta commits that came after it."""
    timeline = seen.table.timeline
    last = next(iter(reversed(timeline.completed({Action.COMMIT}))), None)
    deltas = timeline.completed({Action.DELTA_COMMIT})
    return last, [one for one in deltas if last is None or one.ts > last.ts]


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
            f"{counted(seen.files.held_files, 'old file')} of {size_text(held)} kept from cleans by "
            f"{counted(len(points), 'savepoint')}, the first {points[0].ts}; delete those that nobody needs with "
            "Apache Hudi (call delete_savepoint)",
            {"savepoints": len(points), "files": seen.files.held_files, "bytes": held},
        )
