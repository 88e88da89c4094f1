"""The process that the workers are forked from, and a worker: what `worker_pool` starts.

The first process imports what tasks need, and begins no thread, so that it may fork: a worker is there within
milliseconds, and shares the memory of the modules. It lives as long as the process that started it, whose end it sees
by the end of its socket: then it kills the workers, and deletes the folder of what they exchange.
"""

import os
import pickle
import shutil
import signal
import socket
import struct
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection

from ..preloading import load
from ..process import give_back_large_blocks
from ..request_counts import requests_so_far
from ..request_pace import begin_task

MESSAGE = struct.Struct("!cI")
"""What is asked of the first process: the kind, and the number of a worker."""
FORK, WAIT, KILL = b"F", b"W", b"K"
STATUS = struct.Struct("!i")
"""The answer to WAIT and KILL: how the worker ended, as os.waitpid tells it."""


def serve(control: int, folder: str, modules: str) -> None:
    """Fork workers until the socket `control` ends.

    FORK comes with the socket of the new worker; WAIT waits until a worker has ended, KILL ends all of them.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    load(modules)
    workers: dict[int, int] = {}
    with socket.socket(fileno=control) as asked:
        try:
            while True:
                message, sockets, _, _ = socket.recv_fds(asked, MESSAGE.size, 1, socket.MSG_WAITALL)
                if len(message) < MESSAGE.size:
                    return
                kind, number = MESSAGE.unpack(message)
                if kind == FORK:
                    child = os.fork()
                    if child == 0:
                        asked.close()
                        _work(sockets[0])
                    os.close(sockets[0])
                    workers[number] = child
                elif kind == WAIT:
                    asked.sendall(STATUS.pack(os.waitpid(workers.pop(number), 0)[1]))
                else:
                    _kill(workers)
                    asked.sendall(STATUS.pack(0))
        finally:
            # Not in a worker, which never comes here.
            _kill(workers)
            shutil.rmtree(folder, ignore_errors=True)


def _kill(workers: dict[int, int]) -> None:
    for child in workers.values():
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    while workers:
        os.waitpid(workers.popitem()[1], 0)


def _work(connection: int) -> None:
    """Run the tasks that come by the socket, one after the other; end with it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    give_back_large_blocks()
    code = 1
    try:
        with Connection(connection) as tasks:
            while True:
                try:
                    task = tasks.recv_bytes()
                except EOFError:
                    break
                tasks.send_bytes(_outcome(task))
        code = 0
    except (BrokenPipeError, ConnectionResetError):
        # Nobody waits for the result any more.
        pass
    finally:
        # What the first process has still to do at its end is not for a worker to do.
        os._exit(code)


def _outcome(payload: bytes) -> bytes:
    """The result of a task or its error, and what it has asked stores for; pickled."""
    before = requests_so_far()
    try:
        function, task, token, requests_per_second = pickle.loads(payload)
        begin_task(requests_per_second)
        done = True, function(task, token), ""
    except BaseException as error:
        done = False, _without_frames(error), traceback.format_exc()
    try:
        return pickle.dumps((*done, requests_so_far() - before))
    except Exception as error:
        said = done[2] or f"{type(error).__name__}: {error}"
        return pickle.dumps((False, None, said, requests_so_far() - before))


def _without_frames(error: BaseException) -> BaseException | None:
    """The error, where the other process can have it."""
    try:
        return error if type(pickle.loads(pickle.dumps(error))) is type(error) else None
    except Exception:
        return None


def main() -> None:
    """What the command line of the first process calls: socket, folder, and the names of modules."""
    control, folder, modules = sys.argv[1:4]
    serve(int(control), folder, modules)
