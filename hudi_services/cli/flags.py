"""The flags of the command line, except for those that are fields of requests (`runs.request`).

One rule says for all commands what changes the table: `RULE`.
"""

import enum
from dataclasses import dataclass

from ..options import (
    commit_keys,
    compaction_keys,
    creation_keys,
    file_keys,
    fleet_keys,
    index_keys,
    metrics_keys,
    writing_keys,
)
from ..runs.flag import flag
from ..runs.request import WriteOperation

RULE = """\
Every command takes --dry-run and --apply. With --dry-run a command never changes the table: it says what it would do.
With --apply it does its work. Both together are an error. Without either of them:

\b
  schedule, execute, compact, clean   do their work
  archive, index-bootstrap            do their work
  index-rescale                       does its work
  write                               does its work
  rollback, undo                      do their work, on the instant that you name
  index-drop                          does its work, on the index that you name
  recover, validate, orphan-files     only look, and say what they would do
  fleet                               only looks, and says what it would do
  index-lookup, doctor                only reads, with any flag
  advise, report                      only reads, with any flag
"""
"""For `hudi-services --help`; docs/commands.md says the same."""


class Format(str, enum.Enum):
    TABLE = "table"
    JSON = "json"
    PROMETHEUS = "prometheus"


class EngineName(str, enum.Enum):
    """What runs the tasks of a service."""

    SPARK = "spark"
    LOCAL = "local"


