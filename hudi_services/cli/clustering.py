"""What `schedule` and `execute` have in common: from their flags to a run of clustering."""

from collections.abc import Callable
from dataclasses import replace

from ..errors import ConfigError, HudiServicesError
from ..jobs.report import Report
from ..jobs.request import ClusteringRequest, Mode
from ..options import keys
from .flags import ClusteringFlags
from .service import options, run_service


def run_clustering(flags: ClusteringFlags, command: Mode, *, dry_run: bool = False) -> int:
    """Do what `flags` say, print the report, and give the exit code."""

    def read() -> tuple[ClusteringRequest, Callable[[ClusteringRequest], Report]]:
        mode = chosen_mode(flags, command)
        return replace(clustering_request(flags, mode), dry_run=dry_run), _job(mode)

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
    """Raises ConfigError for a value, a file or a key=value that is wrong."""
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
        retry_last_failed=flags.retry_last_failed,
        max_processing_millis=flags.max_processing_time,
    )


def _job(mode: Mode) -> Callable[[ClusteringRequest], Report]:
    # Only here, so that a wrong flag is told before Arrow is loaded.
    from ..jobs import clustering

    jobs: dict[Mode, Callable[[ClusteringRequest], Report]] = {
        Mode.SCHEDULE: clustering.schedule,
        Mode.EXECUTE: clustering.execute,
        Mode.SCHEDULE_AND_EXECUTE: clustering.schedule_and_execute,
    }
    return jobs[mode]
