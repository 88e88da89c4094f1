"""The common part of `schedule` and `execute`: their flags, and the run of clustering that the flags ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, TypeAlias

import typer

from ..errors import ConfigError
from ..runs.report import Report
from ..runs.request import ClusteringRequest, Mode
from .plans import PlanFlags, plan_options, run_mode

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


class Publish(str, Enum):
    """When other writers see the plan."""

    FIRST = "first"
    LATE = "late"


WhenPublished: TypeAlias = Annotated[
    Publish | None,
    typer.Option(
        "--publish",
        help="With --mode scheduleAndExecute: late (the default), so that writers go on: the command rewrites the "
        "files, waits for a moment without a write in progress (with a lock, it does not wait), and leaves out what "
        "writers have changed; or first, so that writers keep out of the files of the plan.",
    ),
]
AllOrNothing: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--all-or-nothing",
        help="Commit nothing when other writers have changed a group of the plan. Default: leave out the groups that "
        "they have changed, commit the others, and end with exit code 7.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ClusteringFlags(PlanFlags):
    """The flags of HoodieClusteringJob; each of the two commands says which of them it lists, and what they mean."""

    retry_last_failed: RetryLastFailed = False
    max_processing_time: MaxProcessingTime = 0
    publish: WhenPublished = None
    all_or_nothing: AllOrNothing = False


def run_clustering(flags: ClusteringFlags, command: Mode) -> int:
    """Do what `flags` say, print the report, and give the exit code."""

    def job(mode: Mode) -> tuple[ClusteringRequest, Callable[[ClusteringRequest], Report]]:
        return clustering_request(flags, mode), _job(mode)

    return run_mode(flags, "clustering", command, job)


def clustering_request(flags: ClusteringFlags, mode: Mode) -> ClusteringRequest:
    """The request of `flags`. Raises ConfigError for a value, a file or a key=value that is wrong."""
    if flags.publish is Publish.LATE and mode is not Mode.SCHEDULE_AND_EXECUTE:
        raise ConfigError(
            "--publish late needs --mode scheduleAndExecute: a plan that is written by itself is seen by everybody",
            hint="run: hudi-services execute --mode scheduleAndExecute --publish late",
        )
    return ClusteringRequest(
        base_path=flags.base_path,
        mode=mode,
        options=plan_options(flags),
        table_name=flags.table_name,
        # As HoodieClusteringJob: scheduling and executing makes an instant of its own.
        instant=None if mode is Mode.SCHEDULE_AND_EXECUTE else flags.instant_time,
        spark_master=flags.spark_master,
        spark_memory=flags.spark_memory,
        dry_run=not flags.changes,
        retry_last_failed=flags.retry_last_failed,
        max_processing_millis=flags.max_processing_time,
        publish_late=mode is Mode.SCHEDULE_AND_EXECUTE and flags.publish is not Publish.FIRST,
        all_or_nothing=flags.all_or_nothing,
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
