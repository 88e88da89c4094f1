"""How a service runs independent pieces of work: on Spark, or in this process."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from .process import machine_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs one function over many tasks; tasks, results and errors are plain picklable values."""

    @property
    def task_memory(self) -> int:
        """Bytes of memory for the data of one task."""

    def map(
        self,
        function: Callable[[Task, str], Result],
        tasks: Sequence[Task],
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Result]:
        """The results of `function` in the order of `tasks`. `function` also gets a write token, unique to the attempt.

        `progress(done, total)` is called from time to time. Raises the first error of a task unchanged, when no other
        task is running any more.
        """


class Frame(Protocol):
    """A data frame of an engine: rows in partitions, which are computed when they are asked for."""

    @property
    def schema(self) -> "pa.Schema": ...

    @property
    def engine(self) -> Engine:
        """The engine that has the rows."""

    def reader(self) -> "pa.RecordBatchReader":
        """All rows, a partition at a time, in this process."""

    def is_empty(self) -> bool: ...

    def map(
        self,
        function: "Callable[[Task, Iterator[pa.RecordBatch], str], Iterator[Result]]",
        task: Task,
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Result]:
        """The results of `function` for the rows of each partition, in the engine's tasks; otherwise as `Engine.map`.

        The write token begins with the number of the partition.
        """


class LocalEngine:
    """Runs one task after the other, in this process."""

    @property
    def task_memory(self) -> int:
        return machine_bytes() // 2

    def map(
        self,
        function: Callable[[Task, str], Result],
        tasks: Sequence[Task],
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Result]:
        results: list[Result] = []
        for task in tasks:
            results.append(function(task, f"{len(results)}-0-{len(results)}"))
            progress(len(results), len(tasks))
        return results
