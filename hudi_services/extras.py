"""Python packages that extras of this one bring: the same sentence and the same way out wherever one is missing."""

import importlib
import importlib.util
from collections.abc import Iterable
from typing import Any

from .errors import ConfigError


def imported(module: str, extra: str, needed_by: str) -> Any:
    """The module. Raises ConfigError where it is not installed, or its package is broken."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package, absent = module.partition(".")[0], (error.name or "").partition(".")[0]
        is_absent = isinstance(error, ModuleNotFoundError) and absent == package
        raise missing(module, extra, needed_by, "" if is_absent else str(error)) from error


def check_installed(modules: Iterable[str], extra: str, needed_by: str, or_else: str = "") -> None:
    """Raise ConfigError where one of the modules is not installed; `or_else` is another way out.

    Nothing is loaded but the packages that they are in: the processes of a run are forked from this one, and gRPC does
    not like that.
    """
    for module in modules:
        if not _is_installed(module):
            raise missing(module, extra, needed_by, or_else=or_else)


def missing(module: str, extra: str, needed_by: str, why: str = "", or_else: str = "") -> ConfigError:
    """The error for a module that `needed_by`, a noun, cannot work without."""
    return ConfigError(
        f"{needed_by} needs the Python module {module}, which {'cannot be loaded: ' + why if why else 'is missing'}",
        hint=f"install it: pip install 'hudi-services[{extra}]'{or_else}",
    )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        # Of the package that it is in.
        return False
