"""The kinds of key indexes that are built: what their keys are, what they are spread by, and how Hudi defines them.

record_index              a location for each record key
secondary_index_<name>    a pair of value and record key for each row (table versions 8 and 9)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base_files.slices import SliceSource
from ..derived_indexes.secondary_index import SecondaryIndex, SecondaryPairs, new_secondary_index, secondary_index
from ..errors import ConfigError, NothingToDo, UnsupportedTable
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.key_reading import HashedPart, KeySource
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..own_commands import own_command
from ..snapshot import Snapshot

_SECONDARY = "secondary"
_RECORD = "record"
NAME = re.compile("[A-Za-z0-9_]{1,100}")
"""The name of a secondary index: file ids have it."""


@dataclass(frozen=True, slots=True)
class IndexKind:
    """An index to build, in the metadata partition `partition`; `secondary` says what a secondary index is of."""

    partition: str = RECORD_INDEX
    secondary: SecondaryIndex | None = None

    def source(self, slices: SliceSource) -> KeySource:
        """Opens slices for the keys that they have in the index."""
        return slices if self.secondary is None else SecondaryPairs(slices, self.secondary)

    @property
    def hashed_part(self) -> HashedPart | None:
        """The part of each key that is hashed; None for the whole key."""
        return None if self.secondary is None else self.secondary.hashed_part

    def definition(self, metadata: MetadataTable, *, is_partitioned: bool) -> Mapping[str, Any] | None:
        """The definition in index.json; None where the release of the table defines no such index."""
        version = metadata.config.version
        if self.secondary is not None:
            found = {
                "indexName": self.partition,
                "indexType": "secondary_index",
                "indexFunction": "identity",
                "sourceFields": [self.secondary.column],
                "indexOptions": {},
            }
            return {**found, "version": "V2"} if self.secondary.by_value else found
        if not version.record_index_is_defined:
            return None
        return {
            "indexName": RECORD_INDEX,
            "indexType": RECORD_INDEX,
            "indexFunction": "",
            "sourceFields": [],
            "indexOptions": {"isPartitioned": str(is_partitioned).lower()},
            "version": "V1",
        }


RECORDS = IndexKind()
"""The record index."""


def asked_index(text: str, table: Snapshot) -> IndexKind:
    """The index that --index names: record, secondary:COLUMN or secondary:NAME:COLUMN.

    Raises ConfigError for another text, UnsupportedTable for a column whose values are not indexed here or a table that
    has no secondary indexes.
    """
    kind, *words = text.split(":")
    if kind == _RECORD and not words:
        return RECORDS
    if kind != _SECONDARY or len(words) not in (1, 2) or not all(words) or not NAME.fullmatch(words[0]):
        raise ConfigError(
            f"--index {text} is no index that can be built",
            hint="name record, secondary:COLUMN or secondary:NAME:COLUMN",
        )
    metadata, root, column = table.metadata, table.storage.root, words[-1]
    if metadata is None or not table.config.version.has_secondary_indexes:
        raise UnsupportedTable(
            f"{root} has table version {table.config.version.number}, and no release that writes it knows secondary "
            "indexes",
            hint="upgrade the table with Apache Hudi first",
        )
    index = new_secondary_index(metadata, words[0], column)
    types = {one.name: one.type for one in table.schema.columns} if table.schema is not None else {}
    if column not in types:
        raise UnsupportedTable(f"{root} has no column {column} to index", hint="name a column of the table")
    index.check(types[column], "the table")
    return IndexKind(index.partition, index)


def check_unbuilt(kind: IndexKind, table: Snapshot) -> None:
    """Raise NothingToDo for a table that has the index, and UnsupportedTable for what has to be there before it."""
    root, partitions = table.storage.root, table.config.metadata_partitions
    if kind.partition in partitions:
        known = secondary_index(table.metadata, kind.partition) if kind.secondary and table.metadata else None
        if known is not None and kind.secondary is not None and known.column != kind.secondary.column:
            raise ConfigError(
                f"{root} has the index {kind.partition} already, of the column {known.column}",
                hint=f"give it another name: --index secondary:NAME:{kind.secondary.column}",
            )
        what = "record index" if kind.secondary is None else f"metadata partition {kind.partition}"
        raise NothingToDo(f"{root} has a {what} already")
    if kind.secondary is not None and RECORD_INDEX not in partitions:
        raise UnsupportedTable(
            f"{root} has no record index, and Apache Hudi finds the rows of a secondary index by it",
            hint=f"build it first: {own_command('index-bootstrap', root)}",
        )


def check_no_whole_index(table: Snapshot) -> None:
    """Raise ConfigError for a table that has a record index of the whole table, and not one of each partition."""
    metadata = table.metadata
    if metadata is None or RECORD_INDEX not in table.config.metadata_partitions:
        return
    if not Shards.of_groups(metadata.file_groups(RECORD_INDEX)).is_partitioned:
        raise ConfigError(
            f"{table.storage.root} has a record index of the whole table already",
            hint=f"drop it first: {own_command('index-drop', table.storage.root, '--index record')}",
        )


def check_partitioned(kind: IndexKind, table: Snapshot) -> None:
    """Raise UnsupportedTable for a table whose release knows no record index of each partition, and ConfigError for a
    secondary index."""
    root, version = table.storage.root, table.config.version
    if kind.secondary is not None:
        raise ConfigError(
            f"--partitioned is about the record index, and {kind.partition} is a secondary index", hint="leave it out"
        )
    if not version.indexes_partitions:
        raise UnsupportedTable(
            f"{root} has table version {version.number}, and no release that writes it knows a record index of each "
            "partition",
            hint="leave out --partitioned",
        )
