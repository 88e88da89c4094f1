"""How the memory of one task is shared out, so that a group of any size fits into it.

The limit is for the data; the interpreter and its libraries come on top of it (`INTERPRETER_BYTES`), and what a task
knows of each old file (`READER_BYTES`).
"""

from dataclasses import dataclass

INTERPRETER_BYTES = 150 << 20
READER_BYTES = 24 << 10
_ROW_BYTES = 32
"""What sorting needs for a row besides: keys, their order, and what numpy takes to find it."""


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

    def row_group(self, wanted: int) -> int:
        """The size in memory of a new row group: `wanted`, unless that is too large."""
        return min(wanted, self.limit // 4)


def sort_bytes(table_bytes: int, rows: int) -> int:
    """What rows take that are to be sorted."""
    return table_bytes + rows * _ROW_BYTES
