"""What Spark's UI, its event log and its history server call our jobs and stages."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.traceback_utils import SCCallSiteSync

from ..units import size_text

_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""The local properties that make up the job group of a thread."""


def job_name(description: str, tasks: int, weights: Sequence[int], rows: int | None = None) -> str:
    """The description of a job with its tasks and, where they tell them, the bytes and rows that they read.

    Spark's own columns of read and written bytes and records stay empty: they count what the JVM reads, and our tasks,
    in Python, read the store themselves.
    """
    size = f", {size_text(sum(weights))}" if any(one > 1 for one in weights) else ""
    count = "" if rows is None else f", {rows:,} rows"
    return f"{description} ({tasks} task{'' if tasks == 1 else 's'}{size}{count})"


@contextmanager
def stages_called(context: SparkContext, name: str) -> Iterator[None]:
    """A context in which the stages that this thread begins are called `name`, and not after our line of code."""
    # PySpark gives each action the place of its call, unless an outer one has given its own.
    call_site = SCCallSiteSync(context)  # type: ignore[no-untyped-call]
    call_site._call_site = name
    with call_site:
        yield


@contextmanager
def job_group(context: SparkContext, group: str, name: str) -> Iterator[None]:
    """A context in which jobs of this thread belong to `group`; afterwards they belong to their previous group."""
    before = {one: context.getLocalProperty(one) for one in _JOB_PROPERTIES}
    context.setJobGroup(group, name, interruptOnCancel=True)
    try:
        with stages_called(context, name):
            yield
    finally:
        with suppress(Py4JError, ConnectionError):
            for one, value in before.items():
                # None removes the property.
                context.setLocalProperty(one, value)  # type: ignore[arg-type]
