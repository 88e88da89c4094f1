"""Runs a service from the command line: turns flags into a request, and shows the report to the operator."""

import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

from ..errors import CheckFailed, ConfigError, HudiServicesError, PartlyDone
from ..extras import check_installed
from ..metrics import prometheus
from ..metrics.run_metrics import table_metrics
from ..metrics.sending import Exporter, exporter_of, send
from ..options import Layer, Options, lock_keys, resolve
from ..runs.ahead import get_ready, java_ahead
from ..runs.config_files import conf_layers, parse_assignments, read_properties
from ..runs.output_file import check_output_file
from ..runs.report import Report, RunState, TableFacts, sentence
from ..runs.request import Request
from ..runs.retries import run_with_retries, was_interrupted
from ..urls import check_url, without_secrets
from . import render, terminal
from .flags import Flags, Format
from .progress import progress_shown

Load: TypeAlias = Callable[[], Callable[..., Report]]
Read: TypeAlias = Callable[[], tuple[Request, Load]]
"""Gives the request, and what loads the job; or raises an error about the flags."""

_IDLE_EXIT_CODE = 3


def run_service(flags: Flags, service: tuple[str, str], place: str, read: Read) -> int:
    """Do what `flags` say, print the report, and give the exit code.

    `service` is the service and the action of the report when `read` raises an error, and `place` names what gives the
    base path.
    """
    start = time.perf_counter()
    _log_to_stderr(flags.verbose)
    report, exporter = _run(flags, service, place, read)
    if report.error and was_interrupted(report.error):
        raise KeyboardInterrupt from report.error
    report.seconds["total"] = time.perf_counter() - start
    if report.state is RunState.IDLE and flags.fail_if_idle:
        report.exit_code = _IDLE_EXIT_CODE
    send(report, exporter)
    return _publish(report, flags)


def _run(flags: Flags, service: tuple[str, str], place: str, read: Read) -> tuple[Report, Exporter | None]:
    """The report, and what sends its metrics, where they are to be sent, and the flags say where."""
    exporter = None
    with ExitStack() as ahead:
        try:
            if flags.report_file is not None:
                check_output_file(flags.report_file, "--report")
            if not flags.base_path.strip():
                raise ConfigError(f"{place} is empty")
            check_url(flags.base_path, place)
            if flags.output_format is Format.PROMETHEUS:
                _check_prometheus(service[0])
            request, load = read()
            exporter = exporter_of(request.options)
            stdin = ahead.enter_context(java_ahead(request))
            job = load()
        except Exception as error:
            return Report(*service, TableFacts(without_secrets(flags.base_path))).failed(error), exporter
        get_ready(request, stdin)
        for warning in request.options.warnings:
            terminal.warn(warning)
        with progress_shown() as (progress, on_wait):
            shown = replace(request, progress=progress, on_wait=on_wait)
            return run_with_retries(job, shown, flags.retry, time.sleep), exporter


def options(flags: Flags, *own: Layer) -> Options:
    """The options of a command line; `own` are the layers of flags that stand for a key.

    Raises ConfigError for a value, a file or a key=value that is wrong.
    """
    wait = {} if flags.lock_wait is None else {lock_keys.LOCK_WAIT_MILLIS.key: str(1000 * flags.lock_wait)}
    layers = [*own, ("--lock-wait", wait)]
    layers.append(("--hoodie-conf", parse_assignments(flags.hoodie_conf or (), "--hoodie-conf")))
    if flags.props is not None:
        check_url(flags.props, "--props")
        layers.append((f"--props {flags.props}", read_properties(flags.props)))
    return resolve([*layers, *conf_layers(flags.conf_file, "--conf-file", os.environ)])


def _log_to_stderr(verbose: bool) -> None:
    logger = logging.getLogger("hudi_services")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(terminal.LineFormatter("%(asctime)s %(levelname)s %(message)s" if verbose else "%(message)s"))
    logger.handlers = [handler]
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    logger.propagate = False


def _check_prometheus(service: str) -> None:
    if service != "doctor":
        raise ConfigError("--format prometheus is for doctor alone", hint="give table or json")
    check_installed(prometheus.MODULES, prometheus.EXTRA, "--format prometheus")


def _publish(report: Report, flags: Flags) -> int:
    """Write the report to the file, then to stdout and stderr, whose reader may be gone. Returns the exit code.

    Warnings and errors come last: on a terminal they are what is seen. Output that cannot be written changes the exit
    code of a run that ended well, and nothing else.
    """
    if not _write_report(report, flags.report_file):
        report.exit_code = report.exit_code or PartlyDone.exit_code
    told = [_print(report, flags)]
    told += [terminal.warn(warning) for warning in report.warnings]
    told.append(_tell(report, flags.verbose))
    return report.exit_code or (0 if all(told) else PartlyDone.exit_code)


def _print(report: Report, flags: Flags) -> bool:
    if flags.output_format is Format.JSON:
        text = render.as_json(report, ascii_only=not terminal.is_unicode(sys.stdout))
    elif flags.output_format is Format.PROMETHEUS and report.state is not RunState.FAILED:
        text = prometheus.as_text(table_metrics(report))
    elif report.state is not RunState.FAILED or isinstance(report.error, CheckFailed):
        # What a check found is what the operator asked for.
        text = render.as_tables(report, flags.verbose)
    else:
        return True
    problem = terminal.put(sys.stdout, text)
    if problem:
        terminal.fail(
            f"the run ended ({report.state.value}), but the report could not be written to stdout: {problem}",
            "with --report FILE it is kept in a file, too",
        )
    return not problem


def _tell(report: Report, verbose: bool) -> bool:
    """Print the sentence about what went wrong, if anything did. Returns whether it could be printed."""
    message = sentence(report.error) if report.error else report.reason
    told = True
    if report.state in (RunState.FAILED, RunState.PARTLY_DONE) and message:
        told = terminal.fail(message, _hint(report, verbose))
    if report.error and verbose:
        lines = "".join(traceback.format_exception(report.error))
        terminal.put(sys.stderr, terminal.told_lines(lines))
    return told


def _hint(report: Report, verbose: bool) -> str:
    foreign = report.error is not None and not isinstance(report.error, HudiServicesError)
    return "run it again with --verbose for the traceback" if foreign and not verbose else report.hint


def _write_report(report: Report, path: str | None) -> bool:
    if path is None:
        return True
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(render.as_json(report))
    except OSError as error:
        # A failed run has one error to read already, and it may be this one.
        if report.state is not RunState.FAILED:
            terminal.fail(f"the report could not be written to {path}: {error.strerror}", "")
        return False
    return True
