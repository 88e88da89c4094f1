"""Which partitions of the metadata table keep what an instant did, although its delta commit is rolled back.

    merged      a compaction was begun after the delta commit: its records are in base files
    built anew  the metadata table has no such delta commit: it is archived, or the table was built later
    younger     the partition was built after the delta commit: its first records tell what the instant had done by then
    repaired    a repair after the delta commit wrote to the partition

An instant that is pending all the while is in none of them: whoever builds a partition or merges log files leaves out
what is not completed. Where it cannot be told whether a partition keeps the instant, it counts as one that does.
"""

from collections.abc import Iterator

from ...errors import CorruptFile, NotFound
from ...files.names import parse_base_file, parse_log_file
from ...table.log_naming import INITIALISATION
from ...timeline.archived import ArchivedTimes
from ...timeline.instant import Action, Instant
from ..table import MetadataTable
from .timeline import repairs_among

_MERGES = {Action.COMPACTION, Action.LOG_COMPACTION, Action.COMMIT}


def may_be_merged(metadata: MetadataTable, target: str, *, was_completed: bool = True) -> bool:
    """Whether base files may hold what `target` wrote: a compaction was begun later, or its delta commit is not there.

    `was_completed`: the table had the instant completed, so that there was a delta commit, or the metadata table was
    built later. Hudi refuses to roll such a target back (HoodieBackedTableMetadataWriter.validateRollback).
    """
    timeline = metadata.timeline
    found = timeline.find(target, Action.DELTA_COMMIT)
    if found is None:
        return was_completed or timeline.contains_or_before_start(target)
    if not found.is_completed:
        return False
    return any(i.ts > target and {i.action, timeline.began_as(i)} & _MERGES for i in timeline.instants)


def lasting_in(
    metadata: MetadataTable, target: str, *, rollback: str | None = None, was_completed: bool = True
) -> frozenset[str]:
    """The metadata partitions that keep what `target` wrote; `rollback` is the instant of its rollback, once begun.

    Empty when that rollback has come past the metadata table already.
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

    It is told by the partition's oldest file: of version 6 its instant is greater then, and so is that of an indexing
    action. The initialisation of versions 8 and 9 counts from zero, and its completion time tells; its files stay until
    a compaction has merged them, which then comes after `delta`, too.
    """
    instants = sorted(_instants(metadata, partition))
    if not instants or (instants[0] > delta.ts and not instants[0].startswith(INITIALISATION)):
        return True
    archived = ArchivedTimes(metadata.storage, metadata.config.history_path)
    for instant in metadata.log_naming.undated(instants):
        built = metadata.timeline.completion_time(instant) or archived.completion_time(instant)
        if built is None or built > (delta.completion_time or ""):
            return True
    return False


def _instants(metadata: MetadataTable, partition: str) -> Iterator[str]:
    """Of the files of a metadata partition; a log file of version 6 has that of its slice."""
    for name, size in metadata.stored_files(partition).items():
        file = parse_base_file(partition, name, size) or parse_log_file(partition, name, size)
        if file is not None:
            yield file.instant


def _repaired_since(metadata: MetadataTable, target: str) -> set[str]:
    later = (i for i in metadata.timeline.completed({Action.DELTA_COMMIT}) if i.ts > target)
    found: set[str] = set()
    for repair in repairs_among(metadata, later):
        try:
            found |= metadata.timeline.read_commit(repair).stats.keys()
        except (CorruptFile, NotFound):
            return set(metadata.partitions)
    return found & set(metadata.partitions)
