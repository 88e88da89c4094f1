"""The lists of the reports: a class for the rows of each list, whose fields are its columns.

JSON, the tables on the console and the Arrow tables of the Python API are made from them; docs/report.md says what the
columns mean. Columns whose names end in `bytes` are sizes.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias, get_args, get_type_hints

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        return lambda kind: kind


Value: TypeAlias = str | int | float | bool | None
"""A JSON value of a row."""
Values: TypeAlias = Mapping[str, Value]
"""A row of the document: JSON values by column."""
_TYPES = (str, int, float, bool)


@dataclass_transform(frozen_default=True)
class Row:
    """One line of a list of a report. A subclass has more columns: those that only some runs, or some rows, have.

    A type checker sees dataclasses. They are none: every command would make the classes of all lists as it starts, and
    that takes 12 ms where `dataclass` writes their methods.
    """

    list_name: ClassVar[str] = ""
    """Services may have lists of one name with columns of their own."""
    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, of: str = "") -> None:
        cls.list_name = of or cls.list_name
        cls._names = (*cls._names, *cls.__annotations__)

    def __init__(self, *in_order: Value, **by_name: Value) -> None:
        if by_name or len(in_order) != len(self._names):
            in_order = self._in_order(in_order, by_name)
        self.__dict__.update(zip(self._names, in_order, strict=True))

    def _in_order(self, in_order: Sequence[Value], by_name: Values) -> tuple[Value, ...]:
        left = self._names[len(in_order) :]
        if by_name.keys() != {*left} or len(in_order) > len(self._names):
            raise TypeError(f"{type(self).__name__} has the columns {', '.join(self._names)}")
        return (*in_order, *(by_name[name] for name in left))

    def values(self) -> Values:
        return dict(vars(self))


def columns(kind: type[Row]) -> dict[str, type]:
    """The columns of a list and their types (str, int, float or bool): those of all rows, then those of some."""
    kinds = [kind, *(one for one in kind.__subclasses__() if one.list_name == kind.list_name)]
    hints = {name: hint for one in kinds for name, hint in get_type_hints(one).items() if name in one._names}
    return {name: next(one for one in get_args(hint) or (hint,) if one in _TYPES) for name, hint in hints.items()}


class HealthFindingRow(Row, of="findings"):
    """What a check of doctor has found; `numbers` is a JSON object of numbers by name."""

    level: str
    check: str
    subject: str
    finding: str
    command: str
    numbers: str


class MeasureRow(Row, of="measures"):
    """A number of the table."""

    measure: str
    value: float


class ClusteringGroupRow(Row, of="clustering_groups"):
    """A group of a clustering plan."""

    group: int
    partition: str
    files: int
    bytes: int
    new_files: int


class EstimatedGroupRow(ClusteringGroupRow):
    """A group whose footers were read."""

    rows: int
    new_bytes: int
    new_file_bytes: int
    memory_bytes: int
    decoded: str | None


class ClusteringSliceRow(Row, of="file_slices"):
    """Whether a file slice is in a clustering plan, and why."""

    partition: str
    file_id: str
    bytes: int
    reason: str
    group: int | None


class CompactionGroupRow(Row, of="compaction_groups"):
    """A file group of a compaction plan."""

    partition: str
    file_id: str
    bytes: int
    log_files: int
    log_bytes: int


class CompactionSliceRow(CompactionGroupRow, of="file_slices"):
    """Whether a file slice is in a compaction plan, and why."""

    reason: str


class TaskMemoryRow(Row, of="memory"):
    """The memory of the tasks of a rewrite, measured or estimated."""

    limit_bytes: int
    process_limit_bytes: int
    peak_bytes: int | None
    spilled_groups: int
    spilled_bytes: int | None


class RepeatedTaskRow(Row, of="repeated_tasks"):
    """A task of Spark that ran more than once."""

    job: str
    task: int
    attempts: int
    why: str


class NewFilesRow(Row, of="new_files"):
    """The sizes of the new files of a rewrite."""

    files: int
    p50_bytes: int
    p95_bytes: int
    max_bytes: int
    variation: float


class SkippingRow(Row, of="skipping"):
    """What a sorted clustering is worth to queries."""

    column: str
    files_before: int
    read_before: float
    files_after: int
    read_after: float


class LayoutRow(Row, of="layouts"):
    """What the predicates would read after a clustering by a layout; the first row is the table as it is."""

    layout: str
    columns: str
    target_bytes: int | None
    new_files: int
    files_read: float
    read_bytes: int
    saved_percent: float
    pays_after: int | None
    is_advised: bool
    command: str | None


class PredicateRow(Row, of="predicates"):
    """What a predicate reads now, and would read after the clustering that is advised, or saves most."""

    predicate: str
    weight: float
    unknown: int
    files_before: float
    files_after: float
    before_bytes: int
    after_bytes: int


class EarlierClusteringRow(Row, of="earlier_clusterings"):
    """What the predicates read of the old files of a completed clustering, and of its new ones."""

    instant: str
    layout: str
    columns: str
    old_files: int
    new_files: int
    files_before: float | None
    files_after: float | None
    before_bytes: int | None
    after_bytes: int | None
    saved_percent: float | None
    why: str | None


class FleetTableRow(Row, of="tables"):
    """A table of a fleet: what a look found, what is due there, and what became of it."""

    base_path: str
    state: str
    critical: int
    warnings: int
    due: str
    gain_bytes: int
    cost_bytes: int
    read_bytes: int
    seconds: float
    why: str | None
    next: str | None


class FleetServiceRow(Row, of="services"):
    """A service that is due on a table of a fleet, in the order of the gain for each byte."""

    base_path: str
    service: str
    state: str
    gain_bytes: int | None
    cost_bytes: int | None
    read_bytes: int | None
    seconds: float
    why: str | None


class ClusteringGainRow(Row, of="earlier_clusterings"):
    """What a completed clustering has done to files, and to a lookup of one value of its first sort column."""

    instant: str
    layout: str
    columns: str
    old_files: int | None
    new_files: int | None
    old_bytes: int | None
    new_bytes: int | None
    old_median_bytes: int | None
    new_median_bytes: int | None
    opened_before: float | None
    opened_after: float | None
    opened_before_bytes: int | None
    opened_after_bytes: int | None
    ranges: int | None
    why: str | None


class DroppedGroupRow(Row, of="dropped_groups"):
    """A group of a plan that was left out."""

    group: int
    partition: str
    files: int
    why: str


class PublicationRow(Row, of="publication"):
    """How a plan that is published late got its instant."""

    way: str
    pending_seconds: float


class MetadataCleanRow(Row, of="metadata_clean"):
    """A clean of the metadata table."""

    instant: str
    files: int


class MetadataCompactionRow(Row, of="metadata_compaction"):
    """A compaction of the metadata table."""

    instant: str
    file_groups: int
    log_files: int


class RetentionRow(Row, of="retention"):
    """The rules of a clean, and what holds them back."""

    policy: str
    earliest_to_retain: str | None
    held_back_by: str | None
    partitions: int


class DeletedRow(Row, of="deleted"):
    """Files of a partition that a clean deletes."""

    partition: str
    rule: str
    files: int
    bytes: int
    whole_partition: bool


class KeptRow(Row, of="kept"):
    """Files that a clean keeps."""

    rule: str
    files: int
    bytes: int


class PendingCleanRow(Row, of="pending"):
    """A clean that is not finished."""

    instant: str
    state: str
    policy: str
    files: int


class TimelineRow(Row, of="timelines"):
    """A timeline that is archived."""

    timeline: str
    commits: int
    max_commits: int
    min_commits: int
    archived_instants: int
    held_by: str | None
    held_at: str | None


class ArchivedRow(Row, of="archived"):
    """Instants of one action that are archived."""

    timeline: str
    action: str
    instants: int
    first: str
    last: str


class ArchiveFileRow(Row, of="archive_files"):
    """A new file of the archive."""

    timeline: str
    file: str


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


class RepairedInstantRow(PendingInstantRow):
    """An instant whose decision was carried out."""

    done: str


class PartitionRow(Row, of="partitions"):
    """Files of a partition that a rollback deletes."""

    partition: str
    files: int
    bytes: int


class VisibleAgainRow(PartitionRow, of="visible_again"):
    """Old files of a partition that readers see again."""


class RollbackRow(Row, of="rollbacks"):
    """A rollback that was made or finished."""

    instant: str
    of: str
    action: str


class AttemptRow(Row, of="attempts"):
    """Orphan files of one attempt and reason."""

    attempt: str | None
    action: str | None
    reason: str
    files: int
    bytes: int
    oldest: str
    newest: str


class NoOrphansRow(Row, of="kept"):
    """Files that are no orphan files, or may be none."""

    reason: str
    files: int
    bytes: int


class QuarantineRow(Row, of="quarantines"):
    """A quarantine of orphan files."""

    quarantine: str
    files: int
    bytes: int


class LocationRow(Row, of="locations"):
    """Where the record index has a key."""

    key: str
    partition: str
    file_id: str
    instant: str


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


class AppendedRow(Row, of="appended"):
    """The log files of a write."""

    log_files: int
    updates: int | None
    deletes: int | None
    bytes: int | None


class WriteMemoryRow(Row, of="memory"):
    """The memory of a write."""

    limit_bytes: int
    peak_bytes: int
    spilled_bytes: int


class ServiceRow(Row, of="services"):
    """A table service that followed a write."""

    service: str
    action: str
    instant: str | None
    state: str


class CheckedPartitionRow(Row, of="partitions"):
    """A partition of the metadata table, and its differences; None where it was not checked."""

    metadata_partition: str
    records: int | None
    differences: int | None
    harmless: int | None


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


class RepairedDifferenceRow(DifferenceRow, of="repaired_differences"):
    """A difference that a repair has ended."""


class UnsureRow(Row, of="unsure"):
    """A file that cannot be judged."""

    metadata_partition: str
    data_partition: str
    file: str | None
    reason: str


class RepairedPartitionRow(Row, of="repaired"):
    """A partition of the metadata table whose records were written again."""

    metadata_partition: str
    records: int
