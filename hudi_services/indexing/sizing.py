"""How many file groups a record index gets; the number stays until the index is built anew."""

from dataclasses import dataclass
from math import ceil

_BYTES_PER_ENTRY = 48
"""What Hudi counts for an entry (RECORD_INDEX_AVERAGE_RECORD_SIZE)."""


@dataclass(frozen=True, slots=True)
class GroupSizing:
    """Bounds for the number of file groups, how much the table may still grow, and a file group's size in bytes."""

    at_least: int = 10
    at_most: int = 10_000
    growth: float = 2.0
    group_bytes: int = 1 << 30


def file_group_count(keys: int, sizing: GroupSizing) -> int:
    """The number for a table of `keys` records. Source: HoodieTableMetadataUtil.estimateFileGroupCount."""
    if sizing.at_least == sizing.at_most:
        return sizing.at_least
    per_group = sizing.group_bytes // _BYTES_PER_ENTRY
    return min(max(ceil(keys * sizing.growth) // per_group, sizing.at_least), sizing.at_most)
