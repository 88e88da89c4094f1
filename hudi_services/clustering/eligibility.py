"""Which file slices a clustering may rewrite, and the reason for each slice that it may not."""

import enum
from collections.abc import Collection
from dataclasses import dataclass

from ..codecs.compaction_plan import FIRST_BASE_BYTES
from ..model import FileSlice
from ..table.view import FileGroupId


class ClusteringReason(enum.Enum):
    """Why a file slice is in the plan or not. A plan strategy may have its own reason for slices that it leaves out."""

    PICKED = "picked"
    FILTERED_OUT = "in a partition that is filtered out"
    PENDING_COMPACTION = "in a pending compaction"
    PENDING_CLUSTERING = "in a pending clustering"
    HALF_HIDDEN = "has files of commits that were archived beyond a savepoint"
    UNCOMMITTED = "has files of a write that is not completed"
    TOO_LARGE = "at or above the small-file limit"
    NOT_CHOSEN = "left out by the plan strategy"
    SINGLE_FILE = "alone in its group"
    LARGER_THAN_BUDGET = "larger than the bytes of one plan"
    BUDGET = "beyond the bytes of one plan"
    UNFIT = "cannot be rewritten"
    BUCKET_FITS = "a bucket that is neither to be split nor to be merged"
    GROUP_CAP = "beyond the largest number of groups"


WAITING = (ClusteringReason.BUDGET, ClusteringReason.GROUP_CAP)
"""The reasons of slices that the next plan may take."""


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The rules for slices. `small_file_limit` in bytes, exclusive; the sets hold (partition, file id).

    `half_hidden`: file groups of which readers will see other rows when a savepoint is deleted; a clustering would
    hide those rows. `uncommitted`: file groups of merge-on-read tables with files of pending or failed writes, to which
    Hudi may assign log files that are committed. `merges_only`: each file group is rewritten by itself, unsorted, and a
    slice without log files gains nothing.
    """

    small_file_limit: int
    pending_compactions: Collection[FileGroupId]
    pending_clusterings: Collection[FileGroupId]
    half_hidden: Collection[FileGroupId] = frozenset()
    uncommitted: Collection[FileGroupId] = frozenset()
    merges_only: bool = False

    def exclusion(self, file_slice: FileSlice) -> ClusteringReason | None:
        """Why a clustering may not rewrite the slice; None when it may."""
        group = (file_slice.partition, file_slice.file_id)
        if self.merges_only and not file_slice.log_files:
            return ClusteringReason.SINGLE_FILE
        if group in self.pending_compactions:
            return ClusteringReason.PENDING_COMPACTION
        if group in self.pending_clusterings:
            return ClusteringReason.PENDING_CLUSTERING
        if group in self.half_hidden:
            return ClusteringReason.HALF_HIDDEN
        if group in self.uncommitted:
            return ClusteringReason.UNCOMMITTED
        if file_slice.base_bytes >= self.small_file_limit:
            return ClusteringReason.TOO_LARGE
        return None


def planned_size(file_slice: FileSlice) -> int:
    """The bytes that a slice counts in a plan: of its base file, as in Hudi; without one as a whole new base file."""
    return file_slice.base_file.size if file_slice.base_file else FIRST_BASE_BYTES
