"""Loads the client libraries of lock services, which are extras of the package."""

import importlib
from typing import Any

from ..errors import ConfigError


def client(module: str, extra: str, what: str) -> Any:
    """A module of a client library. Raises ConfigError when it is not installed; `what` needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ConfigError(
            f"{what} needs the Python package {module.partition('.')[0]}: {e}",
            hint=f"pip install 'hudi-services[{extra}]'",
        ) from e
