"""Execution strategies of clusterings: what writes a group, by the name of Hudi's class or `package.module:Class`.

    SparkSortAndSizeExecutionStrategy               rows are sorted where there are sort columns; else row groups are
                                                    copied where they can be
    SparkStreamCopyClusteringExecutionStrategy,     the same
    SparkBinaryCopyClusteringExecutionStrategy
    SparkSingleFileSortExecutionStrategy            the same, one new file for each old one

    SparkConsistentBucketClusteringExecutionStrategy,
    SingleSparkJobConsistentHashingExecutionStrategy
                                                    each row goes to its bucket by consistent hashing

An operator's own class is a `GroupWriter`. Plans of Hudi are executed by the class of its own option (0.15.0 to 1.2.0);
a plan of ours names a class that all releases have.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ..options.clustering_keys import (
    BUCKET_EXECUTIONS,
    COPY_EXECUTIONS,
    SINGLE_FILE_EXECUTION,
    SORT_AND_SIZE_EXECUTION,
)
from ..plugins import guarded, load_class
from .bucket_writing import BucketWriter
from .copy_plan import copy_plan, part_plan
from .copying import CopyingWriter
from .decoding import DecodingWriter
from .group import Group
from .group_writer import GroupEstimate, GroupWriter


def sort_and_size(group: Group) -> GroupWriter:
    """The writer of this program: it copies the row groups of a group where it can; for a part that is decided."""
    task = group.task
    if task.part is not None:
        plan = part_plan(task.part)
    else:
        plan = copy_plan(task, group.readers, group.target, group.segments, group.pieces)
    return DecodingWriter(group, plan) if isinstance(plan, str) else CopyingWriter(group, plan)


@dataclass(frozen=True, slots=True)
class ExecutionStrategy:
    """An execution strategy; `in_plan` is the class that a plan names for Hudi."""

    writer: Callable[[Group], GroupWriter]
    in_plan: str
    single_files: bool = False
    """Whether each group is one file slice, and becomes one file, however large."""
    copies: bool = False
    """Whether Hudi's class is made to copy files."""
    own: type[GroupWriter] | None = None
    """The operator's own class."""

    def write(self, group: Group) -> GroupWriter:
        """Write the group. Raises ConfigError when a class of the operator's own fails."""
        with self._guarded():
            writer = self.writer(group)
            writer.write()
        return writer

    def estimate(self, group: Group) -> GroupEstimate | None:
        """What `write` would do; None where that is not known. Raises as `write`."""
        with self._guarded():
            return self.writer(group).estimate()

    def _guarded(self) -> AbstractContextManager[None]:
        return nullcontext() if self.own is None else guarded("execution strategy", self.own)


_SORT_AND_SIZE = ExecutionStrategy(sort_and_size, SORT_AND_SIZE_EXECUTION)
# The copying classes came after 1.0, and add nothing to the rest of a plan.
_COPY = ExecutionStrategy(sort_and_size, SORT_AND_SIZE_EXECUTION, copies=True)
EXECUTIONS: Mapping[str, ExecutionStrategy] = {
    SORT_AND_SIZE_EXECUTION: _SORT_AND_SIZE,
    SINGLE_FILE_EXECUTION: ExecutionStrategy(sort_and_size, SINGLE_FILE_EXECUTION, single_files=True),
    **dict.fromkeys(COPY_EXECUTIONS, _COPY),
    # The other class of 1.0.2 brings deleted rows back.
    **dict.fromkeys(BUCKET_EXECUTIONS, ExecutionStrategy(BucketWriter, BUCKET_EXECUTIONS[0])),
}


def execution_called(name: str) -> ExecutionStrategy:
    """The strategy of a class of Hudi, or the class `package.module:Class`. Raises ConfigError for an unknown name."""
    found = EXECUTIONS.get(name)
    if found is None:
        kind: type[GroupWriter] = load_class(name, "execution strategy", GroupWriter)
        found = ExecutionStrategy(kind, SORT_AND_SIZE_EXECUTION, own=kind)
    return found
