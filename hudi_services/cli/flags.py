"""The flags of the commands: those of Hudi's own jobs, long and short, and ours."""

import enum
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeAlias, TypeVar

import typer


class Format(str, enum.Enum):
    TABLE = "table"
    JSON = "json"


BasePath: TypeAlias = Annotated[
    str, typer.Option("--base-path", "-sp", metavar="PATH", help="The table's folder: a local path or a URL.")
]
TableName: TypeAlias = Annotated[
    str | None, typer.Option("--table-name", "-tn", metavar="NAME", help="When given, the table must have this name.")
]
InstantTime: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--instant-time",
        "-it",
        metavar="INSTANT",
        help="The plan to execute; the earliest pending one when not given. Not used by scheduleAndExecute.",
    ),
]
Parallelism: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--parallelism",
        "-pl",
        min=1,
        max=1_000_000,
        metavar="N",
        help="Groups rewritten at once (hoodie.clustering.max.parallelism); all of them when not given.",
    ),
]
MemoryPerTask: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory-per-task",
        metavar="SIZE",
        help="Memory for the data of one task, as 512m (hudi.services.memory.per.task); what Spark's settings leave "
        "for Python when not given.",
    ),
]
SparkMaster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--spark-master",
        "-ms",
        metavar="URL",
        help="Spark's master; that of spark-submit, or local[*], when not given.",
    ),
]
SparkMemory: TypeAlias = Annotated[
    str | None,
    typer.Option("--spark-memory", "-sm", metavar="SIZE", help="Memory of the driver and of each executor, as 4g."),
]
Retry: TypeAlias = Annotated[
    int,
    typer.Option("--retry", "-rt", min=0, metavar="N", help="Further tries when the store, the lock or Spark fails."),
]
ModeText: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--mode",
        "-m",
        metavar="MODE",
        help="schedule, execute or scheduleAndExecute; it wins over the name of the command.",
    ),
]
ScheduleOnly: TypeAlias = Annotated[
    bool, typer.Option("--schedule", "-sc", help="The same as --mode schedule, which wins over this.")
]
RetryLastFailed: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--retry-last-failed-clustering-job",
        "-rc",
        help="scheduleAndExecute: first look for a plan that was begun and not finished, and execute that.",
    ),
]
MaxProcessingTime: TypeAlias = Annotated[
    int,
    typer.Option(
        "--job-max-processing-time-ms",
        "-jt",
        min=0,
        metavar="MS",
        help="With -rc: a plan begun less long ago than this may still be at work.",
    ),
]
Instant: TypeAlias = Annotated[
    str, typer.Option("--instant", "-i", metavar="INSTANT", help="The instant to take back, as the timeline names it.")
]
Completed: TypeAlias = Annotated[
    bool, typer.Option("--completed", help="Also take back a completed instant: the rows that it wrote go.")
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would be done, and why.")]
Props: TypeAlias = Annotated[
    str | None, typer.Option("--props", metavar="FILE", help="Properties file, a local path or a URL.")
]
HoodieConf: TypeAlias = Annotated[
    list[str] | None, typer.Option("--hoodie-conf", metavar="KEY=VALUE", help="One property; may be repeated.")
]
ConfFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--conf-file",
        metavar="FILE",
        help="Properties file below all other flags; /etc/hudi/conf/hudi-defaults.conf and "
        "$HUDI_CONF_DIR/hudi-defaults.conf, where they exist, when not given.",
    ),
]
OutputFormat: TypeAlias = Annotated[Format, typer.Option("--format", help="Form of the report on stdout.")]
ReportFile: TypeAlias = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Also write the JSON report to this file.")
]
FailIfIdle: TypeAlias = Annotated[bool, typer.Option("--fail-if-idle", help="Exit 3 when there is nothing to do.")]
Apply: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Do it; without this flag, only say what would be done.")
]
OneInstant: TypeAlias = Annotated[
    str | None, typer.Option("--instant", metavar="INSTANT", help="Only this pending instant.")
]
Repair: TypeAlias = Annotated[
    bool, typer.Option("--repair", help="Write the records that are wrong anew, in one commit of the metadata table.")
]
DropMissingPartitions: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--drop-missing-partitions",
        help="A partition of which nothing is there is gone for good: with --repair, its files leave the listing.",
    ),
]
Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="End with exit code 5 for harmless differences, too.")
]
AbandonedAfter: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--abandoned-after",
        min=0,
        max=52_560_000,
        metavar="MINUTES",
        help="Without a heartbeat, an instant counts as abandoned after so long without a sign of life "
        "(hudi.services.abandoned.after.minutes).",
    ),
]
IndexTypes: TypeAlias = Annotated[
    str, typer.Option("--index-types", "-ixt", metavar="TYPES", help="What to build: record_index is what there is.")
]
FileGroupCount: TypeAlias = Annotated[
    int | None,
    typer.Option("--file-group-count", min=1, max=10_000, metavar="N", help="Exactly so many file groups."),
]
MinFileGroupCount: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--min",
        min=1,
        max=10_000,
        metavar="N",
        help="At least so many file groups (hoodie.metadata.global.record.level.index.min.filegroup.count).",
    ),
]
MaxFileGroupCount: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max",
        min=1,
        max=10_000,
        metavar="N",
        help="At most so many file groups (hoodie.metadata.global.record.level.index.max.filegroup.count).",
    ),
]
Resume: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Go on with a build that was killed; what it finished is not done again.")
]
KeysFile: TypeAlias = Annotated[
    str, typer.Option("--keys-file", metavar="FILE", help="Local text file with a record key on each line.")
]
Partition: TypeAlias = Annotated[
    str,
    typer.Option("--partition", metavar="PATH", help="Where the index is partitioned: the partition of all keys."),
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="Log each step, show all options in force, and tracebacks of errors.")
]


