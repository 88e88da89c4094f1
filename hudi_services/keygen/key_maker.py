"""The columns `_hoodie_record_key` and `_hoodie_partition_path` of new rows, as Hudi's key generators make them.

The forms of record keys are in `key_forms`, partition paths in `partition_paths`. Where releases and write paths of
Hudi make different ones, those of the rows that a table has are made (`known_keys`).
"""

from dataclasses import dataclass

import pyarrow as pa

from ..derived_indexes.expression_index.time_functions import Zone
from ..errors import ConfigError, UnsupportedTable
from ..new_tables.definition import key_generator_for
from ..options.creation_keys import KEY_GENERATOR, SHORT_COMPLEX_KEYS, KeyGenerator
from ..table_config import TableConfig
from .key_forms import KeyForm
from .key_texts import UTC, Field, TimeTexts, time_texts
from .partition_paths import DEFAULT_PARTITION, PartitionPaths, may_have_slashes


@dataclass(frozen=True, slots=True)
class KeyMaker:
    """Makes the keys and partition paths of the rows of one table."""

    form: KeyForm
    paths: PartitionPaths

    @staticmethod
    def forms(config: TableConfig, schema: pa.Schema, zone: Zone = UTC) -> tuple[KeyForm, ...]:
        """The forms that the record keys of a table may have; the first one is that of a table without rows.

        That one is as in the release that owns the table's version, and its timestamps are microseconds. `zone` is
        that of the processes that wrote the table. Raises ConfigError and UnsupportedTable as `of`.
        """
        generator = key_generator(config)
        fields = tuple(Field.of(schema, name, "record key") for name in config.record_key_fields)
        if not fields:
            raise UnsupportedTable(
                "the table has no record key fields: Apache Hudi makes its keys from instants and tasks",
                hint="write to this table with Apache Hudi",
            )
        if generator in (KeyGenerator.SIMPLE, KeyGenerator.TIMESTAMP) and len(fields) > 1:
            raise ConfigError(f"{generator.value} takes one record key field, and the table has {len(fields)}")
        named = [len(fields) > 1]
        if generator is KeyGenerator.COMPLEX and len(fields) == 1:
            first = _names_single_key(config)
            named = [first, not first]
        has_times = any(pa.types.is_timestamp(field.type) for field in fields)
        times: list[TimeTexts | None] = [None, TimeTexts(zone)] if has_times else [None]
        return tuple(KeyForm(fields, is_named, shown) for is_named in named for shown in times)

    @classmethod
    def of(
        cls,
        config: TableConfig,
        schema: pa.Schema,
        form: KeyForm | None = None,
        *,
        sample_path: str | None = None,
        zone: Zone = UTC,
    ) -> "KeyMaker":
        """The keys of a table for rows of this schema.

        `form` is the one of `forms` that the rows of the table have, None for the first one; `sample_path` is the
        partition path of some row, None when there is none. `zone` is that of the processes that wrote the table; it
        counts where the table has timestamps as text, and where it names no zone for partition paths that are times.

        Raises ConfigError when a key or partition field is not a column, UnsupportedTable for a key generator, a
        column type or an option of which we cannot make what Hudi makes, and for a path in none of Hudi's forms.
        """
        form = form or cls.forms(config, schema, zone)[0]
        paths = PartitionPaths.of(config, key_generator(config), schema, sample_path, zone)
        number = paths.place_of_times()
        # A colon is in the text, and Hudi writes none into the first part of a path.
        if number is not None and (number or config.url_encode) and sample_path is not None:
            shown = paths.shown_part(sample_path, number)
            if shown != DEFAULT_PARTITION:
                times_of_paths = time_texts(shown, zone)
            elif any(pa.types.is_timestamp(field.type) for field in form.fields):
                times_of_paths = form.times
            else:
                raise UnsupportedTable(
                    f"no partition path shows how the table has the timestamps of {config.partition_fields[number]}",
                    hint="write to this table with Apache Hudi",
                )
            paths = paths.with_times(times_of_paths)
        return cls(form, paths)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that keys and partition paths are made of."""
        fields = (*self.form.fields, *(part.field for part in self.paths.parts))
        return frozenset(one.column for one in fields)

    @staticmethod
    def needs_path(config: TableConfig, schema: pa.Schema) -> bool:
        """Whether `of` must know a partition path of the table. Raises ConfigError and UnsupportedTable as `of`."""
        paths = [Field.of(schema, name, "partition") for name in config.partition_fields]
        may_be_text = paths if config.url_encode else paths[1:]
        return any(pa.types.is_timestamp(one.type) for one in may_be_text) or may_have_slashes(config)

    def record_keys(self, rows: pa.Table) -> pa.ChunkedArray:
        """The record key of each row. Raises ConfigError when a row has no key, as Hudi does."""
        keys = self.form.keys(rows)
        if keys.null_count:
            names = ",".join(field.name for field in self.form.fields)
            raise ConfigError(
                f"the record key {names} is null or empty in {keys.null_count} of {rows.num_rows} rows",
                hint=f"give every row a value of {names}, or leave these rows out",
            )
        return keys

    def partition_paths(self, rows: pa.Table) -> pa.ChunkedArray:
        """The partition path of each row, encoded with a dictionary.

        Raises ConfigError for a value that makes no path, UnsupportedTable for times that Arrow or we do not know.
        """
        return self.paths.make(rows)


def _names_single_key(config: TableConfig) -> bool:
    """Whether the first rows of a table get `id:5` for a single field of the complex key generator."""
    # Hudi 1.1 and later read the option only for tables of the versions before theirs.
    by_release = config.version.names_single_complex_key
    said = config.raw.get(SHORT_COMPLEX_KEYS.key, "")
    return said != "true" if said and not by_release else by_release


def key_generator(config: TableConfig) -> KeyGenerator:
    """The key generator of a table. Raises UnsupportedTable for one that is not Hudi's, or is for other purposes."""
    named = config.key_generator
    if not named:
        return key_generator_for(config.record_key_fields, config.listed_partition_fields)
    try:
        return KeyGenerator[KEY_GENERATOR.parse(named.removesuffix("_AVRO"))]
    except ValueError:
        raise UnsupportedTable(
            f"the table has the key generator {named}, which we do not know",
            hint="write to this table with Apache Hudi",
        ) from None
