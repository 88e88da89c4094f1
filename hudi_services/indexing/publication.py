"""Publishing a built record index: its files become file groups of the metadata table, then the table names it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..commit.drafts import TimesSource
from ..commit.expectations import Expectation
from ..errors import ConflictError
from ..metadata.record_index.shard_base_file import WrittenBase
from ..metadata.records.keys import RECORD_INDEX
from ..metadata_updates.new_partition import publish_record_index
from ..snapshot import Snapshot, refresh
from .build import Build


class Behind(ConflictError):
    """The table has changed, or may change, while the files of the index were moved."""


@dataclass(frozen=True, slots=True)
class NotBuiltYet:
    sentence: ClassVar[str] = "no other process has built the record index meanwhile"

    def check(self, current: Snapshot) -> None:
        if current.metadata is None or RECORD_INDEX in current.metadata.partitions:
            raise ConflictError(f"{current.storage.root}: another process built the record index meanwhile")


@dataclass(frozen=True, slots=True)
class IndexDraft:
    """A record index with the base files `bases`; `hoodie.properties` names it, and no instant of the table does.

    `look_again` is called when its files were moved, which may take long, with the table as it is then; it raises
    Behind.
    """

    build: Build
    bases: Sequence[WrittenBase]
    look_again: Callable[[Snapshot], None]
    instant: None = None
    expectations: Sequence[Expectation] = (NotBuiltYet(),)

    def sync(self, current: Snapshot, times: TimesSource) -> None:
        assert current.metadata is not None, "an expectation"
        self.build.place(current.metadata, self.bases)
        self.look_again(refresh(current))
        current.check_held()
        publish_record_index(current.metadata, self.build.plan.instant, self.bases, times)

    def content(self, current: Snapshot) -> bytes:
        raise AssertionError("an index completes no instant of the table")
