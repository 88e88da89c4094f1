"""The engine without Java: tasks in processes of this machine."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..engine import LocalEngine, Pieces, RepeatedTask, WeighedTask, weights
from ..options.value_types import LEAST_MEMORY
from ..process import machine_bytes, usable_cores
from ..rows.memory import INTERPRETER_BYTES
from .process_pieces import ProcessPieces, counted
from .worker_pool import Workers

Task = TypeVar("Task")
Result = TypeVar("Result")

LITTLE = 16 << 20
"""Bytes of the tasks of a job that this process does itself: others would take as long to begin."""


class ProcessEngine:
    """Runs tasks in up to `parallelism` processes, or as many as there are cores, until `close`.

    One thread at a time may give it work. `engines` share the memory of the machine.
    """

    repeats_tasks = False
    repeated: Sequence[RepeatedTask] = ()

    def __init__(self, parallelism: int | None = None, *, engines: int = 1) -> None:
        found = usable_cores()
        self.cores = min(found, parallelism or found)
        self._machine_bytes = machine_bytes() * 8 // 10 // engines
        self._workers = Workers(self.cores)
        self._is_little = False

    @property
    def task_memory(self) -> int:
        """A share of 80 % of the memory, less the memory of the interpreters; at least 64 MiB."""
        return max(LEAST_MEMORY, (self._machine_bytes - INTERPRETER_BYTES) // self.cores - INTERPRETER_BYTES)

    def prepare(self, size: int) -> None:
        """Get ready, without waiting for it, for jobs whose tasks read so many bytes of the table."""
        self._is_little = size <= LITTLE
        if not self._is_little:
            self._workers.start()

    def map(
        self,
        function: Callable[[Task, str], Result],
        tasks: Sequence[Task],
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Result]:
        each = weights(tasks)
        total = sum(each)
        is_told = all(isinstance(one, WeighedTask) for one in tasks)
        if total <= LITTLE if is_told else self._is_little:
            return LocalEngine(self.cores).map(function, tasks, description, progress)
        tell = counted(progress, total)
        return self._workers.run(function, tasks, description, lambda at: tell(each[at]))

    def labels(self, labels: "Sequence[Any]") -> Pieces:
        return ProcessPieces.of_labels(self._workers, labels)

    def close(self) -> None:
        self._workers.close()
