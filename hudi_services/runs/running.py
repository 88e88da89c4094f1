"""The engine that runs a job's tasks: the caller's, or Spark, or processes; it starts while the job prepares them."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..engine import Engine, Frame, LocalEngine, Pieces, RepeatedTask
from ..errors import ConfigError
from ..extras import check_installed
from ..model import FileSlice
from ..options import file_keys
from ..process import uses_spark_connect
from .ahead import is_local
from .memory_watch import MemoryWatch
from .report import Report
from .report_rows import RepeatedTaskRow
from .request import PlanRequest, SparkRequest
from .run import Run

if TYPE_CHECKING:
    from ..inputs.input_files import InputFiles
    from ..spark.session import Spark

Slices: TypeAlias = Callable[[], Sequence[FileSlice]]
Task = TypeVar("Task")
Result = TypeVar("Result")


def check_engine(request: SparkRequest, engine: Engine | None) -> None:
    """Raise ConfigError when Spark is to run the tasks and is not installed, or is one of Spark Connect; and for
    settings of Spark where processes are to run them.

    Call this before anything is written.
    """
    if engine is not None:
        return
    if is_local(request):
        if request.spark_master or request.spark_memory:
            raise ConfigError(
                "a master or memory of Spark is given, and processes of this machine are to run the tasks",
                hint="leave out --spark-master and --spark-memory, or --engine local (hudi.services.engine)",
            )
        return
    if uses_spark_connect():
        raise ConfigError(
            "this needs jobs of Python functions on partitions, which a session of Spark Connect does not run",
            hint="unset SPARK_REMOTE and SPARK_API_MODE for a classic session, or use --engine local",
        )
    other = ", or install the pyspark of your cluster's release; or use --engine local"
    check_installed(("pyspark",), "spark", "this work on Spark", other)


class Running:
    """`engine`, or processes of this machine, or Spark with the settings of `request`, until `close`; a running session
    of Spark is used as it is.

    Both start in the background. The first use of Spark waits for it, and raises what starting it raises.
    """

    def __init__(self, name: str, request: SparkRequest, report: Report, engine: Engine | None, slices: Slices) -> None:
        """`slices` gives what the tasks read, where that matters."""
        self._request = request
        self._report = report
        self._engine = engine
        self._session = ExitStack()
        self._starting: Future[Engine] | None = None
        self._watch: MemoryWatch | None = None
        if engine is not None:
            return
        if is_local(request):
            # Imported here, too: Spark's engine needs no processes.
            from ..processes.process_engine import ProcessEngine

            self._engine = local = ProcessEngine(request.options[file_keys.MAX_PARALLELISM])
            self._session.callback(local.close)
            local.prepare(sum(one.size for one in slices()))
        else:
            # Imported here: a command that has no tasks must not load Spark.
            from ..spark.session import spark

            there = spark(name, request.spark_master, request.spark_memory)
            pool = ThreadPoolExecutor(1, "start spark")
            self._starting = pool.submit(self._start, there)
            pool.shutdown(wait=False)
        self._watch = MemoryWatch(report)

    def __enter__(self) -> "Running":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def task_memory(self) -> int:
        return self._ready().task_memory

    @property
    def cores(self) -> int:
        return self._ready().cores

    @property
    def repeats_tasks(self) -> bool:
        return self._ready().repeats_tasks

    @property
    def repeated(self) -> Sequence[RepeatedTask]:
        return () if self._engine is None else self._engine.repeated

    def map(
        self,
        function: Callable[[Task, str], Result],
        tasks: Sequence[Task],
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Result]:
        return self._ready().map(function, tasks, description, progress)

    def labels(self, labels: Sequence[Any]) -> Pieces:
        return self._ready().labels(labels)

    def frame_of(self, files: "InputFiles") -> Frame:
        """The rows of files, which tasks of Spark read. Raises ConfigError for a file that cannot be read."""
        from ..spark.file_frame import FileFrame

        return FileFrame(self._ready(), files)

    def close(self) -> None:
        """Stop Spark, if it was started here, once it has started; the report gets the tasks that ran twice."""
        show_repeated(self._report, self)
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
        starting, self._starting = self._starting, None
        if starting is None:
            self._session.close()
            return
        # Also after Ctrl-C: what has begun to start must not be left behind.
        wait([starting])
        start = time.perf_counter()
        self._session.close()
        self._report.seconds["stop spark"] = time.perf_counter() - start

    def _start(self, session: "AbstractContextManager[Spark]") -> Engine:
        there = self._session.enter_context(session)
        # It needs pyspark, which is imported while Java starts.
        from ..spark.spark_engine import SparkEngine

        if not there.own and (self._request.spark_master or self._request.spark_memory):
            self._report.warnings.append(
                "a Spark session was running before and is used as it is: its master and memory stand, not those given"
            )
        return SparkEngine(there.context, self._request.options[file_keys.MAX_PARALLELISM])

    def _ready(self) -> Engine:
        if self._engine is None:
            assert self._starting is not None, "the engine is closed"
            with self._report.phase("start spark"):
                self._engine = self._starting.result()
        return self._engine


def show_repeated(report: Report, engine: Engine) -> None:
    """Give the report a list of the tasks that had several attempts, if there are any."""
    if engine.repeated:
        report.show(
            RepeatedTaskRow,
            (RepeatedTaskRow(one.description, one.task, one.attempts, one.why) for one in engine.repeated),
        )


def started(operation: str, slices: Sequence[FileSlice], run: Run[PlanRequest]) -> Running:
    """The engine of a plan that rewrites `slices`; a dry run, or a plan without any, needs no Spark."""
    engine = LocalEngine() if run.request.dry_run or not slices else run.engine
    name = f"hudi_services {operation} {run.report.instant}"
    return Running(name, run.request, run.report, engine, lambda: slices)
