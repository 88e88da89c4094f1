"""Publishing the files of a build: they become file groups of the metadata table, in one step.

Of a new record index, `hoodie.properties` names it then; those of a rescale take the place of the old ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..commit.drafts import TimesSource
from ..commit.expectations import Expectation
from ..commit.unfinished import unfinished
from ..errors import ConflictError
from ..metadata.records.keys import RECORD_INDEX
from ..metadata_updates.new_partition import publish_partition
from ..snapshot import Snapshot, refresh
from .group_build import GroupBuild
from .rescale import Rescale


class Behind(ConflictError):
    """The table has changed, or may change, while the files of the index were moved."""


@dataclass(frozen=True, slots=True)
class NotBuiltYet:
    sentence: ClassVar[str] = "no other process has built the index meanwhile"
    partition: str

    def check(self, current: Snapshot) -> None:
        if current.metadata is None or self.partition in current.metadata.partitions:
            raise ConflictError(f"{current.storage.root}: another process built the index {self.partition} meanwhile")


@dataclass(frozen=True, slots=True)
class HasRecordIndex:
    sentence: ClassVar[str] = "the table has the record index by which rows of a secondary index are found"

    def check(self, current: Snapshot) -> None:
        if RECORD_INDEX not in current.config.metadata_partitions:
            raise ConflictError(
                f"{current.storage.root}: the record index was dropped meanwhile",
                hint="build it with index-bootstrap, then run again with --resume: what was built is kept",
            )


@dataclass(frozen=True, slots=True)
class IndexDraft:
    """An index that was built; `hoodie.properties` names it, and no instant of the table does.

    A write that began before the index existed may not add its rows to it, and a rollback may not take the rows of an
    older commit out of it. To move the files may take long: then the table is looked at once more.
    """

    build: GroupBuild
    instant: None = None

    @property
    def expectations(self) -> Sequence[Expectation]:
        needed = () if self.build.kind.secondary is None else (HasRecordIndex(),)
        return (NotBuiltYet(self.build.kind.partition), *needed)

    def sync(self, current: Snapshot, times: TimesSource) -> None:
        assert current.metadata is not None, "an expectation"
        self.build.place(current.metadata)
        now = refresh(current)
        if unfinished(now) or self.build.is_behind(now):
            raise Behind(f"{now.storage.root} has changed while the files of the index were moved")
        current.check_held()
        build, metadata = self.build, current.metadata
        definition = build.kind.definition(metadata, is_partitioned=build.shards.is_partitioned)
        publish_partition(
            metadata, build.kind.partition, definition, build.plan.instant, build.shards.file_ids, build.bases, times
        )

    def content(self, current: Snapshot) -> bytes:
        raise AssertionError("an index completes no instant of the table")


@dataclass(frozen=True, slots=True)
class RescaleDraft(IndexDraft):
    """The file groups of a rescale, in the place of the old ones."""

    build: Rescale

    @property
    def expectations(self) -> Sequence[Expectation]:
        return (NotBuiltYet(RECORD_INDEX),) if self.build.is_closed else ()

    def sync(self, current: Snapshot, times: TimesSource) -> None:
        if not self.build.is_closed:
            self.build.close(current)
            current = refresh(current)
        IndexDraft.sync(self, current, times)
