"""The common part of the services that have plans: their flags and their modes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar

import typer

from ..errors import ConfigError, HudiServicesError
from ..options import Layer, Options, keys
from ..runs.report import Report
from ..runs.request import Mode, Request
from .flags import Parallelism, Retry, ServiceFlags, SparkMaster, SparkMemory
from .service import options, run_service

R = TypeVar("R", bound=Request)

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


@dataclass(frozen=True, kw_only=True)
class PlanFlags(ServiceFlags):
    """The flags that HoodieClusteringJob and HoodieCompactor have in common."""

    acts = True

    instant_time: InstantTime = None
    parallelism: Parallelism = None
    memory_per_task: MemoryPerTask = None
    spark_master: SparkMaster = None
    spark_memory: SparkMemory = None
    retry: Retry = 0
    mode: ModeText = None
    schedule_only: ScheduleOnly = False


def run_mode(
    flags: PlanFlags, service: str, command: Mode, job: Callable[[Mode], tuple[R, Callable[[R], Report]]]
) -> int:
    """Do what `flags` say, print the report, and give the exit code; `job` makes the request and the job of a mode."""
    try:
        action = chosen_mode(flags, command).value
    except HudiServicesError:
        action = command.value
    return run_service(flags, (service, action), lambda: job(chosen_mode(flags, command)), flags.retry)


def chosen_mode(flags: PlanFlags, command: Mode) -> Mode:
    """What to do: --mode, else --schedule, else the command. Raises ConfigError for an unknown mode."""
    if flags.mode:
        for mode in Mode:
            if mode.value.lower() == flags.mode.lower():
                return mode
        raise ConfigError(f"--mode {flags.mode} is none of {', '.join(mode.value for mode in Mode)}")
    return Mode.SCHEDULE if flags.schedule_only else command


def plan_options(flags: PlanFlags, *own: Layer) -> Options:
    """The options of a command line; `own` are the layers of further flags that stand for a key.

    Raises ConfigError for a value, a file or a key=value that is wrong.
    """
    parallelism = {} if flags.parallelism is None else {keys.MAX_PARALLELISM.key: str(flags.parallelism)}
    memory = {} if flags.memory_per_task is None else {keys.MEMORY_PER_TASK.key: flags.memory_per_task}
    return options(flags, ("--parallelism", parallelism), ("--memory-per-task", memory), *own)
