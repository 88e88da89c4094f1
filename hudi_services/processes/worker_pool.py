"""Worker processes, as the process sees them that has work for them."""

import os
import pickle
import shutil
import signal
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ..errors import HudiServicesError, JobLost
from ..preloading import start_preloading
from ..process import wait_aside
from ..request_counts import add_of_tasks
from ..request_pace import pace_of_tasks
from ..temporary_files import temporary_folder
from .forked import FORK, KILL, MESSAGE, STATUS, WAIT


@dataclass(slots=True)
class _Worker:
    number: int
    connection: Connection
    at: int = -1
    """The number of the task that it does."""


@dataclass(slots=True)
class Workers:
    """Up to `most` processes, which run one task after the other; made when there is work, until `close`.

    One thread at a time gives them work.
    """

    most: int
    _first: Callable[[], object] | None = None
    """What waits for the end of the first process."""
    _control: socket.socket | None = None
    _folder: Path | None = None
    _idle: list[_Worker] = field(default_factory=list)
    _made: int = 0
    _jobs: int = 0

    @property
    def folder(self) -> Path:
        """A folder on the local disk for what tasks exchange; deleted at the end, however this process ends."""
        self.start()
        assert self._folder is not None
        return self._folder

    def start(self) -> None:
        """Let the first process begin to load what tasks need, unless it has; this waits for nothing."""
        if self._first is not None:
            return
        self._folder = Path(tempfile.mkdtemp(dir=temporary_folder(), prefix="hudi_services-"))
        mine, its = socket.socketpair()
        with its:
            self._first = start_preloading(f"{__package__}.forked", [str(self._folder)], its.fileno())
        self._control = mine

    def run(
        self, function: Callable[[Any, str], Any], tasks: Sequence[Any], description: str, done: Callable[[int], None]
    ) -> list[Any]:
        """The results of `function`, which also gets a token, in the order of the tasks; plain picklable values.
        `done` gets the number of each task that is done.

        All tasks are done before a HudiServicesError of one is raised, the first in order: what is finished is kept.
        Raises any other error of a task at once, and JobLost when a process is gone. No task is running afterwards.
        """
        self.start()
        self._jobs += 1
        results: list[Any] = [None] * len(tasks)
        waiting = deque(range(len(tasks)))
        busy: dict[Connection, _Worker] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self.most:
                    at = waiting.popleft()
                    worker = self._given((function, tasks[at], f"{at}-{self._jobs}-{at}"), description)
                    worker.at = at
                    busy[worker.connection] = worker
                for ready in wait([*busy]):
                    worker = busy.pop(ready)  # type: ignore[call-overload]
                    results[worker.at] = self._result(worker, description)
                    self._idle.append(worker)
                    done(worker.at)
        except BaseException:
            self._kill([*busy])
            raise
        for found in results:
            if isinstance(found, HudiServicesError):
                raise found
        return results

    def close(self) -> None:
        """End all processes, without waiting for their end: no task is running."""
        first, self._first = self._first, None
        self._forget()
        if self._control is not None:
            self._control.close()
            self._control = None
        if first is not None:
            wait_aside(first)

    def _given(self, work: tuple[Callable[[Any, str], Any], Any, str], description: str) -> _Worker:
        """A worker that has this now: a function, a task and a token."""
        payload = pickle.dumps((*work, pace_of_tasks()))
        worker = self._idle.pop() if self._idle else self._new(description)
        with suppress(BrokenPipeError, ConnectionResetError):
            # Else it is told where the result is awaited.
            worker.connection.send_bytes(payload)
        return worker

    def _new(self, description: str) -> _Worker:
        mine, its = socket.socketpair()
        self._made += 1
        with its:
            try:
                assert self._control is not None, "it has started"
                socket.send_fds(self._control, [MESSAGE.pack(FORK, self._made)], [its.fileno()])
            except OSError as error:
                mine.close()
                raise _lost(description, f"the process that starts them is gone ({error.strerror})") from error
        return _Worker(self._made, Connection(mine.detach()))

    def _result(self, worker: _Worker, description: str) -> Any:
        """What the task has given, a HudiServicesError as a value. Raises its other errors, and JobLost."""
        try:
            is_done, found, said, requests = pickle.loads(worker.connection.recv_bytes())
        except (EOFError, ConnectionResetError) as error:
            raise _lost(description, self._why_gone(worker)) from error
        add_of_tasks(requests)
        if is_done or isinstance(found, HudiServicesError):
            return found
        if found is None:
            raise _lost(description, said.strip().splitlines()[-1]) from _OfTask(said)
        raise found from _OfTask(said)

    def _why_gone(self, worker: _Worker) -> str:
        try:
            status = STATUS.unpack(self._asked(WAIT, worker.number))[0]
        except (OSError, EOFError):
            return "the process that starts them is gone, too"
        if os.WIFSIGNALED(status):
            return f"a process was ended by {signal.Signals(os.WTERMSIG(status)).name}"
        return f"a process ended with exit code {os.waitstatus_to_exitcode(status)}"

    def _asked(self, kind: bytes, number: int = 0) -> bytes:
        """The answer of the first process. Raises OSError and EOFError when it is gone."""
        if self._control is None:
            raise EOFError
        self._control.sendall(MESSAGE.pack(kind, number))
        answer = self._control.recv(STATUS.size, socket.MSG_WAITALL)
        if len(answer) < STATUS.size:
            raise EOFError
        return answer

    def _kill(self, busy: Sequence[Connection]) -> None:
        """End the workers, and wait until they have ended; work that follows has new ones."""
        try:
            self._asked(KILL)
        except (OSError, EOFError):
            # Without the first process, they see the end of their sockets; the folder is left to us.
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
        finally:
            self._forget(busy)

    def _forget(self, busy: Sequence[Connection] = ()) -> None:
        for one in (*busy, *(worker.connection for worker in self._idle)):
            one.close()
        self._idle.clear()


class _OfTask(Exception):
    """The traceback of a task, as the cause of its error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _lost(description: str, why: str) -> JobLost:
    return JobLost(
        f"the processes of the job '{description}' failed: {why}",
        hint="run it again, with --memory-per-task or with fewer processes (--parallelism) when memory was short; "
        "--verbose tells more",
    )
