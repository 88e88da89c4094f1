"""How many rows the base files have that readers see, from what tells it cheaply: commits, the index, some footers."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..base_files.slices import RECORD_KEY
from ..concurrency import at_once
from ..errors import CorruptFile, StorageError
from ..metadata.records.keys import COLUMN_STATS, column_stats_prefix
from ..metadata.records.model import StatsRecord
from ..model import FileSlice
from ..snapshot import Snapshot
from .distributions import Counts

_MOST_FOOTERS = 128
_MOST_INDEXED = 200_000
"""The file slices up to which the index is read, a record for each."""


@dataclass(frozen=True)
class RowFacts:
    """The rows of the base file of each slice, in the order of `FileFacts`; -1 where they are not known."""

    rows: Counts
    from_commits: int
    from_index: int
    from_footers: int

    @property
    def known(self) -> int:
        return self.from_commits + self.from_index + self.from_footers


def row_facts(table: Snapshot, slices: int, rows_of: Mapping[str, int]) -> RowFacts:
    """Look the rows up. `slices` is how many there are, `rows_of` what commits tell, by the names of base files.

    Rows of log files do not count: only a merge tells how many rows readers see of them. Raises CorruptFile and
    StorageError, but not for a footer.
    """
    rows = np.full(slices, -1, np.int64)
    step = max(1, math.ceil(slices / _MOST_FOOTERS))
    sample: dict[int, FileSlice] = {}
    unknown: dict[str, dict[str, int]] = defaultdict(dict)
    number = 0
    for partition, view in table.view.each(table.view.partitions()):
        for one in view.latest_slices(partition):
            name = one.base_name
            if name:
                rows[number] = rows_of.get(name, -1)
            if name and rows[number] < 0:
                if slices <= _MOST_INDEXED:
                    unknown[partition][name] = number
                if number % step == 0 and one.base_file is not None:
                    sample[number] = FileSlice.of_base(one.base_file)
            number += 1
    from_commits = int((rows >= 0).sum())
    places = {name: place for names in unknown.values() for name, place in names.items()}
    for name, count in _indexed(table, unknown).items():
        if name in places:
            rows[places[name]] = count
    from_index = int((rows >= 0).sum()) - from_commits
    left = [place for place in sample if rows[place] < 0]
    for place, found in zip(left, at_once(lambda place: _footer_rows(table, sample[place]), left), strict=True):
        rows[place] = found
    from_footers = int((rows >= 0).sum()) - from_commits - from_index
    return RowFacts(rows, from_commits, from_index, from_footers)


def _indexed(table: Snapshot, partitions: Iterable[str]) -> dict[str, int]:
    """The rows by file name, as the column statistics index counts record keys, which are never null."""
    if table.metadata is None or COLUMN_STATS not in table.config.metadata_partitions:
        return {}
    prefixes = (column_stats_prefix(RECORD_KEY, one) for one in partitions)
    found = (one for _, records in table.metadata.reader(COLUMN_STATS).scan_prefixes(prefixes) for one in records)
    return {one.file_name: one.value_count for one in found if isinstance(one, StatsRecord) and not one.deleted}


def _footer_rows(table: Snapshot, file_slice: FileSlice) -> int:
    """-1 for a file that cannot be read: doctor's own checks tell of it."""
    try:
        return table.slices.facts(file_slice, lambda facts: facts.rows)
    except (CorruptFile, StorageError):
        return -1
