"""Whether a log file could be merged with what its file group has: Hudi's readers fail where one of two rows of a key
has a null ordering value, and the other one has a value, so that such a file must not be committed.

The merge is tried where a row that is given, one of the base file, or one of the earlier log files may have a null.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from ..base_files.base_file_slices import BaseFileSlices
from ..base_files.slices import SliceSource
from ..errors import UnsupportedTable
from ..merging.log_contents import log_contents
from ..merging.ordering import OrderingField
from ..model import FileSlice, LogFile
from ..parquet.chunk_stats import ColumnStats
from ..storage import Storage


def comparing(ordering: Sequence[OrderingField]) -> list[OrderingField]:
    """The fields whose nulls Hudi cannot compare with values: of an int, null is 0."""
    return [one for one in ordering if not one.is_int]


def have_nulls(rows: pa.Table, ordering: Sequence[OrderingField]) -> bool:
    """Whether a row has a null in one of the ordering fields."""
    return any(one.values(rows).null_count for one in ordering)


def may_have_nulls(storage: Storage, file_slice: FileSlice, ordering: Sequence[OrderingField]) -> bool:
    """Whether a row of a slice may have a null in one of the ordering fields: by the footer, and by all log records.

    Raises CorruptFile, UnsupportedTable and StorageError.
    """
    names = frozenset(".".join(field.path) for field in ordering)

    def some(columns: Iterable[ColumnStats]) -> bool:
        nulls = {stats.column: stats.null_count for stats in columns}
        return any(nulls.get(name) != 0 for name in names)

    if not names:
        return False
    if file_slice.base_file is not None and BaseFileSlices(storage).facts(
        replace(file_slice, log_files=()), lambda facts: some(facts.columns)
    ):
        return True
    contents = log_contents(storage, file_slice, lambda instant: True)
    return any(content.has_records and some(content.statistics(storage, names)) for content in contents)


def check_merge(source: SliceSource, root: str, file_slice: FileSlice, log: LogFile, instant: str) -> None:
    """Raise UnsupportedTable when a slice could not be read with one more log file, whose instant is not complete."""
    reader = source.counting(instant).open(replace(file_slice, log_files=(*file_slice.log_files, log)))
    try:
        _ = reader.num_rows
    except UnsupportedTable as error:
        raise UnsupportedTable(
            f"{root}: with the rows that are to be written, the file group {file_slice.file_id} of the partition "
            f"{file_slice.partition!r} could not be read: {error.message}",
            hint="nothing was committed; give every row a value in the ordering field. Rows without one can be "
            "deleted, and written again after a compaction",
        ) from None
    finally:
        reader.release()
