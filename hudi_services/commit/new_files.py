"""Where the new files of an attempt are until the commit: in the table, or in a staging folder that no reader lists.

    staging    .hoodie/.hudi_services/staged-<ts>/files/<partition>/<base file>
    scratch    .hoodie/.hudi_services/staged-<ts>, or the marker folder: files from which the commit is computed

Both are deleted with the attempt. A staged file bears the time at which its attempt began.
"""

from dataclasses import dataclass

from ..base_files.base_file_slices import BaseFileSlices
from ..base_files.slices import SliceSource
from ..concurrency import SHORT_REQUESTS, at_once
from ..file_names import OWN_FOLDER, renamed
from ..storage import Storage
from .markers import create_marker, marker_folder


def staging_folder(instant: str) -> str:
    return f"{OWN_FOLDER}/staged-{instant}"


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The new files of `instant`: paths are relative to the root of `storage`, as they will be to that of the table.

    `scratch` is a folder of the table, for whatever the commit is computed from.
    """

    storage: Storage
    instant: str
    scratch: str

    @classmethod
    def in_place(cls, table: Storage, instant: str) -> "NewFiles":
        """New files that are in the table from the beginning, invisible as long as their instant is not completed."""
        return cls(table, instant, marker_folder(instant))

    @classmethod
    def staged(cls, table: Storage, instant: str) -> "NewFiles":
        """New files in a staging folder."""
        folder = staging_folder(instant)
        return cls(table.elsewhere(table.full_path(f"{folder}/files")), instant, folder)

    @property
    def source(self) -> SliceSource:
        """Opens the new files."""
        return BaseFileSlices(self.storage)

    def path_in_table(self, path: str) -> str:
        """The path of a staged file, relative to the table."""
        return f"{self.scratch}/files/{path}"


def path_at(path: str, instant: str) -> str:
    """The path of a base file whose name gets another instant."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{renamed(name, instant)}"


def move_staged(table: Storage, files: NewFiles, paths: list[str], instant: str) -> None:
    """Move staged files to their places in the table, under the names of `instant`; their markers are created before.

    After a kill, a rollback of the instant finds the files by their markers.
    """

    def move(path: str) -> None:
        final = path_at(path, instant)
        create_marker(table, instant, final)
        table.move(files.path_in_table(path), final)

    # Under the lock. A store copies by itself: no bytes come here.
    at_once(move, paths, SHORT_REQUESTS)
