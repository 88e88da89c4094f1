"""Where the rows of a write come from: batches that this process reads, or a data frame whose engine has the rows."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Protocol

import pyarrow as pa

from ..computed_once import cached_property
from ..engine import Engine, Frame, LocalEngine
from ..errors import NothingToDo
from ..merging.rules import MergeRule
from ..runs.request import WriteOperation, WriteRequest
from ..writing.distinct_rows import DistinctRows
from ..writing.row_store import RowStore
from .frame_rows import BulkRows, FrameRows
from .write_rows import KeepTask, LocalRows, WriteRows
from .write_settings import bulk_shuffles


class RowSource(Protocol):
    """The rows of one write."""

    engine: Engine
    """Runs the tasks of the write, and of the table services after it."""
    is_divided: bool
    """Whether several processes have the rows."""

    @property
    def schema(self) -> pa.Schema: ...

    def kept(
        self, task: KeepTask, rule: MergeRule | None, request: WriteRequest, table_name: str
    ) -> AbstractContextManager[WriteRows]:
        """The rows, kept as `task` says; `rule` is for look-ups.

        Raises ConfigError for a row that the table cannot take, NothingToDo without rows, StorageError.
        """


class LocalSource:
    """Rows that `read` gives, from the first one on."""

    is_divided = False

    def __init__(self, read: Callable[[], pa.RecordBatchReader]) -> None:
        self.engine: Engine = LocalEngine()
        self._read = read

    @cached_property
    def _reader(self) -> pa.RecordBatchReader:
        return self._read()

    @property
    def schema(self) -> pa.Schema:
        return self._reader.schema

    @contextmanager
    def kept(
        self, task: KeepTask, rule: MergeRule | None, request: WriteRequest, table_name: str
    ) -> Iterator[WriteRows]:
        with RowStore(task.memory.limit // 4) as store:
            kept = task.kept(store)
            kept.add(self._reader, task.maker)
            if not kept.count:
                raise NothingToDo("there are no rows to write")
            distinct = None
            if rule is not None:
                distinct = DistinctRows(kept, rule, task.memory, table_name)
                distinct.check()
            yield LocalRows(kept, distinct, task.memory, request.progress)


class FrameSource:
    """The rows of a data frame."""

    is_divided = True

    def __init__(self, frame: Frame) -> None:
        self.engine = frame.engine
        self._frame = frame

    @property
    def schema(self) -> pa.Schema:
        return self._frame.schema

    @contextmanager
    def kept(
        self, task: KeepTask, rule: MergeRule | None, request: WriteRequest, table_name: str
    ) -> Iterator[WriteRows]:
        is_bulk = rule is None and request.operation is WriteOperation.BULK_INSERT
        if is_bulk and task.buckets is None and not bulk_shuffles(request.options):
            if self._frame.is_known_empty():
                raise NothingToDo("there are no rows to write")
            yield BulkRows(self._frame, task, request.options, request.progress)
            return
        rows = FrameRows(self._frame, task, rule, table_name, request.progress)
        with closing(rows):
            if not rows.kept.count:
                raise NothingToDo("there are no rows to write")
            yield rows
