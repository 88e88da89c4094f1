"""The request of an operator to a service, as a plain value.

A field that one flag of the command line gives is declared with the flag, whose help says what the field means.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..indexing.of_files.names import are_of_files
from ..options import Options
from ..options.option import Phase
from ..table.support import Operation
from ..waiting import OnWait, unseen
from .flag import flag

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


def no_progress(phase: str, done: int, total: int) -> None:
    """Ignore the progress."""


def no_report(report: object) -> None:
    """Ignore the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One run of a service. `options` do not hold the table's own layer yet: the job adds it."""

    service: ClassVar[str]
    """The name of the service in the report."""
    reads: ClassVar[Phase] = Phase.REPAIR
    """The phase whose options the service reads."""

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
        return self.reads

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

    service = "orphan-files"

    mode: OrphanFilesMode = OrphanFilesMode.FIND
    dry_run: bool = False
    """RESTORE and DELETE: only say what would be done. FIND changes nothing anyway."""
    quarantine: str | None = flag(
        "--restore",
        metavar="ID",
        help="Put the files of this quarantine back where they were; needs --apply to do it.",
    )
    delete_older_than_days: int | None = flag(
        "--delete-older-than",
        least=0,
        most=36_500,
        metavar="DAYS",
        help="Delete quarantines that are at least DAYS old, for good; needs --apply to do it.",
    )
    min_age_minutes: int = flag(
        "--min-age",
        default=60,
        least=0,
        most=52_560_000,
        metavar="MINUTES",
        help="Leave files alone that are younger than this. Default: 60.",
    )

    @property
    def action(self) -> str:
        return self.mode.value


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest(Request):
    """One run of clean."""

    service = "clean"
    reads = Phase.CLEAN

    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRequest(Request):
    """One run of archive."""

    service = "archive"
    reads = Phase.ARCHIVE

    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateRequest(Request):
    """One run of validate."""

    service = "validate"

    repair: bool = False
    """Write the wrong records again; otherwise only report them."""
    drop_missing_partitions: bool = flag(
        "--drop-missing-partitions",
        default=False,
        help="Treat a partition without any stored file as deleted: with --apply, its files leave the file listing.",
    )
    strict: bool = flag("--strict", default=False, help="End with exit code 5 for harmless differences, too.")
    store: bool = flag(
        "--store",
        default=False,
        help="Look at the store instead: try whether one of several processes wins when they create or replace the "
        "same file, and whether reads and listings show what was written. No table need be there. Writes a folder "
        "beside the partitions, and deletes it.",
    )

    @property
    def action(self) -> str:
        return "repair" if self.repair else "validate"


