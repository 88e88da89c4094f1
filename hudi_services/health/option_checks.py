"""Checks of options that work against each other: those of the table, and those that the operator gives."""

from collections.abc import Iterator
from typing import Any

from ..cleaning.retention import Policy
from ..clock import duration
from ..options import Option, archive_keys, clean_keys, lock_keys, writing_keys
from ..units import counted
from .examination import Examination
from .model import HealthFinding, Level

_INDEX_SWITCHES: tuple[tuple[Option[Any], str], ...] = (
    (writing_keys.METADATA_ENABLE, "files"),
    (writing_keys.COLUMN_STATS_ENABLE, "column_stats"),
    (writing_keys.PARTITION_STATS_ENABLE, "partition_stats"),
)


def eager_rollbacks(seen: Examination) -> Iterator[HealthFinding]:
    """Writers that roll back each other's writes, because they take every pending write for a failed one."""
    mode, policy = lock_keys.CONCURRENCY_MODE, clean_keys.CLEAN_FAILED_WRITES
    several = seen.options[mode] != mode.default or bool(seen.options[lock_keys.LOCK_PROVIDER])
    if several and seen.options.is_set(policy) and seen.options[policy] == "EAGER":
        yield HealthFinding(
            Level.CRITICAL,
            policy.key,
            f"{policy.key}=EAGER beside several writers: each writer rolls back what the others are writing; set LAZY "
            "in every writer",
            {"pending_writes": sum(one.action.writes_data for one in seen.table.timeline.pending())},
        )


def writers_without_lock(seen: Examination) -> Iterator[HealthFinding]:
    """Several writes at the same time, and no lock: one of them may lose its rows."""
    mode, lock = lock_keys.CONCURRENCY_MODE, lock_keys.LOCK_PROVIDER
    if seen.options[lock]:
        return
    writers = [one for one in seen.table.timeline.pending() if one.action.writes_data]
    live = [one for one in seen.pending if one.instant in writers and one.heartbeat == "alive"]
    if len(live) > 1:
        yield HealthFinding(
            Level.CRITICAL,
            live[0].instant.ts,
            f"{len(live)} writers are at work at the same time, and no lock is set ({lock.key}): they may lose each "
            f"other's rows; set a lock and {mode.key} in every writer and service",
            {"live_writes": len(live)},
        )


def short_retention(seen: Examination) -> Iterator[HealthFinding]:
    """Files that a clean deletes while the longest query, or the slowest incremental reader, still needs them."""
    longest, retention = seen.longest_query_minutes, seen.retention
    if longest is None:
        return
    if retention.policy is Policy.HOURS:
        kept: float | None = retention.hours * 60
    elif retention.policy is Policy.COMMITS and len(seen.writes) > 1:
        span = seen.minutes_between(seen.writes[0], seen.writes[-1])
        kept = None if span is None else span / (len(seen.writes) - 1) * retention.commits
    else:
        return
    if kept is not None and kept < longest:
        key = (
            clean_keys.CLEAN_COMMITS_RETAINED if retention.policy is Policy.COMMITS else clean_keys.CLEAN_HOURS_RETAINED
        )
        yield HealthFinding(
            Level.CRITICAL,
            key.key,
            f"cleans keep files for about {duration(kept * 60_000)} by {key.key}, and the longest reader takes "
            f"{duration(longest * 60_000)}: it fails when its files are gone",
            {"kept_minutes": round(kept), "reader_minutes": longest},
        )


def archive_before_clean(seen: Examination) -> Iterator[HealthFinding]:
    """Archivals that leave fewer commits than cleans retain: cleans delete nothing, or other numbers are in force."""
    # Source: ArchivalUtils.getMinAndMaxInstantsToKeep of Apache Hudi. It raises the numbers by the horizon of cleans,
    # and where there are never more commits than are retained, there is no horizon.
    least, most, retained = archive_keys.ARCHIVE_LEAST, archive_keys.ARCHIVE_MOST, clean_keys.CLEAN_COMMITS_RETAINED
    given, kept = any(map(seen.options.is_set, (least, most, retained))), seen.retention.commits
    if seen.retention.policy is not Policy.COMMITS or not given or seen.options[least] > kept:
        return
    if seen.options[most] < kept:
        yield HealthFinding(
            Level.WARNING,
            most.key,
            f"archivals leave at most {counted(seen.options[most], 'commit')} ({most.key}), and cleans delete nothing "
            f"where there are no more than {kept} ({retained.key}): old files stay, and incremental readers find "
            "fewer commits",
            {"most": seen.options[most], "retained": kept},
        )
        return
    yield HealthFinding(
        Level.NOTE,
        least.key,
        f"{least.key}={seen.options[least]} is not more than {retained.key}={kept}: archivals of Hudi and of this "
        "program leave more commits, so that cleans find those that they retain",
        {"least": seen.options[least], "retained": kept},
    )


def index_not_kept(seen: Examination) -> Iterator[HealthFinding]:
    """Indexes that the table has and the writer's options switch off: the next write deletes them."""
    for option, partition in _INDEX_SWITCHES:
        off = seen.options.is_set(option) and str(seen.options[option]).upper() == "FALSE"
        if off and partition in seen.table.config.metadata_partitions:
            what = "metadata table" if partition == "files" else f"index {partition}"
            yield HealthFinding(
                Level.WARNING,
                option.key,
                f"{option.key}=false, and the table has the {what}: the next write of Hudi with this option deletes it",
                {"metadata_partitions": len(seen.table.config.metadata_partitions)},
            )
