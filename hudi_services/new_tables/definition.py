"""What a new table is, and the properties that a writer of the release that owns its version gives it.

    version 6    key generator by class, `.hoodie/archived`; a payload class only with merge-on-read
    version 8    key generator by type, `.hoodie/timeline/history`; merge mode, payload class and strategy
    version 9    as 8; of the merge settings the mode alone, and the payload class that was given, as a legacy

The metadata table is not among them: the first write makes it.
Source: HoodieTableMetaClient.TableBuilder, HoodieTableConfig, KeyGenUtils.inferKeyGeneratorType of Apache Hudi 0.15.0,
1.0.2 and 1.2.0; compared with the tables that these releases make.
"""

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import ConfigError
from ..merging.rules import COMMIT_TIME_STRATEGY, EVENT_TIME_STRATEGY, MODEL
from ..options import creation_keys, value_of
from ..options.creation_keys import KEY_GENERATORS, TIME_PREFIX, KeyGenerator
from ..versions import TableVersion

_EXTRACTORS = "org.apache.hudi.hive."
BY_EVENT_TIME, BY_COMMIT_TIME = "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"
_STRATEGIES = {BY_EVENT_TIME: EVENT_TIME_STRATEGY, BY_COMMIT_TIME: COMMIT_TIME_STRATEGY}
_PAYLOADS = {
    BY_EVENT_TIME: MODEL + "DefaultHoodieRecordPayload",
    BY_COMMIT_TIME: MODEL + "OverwriteWithLatestAvroPayload",
}
MODE_OF_PAYLOAD = {payload: mode for mode, payload in _PAYLOADS.items()}
"""The payload classes of new tables, and the merge modes that are the same."""
_NAME = re.compile(r"[^\x00-\x1f\x7f/]+")
_NEEDED_TIME_KEYS = (TIME_PREFIX + "timestamp.type", TIME_PREFIX + "output.dateformat")


