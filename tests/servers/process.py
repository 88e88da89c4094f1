"""A server as a process of the test: started, awaited, and killed at the end, with the processes that it started."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_LONGEST_START = 60.0


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(
    command: Sequence[object],
    log: Path,
    is_ready: Callable[[], object],
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A context in which the server runs; what it prints goes to `log`. The command may have paths in it.

    Its environment is `environment`, else ours; it leads a session of its own.

    It is ready when `is_ready` raises no OSError. Raises RuntimeError, with the end of the log, for one that ends
    before that or takes a minute.
    """
    with log.open("wb") as printed:
        server = subprocess.Popen(
            list(map(str, command)),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _await(server, is_ready, log)
            yield server
        finally:
            kill(server)


def kill(server: subprocess.Popen[bytes]) -> None:
    """Kill a server of `running` and what it started, as when its machine is lost; one that is gone already, too."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def _await(server: subprocess.Popen[bytes], is_ready: Callable[[], object], log: Path) -> None:
    end = time.monotonic() + _LONGEST_START
    while True:
        try:
            is_ready()
            return
        except OSError as error:
            if server.poll() is not None or time.monotonic() > end:
                said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RuntimeError(f"{server.args!r} does not serve ({error}):\n{said}") from error
        time.sleep(0.05)


def accepts(port: int) -> None:
    """Connect to a port; raises OSError when nobody listens."""
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
