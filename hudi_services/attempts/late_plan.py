"""A plan that nobody sees before it is committed. There are two ways to get its instant:

    staged       the instant is drawn at the end; until then the new files wait in a staging folder (`staged_attempt`)
    reserved     the instant is reserved at the beginning, by a pending clustering without groups; the new files have
                 their final names

    (rewrite)    as always; writers go on, and may change the inputs
    show         under the lock: the requested file gets the groups that are left
    look again   without a lock, a write that has begun meanwhile may not know of the plan: then the plan is taken back
    commit       the completed file

Between `show` and the completed file, writers that update these groups are refused, as beside any pending plan. A
writer of Hudi that clusters may execute a plan that it sees, and fails on a plan without groups: beside such writers
only the first way is possible.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..commit.begun_rollbacks import rollbacks_of
from ..commit.conflicts import (
    NEW_PLAN,
    TakenOver,
    refuse_beside_beginners,
    refuse_beside_writers,
)
from ..commit.drafts import Draft
from ..commit.planned_groups import PlannedGroups
from ..commit.settings import TransactionSettings
from ..commit.shown_plans import note_shown
from ..commit.transaction import expect
from ..snapshot import Snapshot, refresh
from ..table.file_ledger import FileLedger
from ..table.partitions import StorageLister
from ..timeline.active import Timeline
from ..timeline.instant import Action, Instant, State


class LatePlan:
    """The plan of `groups`; `encode` gives the plan of some of them, by number, as bytes."""

    def __init__(
        self, groups: PlannedGroups, encode: Callable[[Sequence[int]], bytes], settings: TransactionSettings
    ) -> None:
        self._groups = groups
        self._encode = encode
        self._settings = settings

    def show(self, current: Snapshot, instant: Instant, draft: Draft, *, attempt: str) -> Snapshot:
        """Write the requested file of `instant`, over the one that reserved it; the table as it is then.

        `attempt` is the time at which the attempt began. The caller holds the lock, and has checked the draft's
        expectations. Raises their errors, and WriterAtWork: then the plan has no groups any more.
        """
        self._groups.instant = instant.ts
        is_shared = self._settings.lock.is_shared
        if is_shared:
            # Writers compare their file groups with ours before they commit, and would fail.
            refuse_beside_beginners(current, self._settings)
        path = current.timeline.path(current.timeline.requested_name(instant))
        note_shown(current.storage, attempt, instant.ts)
        current.check_held()
        if current.timeline.at(instant.ts):
            current.storage.put(path, self._encode(self._groups.kept))
        else:
            current.timeline.publish(instant.ts, instant.action, State.REQUESTED, self._encode(self._groups.kept))
        if is_shared:
            return current
        try:
            again = replace(refresh(current), check_held=current.check_held, stored=StorageLister(current.storage))
            refuse_beside_writers(again, self._settings, plan=NEW_PLAN)
            expect(again, draft)
        except BaseException:
            # Not deleted: a writer that has just listed the timeline is about to read it.
            current.storage.put(path, self._encode([]))
            raise
        return again

    def begun_meanwhile(self, before: Snapshot, done: Instant) -> list[str]:
        """Writes that have begun between the last look (`before`) and the completed file of `done`.

        Without a shared lock: they may not know of the new files. With one, writers compare what they write with it.
        """
        if self._settings.lock.is_shared:
            return []
        now = Timeline.open(before.storage, before.config)
        completed = now.find(done.ts, done.action)
        if completed is None or not completed.is_completed:
            return []
        end, known = now.written[completed.file_name], {one.ts for one in before.timeline.instants}
        writes = (*now.completed_writes(), *now.pending({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT}))
        return sorted({one.ts for one in writes if one.ts not in known | {done.ts} and now.begun[one.ts] <= end})

    def watched(self, current: Snapshot, instant: Instant) -> Snapshot:
        """The table, whose `check_held` also raises TakenOver when another process executes the plan.

        Without a shared lock, a writer of Hudi that clusters executes every plan that it sees, and begins by deleting
        the files of our attempt.
        """
        if self._settings.lock.is_shared:
            return current

        def check_held() -> None:
            current.check_held()
            now = replace(current, ledger=FileLedger(Timeline.open(current.storage, current.config)))
            found = now.timeline.find(instant.ts, instant.action)
            if found is None or found.state is not State.INFLIGHT or rollbacks_of(now, instant.ts, ()):
                raise TakenOver(
                    f"{current.storage.root}: another process executes the plan {instant.ts}, or has rolled it back",
                    hint="nothing was committed; run again when that process has ended",
                )

        return replace(current, check_held=check_held)
