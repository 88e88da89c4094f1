"""Processes that load what tasks need, and from which workers are then forked within milliseconds.

Such a process begins no thread, because a process with threads may not fork. A command forks it from itself before it
has any, when it has loaded the same modules for its own use; where that is too late, Python is started anew.
"""

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from .process import ENVIRONMENT, has_threads, wait_aside

_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from {} import main; main()"
_STDERR = 2
_LIBRARIES = ("numpy", "pyarrow.parquet", "pyarrow.compute", "obstore.store", "isal.isal_zlib")
"""What tasks load when they need it."""
_NOT_FOR_TASKS = ("hudi_services.cli", "hudi_services.api", "hudi_services.jobs")
_MOST_BYTES = 1 << 20
"""Of what a forked process is told."""


class _Forked:
    """A copy of this process without the file `not_inherited`, which waits until it is told what to be."""

    def __init__(self, not_inherited: int | None) -> None:
        self._control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._pid = os.fork()
        if self._pid == 0:
            self._control.close()
            if not_inherited is not None:
                os.close(not_inherited)
            _be(its)
        its.close()

    def become(self, module: str, arguments: Sequence[str], socket_number: int) -> Callable[[], object]:
        """Let it call `main` of the module; gives what waits for its end. Raises OSError when it is gone."""
        with self._control:
            socket.send_fds(self._control, [json.dumps([module, *arguments]).encode()], [socket_number])
        return partial(os.waitpid, self._pid, 0)


_ahead: list[_Forked] = []
_lock = threading.Lock()


def fork_ahead(not_inherited: int | None = None) -> None:
    """Fork the process that `start_preloading` will need, which is too late once this process has threads; it does not
    get the file of the number `not_inherited`.

    It ends with this process, should that not need it. Only for a process that has `ENVIRONMENT`.
    """
    if _ahead or has_threads() or any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        return
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    if not has_threads():
        with suppress(OSError):
            _ahead.append(_Forked(not_inherited))


def start_preloading(
    module: str, arguments: Sequence[str], socket_number: int, modules: Sequence[str] = ()
) -> Callable[[], object]:
    """Start a process of this Python with the import path of this process, which calls `main` of the module; gives what
    waits for its end.

    Its arguments are the number of the socket, those that are given, and names for `load`: of the libraries that tasks
    use, of the modules of this package that this process has, and `modules`. Its stdout is stderr: what an operator's
    own code prints is not part of the report. It is in a session of its own, so that Ctrl-C is not for it.
    """
    ours = [name for name in sys.modules if name.startswith("hudi_services.") and not name.startswith(_NOT_FOR_TASKS)]
    words = [*arguments, ",".join([*_LIBRARIES, *modules, *ours])]
    with _lock:
        ahead = _ahead.pop() if _ahead else None
    if ahead is not None:
        with suppress(OSError):
            return ahead.become(module, words, socket_number)
    process = subprocess.Popen(
        [sys.executable, "-c", _START.format(module), str(socket_number), *words, json.dumps(sys.path)],
        stdin=subprocess.DEVNULL,
        stdout=_STDERR,
        env={**os.environ, **ENVIRONMENT},
        pass_fds=[socket_number],
        start_new_session=True,
    )
    return process.wait


def start_detached(module: str, arguments: Sequence[str]) -> None:
    """Start a process of this Python with the import path of this process, which calls `main` of the module, and which
    goes on when this process has ended.

    Its working directory is the root: a directory of this process may be gone by then (Airflow's BashOperator removes
    its own), and Java does not start in it.
    """
    nowhere = subprocess.DEVNULL
    paths = [os.path.abspath(path) for path in sys.path]
    line = [sys.executable, "-c", _START.format(module), *arguments, json.dumps(paths)]
    started = subprocess.Popen(line, cwd="/", stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
    wait_aside(started.wait)


def load(names: str) -> None:
    """Import modules, as far as they are there: a task that lacks one says so. Their objects are no garbage."""
    for name in names.split(","):
        with suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _be(control: socket.socket) -> None:
    """What the forked process does, until it ends."""
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(_STDERR, 1)
        with control:
            told, files, _, _ = socket.recv_fds(control, _MOST_BYTES, 1)
        if told:
            module, *words = json.loads(told)
            sys.argv[:] = ["", str(files[0]), *words]
            importlib.import_module(module).main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
