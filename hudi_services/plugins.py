"""Loads the operator's own code, which an option names as `package.module:name`.

Executors get the name, so the object need not be picklable; its module must be importable there, too.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .errors import ConfigError, HudiServicesError


def load(name: str, what: str) -> Any:
    """The object that `name` names; `what` is its role in messages. Raises ConfigError when it cannot be loaded."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    # A module may do anything when it is imported.
    except (Exception, SystemExit) as e:
        raise ConfigError(
            f"the {what} {name} cannot be loaded: {e}",
            hint="it must be on the Python path, here and on the executors that use it",
        ) from e


def load_class(name: str, what: str, base: type) -> type[Any]:
    """As `load`, for a subclass of `base`; raises ConfigError for any other object."""
    kind = load(name, what)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ConfigError(f"the {what} {name} is no subclass of {base.__module__}.{base.__name__}")
    return kind


@contextmanager
def guarded(what: str, kind: type) -> Iterator[None]:
    """A context for code of the operator's class `kind`: its errors become ConfigError, except HudiServicesErrors."""
    try:
        yield
    except HudiServicesError:
        raise
    except Exception as e:
        raise ConfigError(f"the {what} {name_of(kind)} failed: {type(e).__name__}: {e}") from e


def name_of(kind: type) -> str:
    """The name of a class, as an option gives it."""
    return f"{kind.__module__}:{kind.__qualname__}"
