"""Runs a job as the command line does, and turns its report into a result or an exception."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, TypeVar

from ..errors import HudiServicesError, PartlyDone
from ..metrics.sending import exporter_of, send
from ..runs.report import Report, RunState, sentence
from ..runs.request import Request
from ..runs.retries import run_with_retries, was_interrupted
from .result import Result

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a phase, how many of its pieces are done, and how many there are; perhaps from another thread."""
R = TypeVar("R", bound=Request)


def call(request: R, job: Callable[[R], Report], progress: Progress | None, retries: int = 0) -> Result:
    """The result of the run. Raises the error that ended it, with the result in `result`; nothing to do is no error.

    Raises ConfigError, before the run, where its metrics cannot be sent.
    """
    exporter = exporter_of(request.options)
    start = time.perf_counter()
    guarded = _Guarded(progress)
    report = run_with_retries(job, replace(request, progress=guarded), retries, time.sleep)
    report.seconds["total"] = time.perf_counter() - start
    report.warnings += guarded.warnings
    if report.error and was_interrupted(report.error):
        raise KeyboardInterrupt from report.error
    send(report, exporter)
    result = Result.of(report)
    if report.state not in (RunState.FAILED, RunState.PARTLY_DONE):
        return result
    error = _error(report)
    error.result = result
    raise error from report.error if error is not report.error else error.__cause__


def _error(report: Report) -> HudiServicesError:
    """The error that ended a run that failed or is partly done, as a HudiServicesError."""
    error = report.error
    if isinstance(error, HudiServicesError):
        error.hint = report.hint
        return error
    if error is not None:
        return HudiServicesError(sentence(error))
    return PartlyDone(report.reason or "something is left to do", hint=report.hint)


class _Guarded:
    """The caller's `progress`, whose errors do not end a run. After an error it is not called again."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.warnings: list[str] = []

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._progress is None:
            return
        try:
            self._progress(phase, done, total)
        except Exception as error:
            self._progress = None
            self.warnings.append(f"progress raised {type(error).__name__}, and was not called again: {error}")
