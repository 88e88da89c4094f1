"""This package on the executors: as a file of the Spark context, which the tasks themselves put on their import path.

`SparkContext.addPyFile` would do the same for every other job of the session, and change `sys.path` of the driver: the
session may be somebody else's.
"""

import atexit
import functools
import shutil
import tempfile
import threading
import uuid
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer

_PACKAGE = Path(__file__).resolve().parent.parent
_lock = threading.Lock()
_have_it: "weakref.WeakSet[SparkContext]" = weakref.WeakSet()


def ship(context: SparkContext) -> str:
    """Give the executors of `context` this package, once; the name of the file that they get."""
    with _lock:
        archive = _archive()
        if context not in _have_it:
            context.addFile(str(archive))
            _have_it.add(context)
        return archive.name


def shipped(
    archive: str, function: Callable[[Iterable[bytes]], Iterator[Any]]
) -> Callable[[Iterable[bytes]], Iterator[Any]]:
    """`function` for tasks on executors, where this package comes from the file `archive` that they got.

    What is returned names nothing of this package: it is pickled by value, and `function` by name inside of it.
    """
    body: bytes = CloudPickleSerializer().dumps(function)  # type: ignore[no-untyped-call]

    def run(payloads: Iterable[bytes]) -> Iterator[Any]:
        import pickle
        import sys

        from pyspark import SparkFiles

        place = SparkFiles.get(archive)
        if sys.path[:1] != [place]:
            # Before the folder that the worker is in, too: nothing else is in the archive that could hide a module.
            # Workers go from job to job, and may have loaded another release of this package for somebody else.
            sys.path[:] = [place, *(one for one in sys.path if one != place)]
            for name in [one for one in sys.modules if one.split(".")[0] == "hudi_services"]:
                del sys.modules[name]
        yield from pickle.loads(body)(payloads)

    return run


@functools.lru_cache(maxsize=1)
def _archive() -> Path:
    """This package as a zip that Python can import from; it lasts as long as this process, as contexts may.

    Its name is its own: a context takes no two files of the same name.
    """
    if not _PACKAGE.is_dir():
        # Already running from a zip (spark-submit --py-files): that file is what the executors need.
        return _PACKAGE.parent
    folder = Path(tempfile.mkdtemp(prefix="hudi_services-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / f"hudi_services-{uuid.uuid4().hex}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*")):
            if file.is_file() and file.suffix in (".py", ".avsc"):
                archive.write(file, file.relative_to(_PACKAGE.parent))
    return target
