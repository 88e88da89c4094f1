"""`hudi-services compact`, and `hudi-services schedule --service compaction`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import typer

from ..options import keys
from ..runs.report import Report
from ..runs.request import CompactionRequest, Mode
from .flags import command
from .plans import PlanFlags, plan_options, run_mode

Strategy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        "-st",
        metavar="NAME",
        help="With --mode scheduleAndExecute or schedule: which file groups are compacted: log_file_size, "
        "log_file_number, bounded_io, unbounded, day_based, or Hudi's class (hoodie.compaction.strategy).",
    ),
]
SchemaFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--schema-file", "-sf", metavar="FILE", help="Accepted, and not read: the table has its schema."),
]


@dataclass(frozen=True, kw_only=True)
class CompactFlags(PlanFlags):
    """The flags of HoodieCompactor."""

    helps: ClassVar[Mapping[str, str]] = {
        "instant_time": "The pending compaction to execute. Default: the earliest. --mode scheduleAndExecute ignores "
        "it.",
        "parallelism": "Compact at most N file groups at once (hoodie.clustering.max.parallelism). Default: as many as "
        "Spark has cores for.",
        "memory_per_task": "Memory for the log records and rows of one file group, such as 512m "
        "(hudi.services.memory.per.task). Default: what Spark's settings leave for Python.",
        "retry": "Try again up to N times, when the store, the lock or Spark fails.",
        "dry_run": "Merge and commit nothing. Say which plan would be executed, and whether its files are unchanged.",
        "apply": "Execute the compaction. The command does so without this flag, too.",
    }
    hidden = ("schema_file",)

    strategy: Strategy = None
    schema_file: SchemaFile = None


@command(CompactFlags)
def compact(flags: CompactFlags) -> int:
    """Execute a compaction plan of a merge-on-read table.

    Spark merges the log files of each file group in the plan into a new base file. Before the commit, the command
    compares the rows of the new files with the merged rows. When a row was lost, doubled or changed, it commits nothing
    and ends with exit code 5. `schedule --service compaction` writes a plan. Takes the flags of Hudi's HoodieCompactor.
    """
    return run_compaction(flags, Mode.EXECUTE, flags.strategy)


def run_compaction(flags: PlanFlags, command: Mode, strategy: str | None = None) -> int:
    """Do what `flags` say, print the report, and give the exit code."""

    def job(mode: Mode) -> tuple[CompactionRequest, Callable[[CompactionRequest], Report]]:
        chosen = {} if strategy is None else {keys.COMPACTION_STRATEGY.key: strategy}
        request = CompactionRequest(
            base_path=flags.base_path,
            mode=mode,
            options=plan_options(flags, ("--strategy", chosen)),
            table_name=flags.table_name,
            # As for clustering: scheduling and executing makes an instant of its own.
            instant=None if mode is Mode.SCHEDULE_AND_EXECUTE else flags.instant_time,
            spark_master=flags.spark_master,
            spark_memory=flags.spark_memory,
            dry_run=not flags.changes,
        )
        return request, _job(mode)

    return run_mode(flags, "compaction", command, job)


def _job(mode: Mode) -> Callable[[CompactionRequest], Report]:
    # Imported here, so that a wrong flag is reported before Arrow is loaded.
    from ..jobs import compaction

    jobs: dict[Mode, Callable[[CompactionRequest], Report]] = {
        Mode.SCHEDULE: compaction.schedule,
        Mode.EXECUTE: compaction.execute,
        Mode.SCHEDULE_AND_EXECUTE: compaction.schedule_and_execute,
    }
    return jobs[mode]
