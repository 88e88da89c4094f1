"""Which file slices a clustering may rewrite, and the reason for each slice that it may not."""

import enum
from collections.abc import Collection
from dataclasses import dataclass

from ..codecs.compaction_plan import FIRST_BASE_BYTES
from ..model import FileSlice
from ..table.view import FileGroupId


class Reason(enum.Enum):
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
    GROUP_CAP = "beyond the largest number of groups"


WAITING = (Reason.BUDGET, Reason.GROUP_CAP)
"""The reasons of slices that the next plan may take."""


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The rules for slices. `small_file_limit` in bytes, exclusive; the sets hold (partition, file id).

    `half_hidden`: file groups of which readers will see other rows when a savepoint is deleted; a clustering would
    hide those rows. `uncommitted`: file groups of merge-on-read tables with files of pending or failed writes, to which
    Hudi may assign log files that are committed.
    """

    small_file_limit: int
    pending_compactions: Collection[FileGroupId]
    pending_clusterings: Collection[FileGroupId]
    half_hidden: Collection[FileGroupId] = frozenset()
    uncommitted: Collection[FileGroupId] = frozenset()

    def exclusion(self, one: FileSlice) -> Reason | None:
        """Why a clustering may not rewrite the slice; None when it may."""
        group = (one.partition, one.file_id)
        if group in self.pending_compactions:
            return Reason.PENDING_COMPACTION
        if group in self.pending_clusterings:
            return Reason.PENDING_CLUSTERING
        if group in self.half_hidden:
            return Reason.HALF_HIDDEN
        if group in self.uncommitted:
            return Reason.UNCOMMITTED
        if one.base_bytes >= self.small_file_limit:
            return Reason.TOO_LARGE
        return None


def planned_size(one: FileSlice) -> int:
    """The bytes that a slice counts in a plan: of its base file, as in Hudi; without one as a whole new base file."""
    return one.base_file.size if one.base_file else FIRST_BASE_BYTES
