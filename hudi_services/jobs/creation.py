"""Creates a table as its options say."""

from typing import Any

from ..errors import ConfigError
from ..options import Option, Options, as_text, creation_keys
from ..options.creation_keys import KeyGenerator
from ..storage import Storage
from ..table_config import TableConfig
from ..versions import table_version
from ..writing.creation import create_table
from ..writing.definition import TIME_PREFIX, PartKind, TableDefinition, key_generator_for


def create(storage: Storage, options: Options) -> TableConfig:
    """Create a table. Raises ConfigError for options that do not make one, and AlreadyExists where there is a table."""
    return create_table(storage, definition(options))


def check_definition(options: Options, config: TableConfig) -> None:
    """Raise ConfigError when options say of an existing table what it is not."""
    known: dict[Option[Any], str | tuple[str, ...]] = {
        creation_keys.TABLE_NAME: config.name,
        creation_keys.TABLE_TYPE: config.type,
        creation_keys.TABLE_VERSION: str(config.version.number),
        creation_keys.RECORD_KEY: config.record_key_fields,
        creation_keys.PARTITION_BY: config.partition_fields,
        creation_keys.ORDERING: config.ordering_fields,
    }
    for option, of_table in known.items():
        if not options.is_set(option):
            continue
        given = options[option]
        if isinstance(given, tuple):
            given = tuple(one.partition(":")[0] for one in given)
        if given != of_table:
            raise ConfigError(
                f"{option.key}={as_text(given)} (from {options.source(option)}) does not fit the table, which has "
                f"{as_text(of_table) or 'none'}",
                hint="leave it out: what a table is, is said when it is created",
            )


def definition(options: Options) -> TableDefinition:
    """The table that the options describe. Raises ConfigError."""
    version = table_version(int(options[creation_keys.TABLE_VERSION]), creation_keys.TABLE_VERSION.key)
    record_key = options[creation_keys.RECORD_KEY]
    fields = options[creation_keys.PARTITION_BY]
    named = options[creation_keys.KEY_GENERATOR]
    generator = KeyGenerator[named] if named else key_generator_for(record_key, fields)
    return TableDefinition(
        name=options[creation_keys.TABLE_NAME],
        database=options[creation_keys.DATABASE_NAME],
        version=version,
        type=options[creation_keys.TABLE_TYPE],
        record_key=record_key,
        partition_by=tuple(one.partition(":")[0] for one in fields),
        partition_kinds=tuple(_kind(one) for one in fields if ":" in one or generator is KeyGenerator.CUSTOM),
        ordering=options[creation_keys.ORDERING],
        key_generator=generator,
        hive_style=options[creation_keys.HIVE_STYLE],
        url_encode=options[creation_keys.URL_ENCODE],
        meta_fields=options[creation_keys.META_FIELDS],
        metafile_in_base_format=options[creation_keys.METAFILE_IN_BASE_FORMAT],
        zone=options[creation_keys.TIMELINE_ZONE],
        merge_mode=options[creation_keys.MERGE_MODE],
        payload=options[creation_keys.PAYLOAD_CLASS],
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
