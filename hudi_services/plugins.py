"""Code of the operator's own, named as `package.module:name` in an option.

A name can be sent to executors where the object need not be picklable; its module must be importable there, too.
"""

import importlib
from typing import Any

from .errors import ConfigError


def load(name: str, what: str) -> Any:
    """The object that `name` stands for; `what` names its role in messages. Raises ConfigError when there is none."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as e:
        # A module may do anything when it is imported.
        raise ConfigError(
            f"the {what} {name} cannot be loaded: {e}", hint="it must be on the Python path, here and on the executors"
        ) from e
