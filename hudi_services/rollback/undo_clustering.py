"""Whether a completed clustering can be undone: no writer built on its files, and the files before it all exist.

A clustering moves rows and changes none. Therefore the old file groups hold the same rows as the new file groups as
long as no writer wrote to either. Rows that were written to other file groups since then stay.
"""

from collections.abc import Sequence

from ..base_files.slices import describe
from ..codecs.clustering_plan import SliceInfo
from ..commit.newest_files import check_newest
from ..errors import CheckFailed, ConfigError, ConflictError
from ..model import CommitMetadata, FileSlice
from ..paths import bare_name
from ..snapshot import Snapshot
from ..timeline.instant import Action, Instant
from .completed import (
    check_not_being_cleaned,
    check_not_first,
    check_not_planned,
    check_not_savepointed,
)
from .earlier import Earlier
from .later_indexes import check_indexes


def completed_clustering(table: Snapshot, ts: str) -> Instant:
    """The completed clustering of `ts`; raises ConfigError when there is none in the active timeline."""
    found = table.timeline.find(ts, Action.REPLACE_COMMIT)
    if found is None or not found.is_completed or not table.timeline.is_clustering(found):
        known = [i.ts for i in table.timeline.completed({Action.REPLACE_COMMIT}) if table.timeline.is_clustering(i)]
        raise ConfigError(
            f"{table.storage.root} has no completed clustering with the instant {ts} in its active timeline",
            hint=f"completed clusterings are: {', '.join(known) or 'none'}",
        )
    return found


def check_undo(table: Snapshot, target: Instant) -> list[FileSlice]:
    """Check that the completed clustering `target` can be undone; return the old files, which readers will see again.

    Raises ConfigError when a savepoint holds its files; ConflictError when the timeline begins with it, when a writer
    built on its files, when an old file does not exist any more or a pending clean deletes it, or when an index cannot
    be repaired; CheckFailed when the sources disagree on its files, or the old files hold another number of rows. Also
    raises the errors of `check_indexes`.
    """
    check_not_savepointed(table, target.ts)
    check_not_first(table, target)
    commit = table.timeline.read_commit(target)
    check_newest(table, commit.written_groups)
    _check_untouched(table, target, commit)
    check_not_planned(table, commit.written_groups, target.ts)
    changed = commit.touched_groups
    # Without the groups of the plan that were left out, because writers had changed them.
    groups = (group.slices for group in table.timeline.read_plan(target).groups)
    done = (some for some in groups if any(one.group in changed for one in some))
    inputs = [one for some in done for one in some]
    old = Earlier(table, target, sorted({one.partition for one in inputs}))
    restored = [_input(table, target, one, old) for one in inputs]
    _check_replaced(table, target, commit, restored)
    check_not_being_cleaned(table, restored)
    _check_rows(table, target, commit, restored)
    check_indexes(table, target, restored)
    return restored


def _check_untouched(table: Snapshot, target: Instant, commit: CommitMetadata) -> None:
    """Raise ConflictError unless each file group written by the clustering still has just its base file."""
    for partition, stats in commit.stats.items():
        slices = {one.file_id: one for one in table.view.latest_slices(partition)}
        for stat in stats:
            now = slices.get(stat.file_id)
            if now is None:
                problem = "was replaced"
            elif now.base_file is None or now.base_file.name != bare_name(stat.path):
                problem = f"was superseded by {now.base_file.name if now.base_file else now.base_instant}"
            elif now.log_files:
                problem = "got log files"
            else:
                continue
            raise _built_on(table, target, f"{stat.path} {problem} since")


def _input(table: Snapshot, target: Instant, planned: SliceInfo, old: Earlier) -> FileSlice:
    """The slice of the plan as readers would see it again. Raises ConflictError when it is not the same any more."""
    where = planned.partition or "the table"
    names = planned.names
    gone = next((name for name in names if not old.has(planned.partition, name)), None)
    if gone is not None:
        raise ConflictError(
            f"{table.storage.root}: {gone} in {where}, which the clustering {target.ts} replaced, was cleaned",
            hint="it cannot be undone any more",
        )
    found = old.slices.get((planned.partition, planned.file_id))
    newer = sorted({file.name for file in found.files}.difference(names)) if found is not None else []
    if found is None or newer:
        by = newer[0] if newer else "files that readers do not see"
        raise _built_on(table, target, f"{names[0]} in {where} was superseded by {by} since")
    return found


def _check_replaced(table: Snapshot, target: Instant, commit: CommitMetadata, inputs: Sequence[FileSlice]) -> None:
    """Raise ConflictError unless the clustering replaced the file groups of its plan, and no other commit did."""
    replaced = {*commit.replaced_groups}
    planned = {(one.partition, one.file_id) for one in inputs}
    if replaced != planned:
        odd = min(replaced ^ planned)
        raise _built_on(table, target, f"it did not replace what its plan says ({odd[1]} in {odd[0] or 'the table'})")
    for other in table.timeline.completed({Action.REPLACE_COMMIT}):
        if other.ts == target.ts:
            continue
        for partition, file_ids in (table.timeline.read_commit(other).replaced or {}).items():
            if any((partition, file_id) in replaced for file_id in file_ids):
                raise _built_on(table, target, f"its inputs in {partition or 'the table'} were replaced by {other.ts}")


def _check_rows(table: Snapshot, target: Instant, commit: CommitMetadata, slices: Sequence[FileSlice]) -> None:
    after = sum(stat.num_writes for stats in commit.stats.values() for stat in stats)
    before = sum(describe(table.slices, slices, lambda _, facts: facts.rows))
    if before != after:
        raise CheckFailed(
            f"{table.storage.root}: the files that the clustering {target.ts} replaced hold {before} rows, and its "
            f"own {after}",
            hint="nothing was changed; report it, with the plan",
        )


def _built_on(table: Snapshot, target: Instant, problem: str) -> ConflictError:
    return ConflictError(
        f"{table.storage.root}: the clustering {target.ts} cannot be undone: {problem}",
        hint="cluster again instead",
    )
