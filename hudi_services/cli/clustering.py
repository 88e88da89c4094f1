"""Running the clustering jobs from the command line: flags to a request, a report to the operator."""

import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace

from ..errors import ConfigError, HudiServicesError
from ..jobs.attempts import run_with_retries
from ..jobs.report import Report, State, TableFacts, sentence
from ..jobs.request import ClusteringRequest, Mode
from ..options import Layer, keys, resolve
from . import render
from .config_files import default_files, parse_assignment, read_properties
from .flags import ClusteringFlags, Format
from .progress import progress_bar

_IDLE_EXIT_CODE = 3
_PARTLY_DONE_EXIT_CODE = 7
_INTERRUPTED_EXIT_CODE = 130


def run_clustering(flags: ClusteringFlags, command: Mode) -> int:
    """Do what `flags` say, print the report, and give the exit code."""
    start = time.perf_counter()
    _log_to_stderr(flags.verbose)
    try:
        report = _run(flags, command)
    except KeyboardInterrupt:
        render.fail("interrupted", "an execute that was cut off is rolled back by the next one")
        return _INTERRUPTED_EXIT_CODE
    report.seconds["total"] = time.perf_counter() - start
    if report.state is State.IDLE and flags.fail_if_idle:
        report.exit_code = _IDLE_EXIT_CODE
    return _publish(report, flags)


def _run(flags: ClusteringFlags, command: Mode) -> Report:
    mode = command
    try:
        mode = chosen_mode(flags, command)
        _check_report_file(flags.report_file)
        request = clustering_request(flags, mode)
    except HudiServicesError as error:
        return Report(mode.value, TableFacts(flags.base_path)).failed(error)
    for warning in request.options.warnings:
        render.warn(warning)
    with progress_bar() as progress:
        return run_with_retries(_job(mode), replace(request, progress=progress), flags.retry, time.sleep)


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
    if not flags.base_path.strip():
        raise ConfigError("--base-path is empty")
    return ClusteringRequest(
        base_path=flags.base_path,
        mode=mode,
        options=resolve(_layers(flags)),
        table_name=flags.table_name,
        # As HoodieClusteringJob: scheduling and executing makes an instant of its own.
        instant=None if mode is Mode.SCHEDULE_AND_EXECUTE else flags.instant_time,
        spark_master=flags.spark_master,
        spark_memory=flags.spark_memory,
        retry_last_failed=flags.retry_last_failed,
        max_processing_millis=flags.max_processing_time,
    )


def _layers(flags: ClusteringFlags) -> list[Layer]:
    layers: list[Layer] = []
    if flags.parallelism is not None:
        layers.append(("--parallelism", {keys.MAX_PARALLELISM.key: str(flags.parallelism)}))
    layers.append(("--hoodie-conf", dict(parse_assignment(text, "--hoodie-conf") for text in flags.hoodie_conf or ())))
    if flags.props is not None:
        layers.append((f"--props {flags.props}", read_properties(flags.props)))
    for file in [flags.conf_file] if flags.conf_file is not None else default_files(os.environ):
        layers.append((f"conf file {file}", read_properties(file)))
    return layers


def _job(mode: Mode) -> Callable[[ClusteringRequest], Report]:
    # Only here, so that a wrong flag is told before Arrow is loaded.
    from ..jobs import clustering

    jobs: dict[Mode, Callable[[ClusteringRequest], Report]] = {
        Mode.SCHEDULE: clustering.schedule,
        Mode.EXECUTE: clustering.execute,
        Mode.SCHEDULE_AND_EXECUTE: clustering.schedule_and_execute,
    }
    return jobs[mode]


def _log_to_stderr(verbose: bool) -> None:
    logger = logging.getLogger("hudi_services")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s" if verbose else "%(message)s"))
    logger.handlers = [handler]
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    logger.propagate = False


def _check_report_file(path: str | None) -> None:
    """Before any work: a report that cannot be written is found out now."""
    if path is None:
        return
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.access(folder, os.W_OK) or (os.path.exists(path) and not os.access(path, os.W_OK)):
        raise ConfigError(f"--report {path} cannot be written", hint="give a file in a folder that exists")


def _publish(report: Report, flags: ClusteringFlags) -> int:
    for warning in report.warnings:
        render.warn(warning)
    _tell(report, flags.verbose)
    if flags.output_format is Format.JSON:
        sys.stdout.write(render.as_json(report))
    elif report.state is not State.FAILED:
        render.print_table(report, flags.verbose)
    sys.stdout.flush()
    return _write_report(report, flags.report_file)


def _tell(report: Report, verbose: bool) -> None:
    """The sentence about what went wrong, if anything did."""
    message = sentence(report.error) if report.error else report.reason
    if report.state in (State.FAILED, State.PARTLY_DONE) and message:
        render.fail(message, _hint(report, verbose))
    if report.error and verbose:
        traceback.print_exception(report.error, file=sys.stderr)


def _hint(report: Report, verbose: bool) -> str:
    foreign = report.error is not None and not isinstance(report.error, HudiServicesError)
    return "run it again with --verbose for the traceback" if foreign and not verbose else report.hint


def _write_report(report: Report, path: str | None) -> int:
    if path is None:
        return report.exit_code
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(render.as_json(report))
    except OSError as error:
        if report.state is State.FAILED:
            # The operator has one error to read already, and it may be this one.
            return report.exit_code
        render.fail(f"the report could not be written to {path}: {error.strerror}", "")
        return report.exit_code or _PARTLY_DONE_EXIT_CODE
    return report.exit_code
