"""Publishing indexes of files: their files become partitions of the metadata table, or all that a new one has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...commit.drafts import TimesSource
from ...commit.expectations import Expectation
from ...commit.unfinished import unfinished
from ...errors import ConflictError
from ...metadata.records.keys import COLUMN_STATS, PARTITION_STATS
from ...metadata_updates.metadata_form import create_folder
from ...metadata_updates.new_partition import (
    BuiltPartition,
    LostWork,
    complete_builds,
    name_partitions,
    place_groups,
    publish_partitions,
    why_unfit,
)
from ...snapshot import Snapshot, refresh
from ...table_config import METADATA_TABLE_FOLDER, TableConfig
from ...timeline.active import Timeline
from ..publication import Behind, NotBuiltYet
from .file_build import FileBuild

_AGAIN = "run again"


@dataclass(frozen=True, slots=True)
class NoMetadataTable:
    sentence: ClassVar[str] = "no other process has built the metadata table meanwhile"

    def check(self, current: Snapshot) -> None:
        if current.metadata is not None:
            raise ConflictError(f"{current.storage.root}: another process built the metadata table meanwhile")


@dataclass(frozen=True, slots=True)
class HasMetadataTable:
    sentence: ClassVar[str] = "the table has the metadata table, and the indexes that the new ones need"
    needs_columns: bool

    def check(self, current: Snapshot) -> None:
        there = current.config.metadata_partitions
        if current.metadata is None or (self.needs_columns and COLUMN_STATS not in there):
            raise ConflictError(f"{current.storage.root}: an index was dropped meanwhile", hint=_AGAIN)


@dataclass(frozen=True, slots=True)
class FileIndexesDraft:
    """Indexes of files that were built; `hoodie.properties` names them, and no instant of the table does."""

    build: FileBuild
    instant: None = None

    @property
    def expectations(self) -> Sequence[Expectation]:
        wanted = self.build.wanted
        if wanted.makes_table:
            return (NoMetadataTable(),)
        needs_columns = PARTITION_STATS in wanted.groups and COLUMN_STATS not in wanted.groups
        return (HasMetadataTable(needs_columns), *(NotBuiltYet(one) for one in wanted.groups))

    def sync(self, current: Snapshot, times: TimesSource) -> None:
        own = self._folder(current)
        built = self.build.built()
        for one in built:
            place_groups(current.storage, one.partition, one.file_ids, one.instant, one.files)
        now = refresh(current)
        if unfinished(now) or self.build.is_behind(now):
            raise Behind(f"{now.storage.root} has changed while the files of the indexes were moved")
        current.check_held()
        if own is None:
            assert current.metadata is not None, "an expectation"
            publish_partitions(current.metadata, built, times)
        else:
            _publish_table(current, own, built, times)

    def content(self, current: Snapshot) -> bytes:
        raise AssertionError("an index completes no instant of the table")

    def _folder(self, current: Snapshot) -> TableConfig | None:
        """The properties of the new metadata table; None where there is one. Raises LostWork."""
        metadata, storage = current.metadata, current.storage
        if metadata is None:
            properties = f"{METADATA_TABLE_FOLDER}/.hoodie/hoodie.properties"
            if self.build.made is None or storage.head(properties) is None:
                # What a killed build, or a writer that has switched its metadata table off, has left.
                storage.delete_tree(METADATA_TABLE_FOLDER)
                self.build.made = create_folder(storage, current.config)
            return self.build.made
        unfit = next((why for one in self.build.instants if (why := why_unfit(metadata, one))), "")
        if unfit:
            raise LostWork(f"{storage.root}: {unfit}", hint=_AGAIN)
        return None


def _publish_table(current: Snapshot, own: TableConfig, built: Sequence[BuiltPartition], times: TimesSource) -> None:
    timeline = Timeline.open(current.storage, own)
    complete_builds(timeline, own.version.release, built, times)
    name_partitions(current.storage, current.config, built, {}, ())
