"""Row conservation: a checksum of rows that ignores their order, to compare the rows before and after a rewrite.

The checksum is the number of rows and the sum of the row hashes (`codecs.row_hash`) modulo 2**64. Rows may come in any
order and in any batches, but a lost, doubled or changed row changes the checksum (two different sets of rows have the
same sum by accident with probability 2**-64).

`_hoodie_file_name` is the only column that a rewrite changes: its values are compared with the names of the new files.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.file_writer import FILE_NAME_COLUMN
from ..codecs.row_hash import Hashes, row_hashes
from ..errors import CheckFailed
from ..paths import bare_name


@dataclass(frozen=True, slots=True)
class Checksum:
    """The number of rows and the sum of the row hashes modulo 2**64; `+` joins disjoint sets of rows."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: "Checksum") -> "Checksum":
        return Checksum(self.rows + other.rows, (self.total + other.total) & 0xFFFFFFFFFFFFFFFF)

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.total:016x}"


def checksum(table: pa.Table) -> Checksum:
    """The checksum of all rows of `table` over all its columns; a dictionary-encoded column counts as its values."""
    return sum(map(sum_of, row_hashes(table)), start=Checksum())


def sum_of(hashes: Hashes) -> Checksum:
    """The checksum of rows with these hashes."""
    return Checksum(len(hashes), int(hashes.sum(dtype=np.uint64)))


def check_file_names(names: pa.ChunkedArray, path: str) -> None:
    """Raise CheckFailed unless every row of the file at `path` has its name in `_hoodie_file_name`."""
    if any(name != bare_name(path) for name in pc.unique(names).to_pylist()):
        raise CheckFailed(f"{path}: {FILE_NAME_COLUMN} does not hold the name of the file")
