"""The partitions of the metadata table that keep the changes of an instant although its delta commit is rolled back.

    merged      a compaction was begun after the delta commit: its records are in base files
    rebuilt     the metadata table has no such delta commit: it is archived, or the table was built later
    younger     the partition was built after the delta commit: its first records have the changes of the instant
    repaired    a repair after the delta commit wrote to the partition

No partition keeps an instant that was pending all the time: builds of partitions and merges of log files leave out what
is not completed. A partition counts as keeping the instant where that cannot be decided.
"""

from ...errors import CorruptFile, NotFound
from ...metadata.metadata_table import MetadataTable
from ...table.log_naming import INITIALISATION
from ...timeline.archived import ArchivedTimes
from ...timeline.instant import Action, Instant
from .timeline import repairs_among


def may_be_merged(metadata: MetadataTable, target: str, *, was_completed: bool = True) -> bool:
    """Whether base files may hold what `target` wrote: a compaction was begun later, or its delta commit is missing.

    `was_completed`: the table had completed the instant, so a delta commit existed, or the metadata table was built
    later. Hudi refuses to roll such a target back (HoodieBackedTableMetadataWriter.validateRollback).
    """
    timeline = metadata.timeline
    found = timeline.find(target, Action.DELTA_COMMIT)
    if found is None:
        return was_completed or metadata.ledger.facts.is_committed(target)
    if not found.is_completed:
        return False
    return timeline.last_merge > target


def lasting_in(
    metadata: MetadataTable, target: str, *, rollback: str | None = None, was_completed: bool = True
) -> frozenset[str]:
    """The metadata partitions that keep what `target` wrote; `rollback` is the instant of its rollback, once begun.

    Empty when that rollback has already rolled back the delta commit.
    """
    found = metadata.timeline.find(target, Action.DELTA_COMMIT)
    if found is None and rollback is not None and _is_rolled_back(metadata, target, rollback):
        return frozenset()
    if may_be_merged(metadata, target, was_completed=was_completed):
        return frozenset(metadata.partitions)
    if found is None or not found.is_completed:
        return frozenset()
    younger = {name for name in metadata.partitions if _is_younger(metadata, name, found)}
    return frozenset(younger | _repaired_since(metadata, target))


def _is_rolled_back(metadata: MetadataTable, target: str, rollback: str) -> bool:
    done = (i for i in metadata.timeline.completed({Action.ROLLBACK}) if i.ts >= rollback)
    return any(metadata.timeline.read_rollback(i).target_ts == target for i in done)


def _is_younger(metadata: MetadataTable, partition: str, delta: Instant) -> bool:
    """Whether the partition was built after `delta` was completed.

    The partition's oldest file shows it: on version 6, and after an indexing action, its instant is greater then. The
    initialisation of versions 8 and 9 counts from zero, so its completion time decides; its files stay until a
    compaction has merged them, which then comes after `delta`, too.
    """
    instants = sorted(metadata.earliest_instants(partition))
    if not instants or (instants[0] > delta.ts and not instants[0].startswith(INITIALISATION)):
        return True
    archived = ArchivedTimes(metadata.storage, metadata.config.history_path)
    for instant in metadata.log_naming.undated(instants):
        built = metadata.timeline.completion_time(instant) or archived.completion_time(instant)
        if built is None or built > (delta.completion_time or ""):
            return True
    return False


def _repaired_since(metadata: MetadataTable, target: str) -> set[str]:
    later = (one for one in metadata.own_delta_commits if one.ts > target)
    found: set[str] = set()
    for repair in repairs_among(metadata, later):
        try:
            found |= metadata.timeline.read_commit(repair).stats.keys()
        except (CorruptFile, NotFound):
            return set(metadata.partitions)
    return found & set(metadata.partitions)
