"""Lets requests wait until the process has begun all that it can begin at the same time, on a busy machine, too."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TASKS = Path("/proc/self/task")
_LOOK_SECONDS = 0.002
_LOOKS = 5
_OWN_SECONDS = 0.000005
"""What clocks of threads and of the process may differ by."""
_AT_WORK = ("R", "D")


class Quiet:
    """Requests that `wait` end together, when no other thread works, or could.

    A thread that the machine keeps waiting for a processor can run, and says so (proc(5)); one that Python keeps
    waiting for its turn gets it while nobody looks, and takes time. So the process is quiet when none can run, and none
    has taken time since the last look, a few looks in a row.
    """

    def __init__(self) -> None:
        self._waiting: list[threading.Event] = []
        self._lock = threading.Lock()
        self._is_ended = False

    def wait(self) -> None:
        event = threading.Event()
        with self._lock:
            self._waiting.append(event)
        event.wait()

    @contextmanager
    def watching(self) -> Iterator["Quiet"]:
        """A context in which those that wait are let go again and again."""
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._is_ended = True
            thread.join()

    def _watch(self) -> None:
        own, quiet, before, known = str(threading.get_native_id()), 0, self._work_of_others(), 0
        while not self._is_ended:
            time.sleep(_LOOK_SECONDS)
            now, waiting = self._work_of_others(), len(self._waiting)
            is_quiet = now - before < _OWN_SECONDS and waiting == known and not _can_run(own)
            quiet, before, known = quiet + 1 if is_quiet else 0, now, waiting
            if quiet >= _LOOKS and waiting:
                quiet = 0
                with self._lock:
                    let_go, self._waiting = self._waiting, []
                for event in let_go:
                    event.set()

    @staticmethod
    def _work_of_others() -> float:
        return time.process_time() - time.thread_time()


def _can_run(own: str) -> bool:
    """Whether a thread other than `own` has a processor, or waits for one, or for a disk."""
    for task in _TASKS.iterdir():
        # It may end meanwhile.
        with suppress(OSError):
            if task.name != own and (task / "stat").read_text().rpartition(")")[2].split()[0] in _AT_WORK:
                return True
    return False
