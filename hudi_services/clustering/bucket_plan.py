"""The plan of a table with consistent hashing: large buckets are split, small neighbours on the ring are merged.

    split    a bucket of more bytes than the largest file times the split threshold; its range is halved
    merge    neighbours of at most the largest file times the merge threshold, into the last of them
    sort     every other bucket by itself, in a partition with a split or a merge, or with sort columns

Hudi rewrites all buckets of every partition. Where no bucket is split or merged that changes nothing, and is left out
here. Elsewhere all buckets get new file ids: a ring that shares one with an older ring counts for Hudi even where its
clustering was rolled back.
Source: BaseConsistentHashingBucketClusteringPlanStrategy, ConsistentBucketIdentifier of Apache Hudi 0.15.0 to 1.2.0.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..bucket_index.bucket_split import children_of
from ..bucket_index.hashing_metadata import load_ring
from ..bucket_index.ring import DELETE, REPLACE, TOTAL, Ring, RingNode, encoded_nodes
from ..bucket_index.signs import GROUP_CHILDREN, GROUP_NUMBER, GROUP_PARTITION
from ..codecs.clustering_plan import ClusteringPlan
from ..commit.conflicts import pending_writes
from ..errors import ConflictError, CorruptFile, UnsupportedTable
from ..model import FileSlice
from ..options import clustering_keys, value_of, writing_keys
from ..snapshot import Snapshot
from .eligibility import ClusteringReason, Eligibility
from .selection import ClusteringSelection, PlannedGroup


@dataclass(frozen=True, slots=True)
class BucketRules:
    """When buckets are split and merged; without a number, no bucket is."""

    largest_file: int = value_of(writing_keys.MAX_FILE_BYTES)
    most: int | None = value_of(clustering_keys.MOST_BUCKETS)
    least: int | None = value_of(clustering_keys.LEAST_BUCKETS)
    split: float = value_of(clustering_keys.SPLIT_THRESHOLD)
    merge: float = value_of(clustering_keys.MERGE_THRESHOLD)


@dataclass(frozen=True, slots=True)
class PlannedBuckets:
    """Buckets that are rewritten together, and the nodes that take their place."""

    group: PlannedGroup
    ring: Ring
    children: tuple[RingNode, ...]

    @property
    def extra(self) -> Mapping[str, str]:
        """What the plan says of the group."""
        return {
            GROUP_PARTITION: self.ring.partition,
            GROUP_NUMBER: str(self.ring.number),
            GROUP_CHILDREN: encoded_nodes(self.children),
        }


def why_no_buckets(table: Snapshot) -> str:
    """Why nothing is planned now; "" when buckets may be."""
    writes = pending_writes(table)
    return f"the {writes[0].action.value} {writes[0].ts} is pending, and may go to any bucket" if writes else ""


def select_buckets(
    table: Snapshot,
    partition: str,
    slices: Sequence[FileSlice],
    rules: BucketRules,
    eligibility: Eligibility,
    selection: ClusteringSelection,
    *,
    sorts: bool,
) -> list[PlannedBuckets]:
    """The groups of a partition; its other slices get their reasons. Raises UnsupportedTable for a broken ring."""
    if any((partition, one.file_id) in eligibility.pending_clusterings for one in slices):
        selection.judge(slices, ClusteringReason.PENDING_CLUSTERING.value)
        return []
    ring = load_ring(table, partition)
    if ring is None or any(ring.node_of(one.file_id) is None for one in slices):
        raise UnsupportedTable(
            f"{table.storage.root}: file groups of the partition {partition!r} are none of the buckets of its "
            "consistent hashing metadata",
            hint="an insert_overwrite or delete_partition breaks this index: leave the partition out",
        )
    free = []
    for one in slices:
        reason = eligibility.exclusion(one)
        if reason is None:
            free.append(one)
        else:
            selection.judge([one], reason.value)
    found = _split(ring, free, rules)
    merged = _merged(ring, free, rules, taken={one.group.slices[0].file_id for one in found}, splits=len(found))
    groups = [*found, *merged]
    taken = {one.file_id for planned in groups for one in planned.group.slices}
    rest = [one for one in free if one.file_id not in taken]
    if sorts or groups:
        groups += [_alone(ring, one) for one in rest]
    else:
        selection.judge(rest, ClusteringReason.BUCKET_FITS.value)
    return groups


def _split(ring: Ring, slices: Sequence[FileSlice], rules: BucketRules) -> list[PlannedBuckets]:
    slots = _most(ring, rules) - len(ring.nodes)
    found: list[PlannedBuckets] = []
    for one in slices:
        if len(found) < slots and one.size > int(rules.largest_file * rules.split):
            children = _halves(ring, one)
            if children:
                found.append(PlannedBuckets(PlannedGroup((one,), len(children)), ring, children))
    return found


def _halves(ring: Ring, file_slice: FileSlice) -> tuple[RingNode, ...]:
    """The nodes of the two halves of a bucket; () for file_slice that is too narrow."""
    at = _position(ring, file_slice)
    value, before = ring.nodes[at].value, ring.nodes[at - 1].value
    middle = ((before + value + (0 if before < value else TOTAL + 1)) >> 1) & TOTAL
    if middle in (before, value):
        return ()
    return _new(middle), _new(value)


def _merged(
    ring: Ring, slices: Sequence[FileSlice], rules: BucketRules, *, taken: Collection[str], splits: int
) -> list[PlannedBuckets]:
    limit = int(rules.largest_file * rules.merge)
    slots = len(ring.nodes) - _least(ring, rules) + splits
    by_position = {_position(ring, one): one for one in slices if one.file_id not in taken and one.size <= limit}
    used, count, found = set[int](), len(ring.nodes), []
    for start in sorted(by_position):
        if start in used:
            continue
        chain, size = [start], by_position[start].size
        for step in (-1, 1):
            at = (start + step) % count
            while slots > 0 and at in by_position and at not in used and at not in chain and size <= limit:
                chain = [at, *chain] if step < 0 else [*chain, at]
                size, slots = size + by_position[at].size, slots - 1
                at = (at + step) % count
        if len(chain) < 2:
            continue
        used.update(chain)
        gone = [RingNode(ring.nodes[at].value, None, DELETE) for at in chain[:-1]]
        members = tuple(by_position[at] for at in chain)
        last = _new(ring.nodes[chain[-1]].value)
        found.append(PlannedBuckets(PlannedGroup(members, 1), ring, (*gone, last)))
    return found


def _alone(ring: Ring, file_slice: FileSlice) -> PlannedBuckets:
    return PlannedBuckets(PlannedGroup((file_slice,), 1), ring, (_new(ring.nodes[_position(ring, file_slice)].value),))


def _most(ring: Ring, rules: BucketRules) -> int:
    return rules.most if rules.most is not None and rules.most >= ring.buckets else ring.buckets


def _least(ring: Ring, rules: BucketRules) -> int:
    return rules.least if rules.least is not None and rules.least <= ring.buckets else ring.buckets


def _position(ring: Ring, file_slice: FileSlice) -> int:
    found = ring.node_of(file_slice.file_id)
    assert found is not None, "the slices were looked at before"
    return found


def _new(value: int) -> RingNode:
    return RingNode(value, str(uuid.uuid4()), REPLACE)


def rings_of(table: Snapshot, plan: ClusteringPlan, instant: str) -> dict[str, tuple[Ring, Ring]]:
    """The ring of each partition of a plan with buckets, before and after it. Raises ConflictError for an old plan."""
    found = {}
    for partition in sorted({group.slices[0].partition for group in plan.groups if group.slices}):
        groups = [group for group in plan.groups if group.slices and group.slices[0].partition == partition]
        before = load_ring(table, partition)
        if before is None or any((group.extra or {}).get(GROUP_NUMBER) != str(before.number) for group in groups):
            raise ConflictError(
                f"{table.storage.root}: the plan {instant} is for other buckets than the partition {partition!r} has",
                hint=f"roll it back with rollback --instant {instant}, and schedule a new one",
            )
        children = [child for group in groups for child in children_of(group.extra or {}, instant)]
        new = [child.prefix for child in children if child.prefix is not None]
        if len({*new}) < len(new) or not {node.prefix for node in before.nodes}.isdisjoint(new):
            raise CorruptFile(f"the plan {instant} gives a bucket of the partition {partition!r} an id that is in use")
        found[partition] = before, before.after(instant, children)
    return found
