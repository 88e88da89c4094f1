"""What a commit expects of the table at the moment when it becomes visible, one class for each expectation.

A draft carries its expectations, and `transaction.complete` checks each of them under the table's lock, against the
table as it is then. A service may add classes of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar, Protocol, runtime_checkable

from ..concurrency import SHORT_REQUESTS, at_once
from ..errors import CheckFailed, ConflictError
from ..file_names import parse_data_file
from ..model import FileSlice, WriteStat, path_in
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.partitions import StorageLister
from ..versions import TableVersion
from .begun_rollbacks import check_stays
from .conflicts import check_pending_rollbacks
from .newest_files import check_superseded
from .settings import TransactionSettings

_ASKED_FOR = 16
"""The most new files of a folder that are asked for one by one: these requests go out at once."""


class Expectation(Protocol):
    """A condition that must hold, or nothing may be committed."""

    sentence: ClassVar[str]
    """The condition, for people."""

    def check(self, current: Snapshot) -> None:
        """Raise ConflictError, NeedsRecovery or CheckFailed when the condition does not hold, and StorageError."""


@runtime_checkable
class AskingExpectation(Expectation, Protocol):
    """A condition that needs answers of the storage alone: it asks while the table is looked at under the lock."""

    def ask(self) -> None:
        """Ask for what `check` needs. Raises StorageError."""


@dataclass(frozen=True, slots=True)
class VersionUnchanged:
    sentence: ClassVar[str] = "the table still has the version that the change was made for"
    version: TableVersion

    def check(self, current: Snapshot) -> None:
        if current.config.version != self.version:
            raise ConflictError(
                f"{current.storage.root} was upgraded or downgraded, from table version {self.version.number} to "
                f"{current.config.version.number}",
                hint="nothing was committed; run again",
            )


@dataclass(frozen=True, slots=True)
class InputsStayCommitted:
    sentence: ClassVar[str] = "no commit that wrote one of the inputs is being rolled back"
    slices: Sequence[FileSlice]
    settings: TransactionSettings

    def check(self, current: Snapshot) -> None:
        check_pending_rollbacks(current, self.slices, self.settings)


@dataclass(frozen=True, slots=True)
class FilesStored:
    """No other process has rolled the new files back while they were written.

    The lock is held meanwhile: folders with many new files are listed, a request for a thousand files, or are listed
    already under the lock; of other folders, which may have any number of older files, each new file is asked for.
    """

    sentence: ClassVar[str] = "every new file is stored as it was written"
    storage: Storage
    stats: Sequence[WriteStat]
    is_alone: bool = False
    """Whether no other expectation lists the folders of the files: then they are asked for early."""
    asked: dict[str, int | None] = field(default_factory=dict, compare=False, repr=False)
    """The sizes of the files that were asked for under the lock that is held now; None for one that is not there."""

    def ask(self) -> None:
        if self.is_alone:
            many = self._many
            self._ask([path for stat in self.stats if stat.partition not in many for path, _ in stat.files])

    def _ask(self, paths: Sequence[str]) -> None:
        found = at_once(self.storage.head, paths, SHORT_REQUESTS)
        self.asked.update((path, None if file is None else file.size) for path, file in zip(paths, found, strict=True))

    @property
    def _many(self) -> set[str]:
        new = Counter(stat.partition for stat in self.stats)
        return {partition for partition, count in new.items() if count > _ASKED_FOR}

    def check(self, current: Snapshot) -> None:
        # Staged files are elsewhere.
        lister = current.stored if self.storage is current.storage else StorageLister(self.storage)
        many = self._many.union(stat.partition for stat in self.stats if lister.has(stat.partition))
        lister.load(sorted(many))
        few = [path for stat in self.stats if stat.partition not in many for path, _ in stat.files]
        self._ask([path for path in few if path not in self.asked])
        sizes = {path: self.asked.pop(path) for path in few}
        for partition in many:
            sizes |= {path_in(partition, name): size for name, size in lister.files(partition).items()}
        for path, size in chain.from_iterable(stat.files for stat in self.stats):
            if sizes.get(path) != size:
                raise CheckFailed(
                    f"{self.storage.full_path(path)} is not there as it was written",
                    hint="nothing was committed; execute again",
                )


@dataclass(frozen=True, slots=True)
class FilesSuperseded:
    """Newer files take the place of the files to be deleted, `names` by partition, and stay."""

    sentence: ClassVar[str] = "newer files take the place of every file that is to be deleted"
    names: Mapping[str, Sequence[str]]
    settings: TransactionSettings

    def check(self, current: Snapshot) -> None:
        check_superseded(current, self.names)
        files = (parse_data_file(partition, name, 0) for partition, names in self.names.items() for name in names)
        check_stays(current, {(file.partition, file.file_id) for file in files if file is not None}, self.settings)
