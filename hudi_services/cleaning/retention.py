"""The horizon of a clean: the policy, and the earliest commit to retain.

Source: HoodieCleaningPolicy, CleanerUtils.getEarliestCommitToRetain of Apache Hudi.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from ..clock import format_instant
from ..options import Options, clean_keys, computed, value_of
from ..timeline.active import Timeline
from ..timeline.instant import Action, Instant

_COMMITS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING})


class Policy(Enum):
    """The cleaning policy; the values are Hudi's."""

    COMMITS = "KEEP_LATEST_COMMITS"
    FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    HOURS = "KEEP_LATEST_BY_HOURS"


_NUMBERS = {
    Policy.COMMITS: clean_keys.CLEAN_COMMITS_RETAINED,
    Policy.HOURS: clean_keys.CLEAN_HOURS_RETAINED,
    Policy.FILE_VERSIONS: clean_keys.CLEAN_FILE_VERSIONS_RETAINED,
}


def _policy(options: Options) -> Policy:
    """The policy that is set, else the policy of the one number that is set (HoodieCleanConfig)."""
    implied = [policy for policy, number in _NUMBERS.items() if options.is_set(number)]
    if not options.is_set(clean_keys.CLEAN_POLICY) and len(implied) == 1:
        return implied[0]
    return Policy(options[clean_keys.CLEAN_POLICY])


@dataclass(frozen=True, slots=True)
class Retention:
    """A policy with its numbers; the numbers of other policies are ignored."""

    policy: Policy = computed(_policy, Policy.COMMITS)
    commits: int = value_of(clean_keys.CLEAN_COMMITS_RETAINED)
    hours: int = value_of(clean_keys.CLEAN_HOURS_RETAINED)
    versions: int = value_of(clean_keys.CLEAN_FILE_VERSIONS_RETAINED)
    most_commits: int | None = None
    """By how many commits the earliest commit to retain may move in one clean; None for any number."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """`earliest` is the first commit whose files all stay; None when nothing may be deleted, or by file versions.

    `held_back_by` is the pending action because of which `earliest` is not a later commit.
    """

    earliest: Instant | None = None
    held_back_by: Instant | None = None


def horizon(
    timeline: Timeline, retention: Retention, now: datetime, previous: str, *, compactions: bool = True
) -> Horizon:
    """The horizon at `now`; `previous` is the earliest commit to retain of the last clean, "" for none.

    `compactions`: a pending compaction holds it back, too.
    """
    actions = _COMMITS | {Action.COMPACTION} if compactions else _COMMITS
    commits = [instant for instant in timeline.instants if instant.action in actions]
    completed = [instant for instant in commits if instant.is_completed]
    if retention.policy is Policy.COMMITS:
        found = _by_commits(commits, completed, retention.commits)
    elif retention.policy is Policy.HOURS:
        # Hudi's cleaner writes this time on the clock of its JVM, also where the instants are in UTC.
        since = format_instant(now - timedelta(hours=retention.hours), timeline.zone)
        found = Horizon(next((instant for instant in completed if instant.ts >= since), None))
    else:
        found = Horizon()
    if found.earliest is None or retention.most_commits is None or not previous:
        return found
    between = [instant for instant in completed if previous <= instant.ts < found.earliest.ts]
    return Horizon(between[retention.most_commits]) if len(between) > retention.most_commits else found


def _by_commits(commits: list[Instant], completed: list[Instant], retained: int) -> Horizon:
    if len(completed) <= retained:
        return Horizon()
    candidate = completed[len(completed) - retained]
    pending = next((instant for instant in commits if not instant.is_completed), None)
    if pending is None or candidate.order <= pending.order:
        return Horizon(candidate)
    older = [instant for instant in completed if instant.ts < pending.ts]
    return Horizon(older[-1] if older else None, pending)
