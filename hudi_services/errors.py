"""The errors of this package, each with its exit code.

    HudiServicesError              1
    ├── ConfigError                2
    │   ├── TableNotFound          2
    │   └── UnsupportedTable       2
    ├── CorruptFile                1
    ├── StorageError               1
    │   ├── NotFound               1
    │   │   └── Outdated           1
    │   ├── AlreadyExists          1
    │   ├── SymbolicLink           1
    │   └── PermissionDenied       1
    ├── JobLost                    1
    ├── NothingToDo                0 (3 with --fail-if-idle)
    ├── ConflictError              4
    │   └── LockBusy               4
    ├── CheckFailed                5
    ├── NeedsRecovery              6
    └── PartlyDone                 7
        └── TimeOver               7

Every message is one sentence that names the file or the key; `hint` says what to do.
"""

from typing import Any

REPORT_IT = "nothing was committed; please report this with the plan and the files"
"""The hint of a check that fails where none should."""


class HudiServicesError(Exception):
    """Base of the family. `hint` says what the operator can do about it."""

    exit_code = 1
    """The exit code of a command that ends with this error."""
    result: Any = None
    """The `Result` of the run, when a method of the Python API raises the error."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def line(self) -> str:
        """The message in one line, whatever line ends a name in it has."""
        return " ".join(self.message.split())

    def __reduce__(self) -> tuple[object, ...]:
        # Spark workers pickle what they raise; the default reduction would lose the hint.
        return (_rebuild, (type(self), self.message, self.hint))


def _rebuild(cls: type[HudiServicesError], message: str, hint: str) -> HudiServicesError:
    return cls(message, hint=hint)


class ConfigError(HudiServicesError):
    """A flag, a key or a value is wrong; nothing was touched."""

    exit_code = 2


class TableNotFound(ConfigError):
    """There is nothing at the path, or no Hudi table."""


class UnsupportedTable(ConfigError):
    """A version or a feature of the table is not handled, and is refused before any write."""


class CorruptFile(HudiServicesError):
    """The bytes of a file do not follow their format. The message names the file and the offset."""


class StorageError(HudiServicesError):
    """The store refused a request, or failed."""


class NotFound(StorageError):
    """A file does not exist."""


class Outdated(NotFound):
    """A listed file does not exist any more: it was archived, rolled back or cleaned. A new look may be complete."""

    @classmethod
    def of(cls, error: NotFound) -> "Outdated":
        """`error` as an Outdated error, for a file that was listed."""
        hint = "another process archives, cleans or rolls back right now: run the command again"
        return error if isinstance(error, cls) else cls(f"{error.message}, and was listed before", hint=hint)


class AlreadyExists(StorageError):
    """What was to be created, a file or a table, is there already."""


class SymbolicLink(StorageError):
    """There is a link below the folder of a local table; it is not followed."""


class PermissionDenied(StorageError):
    """The store does not allow a request."""


class JobLost(HudiServicesError):
    """Spark failed, not the task that it ran; the work of finished tasks may be kept."""


class NothingToDo(HudiServicesError):
    """There is nothing to do. The methods of the Python API do not raise it: their result is idle."""

    exit_code = 0


class ConflictError(HudiServicesError):
    """Another writer is at work, or has changed what was about to be replaced."""

    exit_code = 4


class LockBusy(ConflictError):
    """Another process holds the lock of the table."""


class CheckFailed(HudiServicesError):
    """A check failed; nothing was committed."""

    exit_code = 5


class NeedsRecovery(HudiServicesError):
    """The table must be recovered first."""

    exit_code = 6


class PartlyDone(HudiServicesError):
    """The action is complete, but a step after it is not."""

    exit_code = 7


class TimeOver(PartlyDone):
    """The time limit of a run was over before it could commit; the work of finished tasks may be kept."""
