"""What has come to a timeline since it was opened."""

from collections import defaultdict

from ..recent import Recent
from ..timeline.active import Timeline
from ..timeline.instant import Instant


class Watch:
    """Looks for new files of instants. Raises what a listing raises."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._known = {*timeline.sizes}
        self._new: dict[str, list[Instant]] = defaultdict(list)
        self._look = Recent(self._list)

    def new_files_at(self, ts: str) -> tuple[Instant, ...]:
        """The files of the instants of `ts` that are new since the timeline was opened."""
        self._look()
        return tuple(self._new.get(ts, ()))

    def _list(self) -> None:
        for instant in self._timeline.new_files(self._known):
            self._known.add(instant.file_name)
            self._new[instant.ts].append(instant)
