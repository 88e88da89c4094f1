"""The Python workers of Spark while they run tasks of ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark import TaskContext

from ..process import give_back_large_blocks


@contextmanager
def in_task() -> Iterator[str]:
    """The settings of a Python worker while it runs a task of ours; gives the write token of the task."""
    context = TaskContext.get()
    assert context is not None
    give_back_large_blocks()
    # Arrow's own allocator (mimalloc) asks for more memory than it uses: its first gigabyte takes a second longer
    # (measured). Tasks of other jobs may follow in this worker.
    pool = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield f"{context.partitionId()}-{context.stageId()}-{context.taskAttemptId()}"
    finally:
        pa.set_memory_pool(pool)
