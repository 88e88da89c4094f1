"""The folder outside of a bootstrapped table that the operator allows to be read."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import UnsupportedTable
from ..model import BaseFile, FileSlice
from ..storage import FileReads

FLAG = "--bootstrap-source"


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """The URL of the folder that a table was bootstrapped from; "" where none may be read. A plain value, which is sent
    to the executors."""

    url: str = ""

    def check(self, storage: FileReads, slices: Iterable[FileSlice]) -> None:
        """Raise UnsupportedTable for the first slice that needs a source file, where no folder is allowed."""
        for one in slices if not self.url else ():
            if one.base_file is not None and one.base_file.source is not None:
                raise self.refusal(storage, one.base_file)

    def refusal(self, storage: FileReads, base: BaseFile) -> UnsupportedTable:
        """The error for a base file whose columns may not be read."""
        assert base.source is not None, "it has its columns elsewhere"
        return UnsupportedTable(
            f"{storage.full_path(base.path)} has the meta columns alone: the other ones are in {base.source.uri}, "
            "outside of the table",
            hint=f"allow the folder that the table was bootstrapped from to be read: {FLAG} FOLDER",
        )


NO_SOURCES = SourceFolder()
