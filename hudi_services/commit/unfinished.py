"""What has to end before an index comes or goes: it was begun when the index was another one."""

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
