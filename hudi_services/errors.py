"""The errors of this package, each with its exit code.

HudiServicesError              1  failed
├── ConfigError                2  a flag, a key or a value is wrong; nothing was touched
│   ├── TableNotFound          2  nothing at the path, or not a Hudi table
│   └── UnsupportedTable       2  a version or feature that we do not handle, refused before any write
├── CorruptFile                1  bytes that do not follow their format (names the file and the offset)
├── StorageError               1  the store refused or failed
│   ├── NotFound               1
│   │   └── Outdated           1  a listed file was deleted since; a new snapshot of the table may be complete
│   ├── AlreadyExists          1  create-if-absent lost the race
│   ├── SymbolicLink           1  a link below a local table's folder, which is not followed
│   └── PermissionDenied       1
├── JobLost                    1  Spark failed, not the task that it ran; the work of finished tasks may be kept
├── NothingToDo                0  nothing to do (3 with --fail-if-idle)
├── ConflictError              4  another writer changed what we were about to replace
│   └── LockBusy               4
├── CheckFailed                5  a check failed, nothing was committed
├── NeedsRecovery              6  the table must be recovered first
└── PartlyDone                 7  the action is complete, but a step after it is not
    └── TimeOver               7  the time limit was over, and nothing could be committed; finished work is kept

Every message is one sentence that names the file or the key; `hint` says what to do.
"""

from typing import Any

REPORT_IT = "nothing was committed; please report this with the plan and the files"
"""The hint of a check that fails where none should."""


class HudiServicesError(Exception):
    """Base of the family. `hint` says what the operator can do about it."""

    exit_code = 1
    result: Any = None
    """The `Result` of the run, when a method of the Python API raises the error."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Spark workers pickle what they raise; the default reduction would lose the hint.
        return (_rebuild, (type(self), self.message, self.hint))


def _rebuild(cls: type[HudiServicesError], message: str, hint: str) -> HudiServicesError:
    return cls(message, hint=hint)


class ConfigError(HudiServicesError):
    exit_code = 2


class TableNotFound(ConfigError):
    pass


class UnsupportedTable(ConfigError):
    pass


class CorruptFile(HudiServicesError):
    pass


class StorageError(HudiServicesError):
    pass


class NotFound(StorageError):
    pass


class Outdated(NotFound):
    """A file that was listed does not exist any more: it was archived, rolled back or cleaned since."""

    @classmethod
    def of(cls, error: NotFound) -> "Outdated":
        """`error` as an Outdated error, for a file that was listed."""
        hint = "another process archives, cleans or rolls back right now: run the command again"
        return error if isinstance(error, cls) else cls(f"{error.message}, and was listed before", hint=hint)


class AlreadyExists(StorageError):
    pass


class SymbolicLink(StorageError):
    pass


class PermissionDenied(StorageError):
    pass


class JobLost(HudiServicesError):
    pass


class NothingToDo(HudiServicesError):
    exit_code = 0


class ConflictError(HudiServicesError):
    exit_code = 4


class LockBusy(ConflictError):
    pass


class CheckFailed(HudiServicesError):
    exit_code = 5


class NeedsRecovery(HudiServicesError):
    exit_code = 6


class PartlyDone(HudiServicesError):
    exit_code = 7


class TimeOver(PartlyDone):
    """The time limit of a run was over before it could commit; the work of finished tasks may be kept."""
