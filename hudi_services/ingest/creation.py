"""Creates a table as its options say."""

from typing import Any

from ..errors import ConfigError
from ..merging.rules import payload_class, payload_is_of_write
from ..new_tables.creation import create_table
from ..new_tables.definition import (
    MODE_OF_PAYLOAD,
    PartKind,
    TableDefinition,
    key_generator_for,
)
from ..options import Option, Options, as_text, creation_keys, effects
from ..options.creation_keys import TIME_PREFIX, KeyGenerator
from ..options.option import Phase
from ..storage import Storage
from ..table_config import TableConfig
from ..urls import folder_name
from ..versions import table_version
from .key_settings import check_kinds


def create(storage: Storage, options: Options) -> TableConfig:
    """Create a table. Raises ConfigError for options that do not make one, and AlreadyExists where there is a table."""
    return create_table(storage, definition(options, storage.root))


def check_definition(options: Options, config: TableConfig) -> None:
    """Raise ConfigError when options say of an existing table what it is not."""
    known: dict[Option[Any], str | tuple[str, ...] | bool] = {
        creation_keys.TABLE_NAME: config.name,
        creation_keys.TABLE_TYPE: config.type,
        creation_keys.TABLE_VERSION: str(config.version.number),
        creation_keys.RECORD_KEY: config.record_key_fields,
        creation_keys.PARTITION_BY: config.partition_fields,
        creation_keys.ORDERING: config.ordering_fields,
        creation_keys.HIVE_STYLE: config.hive_style,
        creation_keys.URL_ENCODE: config.url_encode,
        creation_keys.META_FIELDS: config.populate_meta_fields,
        creation_keys.CHANGE_DATA: config.captures_changes,
        creation_keys.DROP_COLUMNS: config.drops_columns,
        creation_keys.TIMELINE_ZONE: config.timeline_zone,
    }
    if config.captures_changes:
        known[creation_keys.CHANGE_DATA_MODE] = config.changes_mode
    if config.key_generator:
        known[creation_keys.KEY_GENERATOR] = creation_keys.key_generator_type(config.key_generator)
    if not payload_is_of_write(config):
        known[creation_keys.PAYLOAD_CLASS] = _payload(config, options[creation_keys.PAYLOAD_CLASS])
        known[creation_keys.MERGE_MODE] = config.raw.get("hoodie.record.merge.mode", "")
    for option, of_table in known.items():
        if not options.is_set(option):
            continue
        given = options[option]
        if isinstance(given, tuple):
            given = tuple(one.partition(":")[0] for one in given)
        if given not in ("", of_table):
            raise ConfigError(
                f"{option.key}={as_text(options[option])} (from {options.source(option)}) does not fit the table, "
                f"which has {as_text(of_table) or 'none'}",
                hint="leave it out: a table stays as it was created",
            )
    check_kinds(options, config)


def _payload(config: TableConfig, given: str) -> str:
    """The payload class of the table; `given` where that merges in the same way."""
    of_table = payload_class(config)
    mode = MODE_OF_PAYLOAD.get(given)
    return given if mode is not None and mode == config.raw.get("hoodie.record.merge.mode") else of_table


def definition(options: Options, root: str) -> TableDefinition:
    """The table at `root` that the options describe. Raises ConfigError."""
    effects.refuse(options, Phase.CREATE)
    name = options[creation_keys.TABLE_NAME] or folder_name(root)
    if not name:
        raise ConfigError(
            f"{root} has no folder that could give a new table its name", hint=f"set {creation_keys.TABLE_NAME.key}"
        )
    version = table_version(int(options[creation_keys.TABLE_VERSION]), creation_keys.TABLE_VERSION.key)
    record_key, fields = options[creation_keys.RECORD_KEY], options[creation_keys.PARTITION_BY]
    named = options[creation_keys.KEY_GENERATOR]
    generator = KeyGenerator[named] if named else key_generator_for(record_key, fields)
    return options.of(
        TableDefinition,
        name=name,
        version=version,
        partition_by=tuple(one.partition(":")[0] for one in fields),
        partition_kinds=tuple(_kind(one) for one in fields if ":" in one or generator is KeyGenerator.CUSTOM),
        key_generator=generator,
        time_options={key: text for key, text in options.texts().items() if key.startswith(TIME_PREFIX)},
    )


def _kind(field: str) -> PartKind:
    name, _, kind = field.partition(":")
    if kind.upper() not in PartKind.__members__:
        raise ConfigError(
            f"{creation_keys.PARTITION_BY.key}: {field} does not say how {name} makes its part of the partition path",
            hint=f"write {name}:SIMPLE or {name}:TIMESTAMP",
        )
    return PartKind[kind.upper()]
