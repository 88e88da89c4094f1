"""The heartbeat file of an attempt, as Hudi's writers write it (HoodieHeartbeatClient)."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait

from ..errors import StorageError
from ..paths import TABLE_FOLDER
from ..storage import Storage


def heartbeat_path(instant: str) -> str:
    return f"{TABLE_FOLDER}/.heartbeat/{instant}"


class Heartbeat:
    """The heartbeat of a running instant: the file `.hoodie/.heartbeat/<ts>`, written anew at each interval."""

    def __init__(self, storage: Storage, ts: str, interval_seconds: float) -> None:
        self._storage = storage
        self._path = heartbeat_path(ts)
        self._interval = interval_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._first: Future[None] | None = None
        self._is_ours = False

    def start(self) -> None:
        """Begin to write; `begun` must be called before anybody may look for the file."""
        self._is_ours = True
        pool = ThreadPoolExecutor(1)
        self._first = pool.submit(self._storage.put, self._path, b"")
        pool.shutdown(wait=False)
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def begun(self) -> None:
        """Wait until the file is there. Raises StorageError."""
        if self._first is not None:
            self._first.result()

    def stop(self) -> None:
        if self._thread is None:
            return
        self._stop.set()
        if self._first is not None:
            # Otherwise the file could come after it was deleted.
            wait([self._first])
        self._thread.join()
        self._thread = None

    def hand_over(self) -> list[str]:
        """Stop, and leave the file to the caller to delete: its path, if it is ours."""
        self.stop()
        paths = [self._path] if self._is_ours else []
        self._is_ours = False
        return paths

    def remove(self) -> None:
        """Delete the heartbeat file, if we wrote it; call `stop` first."""
        if self._is_ours:
            self._storage.delete(self._path)
            self._is_ours = False

    def _beat(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                self._storage.put(self._path, b"")
            except StorageError:
                # A missed beat is tolerated; the next one may succeed.
                continue
