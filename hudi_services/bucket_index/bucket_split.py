"""How the rows of a clustering group of buckets are divided among the buckets that take their place."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..codecs.json_text import parse_json
from ..errors import CheckFailed, CorruptFile
from .ring import Ring, RingNode, decoded_nodes
from .ring_hashes import KeyHashes
from .signs import GROUP_CHILDREN


def children_of(extra: Mapping[str, str], instant: str) -> list[RingNode]:
    """The nodes that a group of the plan of `instant` says that come. Raises CorruptFile."""
    try:
        return decoded_nodes(parse_json(extra[GROUP_CHILDREN].encode()))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CorruptFile(f"the plan of {instant} does not tell the buckets of a group: {e}") from e


@dataclass(frozen=True, slots=True)
class BucketSplit:
    """The rows of the buckets `old`, file ids of the ring `before`, go to the buckets `new` of the ring `after`."""

    hashes: KeyHashes
    before: Ring
    after: Ring
    old: frozenset[str]
    new: tuple[str, ...]

    def positions(self, keys: pa.ChunkedArray, path: str) -> npt.NDArray[np.int64]:
        """The position in `new` of the bucket of each key.

        Raises CheckFailed for a key that is not in its bucket, or would go to none of `new`; `path` names the rows.
        """
        hashes = self.hashes.of(keys)
        self._check(keys, self.before, self.before.positions(hashes), self.old, path)
        found = self.after.positions(hashes)
        self._check(keys, self.after, found, frozenset(self.new), path)
        places = np.full(len(self.after.nodes), -1, np.int64)
        for number, file_id in enumerate(self.new):
            places[self.after.node_of(file_id)] = number
        return np.asarray(places[found], np.int64)

    @staticmethod
    def _check(
        keys: pa.ChunkedArray, ring: Ring, positions: npt.NDArray[np.int64], buckets: frozenset[str], path: str
    ) -> None:
        are_there = np.array([node.file_id in buckets for node in ring.nodes], np.bool_)[positions]
        if not are_there.all():
            key = keys[int(np.flatnonzero(~are_there)[0])].as_py()
            raise CheckFailed(
                f"{path}: the key {key!r} is not in its bucket by consistent hashing",
                hint="set hoodie.bucket.index.hash.field as the writers of the table do",
            )