class PartKind(enum.Enum):
    """How a custom key generator makes its part of the partition path."""

    SIMPLE = "SIMPLE"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A new table. Raises ConfigError for settings that contradict one another.

    `partition_kinds` are those of a custom key generator, one for each partition field. `payload` is the payload class
    that was given, and `merge_mode` the mode; "" for none. `time_options` are the `hoodie.keygen.timebased` keys.
    """

    name: str
    version: TableVersion
    record_key: tuple[str, ...] = value_of(creation_keys.RECORD_KEY)
    partition_by: tuple[str, ...] = ()
    partition_kinds: tuple[PartKind, ...] = ()
    ordering: tuple[str, ...] = value_of(creation_keys.ORDERING)
    type: str = value_of(creation_keys.TABLE_TYPE)
    key_generator: KeyGenerator
    database: str = value_of(creation_keys.DATABASE_NAME)
    hive_style: bool = value_of(creation_keys.HIVE_STYLE)
    url_encode: bool = value_of(creation_keys.URL_ENCODE)
    meta_fields: bool = value_of(creation_keys.META_FIELDS)
    metafile_in_base_format: bool = value_of(creation_keys.METAFILE_IN_BASE_FORMAT)
    change_data: bool = value_of(creation_keys.CHANGE_DATA)
    change_data_mode: str = value_of(creation_keys.CHANGE_DATA_MODE)
    drop_columns: bool = value_of(creation_keys.DROP_COLUMNS)
    zone: str = value_of(creation_keys.TIMELINE_ZONE)
    merge_mode: str = value_of(creation_keys.MERGE_MODE)
    payload: str = value_of(creation_keys.PAYLOAD_CLASS)
    time_options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError("a table needs a name, without / and control characters", hint="set hoodie.table.name")
        if not self.record_key:
            raise ConfigError(
                "a table needs a record key: keys that Hudi makes itself are not supported",
                hint="set hoodie.datasource.write.recordkey.field",
            )
        self._check_fields()
        self._check_merging()
        if self.change_data and not self.meta_fields:
            raise ConfigError(
                "change data capture needs meta fields: readers find the rows of changes by their record keys",
                hint=f"leave out {creation_keys.META_FIELDS.key}=false",
            )
        dropped = [name for name in self.ordering if self.drop_columns and name in self.partition_by]
        if dropped:
            raise ConfigError(
                f"the ordering field {dropped[0]} is a partition column, which files would not have",
                hint=f"leave out {creation_keys.DROP_COLUMNS.key}=true, or order by another column",
            )
        takes_time = self.key_generator is KeyGenerator.TIMESTAMP or PartKind.TIMESTAMP in self.partition_kinds
        missing = [key for key in _NEEDED_TIME_KEYS if takes_time and key not in self.time_options]
        if missing:
            raise ConfigError(f"a partition path of a time needs {missing[0]}", hint=f"set {missing[0]}")

    @property
    def mode(self) -> str:
        """The merge mode: as given, or that of the payload class, or by the ordering field."""
        if self.merge_mode or self.payload:
            return self.merge_mode or MODE_OF_PAYLOAD[self.payload]
        return BY_EVENT_TIME if self.ordering else BY_COMMIT_TIME

    def properties(self) -> dict[str, str]:
        """The content of `hoodie.properties`, without its checksum."""
        common = {
            "hoodie.table.name": self.name,
            "hoodie.table.type": self.type,
            "hoodie.table.version": str(self.version.number),
            "hoodie.table.recordkey.fields": ",".join(self.record_key),
            "hoodie.table.base.file.format": "PARQUET",
            creation_keys.CHANGE_DATA.key: _flag(self.change_data),
            "hoodie.table.timeline.timezone": self.zone,
            "hoodie.datasource.write.hive_style_partitioning": _flag(self.hive_style),
            "hoodie.datasource.write.partitionpath.urlencode": _flag(self.url_encode),
            creation_keys.DROP_COLUMNS.key: _flag(self.drop_columns),
            "hoodie.partition.metafile.use.base.format": _flag(self.metafile_in_base_format),
            "hoodie.populate.meta.fields": _flag(self.meta_fields),
            **self.time_options,
        }
        if self.change_data:
            common[creation_keys.CHANGE_DATA_MODE.key] = self.change_data_mode
        return common | self._form.properties(self)

    @property
    def _form(self) -> "_Form":
        return _FORMS[self.version.number]

    def _check_fields(self) -> None:
        generator, fields = self.key_generator, self.partition_by
        if generator is KeyGenerator.NON_PARTITION and fields:
            raise ConfigError(
                f"{generator.value} makes no partitions, and the partition field {','.join(fields)} was given",
                hint="leave one of the two out",
            )
        if generator in (KeyGenerator.SIMPLE, KeyGenerator.TIMESTAMP) and len(fields) != 1:
            raise ConfigError(f"{generator.value} takes one partition field, and {len(fields)} were given")
        if generator in (KeyGenerator.SIMPLE, KeyGenerator.TIMESTAMP) and len(self.record_key) != 1:
            raise ConfigError(f"{generator.value} takes one record key field, and {len(self.record_key)} were given")
        if generator is KeyGenerator.COMPLEX and not fields:
            raise ConfigError(f"{generator.value} needs a partition field")
        if (generator is KeyGenerator.CUSTOM) != bool(self.partition_kinds):
            raise ConfigError(
                f"the partition field {','.join(fields)} and the key generator {generator.value} do not fit together",
                hint="CustomKeyGenerator takes fields as name:SIMPLE or name:TIMESTAMP, all others take names alone",
            )
        for what, names in (("record key", self.record_key), ("partition", fields), ("ordering", self.ordering)):
            if len({*names}) < len(names):
                raise ConfigError(f"a {what} field is given twice: {','.join(names)}")
        if len(self.ordering) > 1 and not self._form.several_ordering_fields:
            several = ",".join(self.ordering)
            raise ConfigError(f"tables of version {self.version.number} have one ordering field at most, not {several}")

    def _check_merging(self) -> None:
        if self.payload and self.payload not in MODE_OF_PAYLOAD:
            raise ConfigError(
                f"the payload class {self.payload} is not supported in new tables",
                hint=f"use one of {', '.join(MODE_OF_PAYLOAD)}, or create the table with Apache Hudi",
            )
        if self.payload and self.merge_mode and MODE_OF_PAYLOAD[self.payload] != self.merge_mode:
            raise ConfigError(f"the payload class {self.payload} does not merge by {self.merge_mode}")
        if self.merge_mode and not self._form.has_merge_mode:
            raise ConfigError(
                f"a table of version {self.version.number} has no merge mode",
                hint="set hoodie.datasource.write.payload.class instead",
            )
        if self.merge_mode == BY_EVENT_TIME and not self.ordering:
            raise ConfigError(f"{BY_EVENT_TIME} needs an ordering field", hint="set hoodie.table.ordering.fields")


def key_generator_for(record_key: Sequence[str], partition_by: Sequence[str]) -> KeyGenerator:
    """The key generator of a table for which none was named; partition fields may have kinds, as `name:KIND`."""
    if not partition_by:
        return KeyGenerator.NON_PARTITION
    if ":" in partition_by[0]:
        return KeyGenerator.CUSTOM
    return KeyGenerator.SIMPLE if len(record_key) == len(partition_by) == 1 else KeyGenerator.COMPLEX


def _of_6(definition: TableDefinition) -> dict[str, str]:
    found = {
        "hoodie.timeline.layout.version": "1",
        "hoodie.database.name": definition.database,
        "hoodie.archivelog.folder": "archived",
        "hoodie.table.keygenerator.class": KEY_GENERATORS + definition.key_generator.value,
        "hoodie.table.partition.fields": ",".join(definition.partition_by),
    }
    if definition.ordering:
        found["hoodie.table.precombine.field"] = definition.ordering[0]
    if definition.type == "MERGE_ON_READ":
        found["hoodie.compaction.payload.class"] = definition.payload or _PAYLOADS[BY_COMMIT_TIME]
        found["hoodie.compaction.record.merger.strategy"] = _STRATEGIES[BY_EVENT_TIME]
    return found


def _of_8(definition: TableDefinition) -> dict[str, str]:
    found = _of_layout_2(definition) | {
        "hoodie.record.merge.strategy.id": _STRATEGIES[definition.mode],
        "hoodie.compaction.payload.class": _PAYLOADS[definition.mode],
    }
    if definition.ordering:
        found["hoodie.table.precombine.field"] = definition.ordering[0]
    return found


def _of_9(definition: TableDefinition) -> dict[str, str]:
    found = _of_layout_2(definition) | {"hoodie.table.format": "native"}
    if definition.ordering:
        found["hoodie.table.ordering.fields"] = ",".join(definition.ordering)
    if definition.payload:
        found["hoodie.table.legacy.payload.class"] = definition.payload
    extractor = "MultiPartKeysValueExtractor"
    if len(definition.partition_by) == 1 and definition.key_generator is not KeyGenerator.CUSTOM:
        extractor = "HiveStylePartitionValueExtractor" if definition.hive_style else "SinglePartPartitionValueExtractor"
    return found | {"hoodie.table.partition_extractor_class": _EXTRACTORS + extractor}


def _of_layout_2(definition: TableDefinition) -> dict[str, str]:
    kinds = [kind.value for kind in definition.partition_kinds] or [""] * len(definition.partition_by)
    fields = (f"{name}:{kind}" if kind else name for name, kind in zip(definition.partition_by, kinds, strict=True))
    found = {
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.initial.version": str(definition.version.number),
        "hoodie.table.multiple.base.file.formats.enable": "false",
        "hoodie.archivelog.folder": "history",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.keygenerator.type": definition.key_generator.name,
        "hoodie.table.partition.fields": ",".join(fields),
        "hoodie.record.merge.mode": definition.mode,
    }
    return found | ({"hoodie.database.name": definition.database} if definition.database else {})


@dataclass(frozen=True, slots=True)
class _Form:
    """What a table version has: its properties, and the settings that it knows."""

    properties: Callable[[TableDefinition], dict[str, str]]
    has_merge_mode: bool
    several_ordering_fields: bool


_FORMS = {6: _Form(_of_6, False, False), 8: _Form(_of_8, True, False), 9: _Form(_of_9, True, True)}


def _flag(value: bool) -> str:
    return str(value).lower()
