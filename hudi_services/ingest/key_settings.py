"""What a write says of record keys and partition paths, where the table does not store it.

    the key generator           a table may name none
    kinds of partition fields   `d:SIMPLE,ts:TIMESTAMP` of a custom key generator: tables of version 6 store names alone
    hoodie.keygen.timebased.*   Hudi 0.15.0 keeps all but timestamp.type, older releases none

Writers of Hudi give these options with each write. What the table stores counts; another value is refused.
Source: HoodieWriterUtils, CustomAvroKeyGenerator, TimestampBasedAvroKeyGenerator of Apache Hudi 0.15.0 to 1.2.0.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..errors import ConfigError
from ..options import Options
from ..options.creation_keys import (
    KEY_GENERATOR,
    PARTITION_BY,
    SHORT_COMPLEX_KEYS,
    TIME_PREFIX,
    TIME_PREFIXES,
    KeyGenerator,
    key_generator_type,
)
from ..table_config import PARTITION_FIELDS, TableConfig

_ZONE, _INPUT_ZONE, _OUTPUT_ZONE = "timezone", "input.timezone", "output.timezone"
_ALIKE = {
    _ZONE: (_ZONE, _INPUT_ZONE, _OUTPUT_ZONE),
    _INPUT_ZONE: (_INPUT_ZONE, _ZONE),
    _OUTPUT_ZONE: (_OUTPUT_ZONE, _ZONE),
}
"""What is said by several options: the first zone stands for the two others, and before them."""


def config_of_keys(options: Options, config: TableConfig) -> TableConfig:
    """The properties of a table, with what the options of a write say of its keys and paths.

    `check_kinds` must have found no fault. Raises ConfigError for an option of times that the table has another
    value of.
    """
    raw, given = dict(config.raw), options[PARTITION_BY]
    if not config.key_generator and options[KEY_GENERATOR]:
        raw["hoodie.table.keygenerator.type"] = options[KEY_GENERATOR]
    if options[SHORT_COMPLEX_KEYS]:
        raw[SHORT_COMPLEX_KEYS.key] = options[SHORT_COMPLEX_KEYS].lower()
    if any(_kinds(given)) and not any(_kinds(config.listed_partition_fields)):
        raw[PARTITION_FIELDS] = ",".join(given)
    return replace(config, raw=raw | dict(_times(options, config.raw)))


def check_kinds(options: Options, config: TableConfig) -> None:
    """Raise ConfigError for kinds of partition fields that are not those of the table; the names are those."""
    given, stored = options[PARTITION_BY], config.listed_partition_fields
    if not options.is_set(PARTITION_BY) or not any(_kinds(given)):
        return
    custom = KeyGenerator.CUSTOM.name
    generator = key_generator_type(config.key_generator) or options[KEY_GENERATOR] or custom
    takes_any = generator == custom and not any(_kinds(stored))
    if not takes_any and _kinds(given) != _kinds(stored):
        raise ConfigError(
            f"{PARTITION_BY.key}={','.join(given)} (from {options.source(PARTITION_BY)}) does not fit the table, which "
            f"has {','.join(stored)} and the key generator {generator}",
            hint="leave it out: a table stays as it was created",
        )


def _kinds(fields: Iterable[str]) -> list[str]:
    return [one.partition(":")[2].upper() for one in fields]


def _times(options: Options, raw: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The options of times of a write that the table does not store."""
    # The newer prefix comes last, and so counts more.
    for prefix in reversed(TIME_PREFIXES):
        for key in options.given_keys(prefix):
            name = key.removeprefix(prefix)
            source, value = options.given(key)
            stored = {
                known: text
                for other in _ALIKE.get(name, (name,))
                for known in (f"{one}{other}" for one in TIME_PREFIXES)
                if (text := raw.get(known, "").strip())
            }
            for known, text in stored.items():
                if text != value:
                    raise ConfigError(
                        f"{key}={value} (from {source}) does not fit the table, which has {known}={text}",
                        hint="leave it out: the partition paths of the table are made with the value that it has",
                    )
            if not stored:
                yield TIME_PREFIX + name, value
