"""Loads the client libraries of lock services, which are extras of the package, and makes their errors ours."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import ConfigError, StorageError


def client(module: str, extra: str, what: str) -> Any:
    """A module of a client library. Raises ConfigError when it is not installed; `what` needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ConfigError(
            f"{what} needs the Python package {module.partition('.')[0]}: {e}",
            hint=f"pip install 'hudi-services[{extra}]'",
        ) from e


@contextmanager
def failing_as_storage(lock: str, kinds: tuple[type[Exception], ...], hint: str) -> Iterator[None]:
    """Errors of a client library, of these `kinds`, become a StorageError about the lock."""
    try:
        yield
    except kinds as e:
        raise StorageError(f"the lock {lock}: {type(e).__name__}{f': {e}' if str(e) else ''}", hint=hint) from e
