"""The rows of one write: how they are kept, what is known of them, and who runs the tasks that write them.

`LocalRows` are rows that this process keeps; those of data frames are in `frame_rows`.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from ..concurrency import at_once
from ..keygen.key_maker import KeyMaker
from ..merging.rules import DeleteMarker, MergeRule
from ..rows.memory import TaskMemory
from ..snapshot import Snapshot
from ..writing.assignment import Assigned, Assigner, DuplicatePolicy
from ..writing.buckets import Buckets
from ..writing.distinct_rows import DistinctRows
from ..writing.inserted_files import Written
from ..writing.kept_rows import KeptRows
from ..writing.row_keys import FileKeys, with_keys
from ..writing.row_store import CountedRows, RowStore
from ..writing.write_index import Index
from ..writing.writer_schema import WriterSchema
from .write_tasks import WriteTask

_LEAST_MEMORY = 512 << 20
"""Bytes of memory for each of several tasks that run at once."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class KeepTask:
    """How rows are kept; the fields are those of `KeptRows`. `maker` makes keys; `compares`: they are compared."""

    schema: WriterSchema
    maker: KeyMaker
    memory: TaskMemory
    compares: bool = False
    keys_only: bool = False
    numbered: bool = False
    omits_deletes: bool = False
    marker: DeleteMarker | None = None
    buckets: Buckets | None = None
    given: WriterSchema | None = None
    """As in `KeptRows`."""

    def kept(self, store: CountedRows) -> KeptRows:
        """Rows in `store` that are kept so."""
        return KeptRows(
            self.schema,
            store,
            keys_only=self.keys_only,
            numbered=self.numbered,
            omits_deletes=self.omits_deletes,
            marker=self.marker,
            buckets=self.buckets,
            given=self.given,
            file_keys=FileKeys(self.maker.form, self.schema) if self.compares and not self.schema.has_meta else None,
        )


class WriteRows(Protocol):
    """Rows that are kept until they are written."""

    @property
    def kept(self) -> KeptRows:
        """Their schema, partitions and counts; the rows themselves may be elsewhere."""

    @property
    def rule(self) -> MergeRule | None:
        """The merge rule of an operation to which keys matter."""

    @property
    def limit(self) -> int:
        """Bytes of memory for the data of the write, in each process that has some."""

    @property
    def task_memory(self) -> TaskMemory:
        """The memory of each task."""

    def assigned(
        self, table: Snapshot, index: Index, known: DuplicatePolicy
    ) -> AbstractContextManager[Assigned | None]:
        """The rows by where they go in `table`; those of an operation that looks for no keys are inserts as they are.

        None where rows are assigned by the tasks that write them. Raises what `Assigner.assign` raises.
        """

    def write(self, table: Snapshot, ts: str, tasks: Sequence[WriteTask]) -> list[Written]:
        """Run the tasks of the instant `ts`, within the context of `assigned`, which they are made of.

        Raises what they raise.
        """


class LocalRows:
    """Rows that this process keeps; `distinct` is for look-ups. Their tasks run in threads of this process."""

    def __init__(self, kept: KeptRows, distinct: DistinctRows | None, memory: TaskMemory, progress: Progress) -> None:
        self.kept = kept
        self.rule = distinct.rule if distinct is not None else None
        self.limit = memory.limit
        self._distinct = distinct
        self._progress = progress
        self._store = kept.here

    @property
    def task_memory(self) -> TaskMemory:
        return TaskMemory(self.limit // self._at_once)

    @contextmanager
    def assigned(self, table: Snapshot, index: Index, known: DuplicatePolicy) -> Iterator[Assigned]:
        if self._distinct is None:
            yield Assigned(self.kept.store)
            return
        with RowStore(self.limit // 4) as store:
            self._store = store
            yield Assigner(with_keys(table, self.kept.file_keys), self.kept, index, self._distinct, known).assign(store)

    def write(self, table: Snapshot, ts: str, tasks: Sequence[WriteTask]) -> list[Written]:
        done = itertools.count(1)

        def run(task: WriteTask) -> Written:
            written = task.run(self._store)
            self._progress("write", next(done), len(tasks))
            return written

        return at_once(run, tasks, self._at_once)

    @property
    def _at_once(self) -> int:
        """How many tasks run at once: their memory is divided between them."""
        return max(1, min(os.cpu_count() or 1, self.limit // _LEAST_MEMORY))
