"""The number of file groups of a record index; it stays until the index is built anew."""

from dataclasses import dataclass
from math import ceil

_BYTES_PER_ENTRY = 48
"""Hudi's estimate for one entry (RECORD_INDEX_AVERAGE_RECORD_SIZE)."""


@dataclass(frozen=True, slots=True)
class GroupSizing:
    """Bounds for the number of file groups, the growth factor of the table, and a file group's size in bytes."""

    at_least: int = 10
    at_most: int = 10_000
    growth: float = 2.0
    group_bytes: int = 1 << 30


def file_group_count(keys: int, sizing: GroupSizing) -> int:
    """The number of file groups for `keys` records. Source: HoodieTableMetadataUtil.estimateFileGroupCount."""
    if sizing.at_least == sizing.at_most:
        return sizing.at_least
    per_group = sizing.group_bytes // _BYTES_PER_ENTRY
    return min(max(ceil(keys * sizing.growth) // per_group, sizing.at_least), sizing.at_most)
