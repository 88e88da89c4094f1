"""What Spark starts as its daemon of Python workers (`spark.python.daemon.module`); see `worker_host`.

It imports nothing but the standard library, and waits for the end of the daemon that stands in for it.
"""

import json
import os
import runpy
import socket
import sys
from collections.abc import Sequence
from typing import Any

PLACE = "HUDI_SERVICES_WORKER_HOST"
"""The environment variable with the path of the host's socket."""
SOCKET = "workers"
"""The name of that socket."""
FILES = (0, 1, 2)


def hand_over(place: str) -> None:
    """Let the host at `place` be the daemon, and return when that has ended. Raises OSError when there is no host."""
    told = json.dumps({"arguments": sys.argv[1:], "environment": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as host:
        host.connect(place)
        socket.send_fds(host, [len(told).to_bytes(4, "big")], FILES)
        host.sendall(told)
        # Only the daemon has these now: Java sees its end by them.
        devnull = os.open(os.devnull, os.O_RDWR)
        for file in FILES:
            os.dup2(devnull, file)
        while host.recv(1):
            pass


def received(connection: socket.socket) -> tuple[Sequence[int], dict[str, Any]]:
    """The files, and arguments and environment, that `hand_over` has sent."""
    size, files, _, _ = socket.recv_fds(connection, 4, len(FILES), socket.MSG_WAITALL)
    told = connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
    found: dict[str, Any] = json.loads(told)
    return files, found


def main() -> None:
    try:
        hand_over(os.environ[PLACE])
    except (OSError, KeyError):
        # Without the host, as if Spark had been told nothing.
        runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
