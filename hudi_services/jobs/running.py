"""Who runs a job's tasks: the engine that a test brings, or Spark."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..engine import Engine
from ..options import keys
from .report import Report
from .request import SparkRequest


@contextmanager
def running(name: str, wanted: SparkRequest, report: Report, engine: Engine | None) -> Iterator[Engine]:
    """`engine`, or Spark as `wanted` has it for as long as the context lasts."""
    if engine is not None:
        yield engine
        return
    # Only here: a command that has no tasks must not load Spark.
    from ..spark.engine import SparkEngine
    from ..spark.session import spark_session

    start = time.perf_counter()
    with spark_session(name, wanted.spark_master, wanted.spark_memory) as session:
        report.seconds["start spark"] = time.perf_counter() - start
        yield SparkEngine(session.sparkContext, wanted.options[keys.MAX_PARALLELISM])
        start = time.perf_counter()
    report.seconds["stop spark"] = time.perf_counter() - start
