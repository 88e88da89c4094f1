"""What an operator asks of a service, as a plain value."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..options import Options


class Mode(enum.Enum):
    """What to do with clustering plans. The names are HoodieClusteringJob's."""

    SCHEDULE = "schedule"
    EXECUTE = "execute"
    SCHEDULE_AND_EXECUTE = "scheduleAndExecute"


def no_progress(phase: str, done: int, total: int) -> None:
    """Nobody looks."""


def no_report(report: object) -> None:
    """Nobody waits for it."""


@dataclass(frozen=True, slots=True)
class ClusteringRequest:
    """One run of clustering. `options` do not hold the table's own layer yet: the job adds it."""

    base_path: str
    mode: Mode
    options: Options
    table_name: str | None = None
    """When given, the table must have this name."""
    instant: str | None = None
    """The plan to execute (None: the earliest pending one), or the instant to schedule at (None: a new one)."""
    spark_master: str | None = None
    spark_memory: str | None = None
    """Spark's text, as 4g."""
    retry_last_failed: bool = False
    """SCHEDULE_AND_EXECUTE: execute the last plan that was not finished, if there is one, and plan nothing."""
    max_processing_millis: int = 0
    """With `retry_last_failed`: a plan younger than this may still be at work and is left alone."""
    progress: Callable[[str, int, int], None] = no_progress
    """Called with a phase, and how many of its pieces are done."""
    on_report: Callable[[Any], None] = no_report
    """Called with the `Report` that the job begins to fill: it tells how far the job came when that raises."""
