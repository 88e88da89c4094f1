"""The Python workers of Spark in a session of our own on this machine, forked from a process that is ready early.

Spark's own daemon of workers starts with the first job, imports pyspark from a zip file, which compiles it each time,
and its workers then import this package and Arrow, each for itself: some seconds before the first row (measured). Here
a process of ours imports all of that while Java starts. The daemon that Spark starts (`worker_daemon`) hands its files
and its environment to this process, which forks, and runs Spark's daemon in the child.

Source: PythonWorkerFactory and pyspark/daemon.py of Apache Spark 3.5 and 4; spark.python.daemon.module.
"""

import os
import runpy
import select
import signal
import socket
import sys
import traceback
from pathlib import Path

from ..preloading import load, start_preloading
from ..process import wait_aside
from .worker_daemon import FILES, SOCKET, received

_DAEMON = "pyspark.daemon"


class WorkerHost:
    """That process, until `close`. Spark's daemon finds it by the environment variable `PLACE`."""

    def __init__(self, folder: Path) -> None:
        """`folder` belongs to this user alone. Raises OSError when its path is too long for a socket."""
        self.place = folder / SOCKET
        self._control, its = socket.socketpair()
        with its, socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.place))
            listening.listen()
            socket.send_fds(self._control, [b"L"], [listening.fileno()])
            self._ended = start_preloading(__name__, [], its.fileno(), ["pyspark.worker"])

    def close(self) -> None:
        """End the process, without waiting for it; Java ends the workers."""
        self._control.close()
        wait_aside(self._ended)


def main() -> None:
    """What the process does: it loads the modules, and forks a daemon for each that Spark starts, until it is told to
    end, or the one that started it has ended."""
    control, names = sys.argv[1:3]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=int(control)) as asked:
        _, files, _, _ = socket.recv_fds(asked, 1, 1)
        load(names)
        with socket.socket(fileno=files[0]) as listening:
            _serve(asked, listening)


def _serve(asked: socket.socket, listening: socket.socket) -> None:
    while True:
        ready, _, _ = select.select([asked, listening], [], [])
        # Its other end is only ever closed.
        if asked in ready:
            return
        connection, _ = listening.accept()
        with connection:
            if os.fork() == 0:
                asked.close()
                listening.close()
                _be_the_daemon(connection)


def _be_the_daemon(connection: socket.socket) -> None:
    """Run Spark's daemon with the files, arguments and environment of the process at the other end."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        files, told = received(connection)
        for own, theirs in zip(FILES, files, strict=True):
            os.dup2(theirs, own)
            os.close(theirs)
        os.environ.clear()
        os.environ.update(told["environment"])
        sys.argv[:] = [_DAEMON, *told["arguments"]]
        runpy.run_module(_DAEMON, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        # Java logs what its daemon says before its end.
        traceback.print_exc()
    finally:
        os._exit(1)