class InputFormat(str, enum.Enum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


class ServiceWithPlans(str, enum.Enum):
    """The services that have plans."""

    CLUSTERING = "clustering"
    COMPACTION = "compaction"


class Publish(str, enum.Enum):
    """When other writers see the plan of a clustering."""

    FIRST = "first"
    LATE = "late"


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What a command line says. Flags that a command does not take have their defaults."""

    base_path: str = flag(
        "--base-path", "-sp", required=True, metavar="PATH", help="The table's folder: a local path or a URL."
    )
    tables_file: str = flag(
        default="",
        required=True,
        metavar="FILE",
        help="The list of tables: in each line the folder of a table, or a pattern such as s3://lake/*, and perhaps "
        "options as KEY=VALUE; a local path or a URL.",
    )
    parallelism: int | None = flag(
        "--parallelism",
        "-pl",
        keys=(file_keys.MAX_PARALLELISM,),
        least=1,
        most=1_000_000,
        metavar="N",
        help="Run at most N tasks at once (hoodie.clustering.max.parallelism). Default: one for each core of Spark.",
    )
    engine: EngineName | None = flag(
        "--engine",
        keys=(file_keys.ENGINE,),
        help="What runs the tasks: spark, which is the default, or local: processes of this machine, one for each "
        "core, without Java (hudi.services.engine).",
    )
    time_limit: str | None = flag(
        "--time-limit",
        keys=(file_keys.TIME_LIMIT,),
        metavar="TIME",
        help="Begin no group that would not be finished TIME after the start, such as 30m. Commit the finished groups, "
        "leave the others to the next plan, and end with exit code 7 (hudi.services.time.limit).",
    )
    memory_per_task: str | None = flag(
        "--memory-per-task",
        keys=(file_keys.MEMORY_PER_TASK,),
        metavar="SIZE",
        help="Memory for the data of one task, such as 512m (hudi.services.memory.per.task). Default: what Spark's "
        "settings leave for Python.",
    )
    bootstrap_source: str | None = flag(
        "--bootstrap-source",
        keys=(file_keys.BOOTSTRAP_SOURCE,),
        metavar="FOLDER",
        help="Read the columns of a bootstrapped table in FOLDER, outside of the table: the folder that it was "
        "bootstrapped from, or a copy of it (hudi.services.bootstrap.source). Nothing is written there.",
    )
    retry: int = flag(
        "--retry",
        "-rt",
        default=0,
        least=0,
        metavar="N",
        help="Try again, up to N times, when the store or the lock fails.",
    )
    mode: str | None = flag(
        "--mode",
        "-m",
        metavar="MODE",
        help="execute, schedule or scheduleAndExecute (plan and execute in one run). It wins over the name of the "
        "command.",
    )
    schedule_only: bool = flag(
        "--schedule",
        "-sc",
        default=False,
        help="Only write a plan: the same as --mode schedule. --mode wins over it.",
    )
    publish: Publish | None = flag(
        "--publish",
        help="With --mode scheduleAndExecute: late (the default), so that writers go on: the command rewrites the "
        "files, waits for a moment without a write in progress (with a lock, it does not wait), and leaves out what "
        "writers have changed; or first, so that writers keep out of the files of the plan.",
    )
    planned: ServiceWithPlans = flag(
        "--service",
        default=ServiceWithPlans.CLUSTERING,
        help="What to plan: a clustering, or a compaction of a merge-on-read table.",
    )
    strategy: str | None = flag(
        "--strategy",
        "-st",
        keys=(compaction_keys.COMPACTION_STRATEGY,),
        metavar="NAME",
        help="With --mode scheduleAndExecute or schedule: which file groups are compacted: log_file_size, "
        "log_file_number, bounded_io, unbounded, day_based, or Hudi's class (hoodie.compaction.strategy).",
    )
    schema_file: str | None = flag(
        "--schema-file", "-sf", metavar="FILE", help="Accepted, and not read: the table has its schema."
    )
    index_types: str = flag(
        "--index-types",
        "-ixt",
        default="record_index",
        metavar="TYPES",
        help="The index to build: only record_index exists.",
    )
    file_group_count: int | None = flag(
        "--file-group-count",
        keys=index_keys.GROUP_COUNTS,
        least=1,
        most=10_000,
        metavar="N",
        help="Give the index exactly N file groups, or N for each partition. Default: by the number of keys.",
    )
    min_file_group_count: int | None = flag(
        "--min",
        keys=(index_keys.RECORD_INDEX_MIN_GROUPS, index_keys.PARTITION_INDEX_MIN_GROUPS),
        least=1,
        most=10_000,
        metavar="N",
        help="Give the index at least N file groups (hoodie.metadata.global.record.level.index.min.filegroup.count).",
    )
    max_file_group_count: int | None = flag(
        "--max",
        keys=(index_keys.RECORD_INDEX_MAX_GROUPS, index_keys.PARTITION_INDEX_MAX_GROUPS),
        least=1,
        most=10_000,
        metavar="N",
        help="Give the index at most N file groups (hoodie.metadata.global.record.level.index.max.filegroup.count).",
    )
    keys_file: str = flag(
        "--keys-file",
        default="",
        required=True,
        metavar="FILE",
        help="Local text file with one record key on each line.",
    )
    predicates_file: str = flag(
        "--predicates",
        default="",
        required=True,
        metavar="FILE",
        help="The predicates of your queries: a local text file with one WHERE clause on each line, before it perhaps "
        "a weight and a tab; or an event log of Spark, also by its URL.",
    )
    abandoned_after: int | None = flag(
        "--abandoned-after",
        keys=(commit_keys.ABANDONED_AFTER_MINUTES,),
        least=0,
        most=52_560_000,
        metavar="MINUTES",
        help="Take an instant for abandoned after MINUTES without a sign of life, when its writer gives no heartbeat "
        "(hudi.services.abandoned.after.minutes). Default: 60.",
    )
    input: list[str] | None = flag(
        "--input",
        metavar="URL",
        help="The rows: a file, a folder, or a pattern such as 'new/*.parquet'; may be repeated.",
    )
    operation: WriteOperation | None = flag(
        "--operation",
        keys=(writing_keys.OPERATION,),
        help="What is done with the rows. Default: upsert, which updates rows whose keys are there, and inserts the "
        "others. insert and bulk_insert look for no rows of the same keys; insert fills small files first, "
        "bulk_insert writes new files alone. delete needs only the columns of record key and partition path. "
        "insert_overwrite replaces all rows of the partitions of the rows, insert_overwrite_table those of the table. "
        "delete_partition deletes all rows of --partitions, and takes no --input.",
    )
    input_format: InputFormat | None = flag("--input-format", help="The format of the files. Default: by their names.")
    record_key: str | None = flag(
        "--record-key",
        keys=(creation_keys.RECORD_KEY,),
        metavar="COLUMNS",
        help="Where there is no table: create it, with this record key.",
    )
    ordering: str | None = flag(
        "--ordering",
        keys=(creation_keys.ORDERING,),
        metavar="COLUMNS",
        help="Of a new table: the columns that decide between two rows of one key.",
    )
    partition_by: str | None = flag(
        "--partition-by",
        keys=(creation_keys.PARTITION_BY,),
        metavar="COLUMNS",
        help="Of a new table: the columns of its partitions.",
    )
    table_type: str | None = flag(
        "--table-type",
        keys=(creation_keys.TABLE_TYPE,),
        metavar="TYPE",
        help="Of a new table: COPY_ON_WRITE, which is the default, or MERGE_ON_READ.",
    )
    table_version: int | None = flag(
        "--table-version",
        keys=(creation_keys.TABLE_VERSION,),
        metavar="6|8|9",
        help="Of a new table. Default: 9, for Hudi 1.1 and 1.2.",
    )
    partitions: str | None = flag(
        "--partitions",
        keys=(writing_keys.PARTITIONS_TO_DELETE,),
        metavar="PATHS",
        help="With --operation delete_partition: the partitions to delete; * stands for any text.",
    )
    services: str | None = flag(
        "--services",
        keys=(fleet_keys.SERVICES,),
        metavar="LIST",
        help="The services to run where they are due: some of recover, validate, orphan-files, clean, archive, compact "
        "and execute (hudi.services.fleet.services). Default: clean,archive,compact,execute.",
    )
    tables_at_once: int | None = flag(
        "--at-once",
        keys=(fleet_keys.AT_ONCE,),
        least=1,
        most=256,
        metavar="N",
        help="Work on up to N tables at the same time (hudi.services.fleet.tables.at.once). Default: 4.",
    )
    max_bytes: str | None = flag(
        "--max-bytes",
        keys=(fleet_keys.MOST_BYTES,),
        metavar="SIZE",
        help="Let clusterings and compactions read at most SIZE bytes of files in all, such as 50g; they write about "
        "as many (hudi.services.fleet.max.bytes).",
    )
    max_requests: int | None = flag(
        "--max-requests",
        keys=(fleet_keys.REQUESTS_PER_SECOND,),
        least=1,
        most=1_000_000,
        metavar="N",
        help="Make at most N requests a second of stores, with all tasks (hudi.services.fleet.requests.per.second).",
    )
    table_time: str | None = flag(
        "--table-time",
        keys=(fleet_keys.TABLE_TIME,),
        metavar="TIME",
        help="Begin the next table beside one that takes longer than TIME (hudi.services.fleet.table.time). Default: "
        "15m.",
    )
    dry_run: bool = flag(
        "--dry-run",
        default=False,
        help="Change nothing, and say what would be done. The command does so without this flag, too.",
    )
    apply: bool = flag("--apply", default=False, help="Do the work. The command does so without this flag, too.")
    table_name: str | None = flag(
        "--table-name",
        "-tn",
        metavar="NAME",
        help="Stop with exit code 2 when the table has another name.",
    )
    props: str | None = flag("--props", metavar="FILE", help="Properties file: a local path or a URL.")
    hoodie_conf: list[str] | None = flag(
        "--hoodie-conf",
        metavar="KEY=VALUE",
        help="One property; it counts more than those of files. May be repeated.",
    )
    conf_file: str | None = flag(
        "--conf-file",
        metavar="FILE",
        help="Properties file that all other flags override. Default: $HUDI_CONF_DIR/hudi-defaults.conf and "
        "/etc/hudi/conf/hudi-defaults.conf, where they exist.",
    )
    lock_wait: int | None = flag(
        "--lock-wait",
        least=0,
        most=604_800,
        metavar="SECONDS",
        help="Wait at most SECONDS for the table's lock, and for another run or writer that must end first "
        "(hoodie.write.lock.wait_time_ms). Default: 60.",
    )
    output_format: Format = flag(
        "--format",
        default=Format.TABLE,
        help="What is printed: table, a report to read, or json, one document. The text format of prometheus is for "
        "doctor alone.",
    )
    report_file: str | None = flag("--report", metavar="FILE", help="Also write the JSON report to this file.")
    metrics: str | None = flag(
        "--metrics",
        keys=(metrics_keys.METRICS,),
        metavar="TARGET",
        help="Send the metrics of the run to a file FILE.prom or to http://host:port of a push gateway, with the extra "
        "metrics; or to a collector of OpenTelemetry, otlp+http://host:port, otlp+grpc://host:port or otlp (the one "
        "of the environment), with the extra opentelemetry (hudi.services.metrics).",
    )
    fail_if_idle: bool = flag(
        "--fail-if-idle", default=False, help="Exit with code 3, not 0, when there is nothing to do."
    )
    verbose: bool = flag(
        "--verbose",
        default=False,
        help="Log each step; show all rows of lists, all options in force, and the tracebacks of errors.",
    )


COMMON = (
    *("dry_run", "apply", "table_name", "props", "hoodie_conf", "conf_file", "lock_wait", "output_format"),
    *("report_file", "metrics", "fail_if_idle", "verbose"),
)
"""The flags of every command besides `base_path`, in the order of the help."""
