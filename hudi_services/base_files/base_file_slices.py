"""The source of slices that are a base file alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ..errors import UnsupportedTable
from ..model import BaseFile, FileSlice
from ..schema.schema_history import NO_HISTORY, KnownHistory
from ..storage import Storage
from .slices import SliceFacts
from .source_folder import NO_SOURCES, SourceFolder

# A command that opens no slice does without Arrow.
if TYPE_CHECKING:
    from .base_file_slice import BaseFileSlice

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BaseFileSlices:
    """The source of slices that are a base file alone, in the columns that the newest version of `history` has.

    `sources` is the folder with the columns of a bootstrapped table.
    """

    storage: Storage
    history: KnownHistory = NO_HISTORY
    sources: SourceFolder = NO_SOURCES

    def open(self, file_slice: FileSlice) -> "BaseFileSlice":
        return self.open_base(self._base(file_slice))

    def open_base(self, base: BaseFile) -> "BaseFileSlice":
        """The open base file. Raises CorruptFile, UnsupportedTable and StorageError."""
        from .base_file_opening import open_base

        return open_base(self.storage, base, self.history, self.sources)

    def facts(self, file_slice: FileSlice, take: Callable[[SliceFacts], T]) -> T:
        from ..parquet.footer import using_footer
        from .base_file_slice import FooterFacts

        base = self._base(file_slice)
        return using_footer(self.storage, base.path, base.size, lambda footer: take(FooterFacts(footer)), base.content)

    def as_of(self, instant: str | None, memory: int) -> "BaseFileSlices":
        return self

    def columns_at(self, instant: str) -> "BaseFileSlices":
        return replace(self, history=self.history.until(instant))

    def counting(self, instant: str) -> "BaseFileSlices":
        return self

    def checked(self, file_slice: FileSlice) -> FileSlice:
        self._base(file_slice)
        return file_slice

    def _base(self, file_slice: FileSlice) -> BaseFile:
        if file_slice.base_file is None or file_slice.log_files:
            raise UnsupportedTable(
                f"{self.storage.root}: the file slice {file_slice.file_id} in partition {file_slice.partition!r} has "
                "log files",
                hint="compact it with Apache Hudi first",
            )
        return file_slice.base_file
