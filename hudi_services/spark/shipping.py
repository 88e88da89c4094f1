"""Ships this package to executors, as a file of the Spark context that the tasks put on their import path themselves.

`SparkContext.addPyFile` would do the same for every other job of the session, and change `sys.path` of the driver: the
session may belong to another program.
"""

import atexit
import functools
import shutil
import tempfile
import threading
import uuid
import weakref
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AddingAccumulatorParam
from pyspark.serializers import CloudPickleSerializer

from ..request_counts import add_of_tasks
from ..request_pace import pace_of_tasks

_PACKAGE = Path(__file__).resolve().parent.parent
_lock = threading.Lock()
_have_it: "weakref.WeakKeyDictionary[SparkContext, Shipment]" = weakref.WeakKeyDictionary()


class Shipment:
    """What the executors of a context have got: this package as the file `archive`, "" where their workers have it
    anyway; `requests` counts what they ask stores for."""

    def __init__(self, context: SparkContext, archive: Path | None) -> None:
        if archive is not None:
            context.addFile(str(archive))
        self.archive = archive.name if archive is not None else ""
        # Executors load it before they have this package: it has nothing of ours in it.
        self.requests: Accumulator[Any] = context.accumulator(Counter(), AddingAccumulatorParam(Counter()))
        self._told: Counter[str] = Counter()

    def tell_requests(self) -> None:
        """Add to the requests of tasks what they have made since this was called for the last time."""
        with _lock:
            made = Counter(self.requests.value)
            add_of_tasks(made - self._told)
            self._told = made


def ship(context: SparkContext) -> Shipment:
    """Give the executors of `context` this package, once."""
    with _lock:
        if context not in _have_it:
            _have_it[context] = Shipment(context, _archive())
        return _have_it[context]


def is_there(context: SparkContext) -> None:
    """Note that the workers of `context` have this package, and nothing is to be shipped."""
    with _lock:
        _have_it[context] = Shipment(context, None)


def shipped(
    shipment: Shipment, function: Callable[[Iterable[Any]], Iterator[Any]]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """`function` for tasks on executors, which load this package from the file of the shipment.

    The returned function refers to nothing in this package: it is pickled by value, and has `function` pickled by name.
    """
    archive, requests, per_second = shipment.archive, shipment.requests, pace_of_tasks()
    body: bytes = CloudPickleSerializer().dumps(function)  # type: ignore[no-untyped-call]

    def run(payloads: Iterable[Any]) -> Iterator[Any]:
        import gc
        import pickle
        import sys
        from zipimport import zipimporter

        from pyspark import SparkFiles

        place = SparkFiles.get(archive) if archive else ""
        if archive and sys.path[:1] != [place]:
            # Also before the worker's own folder: the archive has nothing else that could hide a module. A worker runs
            # one job after another, and may have loaded another release of this package for another program.
            sys.path[:] = [place, *(one for one in sys.path if one != place)]
            for name in [one for one in sys.modules if one.split(".")[0] == "hudi_services"]:
                del sys.modules[name]
            loaded = pickle.loads(body)
            gc.collect()
            gc.freeze()
        else:
            loaded = pickle.loads(body)
        from hudi_services.request_counts import requests_so_far
        from hudi_services.request_pace import begin_task

        begin_task(per_second)
        before = requests_so_far()
        try:
            yield from loaded(payloads)
        finally:
            requests.add(requests_so_far() - before)
        # Before the next task Spark's worker looks for garbage among the objects of all modules (hence `freeze`), and
        # has each importer of a zip file, pyspark's own too, read the list of its files again: together a quarter of a
        # second for each task (measured). Importers that are gone return when something is imported.
        for path in [one for one, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]:
            del sys.path_importer_cache[path]

    return run


@functools.lru_cache(maxsize=1)
def _archive() -> Path:
    """This package as a zip that Python can import from; it exists as long as this process, as contexts may.

    Its name is unique: a context does not take two files of the same name.
    """
    if not _PACKAGE.is_dir():
        # Already running from a zip (spark-submit --py-files): that file is what the executors need.
        return _PACKAGE.parent
    folder = Path(tempfile.mkdtemp(prefix="hudi_services-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / f"hudi_services-{uuid.uuid4().hex}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(_PACKAGE.rglob("*")):
            if file.is_file() and file.suffix in (".py", ".avsc"):
                name = file.relative_to(_PACKAGE.parent)
                archive.write(file, name)
                # Importing takes half the time with the compiled module; Python ignores it when it is an old one.
                compiled = Path(cache_from_source(file))
                if file.suffix == ".py" and compiled.is_file():
                    archive.write(compiled, f"{name}c")
    return target
