"""Running a service from the command line: flags to a request, a report to the operator."""

import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..errors import CheckFailed, ConfigError, HudiServicesError
from ..jobs.attempts import run_with_retries
from ..jobs.report import Report, State, TableFacts, sentence
from ..jobs.request import Request
from ..options import Layer, Options, resolve
from ..urls import check_url, without_secrets
from . import render
from .config_files import default_files, parse_assignments, read_properties
from .flags import Format, ServiceFlags
from .progress import progress_bar

R = TypeVar("R", bound=Request)

_IDLE_EXIT_CODE = 3
_PARTLY_DONE_EXIT_CODE = 7
_INTERRUPTED_EXIT_CODE = 130


def run_service(
    flags: ServiceFlags,
    service: tuple[str, str],
    read: Callable[[], tuple[R, Callable[[R], Report]]],
    retries: int = 0,
) -> int:
    """Do what `flags` say, print the report, and give the exit code.

    `read` gives the request and the job, or raises what is wrong with the flags; `service` names both until then
    (service and action of the report).
    """
    start = time.perf_counter()
    # Before anything imports Arrow: its own allocator asks for more memory than it uses, and gives it back too eagerly.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    _log_to_stderr(flags.verbose)
    try:
        report = _run(flags, service, read, retries)
    except KeyboardInterrupt:
        render.fail("interrupted", "what was cut off is resumed or rolled back by the next run")
        return _INTERRUPTED_EXIT_CODE
    report.seconds["total"] = time.perf_counter() - start
    if report.state is State.IDLE and flags.fail_if_idle:
        report.exit_code = _IDLE_EXIT_CODE
    return _publish(report, flags)


def _run(
    flags: ServiceFlags,
    service: tuple[str, str],
    read: Callable[[], tuple[R, Callable[[R], Report]]],
    retries: int,
) -> Report:
    try:
        _check_report_file(flags.report_file)
        if not flags.base_path.strip():
            raise ConfigError("--base-path is empty")
        check_url(flags.base_path, "--base-path")
        request, job = read()
    except HudiServicesError as error:
        return Report(*service, TableFacts(without_secrets(flags.base_path))).failed(error)
    for warning in request.options.warnings:
        render.warn(warning)
    with progress_bar() as progress:
        return run_with_retries(job, replace(request, progress=progress), retries, time.sleep)


def options(flags: ServiceFlags, *own: Layer) -> Options:
    """The options of a command line; `own` are the layers of flags that stand for a key.

    Raises ConfigError for a value, a file or a key=value that is wrong.
    """
    layers = [*own]
    layers.append(("--hoodie-conf", parse_assignments(flags.hoodie_conf or (), "--hoodie-conf")))
    if flags.props is not None:
        check_url(flags.props, "--props")
        layers.append((f"--props {flags.props}", read_properties(flags.props)))
    if flags.conf_file is not None:
        check_url(flags.conf_file, "--conf-file")
    for file in [flags.conf_file] if flags.conf_file is not None else default_files(os.environ):
        layers.append((f"conf file {file}", read_properties(file)))
    return resolve(layers)


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


def _publish(report: Report, flags: ServiceFlags) -> int:
    for warning in report.warnings:
        render.warn(warning)
    _tell(report, flags.verbose)
    if flags.output_format is Format.JSON:
        sys.stdout.write(render.as_json(report))
    elif report.state is not State.FAILED or isinstance(report.error, CheckFailed):
        # What a check found is what the operator asked for.
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
