"""Rewriting the buckets of a group by consistent hashing: each row goes to the bucket that its key has from now on.

Source: SparkConsistentBucketClusteringExecutionStrategy, ConsistentBucketIndexBulkInsertPartitioner of Apache Hudi.
"""

from collections.abc import Iterable
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from ..base_files.slices import RECORD_KEY
from ..rows.external_sort import ExternalSort
from .decoding import learned_sorter
from .group_writer import GroupWriter
from .outputs import RowFile


class BucketWriter(GroupWriter):
    """Writes a file for each new bucket that gets rows. How large they get is not known before."""

    decoded = "consistent hashing"

    def write(self) -> None:
        group, task = self.group, self.group.task
        if not task.sort:
            self._divide(group.tables())
            return
        with ExternalSort(learned_sorter(group), group.rows, task.memory) as sort:
            for table in group.tables():
                sort.add(table)
            sort.complete()
            group.spilled_bytes = sort.spilled_bytes
            self._divide(group.clock.each("sort", sort.tables()))

    def _divide(self, tables: Iterable[pa.Table]) -> None:
        group, split = self.group, self.group.task.split
        assert split is not None, "the plan has buckets"
        path = group.readers[0].full_path
        files: dict[int, RowFile] = {}
        with ExitStack() as stack:
            for table in tables:
                if not table.num_rows:
                    continue
                positions = split.positions(table.column(RECORD_KEY), path)
                for number in np.unique(positions).tolist():
                    if number not in files:
                        one = group.outputs.rows(split.new[number], group.rows // len(split.new) + 1)
                        files[number] = one
                        stack.enter_context(one)
                    files[number].write(table.filter(pa.array(positions == number)))
