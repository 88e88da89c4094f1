"""The file groups of record_index over which the keys of the table are spread.

    global         record-index-<%04d>-0                          all keys over all of them
    partitioned    record-index-<data partition>-<%04d>-0         a partition's keys over its own (Hudi 1.1 and later)

Four dashes mark the second form: in it the partition has `-`, `_` and what a path cannot hold as %XX.
A commit with rows of a new partition begins its file groups.
Source: HoodieTableMetadataUtil.verifyRLIFile, getDataTablePartitionNameFromFileGroupName, getFileIDForFileGroup of
Apache Hudi 1.2.0; PartitionPathEncodeUtils.escapeFileName.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...computed_once import cached_property
from ...errors import UnsupportedTable
from ...model import FileSlice
from ...paths import ESCAPES

_ESCAPES = {**ESCAPES, ord("_"): "%5F", ord("-"): "%2D"}
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_DASHES_OF_PARTITIONED = 4
_FILE_ID = re.compile(r"record-index-(?:[^-/_]*-)?[0-9]{4,5}-0")


def is_shard_id(file_id: str) -> bool:
    """Whether a file id is one of a file group of a record index."""
    return _FILE_ID.fullmatch(file_id) is not None


@dataclass(frozen=True)
class Shards:
    """The file ids of record_index; a shard is one of them, by its position. `begun` are not there yet.

    Those of one data partition, and those of a global index, are in their order.
    """

    file_ids: tuple[str, ...]
    begun: frozenset[str] = frozenset()

    @classmethod
    def of_groups(cls, groups: Iterable[FileSlice]) -> "Shards":
        """The shards of the file groups, which are in the order of their file ids."""
        return cls(tuple(group.file_id for group in groups))

    def of(self, partition: str) -> Sequence[int]:
        """The shards for the keys of a data partition, in the order of `key_hash.spread`.

        Raises UnsupportedTable when a partitioned index has no shard for the partition.
        """
        if not self.is_partitioned:
            return range(len(self.file_ids))
        if partition not in self._by_partition:
            raise UnsupportedTable(
                f"the record index has no file group for the partition {partition!r}",
                hint="it is an index of each partition: name one that has had rows",
            )
        return self._by_partition[partition]

    def holding(self, partitions: Iterable[str], groups: int) -> "Shards":
        """These shards, and so many more for each of the partitions that a partitioned index does not have.

        Raises UnsupportedTable for a partition whose file groups Hudi would not find.
        """
        new = sorted({*partitions}.difference(self._by_partition)) if self.is_partitioned else []
        if not new:
            return self
        begun = Shards.new(dict.fromkeys(new, groups)).file_ids
        return Shards((*self.file_ids, *begun), frozenset({*self.begun, *begun}))

    @classmethod
    def new(cls, counts: Mapping[str | None, int]) -> "Shards":
        """So many shards for each data partition, or under None for the whole table.

        Raises UnsupportedTable for a partition whose file groups Hudi would not find.
        """
        with_dot = next((one for one in counts if one is not None and "." in one), None)
        if with_dot is not None:
            raise UnsupportedTable(
                f"the record index of each partition has no file group for the partition {with_dot!r}, and Apache Hudi "
                "does not read those of a partition with a dot in its path",
                hint="drop the record index with Apache Hudi, or leave out the rows of this partition",
            )
        words = {one: "record-index" if one is None else f"record-index-{one.translate(_ESCAPES)}" for one in counts}
        ids = (f"{words[one]}-{number:04d}-0" for one, count in counts.items() for number in range(count))
        return cls(tuple(sorted(ids)))

    @property
    def by_partition(self) -> Mapping[str | None, Sequence[int]]:
        """The shards over which keys are spread together, in their order: by data partition, or under None all."""
        if not self.is_partitioned:
            return {None: range(len(self.file_ids))}
        return {partition: self.of(partition) for partition in self._by_partition}

    def has(self, partition: str) -> bool:
        """Whether there are shards for the keys of a partition."""
        return not self.is_partitioned or partition in self._by_partition

    @property
    def is_partitioned(self) -> bool:
        # The file ids of a secondary index with one word for a name have as many dashes.
        return is_shard_id(self.file_ids[0]) and self.file_ids[0].count("-") == _DASHES_OF_PARTITIONED

    @cached_property
    def _by_partition(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for shard, file_id in enumerate(self.file_ids):
            found[_ESCAPED.sub(lambda m: chr(int(m[1], 16)), file_id.split("-")[2])].append(shard)
        return dict(found)
