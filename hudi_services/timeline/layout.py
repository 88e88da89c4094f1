"""The names of instant files and the encoding of commit metadata: one protocol, two layouts."""

from collections.abc import Callable, Collection
from typing import Protocol

from ..model import CommitMetadata
from ..storage import Storage
from ..versions import TableVersion
from .archive_writer import ArchiveForm, ArchiveWriter
from .archived_instants import ArchivedInstants
from .instant import Action, Instant, State
from .layout_v1 import LayoutV1
from .layout_v2 import LayoutV2


class Layout(Protocol):
    """One timeline layout version. The table configuration names the folders."""

    @property
    def number(self) -> int: ...

    @property
    def clustering_action(self) -> Action:
        """The action of a clustering that is not completed."""

    @property
    def completion_times(self) -> bool:
        """Whether names have completion times, by which Hudi orders completed instants."""

    @property
    def archives_cleans_with_commits(self) -> bool:
        """Whether cleans and rollbacks are archived with the commits after them; otherwise by their own number."""

    def file_name(self, ts: str, action: Action, state: State, completion_time: str | None = None) -> str:
        """The name of the instant's file in this state; `completion_time` counts in COMPLETED only."""

    def parse(self, name: str, mtime_millis: int, zone: str) -> Instant | None:
        """The instant of a file, None when the name is not the name of an instant file.

        `mtime_millis` is the completion time where the name of a completed file has none.
        """

    def encode_commit(self, metadata: CommitMetadata, release: str) -> bytes:
        """The content of a completed commit, deltacommit or replacecommit (and of an inflight forecast)."""

    def decode_commit(self, data: bytes, path: str) -> CommitMetadata:
        """The commit metadata of a file; operation UNKNOWN for an empty file. Raises CorruptFile naming `path`."""

    def read_archive(self, storage: Storage, folder: str, file_ids: Collection[str] = ()) -> ArchivedInstants:
        """The instants that the archive in `folder` records, and which of `file_ids` its completed writes touched.

        Empty when there is no archive. Raises CorruptFile.
        """

    def last_archived(self, storage: Storage, folder: str, is_wanted: Callable[[bytes], bool]) -> str:
        """The newest instant of the archive in `folder` whose content is wanted, or the file that has it; "" for none.

        Only the newest files are read. Raises CorruptFile and StorageError.
        """

    def archive_writer(self, storage: Storage, folder: str, form: ArchiveForm) -> ArchiveWriter:
        """The writer of the archive in `folder`."""


_LAYOUTS: dict[int, Layout] = {1: LayoutV1(), 2: LayoutV2()}


def layout_for(version: TableVersion) -> Layout:
    """The timeline layout of a table version."""
    return _LAYOUTS[version.timeline_layout]
