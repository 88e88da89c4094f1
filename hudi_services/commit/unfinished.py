"""What has to end before an index comes or goes: it was begun when the index was another one."""

from ..errors import ConflictError
from ..snapshot import Snapshot
from ..timeline.instant import Instant, State
from .begun_rollbacks import begun_rollbacks
from .conflicts import pending_writes


def unfinished(table: Snapshot) -> list[Instant]:
    """Pending writes, clusterings that have begun, and completed commits that are about to be rolled back.

    The execution of any other plan will see the index as it is then.
    """
    clusterings = [one for one in table.timeline.pending_clusterings() if one.state is State.INFLIGHT]
    return [*pending_writes(table), *clusterings, *(target for _, target in begun_rollbacks(table))]


def refuse_planned_files(table: Snapshot, partition: str) -> None:
    """Raise ConflictError while a pending compaction of the metadata table is to merge files of a partition of it.

    Whoever executes that plan needs the files: Apache Hudi fails without them, with every write.
    """
    metadata = table.metadata
    for instant, one in metadata.ledger.merged if metadata is not None else ():
        if one.partition == partition:
            raise ConflictError(
                f"{table.storage.root}: the {instant.action.value} {instant.ts} of the metadata table is pending, and "
                f"needs files of {partition}",
                hint="run again when it is completed: the next write of Apache Hudi does it",
            )
