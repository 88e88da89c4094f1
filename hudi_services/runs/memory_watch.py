"""The most memory that a run has, with all processes that it has started on this machine."""

import threading
from contextlib import suppress

from ..process import tree_bytes
from .report import Report

_EACH_SECONDS = 0.5


class MemoryWatch:
    """Looks twice a second, from its start until `close`, and tells the report the most that it saw."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look for the last time; the processes are to be there still."""
        self._ended.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended.wait(_EACH_SECONDS):
            self._look()

    def _look(self) -> None:
        with suppress(OSError):
            found = tree_bytes()
            if found is not None:
                self._report.peak_bytes = max(found, self._report.peak_bytes or 0)
