"""The shares of one task's memory, so that a task can rewrite a group of any size.

The limit is for the data. The interpreter and its libraries (`INTERPRETER_BYTES`) and the reader of each old file
(`READER_BYTES`) need memory in addition.
"""

from dataclasses import dataclass

from ..concurrency import AT_ONCE

INTERPRETER_BYTES = 160 << 20
READER_BYTES = 24 << 10
_LEAST_PROCESS_BYTES = 85 << 20
_THREAD_BYTES = 1 << 20
"""What one of the threads that open small files keeps."""
_WRITER_BYTES = 48 << 20
"""What writing needs, without the rows of a row group."""
_MOST_MERGED = 400 << 20
_PLENTY = 8
"""A task needs its rows as they are encoded some three times in memory, and for a sort twice as much."""
_ROW_BYTES = 32
"""What sorting needs for each row, without the row itself: keys, their order, and numpy's memory to find the order."""


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """The memory of one task; `limit` is the bytes for its data."""

    limit: int = 1 << 30

    @property
    def process(self) -> int:
        """Bytes that the process of the task keeps to: those of its data and of the interpreter."""
        return self.limit + INTERPRETER_BYTES

    @property
    def run(self) -> int:
        """Bytes of the rows that are sorted at once; during the sort one column is in memory three times."""
        return self.limit * 3 // 8

    @property
    def merged(self) -> int:
        """Bytes of the rows of all sorted runs that are merged at once; these rows are in memory twice.

        More than the caches of a processor can hold makes the merge slow: of 7 GB, three times as slow (measured).
        """
        return min(self.limit // 5, _MOST_MERGED)

    @property
    def stored(self) -> int:
        """Bytes of a row group as it is stored."""
        return self.limit // 5

    @property
    def log_records(self) -> int:
        """Bytes of the log records of all slices that are merged in memory."""
        return self.limit // 8

    @property
    def sample(self) -> int:
        """Bytes of the sample that a layout learns from."""
        return self.limit // 8

    def is_plenty(self, encoded: int) -> bool:
        """Whether a task that rewrites `encoded` bytes need not give freed memory back at once."""
        return _PLENTY * encoded <= self.limit

    def row_group(self, configured: int) -> int:
        """The bytes in memory of a new row group: `configured`, or less when that is too large."""
        return min(configured, self.limit // 4)


def copy_peak(row_group: int, files: int) -> int:
    """The peak memory of a task that copies, in bytes: the largest row group as it is stored, and its output."""
    return _process(files) + _WRITER_BYTES // 2 + 2 * row_group


def decoding_peak(memory: TaskMemory, row_group: int, data: float, files: int) -> int:
    """The peak memory, in bytes, of a task that decodes `data` bytes of rows unsorted: more than one new row group."""
    return _process(files) + min(_WRITER_BYTES, int(data)) + min(memory.row_group(row_group), int(data)) * 17 // 10


def sort_peak(memory: TaskMemory, data: float, rows: int, files: int) -> int:
    """The peak memory, in bytes, of a task that sorts `rows` rows of `data` bytes; at most what the task may use."""
    needed = sort_bytes(int(data), rows)
    return _process(files) + (memory.limit if needed > memory.run else needed * 6 // 5 + min(_WRITER_BYTES, needed))


def _process(files: int) -> int:
    return _LEAST_PROCESS_BYTES + min(files, AT_ONCE) * _THREAD_BYTES + files * READER_BYTES


def sort_bytes(table_bytes: int, rows: int) -> int:
    """The bytes in memory of rows that are to be sorted."""
    return table_bytes + rows * _ROW_BYTES
