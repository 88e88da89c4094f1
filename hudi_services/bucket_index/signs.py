"""What shows that a table, or a plan, has buckets of consistent hashing. Nothing here reads a ring."""

from ..codecs.clustering_plan import ClusteringPlan
from ..paths import TABLE_FOLDER
from ..snapshot import Snapshot

FOLDER = f"{TABLE_FOLDER}/.bucket_index"
RING_ENDING = ".hashing_meta"
GROUP_PARTITION = "clustering.group.partition"
GROUP_NUMBER = "clustering.group.sequence.no"
GROUP_CHILDREN = "clustering.group.child.node"
"""What a plan says of each group: its partition, the number of the ring that it is of, and the nodes that come."""


def has_rings(table: Snapshot) -> bool:
    """Whether the table has a bucket index with consistent hashing."""
    if ".bucket_index" not in table.meta.folders:
        return False
    files, folders = table.storage.list_dir(FOLDER)
    return bool(files or folders)


def has_buckets(plan: ClusteringPlan) -> bool:
    """Whether the groups of a plan are buckets of consistent hashing."""
    return any(group.extra and GROUP_CHILDREN in group.extra for group in plan.groups)