def _longest_query() -> Any:
    return flag(
        "--longest-query",
        least=1,
        most=5_256_000,
        metavar="MINUTES",
        help="How long the longest query, or the longest pause of an incremental reader, lasts: warn when cleans may "
        "delete its files.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRequest(Request):
    """A look at the health of a table."""

    longest_query_minutes: int | None = _longest_query()

    @property
    def operations(self) -> tuple[Operation, ...]:
        # It looks at every table that can be opened, and tells what commands refuse.
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest(HealthRequest):
    """One run of doctor."""

    service = "doctor"

    deep: bool = flag(
        "--deep",
        default=False,
        help="Compare the whole metadata table with the files, too, as validate does; takes its time.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReportRequest(HealthRequest):
    """One run of report."""

    service = "report"

    html: str = flag(
        "--html",
        required=True,
        metavar="FILE",
        help="Write the page to FILE, on this machine. A file that is there is replaced when the page is complete.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverRequest(Request):
    """One run of recover."""

    service = "recover"

    instant: str | None = flag(
        "--instant",
        metavar="INSTANT",
        help="Decide about this pending instant only. Default: about all of them.",
    )
    apply: bool = False
    """Carry out the decisions; otherwise only report them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRequest(Request):
    """One run of a service that has tasks for Spark."""

    spark_master: str | None = flag(
        "--spark-master",
        "-ms",
        metavar="URL",
        help="Spark's master. Default: that of spark-submit, or local[*].",
    )
    spark_memory: str | None = flag(
        "--spark-memory",
        "-sm",
        metavar="SIZE",
        help="Memory of Spark's driver and of each executor, such as 4g.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest(SparkRequest):
    """One run of fleet. `base_path` is the file that lists the tables, and the options hold for all of them."""

    service = "fleet"
    reads = Phase.FLEET

    apply: bool = False
    """Run the services that are due; otherwise only look, and say what they are."""
    longest_query_minutes: int | None = _longest_query()
    results: str | None = flag(
        "--results",
        metavar="FILE",
        help="Write one JSON line for each table to FILE, on this machine, as soon as the table is finished.",
    )
    resume: bool = flag(
        "--resume",
        default=False,
        help="Go on where an earlier run ended: leave out the tables that have a finished line in the file of "
        "--results, and keep the lines. Without such a file, begin.",
    )
    retries: int = 0
    """How often a service tries again when the store or the lock fails."""

    @property
    def action(self) -> str:
        return "run" if self.apply else "look"

    @property
    def operations(self) -> tuple[Operation, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBuildRequest(SparkRequest):
    """One run of a service that builds file groups of an index."""

    reads = Phase.INDEX

    resume: bool = flag(
        "--resume",
        default=False,
        help="Continue a build that was killed. What it had finished is kept, not built again.",
    )
    dry_run: bool = False
    """Only say what would be built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest(IndexBuildRequest):
    """One run of index-bootstrap."""

    service = "index-bootstrap"

    index: str = flag(
        "--index",
        default="record",
        metavar="INDEX",
        help="The index to build: record, secondary:COLUMN or secondary:NAME:COLUMN; files,column_stats for a table "
        "without a metadata table; partition_stats, bloom_filters, or expression:NAME:FUNCTION(COLUMN).",
    )
    partitioned: bool = flag(
        "--partitioned",
        default=False,
        help="Build an index of each partition, for Hudi 1.1 and later, in place of one of the whole table.",
    )

    @property
    def operations(self) -> tuple[Operation, ...]:
        return (Operation.INDEX_FILES if are_of_files(self.index) else Operation.INDEX_BOOTSTRAP,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleRequest(IndexBuildRequest):
    """One run of index-rescale. The options say how many file groups the record index gets, as for index-bootstrap."""

    service = "index-rescale"

    partition: str | None = flag(
        "--partition",
        metavar="PATH",
        help="Rescale only what a partitioned index has of this partition.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDropRequest(Request):
    """One run of index-drop."""

    service = "index-drop"

    index: str = flag(
        "--index",
        required=True,
        metavar="INDEX",
        help="The index to drop: record, secondary:NAME, expression:NAME, or the name of a metadata partition.",
    )
    dry_run: bool = False
    """Only say what would be deleted."""


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

    service = "write"
    reads = Phase.INGEST | Phase.CREATE

    operation: WriteOperation
    input: tuple[str, ...] = ()
    """The files of the rows: places and formats as for `inputs.input_files.input_rows`."""
    input_format: str = ""
    partitions: tuple[str, ...] = ()
    """DELETE_PARTITION: the partition paths, in which * stands for any text; () for those that the options name."""
    dry_run: bool = False
    """Only say how many rows would be written, and where."""
    on_spark: bool = False
    """Whether tasks of Spark read and write the rows of files."""

    @property
    def action(self) -> str:
        return self.operation.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest(Request):
    """One run of index-lookup."""

    service = "index-lookup"
    reads = Phase.LOOKUP

    keys: "pa.Array"
    """String keys."""
    partition: str = flag(
        "--partition",
        default="",
        metavar="PATH",
        help="The partition of all keys, when the index is a partitioned one.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseRequest(Request):
    """One run of advise. The options are those with which a clustering would be planned and executed."""

    service = "advise"
    reads = Phase.CLUSTERING

    predicates: tuple[tuple[float, str], ...] = ()
    """WHERE clauses, each with its weight."""
    event_log: str = ""
    """The path or URL of an event log of Spark, in place of `predicates`."""
    executions: int = flag(
        "--executions",
        default=100,
        least=1,
        metavar="N",
        help="Advise a clustering only when N runs of all predicates save as many bytes as it reads and writes. "
        "Default: 100.",
    )
    least_percent: int = flag(
        "--least-gain",
        default=10,
        least=0,
        most=100,
        metavar="PERCENT",
        help="Advise a clustering only when it saves at least PERCENT of the bytes that the predicates read. "
        "Default: 10.",
    )

    @property
    def operations(self) -> tuple[Operation, ...]:
        # There is no advice for a clustering that would be refused.
        return (Operation.SCHEDULE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest(SparkRequest):
    """One run of a service that has plans. `reads` is the phase of planning."""

    instant: str | None = flag(
        "--instant-time",
        "-it",
        metavar="INSTANT",
        help="The pending plan to execute. Default: the earliest. --mode scheduleAndExecute ignores it.",
    )
    mode: Mode
    dry_run: bool = False
    """Only say what would be planned and why the rest would not, or what would be executed."""

    @property
    def action(self) -> str:
        return self.mode.value

    @property
    def phase(self) -> Phase:
        return {Mode.SCHEDULE: self.reads, Mode.EXECUTE: Phase.WRITE}.get(self.mode, self.reads | Phase.WRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringRequest(PlanRequest):
    """One run of clustering. `instant` may also be the instant to schedule at (None: a new one)."""

    service = "clustering"
    reads = Phase.PLAN

    retry_last_failed: bool = flag(
        "--retry-last-failed-clustering-job",
        "-rc",
        "--retry-last-failed-job",
        default=False,
        help="With --mode scheduleAndExecute: when the latest plan was not finished, execute it, and plan nothing.",
    )
    max_processing_millis: int = flag(
        "--job-max-processing-time-ms",
        "-jt",
        default=0,
        least=0,
        metavar="MS",
        help="With -rc: leave a plan alone that is younger than MS milliseconds; another run may be executing it.",
    )
    publish_late: bool = False
    """SCHEDULE_AND_EXECUTE: reserve an instant, and publish the plan only when it is committed."""
    all_or_nothing: bool = flag(
        "--all-or-nothing",
        default=False,
        help="Commit nothing when other writers have changed a group of the plan. Default: leave out the groups that "
        "they have changed, commit the others, and end with exit code 7.",
    )

    @property
    def operations(self) -> tuple[Operation, ...]:
        both = (Operation.SCHEDULE, Operation.EXECUTE)
        return {Mode.SCHEDULE: both[:1], Mode.EXECUTE: both[1:]}.get(self.mode, both)

    def again(self: C) -> C:
        # The plan that the failed try left is executed first; one that is published late leaves none.
        return self if self.publish_late else replace(self, retry_last_failed=True, max_processing_millis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest(PlanRequest):
    """One run of compaction; `instant` as for clustering."""

    service = "compaction"
    reads = Phase.COMPACTION

    executes_pending: bool = False
    """SCHEDULE_AND_EXECUTE: execute the earliest plan that is pending, if there is one, and plan nothing."""

    @property
    def operations(self) -> tuple[Operation, ...]:
        return (Operation.COMPACT,)

    def again(self: P) -> P:
        # The plan that the failed try left is executed first.
        return replace(self, executes_pending=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest(Request):
    """One run of rollback or undo."""

    instant: str = flag(
        "--instant",
        "-i",
        required=True,
        metavar="INSTANT",
        help="The write to roll back, named by its instant on the timeline.",
    )
    completed: bool = flag(
        "--completed",
        default=False,
        help="Also roll back an instant that is completed (the newest one only). The rows that it wrote are lost.",
    )
    dry_run: bool = False
    """Only say what would be done."""


class RollbackRequest(RepairRequest):
    """One run of rollback."""

    service = "rollback"


class UndoRequest(RepairRequest):
    """One run of undo."""

    service = "undo"
