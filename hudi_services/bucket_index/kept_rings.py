"""Clusterings of buckets that cannot be taken back, or executed here: rows of writers would be lost, or come twice."""

from ..codecs.clustering_plan import ClusteringPlan
from ..errors import UnsupportedTable
from ..file_names import parse_log_file
from ..snapshot import Snapshot
from ..timeline.instant import Action, Instant
from .signs import FOLDER, RING_ENDING, has_buckets, has_rings

_WITH_HUDI = "execute the plan with Apache Hudi"


def refuse_dual_writes(table: Snapshot, plan: ClusteringPlan, ts: str) -> None:
    """Raise UnsupportedTable where writers of Hudi have written rows twice since the plan `ts`: to the old buckets, and
    to those that come (SparkConsistentBucketDuplicateUpdateStrategy).

    Without the plan their log files would count once its instant is archived, and rows be there twice. Their order is
    that of write tokens, and not of commits, so that a row may come back that was deleted.
    """
    for partition in sorted({one.partition for one in plan.slices}):
        for name in table.storage.list_dir(partition)[0]:
            log = parse_log_file(partition, name.name, name.size)
            if log is not None and log.instant == ts:
                raise UnsupportedTable(
                    f"{table.storage.root}: writers have written to the buckets of the pending plan {ts} "
                    f"({log.path}), which is neither executed nor rolled back here then",
                    hint=_WITH_HUDI,
                )


def refuse_rollback(table: Snapshot, target: Instant) -> None:
    """Raise UnsupportedTable for a clustering of buckets that may not be rolled back."""
    if not _may_make_rings(table, target.action):
        return
    if not target.is_completed:
        requested = table.timeline.read_requested(target)
        if requested.plan is not None and has_buckets(requested.plan):
            refuse_dual_writes(table, requested.plan, target.ts)
    elif _rings_of(table, target.ts):
        raise UnsupportedTable(
            f"{table.storage.root}: the clustering {target.ts} has split or merged buckets of consistent hashing, and "
            "writers would go on with them after its rollback",
            hint="cluster the table again",
        )


def forget_rings(table: Snapshot, ts: str, action: str) -> None:
    """Delete the rings of a clustering that is rolled back, or whose plan is dropped: writers of Hudi may count one
    that shares a node with an older ring."""
    if _may_make_rings(table, action):
        table.storage.delete_all(_rings_of(table, ts), lambda count: None)


def why_kept(table: Snapshot, target: Instant) -> str:
    """Why a pending clustering may be neither rolled back nor dropped here; "" when it may be."""
    try:
        refuse_rollback(table, target)
    except UnsupportedTable as refusal:
        return f"{refusal.message}; {refusal.hint}"
    return ""


def _may_make_rings(table: Snapshot, action: str) -> bool:
    return action in (Action.REPLACE_COMMIT, Action.CLUSTERING) and has_rings(table)


def _rings_of(table: Snapshot, ts: str) -> list[str]:
    """The paths of the rings that the clustering at `ts` has made, of all partitions."""
    return [file.path for file in table.storage.list_tree(FOLDER) if file.name == f"{ts}{RING_ENDING}"]
