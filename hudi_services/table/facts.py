"""What the timeline says about files: which instants are committed, which file groups were replaced."""

from ..timeline.active import Timeline
from ..timeline.instant import Action
from .view import FileGroupId


class TimelineFacts:
    """`view.InstantFacts` from an active timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._completed = {i.ts: i.completion_time for i in timeline.completed_writes()}
        self._first = timeline.first_ts()

    def is_committed(self, instant: str) -> bool:
        return instant in self._completed or (self._first is not None and instant < self._first)

    def completion_time(self, instant: str) -> str | None:
        return self._completed.get(instant)


def replaced_file_groups(timeline: Timeline) -> dict[FileGroupId, str]:
    """Every file group that a completed replacecommit of the active timeline replaced, with the commit's time."""
    replaced: dict[FileGroupId, str] = {}
    for instant in timeline.completed({Action.REPLACE_COMMIT}):
        for partition, file_ids in (timeline.read_commit(instant).replaced or {}).items():
            replaced |= {(partition, file_id): instant.ts for file_id in file_ids}
    return replaced
