"""The findings of a check of the metadata table: differences, and files that cannot be judged."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from ..file_records.doubts import Doubt
from ..metadata.records.keys import RECORD_INDEX
from ..metadata.records.model import FilesRecord, Record
from ..metadata_updates.repair_plan import Wanted


class DifferenceKind(Enum):
    """How the metadata table differs from the table, as an operator reads it."""

    DAMAGED_LOG = "damaged log file"
    LOST_RECORDS = "log file of the table whose records readers lose"
    PARTITION_MISSING = "partition missing"
    STALE_PARTITION = "stale partition"
    FILE_MISSING = "file missing"
    STALE_FILE = "stale file"
    WRONG_SIZE = "wrong size"
    STATISTICS_MISSING = "missing statistics"
    WRONG_MINIMUM = "wrong minimum"
    WRONG_MAXIMUM = "wrong maximum"
    WRONG_COUNTS = "wrong counts"
    STALE_STATISTICS = "statistics of a file that is gone"
    NARROW_RANGE = "range too narrow"
    BLOOM_MISSING = "missing bloom filter"
    WRONG_BLOOM = "wrong bloom filter"
    STALE_BLOOM = "stale bloom filter"
    KEY_MISSING = "missing key"
    WRONG_LOCATION = "key in the wrong file group"
    DEAD_KEY = "key that no file has"


class Severity(Enum):
    """Whether a difference needs the operator's attention."""

    HARMFUL = "harmful"
    """A reader or writer of Hudi may miss rows, see them twice, or fail."""
    HARMLESS = "harmless"
    """It costs space, or files are read that could be skipped."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference under `key` of the metadata partition `index`; `expected` returns the record that should be there.

    The record of a listing has only the entry that is wrong. A field that is not known is None (the record of a bloom
    filter does not name its file).
    """

    index: str
    kind: DifferenceKind
    key: str
    partition: str | None
    file: str | None
    column: str | None
    detail: str
    expected: Callable[[], Record | None] = field(compare=False, repr=False)
    shard: int | None = None
    """In an index of keys: the position of the file group that has the key, or should have it."""
    withheld: bool = False
    """Whether it is in a missing partition: repaired only if the operator says that the partition is gone for good."""
    severity: Severity = Severity.HARMFUL
    cause: str | None = None
    """What led to the difference, in words, where the values tell it."""

    @property
    def place(self) -> tuple[str | DifferenceKind | None, ...]:
        """The fields by which another check recognizes the same difference."""
        return (self.index, self.kind, self.key, self.partition, self.file)


@dataclass(frozen=True, slots=True)
class Unsure:
    """A file that cannot be judged; `index` is the metadata partition that it concerns."""

    index: str
    partition: str
    file: str | None
    reason: Doubt


Finding = Difference | Unsure


@dataclass
class ValidationFindings:
    """The result of one check of a table. `checked`: the number of compared records, by metadata partition."""

    differences: list[Difference] = field(default_factory=list)
    unsure: list[Unsure] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    """Metadata partitions that cannot be checked."""
    not_compared: dict[str, int] = field(default_factory=dict)
    """The number of log files whose records are not compared, by metadata partition."""
    cut: tuple[str, ...] = ()
    """Metadata partitions with more differences than are kept."""

    def of(self, severity: Severity) -> list[Difference]:
        """The differences of one severity."""
        return [one for one in self.differences if one.severity is severity]

    def add(self, findings: Iterable[Finding]) -> None:
        for one in findings:
            if isinstance(one, Difference):
                self.differences.append(one)
            else:
                self.unsure.append(one)

    def confirmed_by(self, again: "ValidationFindings") -> "ValidationFindings":
        """Only the differences that a later check has found as well, in the form of the later check."""
        known = {one.place for one in self.differences}
        return replace(self, differences=[one for one in again.differences if one.place in known])

    @property
    def partitions(self) -> frozenset[str] | None:
        """Data partitions with differences, as far as they are known; None when a key may be in any partition."""
        if any(one.shard is not None for one in self.differences):
            return None
        return frozenset(one.partition for one in self.differences if one.partition is not None)

    def keys(self, index: str) -> frozenset[str]:
        """The keys with differences in one index."""
        return frozenset(one.key for one in self.differences if one.index == index)


def damaged_logs(differences: Iterable[Difference]) -> tuple[str, ...]:
    """The damaged log files among the differences, `<metadata partition>/<name>`."""
    return tuple(f"{one.index}/{one.file}" for one in differences if one.kind is DifferenceKind.DAMAGED_LOG)


def wanted_records(differences: Collection[Difference]) -> Wanted:
    """The records that the metadata table should have in place of the differences, without the record index."""
    found: dict[str, dict[str, Record | None]] = {}
    for one in differences:
        if one.index == RECORD_INDEX or one.kind in (DifferenceKind.DAMAGED_LOG, DifferenceKind.LOST_RECORDS):
            continue
        records, record = found.setdefault(one.index, {}), one.expected()
        known = records.get(one.key)
        if isinstance(record, FilesRecord) and isinstance(known, FilesRecord):
            record = replace(record, entries={**known.entries, **record.entries})
        records[one.key] = record
    return found
