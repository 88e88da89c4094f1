"""The request of an operator to a service, as a plain value."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..options import Options
from ..options.option import Phase
from ..table.support import Operation
from ..waiting import OnWait, unseen

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R", bound="Request")
C = TypeVar("C", bound="ClusteringRequest")
P = TypeVar("P", bound="CompactionRequest")


class Mode(enum.Enum):
    """What to do with plans. The names are those of HoodieClusteringJob and HoodieCompactor."""

    SCHEDULE = "schedule"
    EXECUTE = "execute"
    SCHEDULE_AND_EXECUTE = "scheduleAndExecute"


_COMPACTION_PHASES = {
    Mode.SCHEDULE: Phase.COMPACTION,
    Mode.EXECUTE: Phase.WRITE,
    Mode.SCHEDULE_AND_EXECUTE: Phase.COMPACTION | Phase.WRITE,
}
_PHASES = {Mode.SCHEDULE: Phase.PLAN, Mode.EXECUTE: Phase.WRITE, Mode.SCHEDULE_AND_EXECUTE: Phase.CLUSTERING}


_OPERATIONS = {
    Mode.SCHEDULE: (Operation.SCHEDULE,),
    Mode.EXECUTE: (Operation.EXECUTE,),
    Mode.SCHEDULE_AND_EXECUTE: (Operation.SCHEDULE, Operation.EXECUTE),
}


def no_progress(phase: str, done: int, total: int) -> None:
    """Ignore the progress."""


def no_report(report: object) -> None:
    """Ignore the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One run of a service. `options` do not hold the table's own layer yet: the job adds it."""

    base_path: str
    options: Options
    table_name: str | None = None
    """When given, the table must have this name."""
    instant: str | None = None
    """The instant that the run is about, where the service takes one."""
    progress: Callable[[str, int, int], None] = no_progress
    """Called with a phase, and how many of its pieces are done."""
    on_wait: OnWait = unseen
    """Told what the run waits for."""
    on_report: Callable[[Any], None] = no_report
    """Called with the `Report` that the job begins to fill: it shows how far the job came when the job raises."""

    @property
    def service(self) -> str:
        """The name of the service in the report."""
        raise NotImplementedError

    @property
    def action(self) -> str:
        """The name of the action in the report."""
        return self.service

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of the run; the table must support each of them."""
        return (Operation(self.service),)

    @property
    def phase(self) -> Phase:
        """The phase whose options the run reads."""
        return Phase.REPAIR

    def again(self: R) -> R:
        """The request for the attempt after one that failed."""
        return self


class OrphanFilesMode(enum.Enum):
    """What to do with orphan files."""

    FIND = "find"
    QUARANTINE = "quarantine"
    RESTORE = "restore"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFilesRequest(Request):
    """One run of orphan-files."""

    mode: OrphanFilesMode = OrphanFilesMode.FIND
    dry_run: bool = False
    """RESTORE and DELETE: only say what would be done. FIND changes nothing anyway."""
    quarantine: str | None = None
    """RESTORE: the name of the quarantine."""
    delete_older_than_days: int = 0
    """DELETE: quarantines of at least this age."""
    min_age_minutes: int = 60
    """FIND and QUARANTINE: younger files are left alone."""

    @property
    def service(self) -> str:
        return "orphan-files"

    @property
    def action(self) -> str:
        return self.mode.value


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest(Request):
    """One run of clean."""

    dry_run: bool = False

    @property
    def service(self) -> str:
        return "clean"

    @property
    def phase(self) -> Phase:
        return Phase.CLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRequest(Request):
    """One run of archive."""

    dry_run: bool = False

    @property
    def service(self) -> str:
        return "archive"

    @property
    def phase(self) -> Phase:
        return Phase.ARCHIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateRequest(Request):
    """One run of validate."""

    repair: bool = False
    """Write the wrong records again; otherwise only report them."""
    drop_missing_partitions: bool = False
    """Take a partition without any file for deleted; otherwise a repair leaves its files listed."""
    strict: bool = False
    """Fail for harmless differences, too."""

    @property
    def service(self) -> str:
        return "validate"

    @property
    def action(self) -> str:
        return "repair" if self.repair else "validate"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverRequest(Request):
    """One run of recover; `instant` limits it to one instant."""

    apply: bool = False
    """Carry out the decisions; otherwise only report them."""

    @property
    def service(self) -> str:
        return "recover"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRequest(Request):
    """One run of a service that has tasks for Spark."""

    spark_master: str | None = None
    spark_memory: str | None = None
    """Memory in the notation of Spark, such as 4g."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest(SparkRequest):
    """One run of index-bootstrap."""

    resume: bool = False
    """Continue a build that was killed, where that can be done."""
    dry_run: bool = False
    """Only say what would be built."""

    @property
    def service(self) -> str:
        return "index-bootstrap"

    @property
    def phase(self) -> Phase:
        return Phase.INDEX


