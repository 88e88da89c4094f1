"""The records to write so that readers find the right record under each key.

A merge never lowers a size or narrows a range, and it merges log files among themselves first, so that a deletion in
them may not reach the base file (`records.model.Stored`). So, for each key or name, the first series is taken that
gives the right result:

    missing name, wrong size      the entry | its deletion, the entry
    surplus name                  its deletion | the deletion twice, where the base file and the log files both have it
    statistics of a file          the record | the same record as tight (versions 8, 9) | a deletion, the record with
                                  counts that make up for those of the base file
    range of a partition          the record, which widens the range | a tight record with what is stored
    bloom filter                  the record
    surplus record                a deletion of the key
    secondary key                 the record | a deletion of the key

Log files cannot correct a size in a base file that is too big, and on version 6 a range that is too wide: these stay.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import SECONDARY_INDEX_PREFIX
from ..metadata.records.model import (
    FileEntry,
    FilesRecord,
    Record,
    RecordType,
    StatsRecord,
    Stored,
)
from ..metadata.statistics.column_stats import counts, same_statistics, settled

Wanted = Mapping[str, Mapping[str, Record | None]]
"""The record that readers should find, None for no record, by metadata partition and key.

A record of a listing has only the names that are wrong.
"""

_TIGHT = '"isTightBound"'
_GONE = FileEntry(0, deleted=True)


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Records and deleted keys, by metadata partition, for `delta_commit.write_delta_commit`."""

    records: dict[str, list[Record]] = field(default_factory=dict)
    deletes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def count(self) -> dict[str, int]:
        """The number of keys that are written or deleted, for each metadata partition that has any."""
        written = {name: len({record.key for record in records}) for name, records in self.records.items()}
        return {
            name: found
            for name in sorted({*written, *self.deletes})
            if (found := written.get(name, 0) + len(self.deletes.get(name, ())))
        }


def plan_repair(metadata: MetadataTable, expected: Wanted) -> RepairPlan:
    """The plan after which readers find `expected`, as far as possible. Raises CorruptFile."""
    plan = RepairPlan()
    can_be_tight = _TIGHT in metadata.writer_schema.text
    for partition, targets in expected.items():
        records = plan.records.setdefault(partition, [])
        if partition.startswith(SECONDARY_INDEX_PREFIX):
            # The newest record counts, whatever is below it. Hudi 1.2 finds a record that is only marked as deleted.
            records += (target for target in targets.values() if target is not None)
            plan.deletes[partition] = [key for key, target in targets.items() if target is None]
            continue
        for key, stored in metadata.reader(partition).stored(targets):
            target = targets[key]
            match target:
                case None:
                    if stored.merged is not None:
                        plan.deletes.setdefault(partition, []).append(key)
                case FilesRecord():
                    records += _listing_steps(stored, target)
                case StatsRecord():
                    records += _stats_steps(stored, target, can_be_tight)
                case _:
                    records.append(target)
    return plan


def _listing_steps(stored: Stored, target: FilesRecord) -> Iterator[FilesRecord]:
    steps: list[dict[str, FileEntry]] = []
    for name, entry in target.entries.items():
        series: tuple[tuple[FileEntry, ...], ...] = ((_GONE,), (_GONE, _GONE))
        if not entry.deleted:
            series = ((entry,), (_GONE, entry))
        for number, step in enumerate(_entry_steps(stored, target, name, series)):
            if number == len(steps):
                steps.append({})
            steps[number][name] = step
    return (replace(target, entries=entries) for entries in steps)


def _entry_steps(
    stored: Stored, target: FilesRecord, name: str, series: Sequence[tuple[FileEntry, ...]]
) -> tuple[FileEntry, ...]:
    """The first of `series` after which readers find the entry of `name`, or no entry, as in `target`; () for none."""
    alone = Stored(_only(stored.base, name), _only(stored.logs, name), stored.is_deleted)
    wanted = target.entries[name]
    for steps in series:
        result = _after(alone, (replace(target, entries={name: step}) for step in steps)).merged
        found = result.entries.get(name, _GONE) if isinstance(result, FilesRecord) else _GONE
        if found == wanted or (found.deleted and wanted.deleted):
            return steps
    return ()


def _only(record: Record | None, name: str) -> FilesRecord | None:
    if not isinstance(record, FilesRecord):
        return None
    return replace(record, entries={n: e for n, e in record.entries.items() if n == name})


def _stats_steps(stored: Stored, target: StatsRecord, can_be_tight: bool) -> Sequence[StatsRecord]:
    if target.type is RecordType.PARTITION_STATS:
        return (settled(target, stored),)
    forgotten = replace(target, minimum=None, maximum=None, deleted=True)
    anew = (forgotten, _made_up(stored.after(forgotten), target))
    series: list[tuple[StatsRecord, ...]] = [(target,), anew]
    if can_be_tight:
        series.insert(1, (replace(target, tight=True),))
    for steps in series:
        result = _after(stored, steps).merged
        if isinstance(result, StatsRecord) and not result.deleted and same_statistics(result, target):
            return steps
    # A range that is too wide is harmless; but it must not be too narrow at its other end, nor the counts be wrong.
    return () if _after(stored, anew).merged == stored.merged else anew


def _made_up(stored: Stored, target: StatsRecord) -> StatsRecord:
    """`target` with counts that add up to its own counts when it is merged with what is stored."""
    merged = stored.after(target).merged
    assert isinstance(merged, StatsRecord), "statistics merge to statistics"
    less = [2 * wanted - found for wanted, found in zip(counts(target), counts(merged), strict=True)]
    return replace(target, value_count=less[0], null_count=less[1], total_size=less[2], total_uncompressed_size=less[3])


def _after(stored: Stored, steps: Iterable[Record]) -> Stored:
    for step in steps:
        stored = stored.after(step)
    return stored
