"""The ring of a partition with consistent hashing: which file group has the keys of a hash.

    hash      XXH32 of the text that is hashed, without its highest bit: 0 to 2^31 - 1
    node      a value on the ring, and the prefix of the file id of its file group, `<prefix>-0`
    bucket    the node with the least value that is not below the hash; of a greater hash the node with the least value

A clustering splits a node into two, and merges neighbours into the last of them: its children replace nodes by value.
Source: ConsistentBucketIdentifier, HoodieConsistentHashingMetadata, ConsistentHashingNode of Apache Hudi.
"""

import hashlib
import json
import re
import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..codecs.json_text import parse_json
from ..codecs.xx_hash_32 import Hashes
from ..errors import CorruptFile

TOTAL = 0x7FFFFFFF
"""The greatest value on the ring."""
FIRST_INSTANT = "00000000000000"
"""The instant of the ring that a partition begins with."""
_PREFIX = re.compile("[A-Za-z0-9-]{1,100}")
REPLACE, DELETE, NORMAL = "REPLACE", "DELETE", "NORMAL"


@dataclass(frozen=True, slots=True)
class RingNode:
    """A node; `prefix` is None for one that a merge deletes."""

    value: int
    prefix: str | None
    tag: str = NORMAL

    @property
    def file_id(self) -> str:
        return f"{self.prefix}-0"


@dataclass(frozen=True, slots=True)
class Ring:
    """The ring of `partition` after the clustering at `instant`; the nodes ascend by value.

    `buckets`: how many nodes the first ring had. `number`: how many clusterings have changed it.
    """

    partition: str
    instant: str
    buckets: int
    number: int
    nodes: tuple[RingNode, ...]

    @classmethod
    def first(cls, partition: str, buckets: int) -> "Ring":
        """The ring that a partition begins with. All writers make the same one for a number of buckets."""
        step, start, nodes = -(-TOTAL // buckets), 0, []
        for number in range(1, buckets + 1):
            end = min(step * number, TOTAL)
            digest = hashlib.md5(struct.pack(">qq", start, end) + partition.encode()).digest()
            nodes.append(RingNode(end, str(uuid.UUID(bytes=digest, version=3))))
            start = end
        return cls(partition, FIRST_INSTANT, buckets, 0, tuple(nodes))

    def positions(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        """The number of the node of each hash."""
        values = np.array([node.value for node in self.nodes], np.int64)
        found = np.searchsorted(values, (hashes & np.uint32(TOTAL)).astype(np.int64), "left")
        return np.asarray(found % len(values), np.int64)

    def node_of(self, file_id: str) -> int | None:
        """The number of the node of a file group; None for a file group that is none of the ring."""
        return next((number for number, node in enumerate(self.nodes) if node.file_id == file_id), None)

    def after(self, instant: str, children: Iterable[RingNode]) -> "Ring":
        """The ring after the clustering at `instant`, whose groups have these children."""
        nodes = {node.value: node for node in self.nodes}
        for child in children:
            if child.tag == DELETE:
                nodes.pop(child.value, None)
            else:
                nodes[child.value] = replace(child, tag=NORMAL)
        ascending = tuple(nodes[value] for value in sorted(nodes))
        return replace(self, instant=instant, number=self.number + 1, nodes=ascending)

    def encoded(self) -> bytes:
        """The content of a file of hashing metadata, as Hudi writes it."""
        tree = {
            "version": 0,
            "partitionPath": self.partition,
            "instant": self.instant,
            "numBuckets": self.buckets,
            "seqNo": self.number,
        }
        lines = [f'  "{name}" : {json.dumps(value, ensure_ascii=False)},' for name, value in tree.items()]
        text = "\n".join(["{", *lines, f'  "nodes" : {encoded_nodes(self.nodes, "  ")}', "}"])
        return text.encode()

    @classmethod
    def decode(cls, data: bytes, path: str, partition: str) -> "Ring":
        """The ring of a file of hashing metadata. Raises CorruptFile."""
        try:
            tree = parse_json(data)
            nodes = tuple(sorted(decoded_nodes(tree["nodes"]), key=lambda node: node.value))
            ring = cls(partition, str(tree["instant"]), int(tree["numBuckets"]), int(tree["seqNo"]), nodes)
            if tree.get("partitionPath") != partition or not nodes or any(node.prefix is None for node in nodes):
                raise ValueError("it is no ring of its partition")
            return ring
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise CorruptFile(f"{path} holds no consistent hashing metadata: {e}") from e


def encoded_nodes(nodes: Sequence[RingNode], indent: str = "") -> str:
    """Nodes in JSON, as Hudi's writer spaces them."""

    def one(node: RingNode) -> str:
        fields = {"value": node.value, "fileIdPrefix": node.prefix, "tag": node.tag}
        lines = [f'{indent}  "{name}" : {json.dumps(value)}' for name, value in fields.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"

    return "[ " + ", ".join(map(one, nodes)) + " ]"


def decoded_nodes(trees: Any) -> list[RingNode]:
    """Nodes of parsed JSON. Raises ValueError, KeyError or TypeError for what is none."""
    return [_node(tree) for tree in trees]


def _node(tree: Mapping[str, Any]) -> RingNode:
    value, prefix, tag = int(tree["value"]), tree.get("fileIdPrefix"), str(tree.get("tag") or NORMAL)
    if not 0 <= value <= TOTAL or tag not in (NORMAL, REPLACE, DELETE):
        raise ValueError(f"a node has the value {value} and the tag {tag:.40}")
    if prefix is not None and not _PREFIX.fullmatch(str(prefix)):
        raise ValueError(f"a node has the file id prefix {prefix!r:.80}")
    return RingNode(value, None if prefix is None else str(prefix), tag)
