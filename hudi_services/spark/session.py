"""The Spark session of a job: the running session, which stays as it is, or our own, which is stopped at the end."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ..process import under_spark_submit
from .class_archive import make_archive_later
from .own_java import OwnJava, given_settings, taken, unchanged
from .worker_host import WorkerHost

# pyspark is imported when Java has begun to start.
if TYPE_CHECKING:
    from pyspark import SparkContext

_OF_SPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
"""Variables that Spark sets in this process and reads there."""


class Spark(NamedTuple):
    """The Spark context that runs jobs. `own`: this program started it, so master and memory are as requested."""

    context: "SparkContext"
    own: bool


@contextmanager
def spark(
    app_name: str, master: str | None, memory: str | None, more: Mapping[str, str] | None = None
) -> Iterator[Spark]:
    """The running session, or else our own session, which is stopped when no job of this process uses it any more.

    The master of our own session is `master`, else that of spark-submit, else local[*]; without spark-submit, its
    workers use this Python. `memory` is Spark's notation (4g) for the driver and the executors, and `more` are settings
    of our own session. Raises ConfigError when there is no Java.
    """
    there = _session.join(lambda: _start(app_name, master, memory, more=more))
    try:
        yield there
    finally:
        if there.own and _session.leave() and not under_spark_submit():
            make_archive_later()


def start_and_stop(java_options: str, launcher_options: str) -> None:
    """Start a session of our own with these options of Java and of Spark's launcher in place of those of the class
    archives, run a job, and stop it; returns when Java has ended.

    Raises what starting it raises, and RuntimeError when Java did not end well.
    """
    context, close = _start("hudi_services class archive", "local[1]", None, (java_options, launcher_options))
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
    app_name: str,
    master: str | None,
    memory: str | None,
    java_options: tuple[str, str] | None = None,
    more: Mapping[str, str] | None = None,
) -> tuple["SparkContext", Callable[[], None]]:
    """A new session of our own, and the function that stops it and leaves this process as it was.

    `java_options`: of Java and of Spark's launcher, in place of those of the class archives. `more`: settings.
    """
    with ExitStack() as while_it_starts, ExitStack() as undo:
        undo.enter_context(unchanged(_OF_SPARK))
        own = host = None
        if under_spark_submit():
            settings = given_settings(master, memory)
        else:
            # The Java process has our settings, and a session that is started later must have its own.
            own = taken(master, memory) or OwnJava(master, memory, java_options, starts=_of_pyspark("_gateway") is None)
            undo.callback(own.close)
            while_it_starts.enter_context(own.environment())
            settings = own.settings
            if own.has_workers:
                # Without the process, Spark's own daemon starts workers.
                with suppress(OSError):
                    host = WorkerHost(own.folder)
                    undo.callback(host.close)
        # Spark installs its own handler of Ctrl-C.
        undo.callback(_restore_handler, signal.getsignal(signal.SIGINT))
        path_before = list(sys.path)
        from . import context as of_spark
        from .shipping import is_there

        if own is not None and own.java is not None:
            of_spark.connect(own.java)
            undo.callback(of_spark.forget_java)
        begun = of_spark.begin({"spark.app.name": app_name, **settings, **(more or {})})
        # The session adds the folder of its files to the import path.
        undo.callback(_forget_paths, [path for path in sys.path if path not in path_before])
        undo.callback(of_spark.stop, begun)
        if host is not None:
            is_there(begun)
        return begun, undo.pop_all().close


def _forget_paths(added: list[str]) -> None:
    sys.path[:] = [path for path in sys.path if path not in added]


def _restore_handler(before: object) -> None:
    # Only the main thread may, and only there does Spark change it; None is a handler that Python did not set.
    if threading.current_thread() is threading.main_thread() and before is not None:
        signal.signal(signal.SIGINT, before)  # type: ignore[arg-type]
