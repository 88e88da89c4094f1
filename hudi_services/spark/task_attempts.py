"""What became of the attempts of tasks: Spark runs a task again after a failure, and twice where it is slow.

Source: AppStatusStore, AppStatusListener and the classes of org.apache.spark.status.api.v1 of Apache Spark 3.5 and 4.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext, StatusTracker

from ..engine import RepeatedTask

_POLL_SECONDS = 0.02
_LONGEST_END = 30.0
"""Seconds. Spark looks every two seconds for workers of Python whose task was killed, gives them
spark.python.task.killTimeout (two seconds), and kills them."""
_MOST_ATTEMPTS = 1_000
"""Failed and killed attempts of a stage that are told."""
_RUNNING, _KILLED = "RUNNING", "KILLED"
_PYTHON_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception|Invalid)\b.*:")
_LOST_ROWS = "the rows that it had made were lost with an executor"


class TaskAttempts:
    """The attempts of the tasks of one job group."""

    def __init__(self, context: SparkContext, group: str) -> None:
        java: Any = context._jvm
        self._java = java
        self._tracker = context.statusTracker()
        self._store = context._jsc.sc().statusStore()
        self._group = group
        self._all = java.java.util.ArrayList()
        self._none = context._gateway.new_array(java.double, 0)  # type: ignore[union-attr]

    def wait(self) -> None:
        """Wait until all attempts have ended, also those that Spark kills because their results are not needed.

        Their workers write files, markers and checkpoints until they are dead: after that, nobody does.
        """
        end = time.monotonic() + _LONGEST_END
        while self._are_running() and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)

    def repeated(self, description: str) -> list[RepeatedTask]:
        """The tasks that had more than one attempt; `description` is that of the job."""
        attempts: Counter[int] = Counter()
        reasons: dict[int, str] = {}
        for stage in self._stages():
            if stage.numFailedTasks() + stage.numKilledTasks():
                for task in self._ended_badly(stage):
                    attempts[task.index()] += 1
                    reasons.setdefault(task.index(), _reason(task))
            if stage.attemptId():
                # Only tasks whose results are gone are in later attempts of a stage.
                for task in _each(self._tasks(stage, self._all)):
                    attempts[task.partitionId()] += 1
                    reasons.setdefault(task.partitionId(), _LOST_ROWS)
        return [RepeatedTask(description, task, count + 1, reasons[task]) for task, count in sorted(attempts.items())]

    def _are_running(self) -> bool:
        # What the listener of Spark knows comes later than the result, in order: the end of the job comes last.
        jobs = [self._tracker.getJobInfo(job) for job in self._tracker.getJobIdsForGroup(self._group)]
        if any(job is not None and job.status == _RUNNING for job in jobs):
            return True
        return any(stage.numActiveTasks() for stage in self._stages())

    def _stages(self) -> Iterator[Any]:
        """All attempts of all stages."""
        for stage in stages_of(self._tracker, self._group):
            yield from _each(self._store.stageData(stage, False, self._all, False, self._none))

    def _ended_badly(self, stage: Any) -> Iterator[Any]:
        status = self._java.org.apache.spark.status.api.v1.TaskStatus
        states = self._java.java.util.ArrayList()
        states.add(status.FAILED)
        states.add(status.KILLED)
        return _each(self._tasks(stage, states))

    def _tasks(self, stage: Any, states: Any) -> Any:
        unsorted = self._java.scala.Option.empty()
        return self._store.taskList(stage.stageId(), stage.attemptId(), 0, _MOST_ATTEMPTS, unsorted, True, states)


def stages_of(tracker: StatusTracker, group: str) -> Iterator[int]:
    """The numbers of the stages of a job group."""
    for number in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(number)
        yield from job.stageIds if job else ()


def _each(sequence: Any) -> Iterator[Any]:
    """The elements of a sequence of Scala."""
    for at in range(sequence.size()):
        yield sequence.apply(at)


def what_failed(text: str) -> str:
    """The line that says what went wrong: the last of a Python traceback, else the first of Java's."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if _PYTHON_ERROR.match(line)]
    return (python or lines or ["unknown"])[-1 if python else 0]


def _reason(task: Any) -> str:
    """Why an attempt did not count."""
    said = task.errorMessage()
    what = "another attempt ended first: " if task.status() == _KILLED else ""
    return f"{what}{what_failed(str(said.get()) if said.isDefined() else '')} (on {task.host()})"
