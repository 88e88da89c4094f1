"""How the memory of one task is shared out, so that a group of any size fits into it.

The limit is for the data; the interpreter and its libraries come on top of it (`INTERPRETER_BYTES`), and what a task
knows of each old file (`READER_BYTES`).
"""

from dataclasses import dataclass

INTERPRETER_BYTES = 150 << 20
READER_BYTES = 24 << 10
_LEAST_PROCESS_BYTES = 115 << 20
_WRITER_BYTES = 48 << 20
"""What writing takes, without the rows of a row group."""
_ROW_BYTES = 32
"""What sorting needs for a row, without the row: keys, their order, and what numpy takes to find it."""


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """`limit`: bytes for the data of one task."""

    limit: int = 1 << 30

    @property
    def run(self) -> int:
        """Rows that are sorted at once; while they are, a column of them is there three times."""
        return self.limit * 3 // 8

    @property
    def merged(self) -> int:
        """Rows of all sorted runs that are merged at once; they are there twice."""
        return self.limit // 5

    @property
    def stored(self) -> int:
        """Of a row group as it is stored."""
        return self.limit // 5

    @property
    def sample(self) -> int:
        """Of the values that a layout learns from."""
        return self.limit // 8

    def row_group(self, wanted: int) -> int:
        """The size in memory of a new row group: `wanted`, unless that is too large."""
        return min(wanted, self.limit // 4)


def copy_peak(row_group: int, files: int) -> int:
    """What a task that copies takes: the largest row group as it is stored, and what goes out of it."""
    return _process(files) + _WRITER_BYTES // 2 + 2 * row_group


def decoding_peak(memory: TaskMemory, row_group: int, data: float, files: int) -> int:
    """What a task takes that decodes `data` bytes of rows without sorting them: one new row group, more than once."""
    return _process(files) + min(_WRITER_BYTES, int(data)) + min(memory.row_group(row_group), int(data)) * 17 // 10


def sort_peak(memory: TaskMemory, data: float, rows: int, files: int) -> int:
    """What a task takes that sorts so many rows of so many bytes in memory, or as many as it may have."""
    needed = sort_bytes(int(data), rows)
    return _process(files) + (memory.limit if needed > memory.run else needed * 6 // 5 + min(_WRITER_BYTES, needed))


def _process(files: int) -> int:
    return _LEAST_PROCESS_BYTES + files * READER_BYTES


def sort_bytes(table_bytes: int, rows: int) -> int:
    """What rows take that are to be sorted."""
    return table_bytes + rows * _ROW_BYTES
