"""The common part of `schedule` and `execute`: their flags, and the run of clustering that the flags ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import typer

from ..errors import ConfigError, HudiServicesError
from ..jobs.report import Report
from ..jobs.request import ClusteringRequest, Mode
from ..options import keys
from .flags import Parallelism, Retry, ServiceFlags, SparkMaster, SparkMemory
from .service import options, run_service

InstantTime: TypeAlias = Annotated[str | None, typer.Option("--instant-time", "-it", metavar="INSTANT")]
MemoryPerTask: TypeAlias = Annotated[str | None, typer.Option("--memory-per-task", metavar="SIZE")]
ModeText: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--mode",
        "-m",
        metavar="MODE",
        help="execute, schedule or scheduleAndExecute (plan and execute in one run). It wins over the name of the "
        "command.",
    ),
]
ScheduleOnly: TypeAlias = Annotated[
    bool, typer.Option("--schedule", "-sc", help="Only write a plan: the same as --mode schedule. --mode wins over it.")
]
RetryLastFailed: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--retry-last-failed-clustering-job",
        "-rc",
        help="With --mode scheduleAndExecute: when the latest plan was not finished, execute it, and plan nothing.",
    ),
]
MaxProcessingTime: TypeAlias = Annotated[
    int,
    typer.Option(
        "--job-max-processing-time-ms",
        "-jt",
        min=0,
        metavar="MS",
        help="With -rc: leave a plan alone that is younger than MS milliseconds; another run may be executing it.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ClusteringFlags(ServiceFlags):
    """The flags of HoodieClusteringJob; each of the two commands says which of them it lists, and what they mean."""

    acts = True

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


def run_clustering(flags: ClusteringFlags, command: Mode) -> int:
    """Do what `flags` say, print the report, and give the exit code."""

    def read() -> tuple[ClusteringRequest, Callable[[ClusteringRequest], Report]]:
        mode = chosen_mode(flags, command)
        return clustering_request(flags, mode), _job(mode)

    try:
        action = chosen_mode(flags, command).value
    except HudiServicesError:
        action = command.value
    return run_service(flags, ("clustering", action), read, flags.retry)


def chosen_mode(flags: ClusteringFlags, command: Mode) -> Mode:
    """What to do: --mode, else --schedule, else the command. Raises ConfigError for an unknown mode."""
    if flags.mode:
        for mode in Mode:
            if mode.value.lower() == flags.mode.lower():
                return mode
        raise ConfigError(f"--mode {flags.mode} is none of {', '.join(mode.value for mode in Mode)}")
    return Mode.SCHEDULE if flags.schedule_only else command


def clustering_request(flags: ClusteringFlags, mode: Mode) -> ClusteringRequest:
    """The request of `flags`. Raises ConfigError for a value, a file or a key=value that is wrong."""
    parallelism = {} if flags.parallelism is None else {keys.MAX_PARALLELISM.key: str(flags.parallelism)}
    memory = {} if flags.memory_per_task is None else {keys.MEMORY_PER_TASK.key: flags.memory_per_task}
    return ClusteringRequest(
        base_path=flags.base_path,
        mode=mode,
        options=options(flags, ("--parallelism", parallelism), ("--memory-per-task", memory)),
        table_name=flags.table_name,
        # As HoodieClusteringJob: scheduling and executing makes an instant of its own.
        instant=None if mode is Mode.SCHEDULE_AND_EXECUTE else flags.instant_time,
        spark_master=flags.spark_master,
        spark_memory=flags.spark_memory,
        dry_run=not flags.changes,
        retry_last_failed=flags.retry_last_failed,
        max_processing_millis=flags.max_processing_time,
    )


def _job(mode: Mode) -> Callable[[ClusteringRequest], Report]:
    # Imported here, so that a wrong flag is reported before Arrow is loaded.
    from ..jobs import clustering

    jobs: dict[Mode, Callable[[ClusteringRequest], Report]] = {
        Mode.SCHEDULE: clustering.schedule,
        Mode.EXECUTE: clustering.execute,
        Mode.SCHEDULE_AND_EXECUTE: clustering.schedule_and_execute,
    }
    return jobs[mode]
