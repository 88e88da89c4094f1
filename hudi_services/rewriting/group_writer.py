"""How the rows of a group become new files: what this program does is in `copying` and `decoding`.

An operator can write another way as a class, see `GroupWriter`, and name it as execution strategy (`execution`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ..rows.external_sort import plain
from ..rows.sort_order import SortColumn
from .group import Group
from .outputs import OutputFile


@dataclass(frozen=True, slots=True)
class GroupEstimate:
    """The estimate of one group. Sizes in bytes; `memory` is the peak of the process that runs the task.

    `decoded`: why the rows must be decoded, None when they are copied. `spilled`: whether a sort spills rows to the
    local disk.
    """

    rows: int
    new_files: tuple[int, ...]
    memory: int
    decoded: str | None
    spilled: bool
    new_rows: tuple[int, ...] = ()
    """About how many rows each new file gets, in their order; () where that is not known."""


class GroupWriter(ABC):
    """Writes one group, for which it is created, in the task that rewrites it.

    Operators name a subclass of their own as `package.module:Class`. It decides which row goes into which file, and in
    which order; every row must be written once, as it is. The rows are counted when they are given, and read back from
    the new files: where they differ, the rewrite ends with CheckFailed, and nothing is committed.
    """

    prefix = ""
    """The keys of its own parameters begin so; "" for none."""
    decoded: str | None = "execution strategy"
    """Why rows are decoded; None when all row groups are copied."""

    def __init__(self, group: Group) -> None:
        self.group = group

    @abstractmethod
    def write(self) -> None:
        """Write the new files of the group."""

    def estimate(self) -> GroupEstimate | None:
        """What `write` would do; None where that is not known."""
        return None

    @property
    def parameters(self) -> dict[str, str]:
        """The options whose keys begin with `prefix`, by key, as the operator gives them to the command."""
        return dict(self.group.task.parameters)

    @property
    def sort(self) -> tuple[SortColumn, ...]:
        """The sort columns of the plan."""
        return self.group.task.sort

    @property
    def partition(self) -> str:
        """The path of the partition."""
        return self.group.task.partition

    @property
    def rows(self) -> int:
        """The number of rows of the group."""
        return self.group.rows

    def cuts(self) -> list[int]:
        """The number of rows of each new file of the target size, when the rows keep their order, or are all alike."""
        stored = float(sum(reader.stored_bytes for reader in self.group.readers))
        return self.group.cuts(self.group.pieces or [(self.rows, stored)])

    def tables(self) -> Iterator[pa.Table]:
        """All rows, in tables of about 16 MiB, with all columns but the file name; may be called again.

        Of hundreds of columns a table has up to 64 MiB, where the task has memory.
        """
        return map(plain, self.group.tables())

    def new_file(self, rows: int) -> OutputFile:
        """The next new file, a context: `with self.new_file(1000) as file: file.write(table)`.

        `rows` is about the number of its rows, by which the bloom filter is sized. Tables have the types of `tables`.
        """
        return self.group.new_file(rows)
