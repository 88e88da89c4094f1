"""Clusterings of buckets that cannot be taken back, or executed here: rows of writers would be lost, or come twice."""

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from ..codecs.clustering_plan import ClusteringPlan
from ..errors import ConflictError, CorruptFile, UnsupportedTable
from ..file_names import parse_data_file
from ..model import LogFile
from ..snapshot import Snapshot
from ..timeline.instant import Action, Instant
from .signs import FOLDER, RING_ENDING, has_buckets, has_rings

_WITH_HUDI = "execute the plan with Apache Hudi"


def refuse_new_bucket_writes(table: Snapshot, plan: ClusteringPlan, ts: str) -> None:
    """Raise UnsupportedTable where writers of Hudi have written to the buckets that the pending plan `ts` makes.

    Upserts and deletes write rows twice there: to the old buckets, and to those that come
    (SparkConsistentBucketDuplicateUpdateStrategy). Without the plan their log files would count once its instant is
    archived, and rows be there twice. Their order is that of write tokens, and not of commits, so that a row may come
    back that was deleted.

    A bulk insert puts a base file into a bucket that comes. It is newer than the plan, so that an execution, Hudi's
    too, hides what it writes into this bucket. Without the plan the rows of the bulk insert are in no bucket.
    """
    new = _new_buckets(plan, ts)
    for partition in sorted({one.partition for one in plan.slices}):
        for stored in table.storage.list_dir(partition)[0]:
            file = parse_data_file(partition, stored.name, stored.size)
            if isinstance(file, LogFile) and file.instant == ts:
                raise UnsupportedTable(
                    f"{table.storage.root}: writers have written to the buckets of the pending plan {ts} "
                    f"({file.path}), which is neither executed nor rolled back here then",
                    hint=_WITH_HUDI,
                )
            if file is not None and file.file_id in new and file.instant != ts:
                raise UnsupportedTable(
                    f"{table.storage.root}: the write {file.instant} has put {file.path} into a bucket that the "
                    f"pending plan {ts} makes; rows of this bucket would be hidden after an execution, and rows of the "
                    "write would be in no bucket without the plan",
                    hint=f"take the write back with Apache Hudi (call rollback_to_instant), execute the plan {ts}, and "
                    "write the rows again",
                )


def _new_buckets(plan: ClusteringPlan, ts: str) -> set[str]:
    """The file ids of the buckets that come. Of a group that does not tell them, no writer knows any either."""
    # Only here: it loads numpy, and most rollbacks are of tables without rings.
    from .bucket_split import children_of

    found = set()
    for group in plan.groups:
        with suppress(CorruptFile):
            found |= {child.file_id for child in children_of(group.extra or {}, ts) if child.prefix is not None}
    return found


@dataclass(frozen=True, slots=True)
class NewBucketsUnwritten:
    """What the commit of the plan `ts` expects of the buckets that it makes."""

    sentence: ClassVar[str] = "no writer has written to a bucket that the plan makes"
    plan: ClusteringPlan
    ts: str

    def check(self, current: Snapshot) -> None:
        """Raises ConflictError where the condition does not hold, and StorageError."""
        try:
            refuse_new_bucket_writes(current, self.plan, self.ts)
        except UnsupportedTable as refusal:
            raise ConflictError(refusal.message, hint=refusal.hint) from refusal


def refuse_rollback(table: Snapshot, target: Instant) -> None:
    """Raise UnsupportedTable for a clustering of buckets that may not be rolled back."""
    if not _may_make_rings(table, target.action):
        return
    if not target.is_completed:
        requested = table.timeline.read_requested(target)
        if requested.plan is not None and has_buckets(requested.plan):
            refuse_new_bucket_writes(table, requested.plan, target.ts)
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
