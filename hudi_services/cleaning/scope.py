"""The partitions that a clean must consider, by the timeline alone where possible.

A slice can be deleted only when a later slice, or a replacecommit, took its place before the earliest commit to retain.
Therefore an incremental clean considers only the partitions that commits updated between the earliest commit to retain
of the last clean and its own. It considers all partitions when the table has an archive but no clean; when the last
clean has no earliest commit to retain, or one from before the active timeline; after a savepoint was deleted (in some
table versions); and by file versions.
Source: CleanPlanner.getPartitionPathsToClean of Apache Hudi 0.15.0 to 1.2.0.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..codecs.clean_plan import CleanMetadata
from ..errors import ConfigError
from ..options import clean_keys, value_of
from ..snapshot import Snapshot
from ..timeline.active import Timeline
from ..timeline.archived import is_archived
from ..timeline.instant import Action, Instant
from .retention import Horizon, Policy

SAVEPOINTS = "savepointed_timestamps"
"""The key under which plans and completed cleans record the savepoints of their time, a comma-separated list."""

_REPLACES_NOTHING = frozenset({"INSERT", "INSERT_PREPPED", "BULK_INSERT", "BULK_INSERT_PREPPED"})
_ADDS_SLICES = _REPLACES_NOTHING | {"UPSERT", "UPSERT_PREPPED"}
_NO_BASE = "null"


@dataclass(frozen=True, slots=True)
class CleanedPartitionRules:
    """Which partitions a clean may consider. Raises ConfigError for a filter with `incremental`, as Hudi does."""

    incremental: bool = value_of(clean_keys.CLEAN_INCREMENTAL)
    pattern: str = value_of(clean_keys.CLEAN_PARTITION_REGEX)
    """The whole partition path must match."""
    selected: tuple[str, ...] = value_of(clean_keys.CLEAN_PARTITIONS_SELECTED)
    """Only these partitions; takes precedence over `pattern`."""

    def __post_init__(self) -> None:
        if self.incremental and (self.pattern or self.selected):
            given = clean_keys.CLEAN_PARTITIONS_SELECTED if self.selected else clean_keys.CLEAN_PARTITION_REGEX
            incremental = clean_keys.CLEAN_INCREMENTAL.key
            raise ConfigError(
                f"{given.key} cannot be used with {incremental}=true: partitions that it leaves out now would not be "
                "cleaned later",
                hint=f"set {incremental}=false",
            )


def last_clean(timeline: Timeline) -> CleanMetadata | None:
    """The metadata of the newest completed clean; a clean with an empty file is not complete. None without a clean."""
    cleans = [i for i in timeline.completed({Action.CLEAN}) if timeline.sizes[i.file_name]]
    return timeline.read_clean(cleans[-1]) if cleans else None


def commits_since_clean(timeline: Timeline, previous: CleanMetadata | None) -> int:
    """Completed writes that are newer than those that the last clean `previous` saw; all of them without one.

    Source: CleanPlanActionExecutor.getCommitsSinceLastCleaning of Apache Hudi 0.15.0 to 1.2.0.
    """
    after = previous.last_completed if previous is not None else ""
    return sum(instant.ts > after for instant in timeline.completed_writes())


def savepoints(table: Snapshot) -> tuple[str, ...]:
    """The commits with a completed savepoint."""
    return tuple(instant.ts for instant in table.timeline.completed({Action.SAVEPOINT}))


def removed_savepoints(table: Snapshot, previous: CleanMetadata | None) -> set[str]:
    """Savepoints that the last clean still respected: files that only they held may be deleted now."""
    before = _listed(previous.extra.get(SAVEPOINTS, "")) if previous else set()
    return before - set(savepoints(table))


def partitions_to_look_at(
    table: Snapshot, horizon: Horizon, policy: Policy, rules: CleanedPartitionRules, previous: CleanMetadata | None
) -> list[str]:
    """The paths of the partitions to consider, sorted; lists all partitions only when the timeline is not enough."""
    if policy is Policy.FILE_VERSIONS:
        return _filtered(table.view.partitions(), rules)
    if horizon.earliest is None:
        return []
    if rules.incremental:
        since = _looked_at_until(table, previous)
        if since is not None:
            return _changed(table, since, horizon.earliest.ts, previous)
    return _filtered(table.view.partitions(), rules)


def _looked_at_until(table: Snapshot, previous: CleanMetadata | None) -> str | None:
    """The time before which no commit must be considered, "" for none; None when that time is not known."""
    if previous is None:
        # Without an archive the active timeline has every commit.
        return None if is_archived(table.storage, table.config) else ""
    commits = [i.ts for i in table.timeline.instants if i.action.writes_data]
    until = previous.earliest_to_retain.strip()
    return until if until and not (commits and until < commits[0]) else None


def _changed(table: Snapshot, since: str, until: str, previous: CleanMetadata | None) -> list[str]:
    removed = removed_savepoints(table, previous)
    commits = table.timeline.completed_writes()
    touched = [instant for instant in commits if since <= instant.ts < until]
    if removed and table.config.version.removed_savepoint_rescans_table:
        return table.view.partitions()
    found = _partitions(table, touched) | _partitions(table, (i for i in commits if i.ts in removed), all_written=True)
    return sorted(found)


def _partitions(table: Snapshot, commits: Iterable[Instant], *, all_written: bool = False) -> set[str]:
    """The partitions where `commits` replaced slices or file groups; with `all_written`, all that they wrote to."""
    found: set[str] = set()
    for instant, commit in table.timeline.read_commits(commits):
        only_updates = instant.action is Action.COMMIT and commit.operation in _ADDS_SLICES and not all_written
        found |= {
            partition
            for partition, stats in commit.stats.items()
            if not only_updates or any(stat.prev_commit.lower() != _NO_BASE for stat in stats)
        }
        found |= set(commit.replaced or ())
    return found


def _filtered(partitions: list[str], rules: CleanedPartitionRules) -> list[str]:
    if rules.selected:
        return [partition for partition in partitions if partition in rules.selected]
    if rules.pattern:
        return [partition for partition in partitions if re.fullmatch(rules.pattern, partition)]
    return partitions


def _listed(text: str) -> set[str]:
    return {part for part in text.split(",") if part}
