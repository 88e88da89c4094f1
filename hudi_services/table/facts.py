"""The facts of a timeline that a view needs: which instants are committed, which hidden, when they were completed."""

from ..timeline.active import Timeline
from ..timeline.archived import ArchivedTimes


class TimelineFacts:
    """`view.InstantFacts` from an active timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._completed = {i.ts: i.completion_time for i in timeline.completed_writes()}
        self._pending = {i.ts for i in timeline.pending()}
        self._first = timeline.first_ts()
        self._archived_until = timeline.archived_until()

    def is_committed(self, instant: str) -> bool:
        if instant in self._completed:
            return True
        # A table whose very first write failed has a pending instant that is older than the first completed one.
        return self._first is not None and instant < self._first and instant not in self._pending

    def completion_time(self, instant: str) -> str | None:
        return self._completed.get(instant)

    @property
    def hides(self) -> bool:
        return self._first != self._archived_until

    def is_hidden(self, instant: str) -> bool:
        if instant in self._completed or instant in self._pending:
            return False
        return (self._first or "") < instant < (self._archived_until or "")


class DatedFacts(TimelineFacts):
    """As `TimelineFacts`, with completion times from the archive: they place the log files of archived instants."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self._archived = ArchivedTimes(timeline.storage, timeline.history)
        self._is_dated = timeline.layout.completion_times

    def completion_time(self, instant: str) -> str | None:
        known = super().completion_time(instant)
        if known is not None or not self.is_committed(instant):
            return known
        # As for Hudi, which has no other time of archived instants of the older layout (CompletionTimeQueryViewV1).
        return self._archived.completion_time(instant) if self._is_dated else instant


class AssumedFacts(DatedFacts):
    """As `DatedFacts`, if the instant `ts` were pending, or had been completed last."""

    def __init__(self, timeline: Timeline, ts: str, *, is_completed: bool) -> None:
        super().__init__(timeline)
        self._ts = ts
        self._is_completed = is_completed

    def is_committed(self, instant: str) -> bool:
        return self._is_completed if instant == self._ts else super().is_committed(instant)

    def completion_time(self, instant: str) -> str | None:
        return None if instant == self._ts else super().completion_time(instant)
