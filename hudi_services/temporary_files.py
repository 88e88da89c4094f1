"""Temporary files on the local disk, which hold what does not fit into memory."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from .errors import StorageError


def temporary_file() -> IO[bytes]:
    """A file without a name, which is deleted with the process, however the process ends."""
    return tempfile.TemporaryFile(dir=temporary_folder(), prefix="hudi_services-")


@contextmanager
def disk_errors(task: str) -> Iterator[None]:
    """A context in which an error of the disk raises StorageError; `task` says what the disk is needed for."""
    try:
        yield
    except OSError as e:
        raise StorageError(
            f"{task} on the local disk: {temporary_folder()}: {e}",
            hint="free some space there, set spark.local.dir, or give the task more memory (--memory-per-task)",
        ) from e


def temporary_folder() -> str:
    """Spark's folder for temporary files (spark.local.dir), else the system's."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
