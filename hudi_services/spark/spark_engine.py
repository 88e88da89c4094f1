"""The Spark side of `engine.Engine`: one job, one task per piece of work."""

import functools
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD, SparkContext

from ..engine import Pieces, RepeatedTask
from ..errors import HudiServicesError, JobLost
from .memory import cores, task_memory
from .pieces import SparkPieces
from .shipping import ship, shipped
from .task_attempts import TaskAttempts, what_failed
from .workers import in_task

Task = TypeVar("Task")
Result = TypeVar("Result")

_POLL_SECONDS = 0.5
_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""The local properties that make up the job group of a thread."""


class SparkEngine:
    """Runs tasks as one Spark job: a Spark task for each, or at most `parallelism` Spark tasks that share them."""

    def __init__(self, context: SparkContext, parallelism: int | None = None) -> None:
        self.context = context
        self._parallelism = parallelism
        self.repeated: list[RepeatedTask] = []

    @property
    def task_memory(self) -> int:
        conf = self.context.getConf()
        return task_memory(lambda name, default: str(conf.get(name, default)))

    @property
    def cores(self) -> int:
        conf = self.context.getConf()
        found = cores(lambda name, default: str(conf.get(name, default)), self.context.defaultParallelism)
        return min(found, self._parallelism or found)

    repeats_tasks = True

    def map(
        self,
        function: Callable[[Task, str], Result],
        tasks: Sequence[Task],
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Result]:
        if not tasks:
            return []
        slices = min(len(tasks), self._parallelism or len(tasks))
        payloads = self.context.parallelize([pickle.dumps(task) for task in tasks], slices)
        return self.collect(payloads, slices, functools.partial(_run, function), len(tasks), description, progress)

    def labels(self, labels: Sequence[Any]) -> Pieces:
        return SparkPieces.of_labels(self, labels)

    def collect(
        self,
        payloads: "RDD[Any]",
        slices: int,
        run: Callable[[Iterable[Any]], Iterator[Any]],
        total: int,
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Any]:
        """The results of `run` for each of the `slices` partitions of `payloads`, in one job; as `map` otherwise.

        `total` is what `progress` counts.
        """
        group = f"hudi_services-{uuid.uuid4()}"
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(group, slices, total, progress, stop), daemon=True)
        try:
            tasks = shipped(ship(self.context), run)
            with _job_group(self.context, group, description):
                watcher.start()
                outcomes: list[Any] = payloads.mapPartitions(tasks).collect()
        except (Py4JError, ConnectionError) as error:
            raise JobLost(
                f"the Spark job '{description}' failed: {_cause(error)}",
                hint="see the log of the executors, or --verbose",
            ) from error
        except KeyboardInterrupt:
            with suppress(Py4JError, ConnectionError):
                self.context.cancelJobGroup(group)
            raise
        finally:
            stop.set()
            if watcher.ident is not None:
                watcher.join()
            self._settle(group, description)
        progress(total, total)
        for outcome in outcomes:
            if isinstance(outcome, HudiServicesError):
                raise outcome
        return outcomes

    def _settle(self, group: str, description: str) -> None:
        """Wait until no attempt of the job is running, and note those of tasks that had several."""
        # When the Java process is gone, its executors end, too.
        with suppress(Py4JError, ConnectionError):
            attempts = TaskAttempts(self.context, group)
            attempts.wait()
            self.repeated += attempts.repeated(description)

    def _watch(
        self, group: str, slices: int, total: int, progress: Callable[[int, int], None], stop: threading.Event
    ) -> None:
        tracker = self.context.statusTracker()
        # When the Java process is gone, the thread that waits for the job reports it.
        with suppress(Py4JError, ConnectionError):
            while not stop.wait(_POLL_SECONDS):
                done = 0
                for job in tracker.getJobIdsForGroup(group):
                    info = tracker.getJobInfo(job)
                    for stage in info.stageIds if info else ():
                        state = tracker.getStageInfo(stage)
                        done += state.numCompletedTasks if state else 0
                progress(min(done, slices) * total // slices, total)


@contextmanager
def _job_group(context: SparkContext, group: str, description: str) -> Iterator[None]:
    """A context in which jobs of this thread belong to `group`; afterwards they belong to their previous group."""
    before = {name: context.getLocalProperty(name) for name in _JOB_PROPERTIES}
    context.setJobGroup(group, description, interruptOnCancel=True)
    try:
        yield
    finally:
        with suppress(Py4JError, ConnectionError):
            for name, value in before.items():
                # None removes the property.
                context.setLocalProperty(name, value)  # type: ignore[arg-type]


def _cause(error: Exception) -> str:
    """What went wrong, in one line."""
    if not isinstance(error, Py4JJavaError):
        return f"its Java process is gone ({type(error).__name__})"
    return what_failed(str(error.java_exception.getMessage()))


def _run(function: Callable[[Task, str], Result], payloads: Iterable[bytes]) -> Iterator[Result | HudiServicesError]:
    """Yield the result of `function` for each task, and HudiServicesErrors as values: a retry of the task cannot help,
    and their text stays whole."""
    with in_task() as token:
        for payload in payloads:
            try:
                yield function(pickle.loads(payload), token)
            except HudiServicesError as error:
                yield error
