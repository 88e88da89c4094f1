"""How a service runs independent pieces of work: on Spark, in processes of this machine, or in this process."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from .process import machine_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RepeatedTask:
    """A task that had several `attempts`, of which one counts; `why`: what the engine says of the first other one.

    `task` is its number in the job `description`.
    """

    description: str
    task: int
    attempts: int
    why: str


@runtime_checkable
class WeighedTask(Protocol):
    """A task that tells how much it has to do."""

    @property
    def bytes(self) -> int:
        """The stored bytes that it reads, about."""


def weights(tasks: Sequence[object]) -> list[int]:
    """What the progress counts for each task: its bytes where all tasks tell theirs, otherwise 1."""
    told = [max(1, one.bytes) for one in tasks if isinstance(one, WeighedTask)]
    return told if len(told) == len(tasks) else [1] * len(tasks)


@runtime_checkable
class CountedTask(Protocol):
    """A task that may tell how many rows it has to do."""

    @property
    def rows(self) -> int | None: ...


def rows_told(tasks: Sequence[object]) -> int | None:
    """The rows of all tasks, None where one of them does not tell its own."""
    told = [one.rows if isinstance(one, CountedTask) else None for one in tasks]
    known = [one for one in told if one is not None]
    return sum(known) if known and len(known) == len(told) else None


class Engine(Protocol):
    """Runs one function over many tasks; tasks, results and errors are plain picklable values."""

    @property
    def task_memory(self) -> int:
        """Bytes of memory for the data of one task."""

    @property
    def cores(self) -> int:
        """The number of tasks that run at the same time, about."""

    @property
    def repeats_tasks(self) -> bool:
        """Whether a task may run again, or twice at the same time, when its first run did not end well."""

    @property
    def repeated(self) -> Sequence[RepeatedTask]:
        """The tasks so far that had several attempts."""

    def map(
        self,
        function: Callable[[Task, str], Result],
        tasks: Sequence[Task],
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Result]:
        """The results of `function` in the order of `tasks`. `function` also gets a write token, unique to the attempt.

        `progress(done, total)` is called from time to time, with what `weights` gives for the tasks. Raises the first
        error of a task unchanged. When it returns or raises, no attempt of a task is running any more.
        """

    def labels(self, labels: "Sequence[Any]") -> "Pieces":
        """A partition for each of the labels, with a table without rows, for tasks that hand tables to each other."""


Labelled: TypeAlias = "Iterator[tuple[Any, pa.Table]]"
"""Tables of one partition, each with its label."""
Step: TypeAlias = "Callable[[Any, Labelled, str], Iterator[Any]]"
"""A function of a task, of the labelled tables of one partition, and of a token that begins with its number."""


def number_of(token: str) -> int:
    """The number of the partition that a task has."""
    return int(token.partition("-")[0])


class Pieces(Protocol):
    """Tables with labels, in partitions that an engine's processes have; computed when results are asked for.

    Labels are small picklable values; those of `divided` are pairs of the number of a partition and another label.
    """

    def then(self, step: Step, task: Any) -> "Pieces":
        """The labelled tables that `step` makes of each partition."""

    def joined(self, other: "Pieces") -> "Pieces":
        """The tables of both, which `then` has made, in the partitions of both."""

    def divided(self, partitions: int, description: str) -> "Pieces":
        """The same tables in other partitions, with the second part of their labels; `description` says what sends
        them."""

    def keep(self) -> "Pieces":
        """Itself; its tables are computed once, and kept until `release`."""

    def release(self) -> None: ...

    def results(self, step: Step, task: Any, description: str, progress: "Callable[[int, int], None]") -> list[Any]:
        """What `step` gives for all partitions, in their order. Raises the first error of any step."""


class Frame(Protocol):
    """A data frame of an engine: rows in partitions, which are computed when they are asked for."""

    @property
    def schema(self) -> "pa.Schema": ...

    @property
    def engine(self) -> Engine:
        """The engine that has the rows."""

    def is_known_empty(self) -> bool:
        """Whether it is known, without computing the rows, that there are none."""

    def pieces(self) -> Pieces:
        """The rows, with None as labels."""

    @property
    def parallelism(self) -> int:
        """In how many partitions rows are best divided."""


class LocalEngine:
    """Runs one task after the other, in this process; `cores` is what services are told that divide their work."""

    repeats_tasks = False
    repeated: Sequence[RepeatedTask] = ()
    cores = 1

    def __init__(self, cores: int = cores) -> None:
        self.cores = cores

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
        each = weights(tasks)
        done, total = 0, sum(each)
        for task, weight in zip(tasks, each, strict=True):
            results.append(function(task, f"{len(results)}-0-{len(results)}"))
            done += weight
            progress(done, total)
        return results

    def labels(self, labels: "Sequence[Any]") -> "Pieces":
        # Imported here: most commands hand no tables on, and need no Arrow.
        from .local_pieces import LocalPieces

        return LocalPieces.of_labels(labels)
