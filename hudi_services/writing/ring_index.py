"""The bucket index with consistent hashing: the ring of a partition says which file group has a key.

A file group begins with the first row that comes to its bucket. Updates, deletes and new rows all go to log files, as
Hudi writes them. Source: HoodieConsistentBucketIndex, HoodieAppendHandle of Apache Hudi.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..bucket_index.hashing_metadata import load_ring, store_first
from ..bucket_index.ring import FIRST_INSTANT, Ring
from ..bucket_index.ring_hashes import KeyHashes
from ..commit.conflicts import StaleInput
from ..errors import UnsupportedTable
from ..model import FileSlice
from ..options import writing_keys
from ..snapshot import Snapshot
from ..storage import Storage
from ..table_config import TableConfig
from .tagging import Tagged


@dataclass(frozen=True, slots=True)
class RingIndex:
    """The rings of a table; a partition without one begins with `buckets` file groups."""

    hashes: KeyHashes
    buckets: int
    _rings: dict[str, Ring] = field(default_factory=dict, compare=False)

    @classmethod
    def of_table(cls, config: TableConfig, buckets: int, hashed: Sequence[str]) -> "RingIndex":
        """Raises ConfigError for a hash field that is none of the record key, UnsupportedTable for other tables."""
        hashes = KeyHashes.of_table(config, hashed)
        if not config.is_merge_on_read:
            raise UnsupportedTable(
                f"the table {config.name} is of type {config.type}, and consistent hashing is for tables of type "
                "MERGE_ON_READ alone",
                hint=f"set {writing_keys.BUCKET_ENGINE.key}=SIMPLE",
            )
        return cls(hashes, buckets)

    def ring(self, table: Snapshot, partition: str) -> Ring:
        """The ring of a partition; one that it begins with is not stored yet. Raises UnsupportedTable."""
        if partition not in self._rings:
            ring = load_ring(table, partition)
            if ring is None:
                ring = Ring.first(partition, self.buckets)
            other = next((o for o in table.view.latest_slices(partition) if ring.node_of(o.file_id) is None), None)
            if other is not None:
                raise UnsupportedTable(
                    f"{table.storage.root}: the file group {other.file_id} of the partition {partition!r} is none of "
                    "the buckets of its consistent hashing metadata: Apache Hudi does not update its rows",
                    hint="an insert_overwrite or delete_partition of Apache Hudi does this; roll that commit back, "
                    "while it is the newest, or write the rows of the table to a new one",
                )
            self._rings[partition] = ring
        return self._rings[partition]

    def find(self, table: Snapshot, partition: str, keys: pa.Array) -> list[Tagged]:
        """The slices of the buckets of `keys`: each key has one, and a bucket that has no file yet an empty slice.

        Raises UnsupportedTable for keys in which Hudi does not find the hash fields, and as `ring`.
        """
        ring = self.ring(table, partition)
        positions = ring.positions(self.hashes.of(keys))
        slices = {one.file_id: one for one in table.view.latest_slices(partition)}
        found = []
        for number in np.unique(positions).tolist():
            file_id = ring.nodes[number].file_id
            one = slices.get(file_id) or FileSlice(partition, file_id, "", None)
            found.append(Tagged(one, np.flatnonzero(positions == number)))
        return found

    def begin(self, table: Snapshot, partitions: Iterable[str]) -> None:
        """Store the rings that partitions begin with. Raises StaleInput where another writer has made another one."""
        for partition in sorted(set(partitions)):
            ring = self.ring(table, partition)
            if ring.instant == FIRST_INSTANT and store_first(table.storage, ring).nodes != ring.nodes:
                raise _changed(table.storage, partition)

    def expectation(self, table: Snapshot, partitions: Iterable[str]) -> "RingsUnchanged":
        return RingsUnchanged(tuple(self.ring(table, one) for one in sorted(set(partitions))))


@dataclass(frozen=True, slots=True)
class RingsUnchanged:
    sentence: ClassVar[str] = "no clustering has split or merged the buckets of the write"
    rings: Sequence[Ring]

    def check(self, current: Snapshot) -> None:
        """Raise StaleInput for a partition that has another ring by now."""
        for ring in self.rings:
            now = load_ring(current, ring.partition)
            if now is None or now.nodes != ring.nodes:
                raise _changed(current.storage, ring.partition)


def _changed(storage: Storage, partition: str) -> StaleInput:
    return StaleInput(
        f"{storage.root}: the buckets of the partition {partition!r} were split, merged or begun by another process",
        hint="nothing was committed; run again",
    )
