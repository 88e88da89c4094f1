"""The Spark side of `engine.Engine`: one job, one task per piece of work."""

import functools
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD, Accumulator, SparkContext, StatusTracker
from pyspark.errors.exceptions.captured import CapturedException

from ..engine import Pieces, RepeatedTask, rows_told, weights
from ..errors import HudiServicesError, JobLost
from .job_names import job_group, job_name
from .memory import cores, task_memory
from .pieces import SparkPieces
from .shipping import ship, shipped
from .task_attempts import TaskAttempts, stages_of, what_failed
from .workers import in_task

Task = TypeVar("Task")
Result = TypeVar("Result")

_POLL_SECONDS = 0.5


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
        each = weights(tasks)
        payloads = self.context.parallelize([*zip(map(pickle.dumps, tasks), each, strict=True)], slices)
        done = self.context.accumulator(0)
        run = functools.partial(_run, function, done)
        named = job_name(description, len(tasks), each, rows_told(tasks))
        return self._collected(payloads, run, description, named, _Progress(progress, sum(each), lambda _: done.value))

    def labels(self, labels: Sequence[Any]) -> Pieces:
        return SparkPieces.of_labels(self, labels)

    def collect(
        self,
        payloads: "RDD[Any]",
        slices: int,
        run: Callable[[Iterable[Any]], Iterator[Any]],
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Any]:
        """The results of `run` for the `slices` partitions of `payloads`, which `progress` counts, in one job."""
        seen = _Progress(progress, slices, functools.partial(_ended_tasks, self.context.statusTracker()))
        return self._collected(payloads, run, description, job_name(description, slices, ()), seen)

    def _collected(
        self,
        payloads: "RDD[Any]",
        run: Callable[[Iterable[Any]], Iterator[Any]],
        description: str,
        named: str,
        seen: "_Progress",
    ) -> list[Any]:
        group = f"hudi_services-{uuid.uuid4()}"
        stop = threading.Event()
        watcher = threading.Thread(target=seen.watch, args=(group, stop), daemon=True)
        shipment = ship(self.context)
        try:
            tasks = shipped(shipment, run)
            with job_group(self.context, group, named):
                watcher.start()
                outcomes: list[Any] = payloads.mapPartitions(tasks).collect()
        except (Py4JError, ConnectionError, CapturedException) as error:
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
            shipment.tell_requests()
        seen.end()
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


@dataclass(frozen=True)
class _Progress:
    """Tells `tell` how much of `total` is done, as `done` counts it for a job group."""

    tell: Callable[[int, int], None]
    total: int
    done: Callable[[str], int]

    def watch(self, group: str, stop: threading.Event) -> None:
        # When the Java process is gone, the thread that waits for the job reports it.
        with suppress(Py4JError, ConnectionError):
            while not stop.wait(_POLL_SECONDS):
                self.tell(min(self.done(group), self.total), self.total)

    def end(self) -> None:
        self.tell(self.total, self.total)


def _ended_tasks(tracker: StatusTracker, group: str) -> int:
    """The tasks of a job group that have ended."""
    states = map(tracker.getStageInfo, stages_of(tracker, group))
    return sum(state.numCompletedTasks for state in states if state)


def _cause(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, CapturedException):
        # What Spark 4.3 makes of an error of Python where there is a session.
        return what_failed(str(error))
    if not isinstance(error, Py4JJavaError):
        return f"its Java process is gone ({type(error).__name__})"
    return what_failed(str(error.java_exception.getMessage()))


def _run(
    function: Callable[[Task, str], Result], done: "Accumulator[int]", payloads: Iterable[tuple[bytes, int]]
) -> Iterator[Result | HudiServicesError]:
    """Yield the result of `function` for each task, and HudiServicesErrors as values: a retry of the task cannot help,
    and their text stays whole."""
    with in_task() as token:
        for payload, weight in payloads:
            try:
                yield function(pickle.loads(payload), token)
            except HudiServicesError as error:
                yield error
            done.add(weight)
