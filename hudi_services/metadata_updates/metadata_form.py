"""What the metadata table of each table version has: its properties, and the statistics that are on by default.

    version 6       column_stats when asked for; no index definitions
    versions 8, 9   column_stats with an index definition, and for a table with partitions partition_stats

Source: HoodieBackedTableMetadataWriter.initializeMetaClient, HoodieMetadataConfig of Apache Hudi 0.15.0, 1.0.2, 1.2.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..merging.rules import EVENT_TIME_STRATEGY, PAYLOAD_STRATEGY
from ..metadata.records.keys import COLUMN_STATS, PARTITION_STATS
from ..metadata.statistics.indexed_columns import column_stats_definition
from ..options import value_of, writing_keys
from ..schema.table_schema import TableSchema
from ..storage import Storage
from ..table_config import METADATA_TABLE_FOLDER, TableConfig

_METADATA = "org.apache.hudi.metadata."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStatistics:
    """The statistics of a new table."""

    enable: bool | None = value_of(writing_keys.COLUMN_STATS_ENABLE, lambda asked: asked == "TRUE" if asked else None)
    """None: as in the release that owns the version of the table."""
    columns: tuple[str, ...] = value_of(writing_keys.COLUMN_STATS_COLUMNS)
    """Not stored in version 6, whose writers must all have it."""
    most_columns: int = value_of(writing_keys.COLUMN_STATS_MOST)
    """Counts without a list, and not in version 6."""
    file_groups: int = value_of(writing_keys.COLUMN_STATS_GROUPS)
    ranges: bool = value_of(writing_keys.PARTITION_STATS_ENABLE)
    """With column_stats, whether there are partition_stats, too."""
    range_file_groups: int = value_of(writing_keys.PARTITION_STATS_GROUPS)

    def groups(self, config: TableConfig) -> dict[str, int]:
        """The number of file groups of each partition with statistics, in the order in which Hudi builds them."""
        defined = has_definitions(config)
        if not (defined if self.enable is None else self.enable):
            return {}
        return {COLUMN_STATS: self.file_groups, **self.range_groups(config)}

    def range_groups(self, config: TableConfig) -> dict[str, int]:
        """As `groups`, of the partition with the ranges of whole data partitions alone."""
        has_ranges = has_definitions(config) and config.partition_fields and self.ranges
        return {PARTITION_STATS: self.range_file_groups} if has_ranges else {}

    def definition(self, config: TableConfig, schema: TableSchema) -> dict[str, Any]:
        """The index definition of column_stats; `schema` is that of the table, without meta columns."""
        return column_stats_definition(config, schema, self.columns, self.most_columns)


DEFAULT_STATISTICS = NewStatistics()


def has_definitions(config: TableConfig) -> bool:
    """Whether the indexes of a table have definitions, in `.hoodie/.index_defs/index.json`."""
    return _FORMS[config.version.number].has_definitions


def create_folder(storage: Storage, config: TableConfig) -> TableConfig:
    """Create the folder of the metadata table of a table, with its properties, and return them."""
    common = {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version.number),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.compaction.payload.class": f"{_METADATA}HoodieMetadataPayload",
    }
    own = TableConfig({**common, **_FORMS[config.version.number].properties}, config.version, METADATA_TABLE_FOLDER)
    own.make_folders(storage)
    return TableConfig.create(storage, own.raw, own.root)


@dataclass(frozen=True, slots=True)
class _Form:
    """What the metadata table of a table version has."""

    properties: Mapping[str, str]
    has_definitions: bool
    """True: column statistics are on by default, with ranges of partitions, and have an index definition."""


def _of_layout_2(version: int) -> _Form:
    properties = {
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.initial.version": str(version),
        "hoodie.archivelog.folder": "history",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": PAYLOAD_STRATEGY,
    }
    return _Form(properties, has_definitions=True)


_OF_LAYOUT_1 = {
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.keygenerator.class": f"{_METADATA}HoodieTableMetadataKeyGenerator",
    "hoodie.compaction.record.merger.strategy": EVENT_TIME_STRATEGY,
}
_FORMS = {6: _Form(_OF_LAYOUT_1, has_definitions=False), 8: _of_layout_2(8), 9: _of_layout_2(9)}
