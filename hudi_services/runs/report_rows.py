"""The lists of the reports: a class for the rows of each list, whose fields are its columns.

JSON, the tables on the console and the Arrow tables of the Python API are made from them; docs/report.md says what the
columns mean. Columns whose names end in `bytes` are sizes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, get_args, get_type_hints

Value: TypeAlias = str | int | float | bool | None
"""A JSON value of a row."""
Values: TypeAlias = Mapping[str, Value]
"""A row of the document: JSON values by column."""
_TYPES = (str, int, float, bool)


class Row:
    """One line of a list of a report. A subclass has more columns: those that only some runs, or some rows, have."""

    list_name: ClassVar[str] = ""
    """Services may have lists of one name with columns of their own."""

    def __init_subclass__(cls, of: str = "") -> None:
        cls.list_name = of or cls.list_name

    def values(self) -> Values:
        return dict(vars(self))


def columns(kind: type[Row]) -> dict[str, type]:
    """The columns of a list and their types (str, int, float or bool): those of all rows, then those of some."""
    kinds = [kind, *(one for one in kind.__subclasses__() if one.list_name == kind.list_name)]
    hints = {name: hint for one in kinds for name, hint in get_type_hints(one).items() if name != "list_name"}
    return {name: next(one for one in get_args(hint) or (hint,) if one in _TYPES) for name, hint in hints.items()}


@dataclass(frozen=True)
class ClusteringGroupRow(Row, of="clustering_groups"):
    """A group of a clustering plan."""

    group: int
    partition: str
    files: int
    bytes: int
    new_files: int


@dataclass(frozen=True)
class EstimatedGroupRow(ClusteringGroupRow):
    """A group whose footers were read."""

    rows: int
    new_bytes: int
    new_file_bytes: int
    memory_bytes: int
    decoded: str | None


@dataclass(frozen=True)
class ClusteringSliceRow(Row, of="file_slices"):
    """Whether a file slice is in a clustering plan, and why."""

    partition: str
    file_id: str
    bytes: int
    reason: str
    group: int | None


@dataclass(frozen=True)
class CompactionGroupRow(Row, of="compaction_groups"):
    """A file group of a compaction plan."""

    partition: str
    file_id: str
    bytes: int
    log_files: int
    log_bytes: int


@dataclass(frozen=True)
class CompactionSliceRow(CompactionGroupRow, of="file_slices"):
    """Whether a file slice is in a compaction plan, and why."""

    reason: str


@dataclass(frozen=True)
class TaskMemoryRow(Row, of="memory"):
    """The memory of the tasks of a rewrite, measured or estimated."""

    limit_bytes: int
    peak_bytes: int | None
    spilled_groups: int
    spilled_bytes: int | None


@dataclass(frozen=True)
class NewFilesRow(Row, of="new_files"):
    """The sizes of the new files of a rewrite."""

    files: int
    p50_bytes: int
    p95_bytes: int
    max_bytes: int
    variation: float


@dataclass(frozen=True)
class SkippingRow(Row, of="skipping"):
    """What a sorted clustering is worth to queries."""

    column: str
    files_before: int
    read_before: float
    files_after: int
    read_after: float


@dataclass(frozen=True)
class DroppedGroupRow(Row, of="dropped_groups"):
    """A group of a plan that was left out."""

    group: int
    partition: str
    files: int
    why: str


@dataclass(frozen=True)
class PublicationRow(Row, of="publication"):
    """How a plan that is published late got its instant."""

    way: str
    pending_seconds: float


@dataclass(frozen=True)
class MetadataCleanRow(Row, of="metadata_clean"):
    """A clean of the metadata table."""

    instant: str
    files: int


@dataclass(frozen=True)
class MetadataCompactionRow(Row, of="metadata_compaction"):
    """A compaction of the metadata table."""

    instant: str
    file_groups: int
    log_files: int


@dataclass(frozen=True)
class RetentionRow(Row, of="retention"):
    """The rules of a clean, and what holds them back."""

    policy: str
    earliest_to_retain: str | None
    held_back_by: str | None
    partitions: int


@dataclass(frozen=True)
class DeletedRow(Row, of="deleted"):
    """Files of a partition that a clean deletes."""

    partition: str
    rule: str
    files: int
    bytes: int
    whole_partition: bool


@dataclass(frozen=True)
class KeptRow(Row, of="kept"):
    """Files that a clean keeps."""

    rule: str
    files: int
    bytes: int


@dataclass(frozen=True)
class PendingCleanRow(Row, of="pending"):
    """A clean that is not finished."""

    instant: str
    state: str
    policy: str
    files: int


@dataclass(frozen=True)
class TimelineRow(Row, of="timelines"):
    """A timeline that is archived."""

    timeline: str
    commits: int
    max_commits: int
    min_commits: int
    archived_instants: int
    held_by: str | None
    held_at: str | None


@dataclass(frozen=True)
class ArchivedRow(Row, of="archived"):
    """Instants of one action that are archived."""

    timeline: str
    action: str
    instants: int
    first: str
    last: str


@dataclass(frozen=True)
class ArchiveFileRow(Row, of="archive_files"):
    """A new file of the archive."""

    timeline: str
    file: str


@dataclass(frozen=True)
class PendingInstantRow(Row, of="instants"):
    """An instant that is pending, the evidence and the decision."""

    instant: str
    action: str
    state: str
    age: str
    last_sign: str
    heartbeat: str
    markers: int
    files: int | None
    decision: str
    why: str
    blocks: str


@dataclass(frozen=True)
class RepairedInstantRow(PendingInstantRow):
    """An instant whose decision was carried out."""

    done: str


@dataclass(frozen=True)
class PartitionRow(Row, of="partitions"):
    """Files of a partition that a rollback deletes."""

    partition: str
    files: int
    bytes: int


@dataclass(frozen=True)
class VisibleAgainRow(PartitionRow, of="visible_again"):
    """Old files of a partition that readers see again."""


@dataclass(frozen=True)
class RollbackRow(Row, of="rollbacks"):
    """A rollback that was made or finished."""

    instant: str
    of: str
    action: str


@dataclass(frozen=True)
class AttemptRow(Row, of="attempts"):
    """Orphan files of one attempt and reason."""

    attempt: str | None
    action: str | None
    reason: str
    files: int
    bytes: int
    oldest: str
    newest: str


@dataclass(frozen=True)
class NoOrphansRow(Row, of="kept"):
    """Files that are no orphan files, or may be none."""

    reason: str
    files: int
    bytes: int


@dataclass(frozen=True)
class QuarantineRow(Row, of="quarantines"):
    """A quarantine of orphan files."""

    quarantine: str
    files: int
    bytes: int


@dataclass(frozen=True)
class LocationRow(Row, of="locations"):
    """Where the record index has a key."""

    key: str
    partition: str
    file_id: str
    instant: str


@dataclass(frozen=True)
class WrittenRow(Row, of="written"):
    """What a write has done, or would do."""

    partitions: int
    rows: int
    inserts: int | None
    updates: int | None
    deletes: int | None
    filled_files: int
    updated_files: int
    replaced_files: int
    new_files: int
    max_bytes: int | None
    retries: int


@dataclass(frozen=True)
class AppendedRow(Row, of="appended"):
    """The log files of a write."""

    log_files: int
    updates: int | None
    deletes: int | None
    bytes: int | None


@dataclass(frozen=True)
class WriteMemoryRow(Row, of="memory"):
    """The memory of a write."""

    limit_bytes: int
    peak_bytes: int
    spilled_bytes: int


@dataclass(frozen=True)
class ServiceRow(Row, of="services"):
    """A table service that followed a write."""

    service: str
    action: str
    instant: str | None
    state: str


@dataclass(frozen=True)
class CheckedPartitionRow(Row, of="partitions"):
    """A partition of the metadata table, and its differences; None where it was not checked."""

    metadata_partition: str
    records: int | None
    differences: int | None
    harmless: int | None


@dataclass(frozen=True)
class DifferenceRow(Row, of="differences"):
    """A difference between the metadata table and the table."""

    metadata_partition: str
    kind: str
    severity: str
    data_partition: str | None
    file: str | None
    column: str | None
    key: str | None
    detail: str
    cause: str | None


@dataclass(frozen=True)
class UnsureRow(Row, of="unsure"):
    """A file that cannot be judged."""

    metadata_partition: str
    data_partition: str
    file: str | None
    reason: str


@dataclass(frozen=True)
class RepairedPartitionRow(Row, of="repaired"):
    """A partition of the metadata table whose records were written again."""

    metadata_partition: str
    records: int
