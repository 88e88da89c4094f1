"""Begins and stops the Spark context of our own session."""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from .java import Java


def connect(java: Java) -> None:
    """Let pyspark use `java`, once that is up. Raises JobLost when it has ended."""
    told = java.gateway()
    try:
        os.environ.update(told)
        SparkContext._ensure_initialized()
    finally:
        for name in told:
            os.environ.pop(name, None)
    SparkContext._gateway.proc = java.process  # type: ignore[union-attr]


def begin(settings: Mapping[str, str]) -> SparkContext:
    """A context with these settings of Spark, by their names; SQL is loaded when it is needed."""
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    return SparkContext.getOrCreate(conf)


def stop(context: SparkContext) -> None:
    _drop_accumulators(context)
    session = SparkSession._instantiatedSession
    try:
        if session is not None:
            session.stop()
        context.stop()
    except (Py4JError, ConnectionError):
        # The Java process is gone. The error is reported elsewhere; the next session must not use the old process.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None


def forget_java() -> None:
    """Let pyspark leave its Java process, which somebody else ends."""
    gateway = SparkContext._gateway
    if gateway is not None:
        SparkContext._gateway = SparkContext._jvm = None
        with suppress(Py4JError, OSError):
            gateway.shutdown()


def _drop_accumulators(context: SparkContext) -> None:
    """End Spark's server of accumulators, which no job needs any more, without waiting for it.

    It looks once a second whether it is to end. When Java ends earlier, it would report the lost connection on stderr.
    """
    server: Any = context._accumulatorServer
    context._accumulatorServer = None  # type: ignore[assignment]
    if server is not None:
        server.handle_error = lambda request, address: None
        threading.Thread(target=server.shutdown, daemon=True).start()
