"""Apache Hudi table services in Python, on PySpark.

    import hudi_services

    table = hudi_services.open("/data/rides")
    table.cluster()

The names in `__all__` are public. Each is loaded on first use: the command line and the executors of Spark import this
package, too, and need none of them. docs/python-api.md has examples.
"""

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import errors
    from .api.creation import create
    from .api.many_tables import run_fleet
    from .api.result import Result
    from .api.table import Table, open
    from .errors import (
        AlreadyExists,
        CheckFailed,
        ConfigError,
        ConflictError,
        CorruptFile,
        HudiServicesError,
        JobLost,
        LockBusy,
        NeedsRecovery,
        NotFound,
        Outdated,
        PartlyDone,
        PermissionDenied,
        StorageError,
        SymbolicLink,
        TableNotFound,
        TimeOver,
        UnsupportedTable,
    )
    from .runs.report import RunState

__all__ = [
    "AlreadyExists",
    "CheckFailed",
    "ConfigError",
    "ConflictError",
    "CorruptFile",
    "HudiServicesError",
    "JobLost",
    "LockBusy",
    "NeedsRecovery",
    "NotFound",
    "Outdated",
    "PartlyDone",
    "PermissionDenied",
    "Result",
    "RunState",
    "StorageError",
    "SymbolicLink",
    "Table",
    "TableNotFound",
    "TimeOver",
    "UnsupportedTable",
    "__version__",
    "create",
    "errors",
    "open",
    "run_fleet",
]

_HOMES = {
    "create": ".api.creation",
    "Result": ".api.result",
    "RunState": ".runs.report",
    "Table": ".api.table",
    "open": ".api.table",
    "run_fleet": ".api.many_tables",
}
"""The module of each public name; `.errors` for a name that is not listed."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    home = importlib.import_module(_HOMES.get(name, ".errors"), __name__)
    found = globals()[name] = home if name == "errors" else getattr(home, name)
    return found


def __dir__() -> list[str]:
    return __all__
