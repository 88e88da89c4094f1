"""What the files of instants are called and how commit metadata is encoded: one protocol, two layouts."""

from collections.abc import Collection
from typing import Protocol

from ..model import CommitMetadata
from ..storage import Storage
from ..versions import TableVersion
from .archived_instants import ArchivedInstants
from .instant import Action, Instant, State
from .layout_v1 import LayoutV1
from .layout_v2 import LayoutV2


class Layout(Protocol):
    """One timeline layout version. Folders are the table configuration's to tell."""

    @property
    def number(self) -> int: ...

    @property
    def clustering_action(self) -> Action:
        """The action of a clustering that is not completed."""

    def file_name(self, ts: str, action: Action, state: State, completion_time: str | None = None) -> str:
        """The name of the instant's file in this state; `completion_time` counts in COMPLETED only."""

    def parse(self, name: str, mtime_millis: int, zone: str) -> Instant | None:
        """The instant of a file, None when the name is none's. `mtime_millis` serves where the name has no time."""

    def encode_commit(self, metadata: CommitMetadata, release: str) -> bytes:
        """The content of a completed commit, deltacommit or replacecommit (and of an inflight forecast)."""

    def decode_commit(self, data: bytes, path: str) -> CommitMetadata:
        """The other way; an empty file has operation UNKNOWN. Raises CorruptFile naming `path`."""

    def read_archive(self, storage: Storage, folder: str, file_ids: Collection[str] = ()) -> ArchivedInstants:
        """What the archive in `folder` knows of instants, and which of `file_ids` its completed writes knew.

        Nothing when there is no archive. Raises CorruptFile.
        """


_LAYOUTS: dict[int, Layout] = {1: LayoutV1(), 2: LayoutV2()}


def layout_for(version: TableVersion) -> Layout:
    """The timeline layout of a table version."""
    return _LAYOUTS[version.timeline_layout]