class WriteOperation(enum.Enum):
    """What a write does with its rows. The names are those that Hudi's commits have."""

    INSERT = "insert"
    UPSERT = "upsert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"

    @property
    def looks_up(self) -> bool:
        """Whether it looks for rows of the same keys."""
        return self in (WriteOperation.UPSERT, WriteOperation.DELETE)

    @property
    def needs_rows(self) -> bool:
        """Whether its rows, or the keys of rows, are given."""
        return self is not WriteOperation.DELETE_PARTITION

    @property
    def replaces(self) -> bool:
        """Whether all rows of partitions are replaced."""
        return self.name.startswith("INSERT_OVERWRITE") or self is WriteOperation.DELETE_PARTITION

    @property
    def omits_deletes(self) -> bool:
        """Whether rows that are marked as deletes are left out; Hudi's bulk insert writes them."""
        return self is WriteOperation.INSERT or self.name.startswith("INSERT_OVERWRITE")

    @property
    def fills(self) -> bool:
        """Whether inserts go to small files first."""
        return self in (WriteOperation.INSERT, WriteOperation.UPSERT)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest(SparkRequest):
    """One write of rows."""

    operation: WriteOperation
    partitions: tuple[str, ...] = ()
    """DELETE_PARTITION: the partition paths, in which * stands for any text; () for those that the options name."""
    dry_run: bool = False
    """Only say how many rows would be written, and where."""
    on_spark: bool = False
    """Whether tasks of Spark read and write the rows of files."""

    @property
    def service(self) -> str:
        return "write"

    @property
    def action(self) -> str:
        return self.operation.value

    @property
    def phase(self) -> Phase:
        return Phase.INGEST | Phase.CREATE


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest(Request):
    """One run of index-lookup."""

    keys: "pa.Array"
    """String keys."""
    partition: str = ""
    """Where the index is partitioned: the data partition of all keys."""

    @property
    def service(self) -> str:
        return "index-lookup"

    @property
    def phase(self) -> Phase:
        return Phase.LOOKUP


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringRequest(SparkRequest):
    """One run of clustering.

    `instant` is the plan to execute (None: the earliest pending one), or the instant to schedule at (None: a new one).
    """

    mode: Mode
    dry_run: bool = False
    """Only say what would be planned and why the rest would not, or what would be executed."""
    retry_last_failed: bool = False
    """SCHEDULE_AND_EXECUTE: execute the last plan that was not finished, if there is one, and plan nothing."""
    max_processing_millis: int = 0
    """With `retry_last_failed`: a younger plan is left alone, because another run may be executing it."""
    publish_late: bool = False
    """SCHEDULE_AND_EXECUTE: reserve an instant, and publish the plan only when it is committed."""
    all_or_nothing: bool = False
    """Commit nothing when other writers have changed some groups of the plan; otherwise those groups are left out."""

    @property
    def service(self) -> str:
        return "clustering"

    @property
    def action(self) -> str:
        return self.mode.value

    @property
    def operations(self) -> tuple[Operation, ...]:
        return _OPERATIONS[self.mode]

    @property
    def phase(self) -> Phase:
        return _PHASES[self.mode]

    def again(self: C) -> C:
        # The plan that the failed try left is executed first; one that is published late leaves none.
        return self if self.publish_late else replace(self, retry_last_failed=True, max_processing_millis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest(SparkRequest):
    """One run of compaction; `instant` as for clustering."""

    mode: Mode
    dry_run: bool = False
    """Only say what would be planned and why the rest would not, or what would be executed."""
    executes_pending: bool = False
    """SCHEDULE_AND_EXECUTE: execute the earliest plan that is pending, if there is one, and plan nothing."""

    @property
    def service(self) -> str:
        return "compaction"

    @property
    def action(self) -> str:
        return self.mode.value

    @property
    def operations(self) -> tuple[Operation, ...]:
        return (Operation.COMPACT,)

    @property
    def phase(self) -> Phase:
        return _COMPACTION_PHASES[self.mode]

    def again(self: P) -> P:
        # The plan that the failed try left is executed first.
        return replace(self, executes_pending=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest(Request):
    """One run of rollback or undo; `instant`, which is never None, is the instant to roll back."""

    command: str
    """rollback or undo."""
    completed: bool = False
    """rollback: whether a completed instant may be rolled back, too."""
    dry_run: bool = False
    """Only say what would be done."""

    @property
    def service(self) -> str:
        return self.command
