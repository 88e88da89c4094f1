"""The number of file groups of a new record index, of the whole table or for one data partition."""

from dataclasses import dataclass
from math import ceil

from ..errors import ConfigError
from ..options import index_keys, value_of
from ..options.option import Option

_BYTES_PER_ENTRY = 48
"""Hudi's estimate for one entry (RECORD_INDEX_AVERAGE_RECORD_SIZE)."""


@dataclass(frozen=True, slots=True)
class GroupSizing:
    """Bounds for the number of file groups, the growth factor of the table, and a file group's size in bytes.

    Raises ConfigError when the lower bound exceeds the upper bound.
    """

    at_least: int = value_of(index_keys.RECORD_INDEX_MIN_GROUPS)
    at_most: int = value_of(index_keys.RECORD_INDEX_MAX_GROUPS)
    growth: float = value_of(index_keys.RECORD_INDEX_GROWTH)
    group_bytes: int = value_of(index_keys.RECORD_INDEX_GROUP_BYTES)

    def __post_init__(self) -> None:
        if self.at_least > self.at_most:
            least, most = self._bounds
            raise ConfigError(f"{least.key}={self.at_least} is more than {most.key}={self.at_most}")

    @property
    def _bounds(self) -> tuple[Option[int], Option[int]]:
        return index_keys.RECORD_INDEX_MIN_GROUPS, index_keys.RECORD_INDEX_MAX_GROUPS


@dataclass(frozen=True, slots=True)
class PartitionSizing(GroupSizing):
    """The same for the file groups that a record index of each partition has for one partition."""

    at_least: int = value_of(index_keys.PARTITION_INDEX_MIN_GROUPS)
    at_most: int = value_of(index_keys.PARTITION_INDEX_MAX_GROUPS)

    @property
    def _bounds(self) -> tuple[Option[int], Option[int]]:
        return index_keys.PARTITION_INDEX_MIN_GROUPS, index_keys.PARTITION_INDEX_MAX_GROUPS


def file_group_count(keys: int, sizing: GroupSizing) -> int:
    """The number of file groups for `keys` records. Source: HoodieTableMetadataUtil.estimateFileGroupCount."""
    if sizing.at_least == sizing.at_most:
        return sizing.at_least
    per_group = sizing.group_bytes // _BYTES_PER_ENTRY
    return min(max(ceil(keys * sizing.growth) // per_group, sizing.at_least), sizing.at_most)
