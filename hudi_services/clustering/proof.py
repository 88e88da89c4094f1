"""Row conservation: an order-free checksum of rows, to compare what went in with what came out.

The checksum is the sum of the row hashes (`codecs.row_hash`) modulo 2**64, beside the number of rows: rows may come in
any order and any batches, but a lost, doubled or altered row shows (two different sets of rows agree by accident with
probability 2**-64).

`_hoodie_file_name` is left out: it is the one column that a rewrite changes.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..codecs.row_hash import row_hashes
from ..files.parquet_writer import FILE_NAME_COLUMN


@dataclass(frozen=True, slots=True)
class Checksum:
    """Number of rows and sum of the row hashes modulo 2**64; `+` joins disjoint sets of rows."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: "Checksum") -> "Checksum":
        return Checksum(self.rows + other.rows, (self.total + other.total) & 0xFFFFFFFFFFFFFFFF)

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.total:016x}"


def checksum(table: pa.Table) -> Checksum:
    """The checksum of all rows of `table` over all its columns but `_hoodie_file_name`.

    A dictionary-encoded column counts as its values.
    """
    rows = table.select([name for name in table.column_names if name != FILE_NAME_COLUMN])
    sums = (Checksum(len(hashes), int(hashes.sum(dtype=np.uint64))) for hashes in row_hashes(rows))
    return sum(sums, start=Checksum())
