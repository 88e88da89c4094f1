"""Runs a job again when another attempt may succeed."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..errors import (
    HudiServicesError,
    JobLost,
    LockBusy,
    NotFound,
    Outdated,
    PermissionDenied,
    StorageError,
)
from ..request_counts import RequestsOfRun
from .report import Report, RunState, sentence
from .request import Request

R = TypeVar("R", bound=Request)

_log = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
_LOOKS = 3
"""Attempts at a table that is archived or cleaned meanwhile."""
_HOPELESS = (NotFound, PermissionDenied)


def run_with_retries(
    job: Callable[[R], Report],
    request: R,
    retries: int,
    sleep: Callable[[float], None],
) -> Report:
    """Run the job, and up to `retries` times again while its error may pass. Returns the report of the last attempt.

    An attempt that fails because another process archives or cleans meanwhile does not count, up to a limit. Errors
    become failed reports. Every further attempt takes up the plan that the one before may have left. Its
    requests are those of all attempts, and it began with the first one.
    """
    requests, began = RequestsOfRun(), time.time()
    report = _attempt(job, request)
    for number in range(1, retries + 1):
        if report.error is None or report.state is not RunState.FAILED or not _may_pass(report.error):
            break
        _log.warning("%s; trying again (%d of %d)", sentence(report.error), number, retries)
        sleep(_PAUSE_SECONDS * number)
        report = _attempt(job, request.again())
    report.requests, report.began = requests.so_far(), began
    return report


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C caused `error`: Python wraps its exception in the middle of an import, libraries anywhere."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, HudiServicesError):
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _attempt(job: Callable[[R], Report], request: R) -> Report:
    report = _once(job, request)
    for _ in range(_LOOKS - 1):
        if not isinstance(report.error, Outdated):
            break
        _log.info("%s; looking again", sentence(report.error))
        # Only a plan that this run has written is taken up.
        report = _once(job, request if report.instant is None else request.again())
    return report


def _once(job: Callable[[R], Report], request: R) -> Report:
    started: list[Report] = []
    try:
        return job(replace(request, on_report=started.append))
    except Exception as error:
        return (started or [Report.start(request)])[-1].failed(error)


def _may_pass(error: BaseException) -> bool:
    """Whether another attempt may help: the store failed once, the lock was busy, Spark died, or an unknown error."""
    if isinstance(error, StorageError):
        return not isinstance(error, _HOPELESS)
    return isinstance(error, LockBusy | JobLost) or not isinstance(error, HudiServicesError)
