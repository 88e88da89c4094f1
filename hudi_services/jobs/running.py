"""The engine that runs a job's tasks: the caller's, or Spark."""

import importlib.util
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..engine import Engine
from ..errors import ConfigError
from ..options import keys
from .report import Report
from .request import SparkRequest


def check_engine(engine: Engine | None) -> None:
    """Raise ConfigError when Spark is to run the tasks and is not installed. Call this before anything is written."""
    if engine is None and importlib.util.find_spec("pyspark") is None:
        raise ConfigError(
            "this needs Spark, and the Python package pyspark is not installed",
            hint="pip install 'hudi-services[spark]', or the pyspark of your cluster's release",
        )


@contextmanager
def running(name: str, wanted: SparkRequest, report: Report, engine: Engine | None) -> Iterator[Engine]:
    """`engine`, or Spark with the settings of `wanted` while the context lasts; a running session is used as it is."""
    if engine is not None:
        yield engine
        return
    # Imported here: a command that has no tasks must not load Spark.
    from ..spark.engine import SparkEngine
    from ..spark.session import spark

    start = time.perf_counter()
    with spark(name, wanted.spark_master, wanted.spark_memory) as there:
        report.seconds["start spark"] = time.perf_counter() - start
        if not there.own and (wanted.spark_master or wanted.spark_memory):
            report.warnings.append(
                "a Spark session was running before and is used as it is: its master and memory stand, not those given"
            )
        yield SparkEngine(there.context, wanted.options[keys.MAX_PARALLELISM])
        start = time.perf_counter()
    report.seconds["stop spark"] = time.perf_counter() - start