@dataclass(frozen=True, kw_only=True)
class ServiceFlags:
    """What every command takes. In the help these come last, but for the first."""

    base_path: BasePath
    table_name: TableName = None
    props: Props = None
    hoodie_conf: HoodieConf = None
    conf_file: ConfFile = None
    output_format: OutputFormat = Format.TABLE
    report_file: ReportFile = None
    fail_if_idle: FailIfIdle = False
    verbose: Verbose = False


@dataclass(frozen=True, kw_only=True)
class ClusteringFlags(ServiceFlags):
    """`schedule` and `execute`."""

    instant_time: InstantTime = None
    parallelism: Parallelism = None
    memory_per_task: MemoryPerTask = None
    spark_master: SparkMaster = None
    spark_memory: SparkMemory = None
    retry: Retry = 0
    mode: ModeText = None
    schedule_only: ScheduleOnly = False
    retry_last_failed: RetryLastFailed = False
    max_processing_time: MaxProcessingTime = 0


@dataclass(frozen=True, kw_only=True)
class ScheduleFlags(ClusteringFlags):
    """`schedule`."""

    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class UndoFlags(ServiceFlags):
    """`undo`."""

    instant: Instant
    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class RollbackFlags(UndoFlags):
    """`rollback`."""

    completed: Completed = False


@dataclass(frozen=True, kw_only=True)
class ValidateFlags(ServiceFlags):
    """`validate`."""

    repair: Repair = False
    drop_missing_partitions: DropMissingPartitions = False
    strict: Strict = False


@dataclass(frozen=True, kw_only=True)
class RecoverFlags(ServiceFlags):
    """`recover`."""

    apply: Apply = False
    instant: OneInstant = None
    abandoned_after: AbandonedAfter = None


@dataclass(frozen=True, kw_only=True)
class IndexFlags(ServiceFlags):
    """`index-bootstrap`."""

    index_types: IndexTypes = "record_index"
    file_group_count: FileGroupCount = None
    min_file_group_count: MinFileGroupCount = None
    max_file_group_count: MaxFileGroupCount = None
    resume: Resume = False
    parallelism: Parallelism = None
    spark_master: SparkMaster = None
    spark_memory: SparkMemory = None
    retry: Retry = 0


@dataclass(frozen=True, kw_only=True)
class LookupFlags(ServiceFlags):
    """`index-lookup`."""

    keys_file: KeysFile
    partition: Partition = ""


F = TypeVar("F", bound=ServiceFlags)


def command(kind: type[F]) -> Callable[[Callable[[F], int]], Callable[..., int]]:
    """Makes a function of flags one that Typer can read, with one parameter for each flag."""
    own = [one for one in fields(kind) if one not in fields(ServiceFlags)]
    first, *common = fields(ServiceFlags)
    order = [one.name for one in (first, *own, *common)]

    def decorate(body: Callable[[F], int]) -> Callable[..., int]:
        def run(**values: Any) -> int:
            return body(kind(**values))

        known = inspect.signature(kind).parameters
        parameters = [known[name] for name in order]
        run.__doc__ = body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate
