"""What has come to a timeline since it was opened.

In a folder of very many files a listing takes longer than a rollback. Such a listing serves for a while, by the time
that it took the processor, so that looking takes at most a quarter of the time. Of a short timeline, and as a rule in a
store, each look is a listing.
"""

import time
from collections import defaultdict

from ..timeline.active import Timeline
from ..timeline.instant import Instant

_SERVES_TIMES = 4


class Watch:
    """Looks for new files of instants. Raises what a listing raises."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._known = {*timeline.sizes}
        self._new: dict[str, list[Instant]] = defaultdict(list)
        self._until = 0.0

    def new_files_at(self, ts: str) -> tuple[Instant, ...]:
        """The files of the instants of `ts` that are new since the timeline was opened."""
        if time.monotonic() >= self._until:
            self._look()
        return tuple(self._new.get(ts, ()))

    def _look(self) -> None:
        # Before the listing: what comes while it goes on may not be in it.
        began, busy = time.monotonic(), time.thread_time()
        for instant in self._timeline.new_files(self._known):
            self._known.add(instant.file_name)
            self._new[instant.ts].append(instant)
        self._until = began + (time.thread_time() - busy) * _SERVES_TIMES
