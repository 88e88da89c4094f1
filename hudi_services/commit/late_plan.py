"""A plan that nobody sees before it is committed: its instant is reserved by a pending plan without groups.

    reserve      a requested plan that names no group, and the inflight file: no writer is refused because of it
    (rewrite)    as always; writers go on, and may change the inputs
    show         under the lock: the requested file is overwritten with the groups that are left
    look again   without a lock, a write that has begun meanwhile may not know of the plan: then the plan is taken back
    commit       the completed file

Between `show` and the completed file, writers that update these groups are refused, as beside any pending plan. After a
kill, before `show`: a pending clustering without groups, which the next run rolls back; after it: a pending clustering
like any other.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..snapshot import Snapshot, reopen
from ..timeline.instant import Instant
from .conflicts import NEW_PLAN, refuse_beside_beginners, refuse_beside_writers
from .drafts import Draft
from .planned_groups import PlannedGroups
from .settings import TransactionSettings
from .transaction import expect


class LatePlan:
    """The plan of `groups`; `encode` gives the plan of some of them, by number, as bytes."""

    def __init__(
        self, groups: PlannedGroups, encode: Callable[[Sequence[int]], bytes], settings: TransactionSettings
    ) -> None:
        self._groups = groups
        self._encode = encode
        self._settings = settings

    def show(self, current: Snapshot, instant: Instant, draft: Draft) -> Snapshot:
        """Overwrite the requested file of `instant`; the table as it is then. The caller holds the lock.

        Raises the errors of the draft's expectations, and WriterAtWork, with the plan taken back.
        """
        is_shared = self._settings.lock.is_shared
        if is_shared:
            # Writers compare their file groups with ours before they commit, and would fail.
            refuse_beside_beginners(current, self._settings)
        path = current.timeline.path(current.timeline.requested_name(instant))
        current.check_held()
        current.storage.put(path, self._encode(self._groups.kept))
        if is_shared:
            return current
        try:
            again = replace(reopen(current), check_held=current.check_held)
            refuse_beside_writers(again, self._settings, plan=NEW_PLAN)
            expect(again, draft)
        except BaseException:
            current.storage.put(path, self._encode([]))
            raise
        return again
