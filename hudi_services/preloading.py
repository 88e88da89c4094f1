"""Processes that load what tasks need, and from which workers are then forked within milliseconds.

Such a process begins no thread, because a process with threads may not fork.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from .process import wait_aside

_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from {} import main; main()"
_ENVIRONMENT = {
    # As in this process, and in workers of Spark while they run tasks.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # Threads that begin with an import, and that tasks have no use for.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OPENBLAS_NUM_THREADS": "1",
}
_STDERR = 2
_LIBRARIES = ("numpy", "pyarrow.parquet", "pyarrow.compute", "obstore.store", "isal.isal_zlib")
"""What tasks load when they need it."""
_NOT_FOR_TASKS = ("hudi_services.cli", "hudi_services.api", "hudi_services.jobs")


def start_preloading(
    module: str, arguments: Sequence[str], socket: int, modules: Sequence[str] = ()
) -> "subprocess.Popen[bytes]":
    """Start a process of this Python with the import path of this process, which calls `main` of the module.

    Its arguments are the number of the socket, those that are given, and names for `load`: of the libraries that tasks
    use, of the modules of this package that this process has, and `modules`. Its stdout is stderr: what an operator's
    own code prints is not part of the report. It is in a session of its own, so that Ctrl-C is not for it.
    """
    ours = [name for name in sys.modules if name.startswith("hudi_services.") and not name.startswith(_NOT_FOR_TASKS)]
    names = ",".join([*_LIBRARIES, *modules, *ours])
    return subprocess.Popen(
        [sys.executable, "-c", _START.format(module), str(socket), *arguments, names, json.dumps(sys.path)],
        stdin=subprocess.DEVNULL,
        stdout=_STDERR,
        env={**os.environ, **_ENVIRONMENT},
        pass_fds=[socket],
        start_new_session=True,
    )


def start_detached(module: str, arguments: Sequence[str]) -> None:
    """Start a process of this Python with the import path of this process, which calls `main` of the module, and which
    goes on when this process has ended."""
    nowhere = subprocess.DEVNULL
    line = [sys.executable, "-c", _START.format(module), *arguments, json.dumps(sys.path)]
    wait_aside(subprocess.Popen(line, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True))


def load(names: str) -> None:
    """Import modules, as far as they are there: a task that lacks one says so. Their objects are no garbage."""
    for name in names.split(","):
        with suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
