"""The columns `_hoodie_record_key` and `_hoodie_partition_path` of new rows, as Hudi's key generators make them.

    key generator                    one key field          several key fields
    SIMPLE, TIMESTAMP                v                      –
    NON_PARTITION, CUSTOM            v                      f:v,g:w
    COMPLEX                          f:v, or v              f:v,g:w

In `f:v,g:w` null is __null__ and "" is __empty__; nothing is escaped. Releases of Hudi differ in the key of one field
by COMPLEX, and its two write paths in the texts of timestamps: a key that the table has shows which form it has.
Source: KeyGenUtils, KeyGenerator.constructRecordKey, the key generators of Apache Hudi 0.15.0 to 1.2.0.
"""

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError, UnsupportedTable
from ..metadata.expression_index.times import Zone
from ..options.creation_keys import KEY_GENERATOR, KeyGenerator
from ..table_config import TableConfig
from .definition import key_generator_for
from .key_texts import TIME_TEXT, UTC, Field, TimeTexts, Values, texts, time_texts
from .partition_paths import DEFAULT_PARTITION, PartitionPaths, may_have_slashes

_NULL, _EMPTY = "__null__", "__empty__"


@dataclass(frozen=True, slots=True)
class KeyMaker:
    """Makes the keys and partition paths of the rows of one table. `is_named`: keys are as `f:v`, not `v`."""

    fields: tuple[Field, ...]
    is_named: bool
    times: TimeTexts | None
    paths: PartitionPaths

    @classmethod
    def of(
        cls,
        config: TableConfig,
        schema: pa.Schema,
        sample: str | None,
        *,
        sample_path: str | None = None,
        zone: Zone = UTC,
    ) -> "KeyMaker":
        """The keys of a table for rows of this schema.

        `sample` and `sample_path` are the record key and the partition path of some row that the table has; an empty
        table has none, and then a single key field by COMPLEX is as in the release that owns the table's version, and
        timestamps are microseconds. `zone` is that of the processes that wrote the table; it counts where the table has
        timestamps as text, and where it names no zone for partition paths that are times.

        Raises ConfigError when a key or partition field is not a column, UnsupportedTable for a key generator, a
        column type or an option of which we cannot make what Hudi makes, and for a sample in none of Hudi's forms.
        """
        generator = _generator(config)
        fields = tuple(Field.of(schema, name, "record key") for name in config.record_key_fields)
        if not fields:
            raise UnsupportedTable(
                "the table has no record key fields: Apache Hudi makes its keys from instants and tasks",
                hint="write to this table with Apache Hudi",
            )
        if generator in (KeyGenerator.SIMPLE, KeyGenerator.TIMESTAMP) and len(fields) > 1:
            raise ConfigError(f"{generator.value} takes one record key field, and the table has {len(fields)}")
        is_named = len(fields) > 1
        if generator is KeyGenerator.COMPLEX and not is_named:
            by_release = config.version.names_single_complex_key
            is_named = by_release if sample is None else sample.startswith(f"{fields[0].name}:")
        times = _times_of_keys(fields, is_named, sample, zone)
        paths = PartitionPaths.of(config, generator, schema, sample_path, zone)
        number = paths.place_of_times()
        # A colon is in the text, and Hudi cannot open a path with one.
        if number is not None and config.url_encode and sample is not None:
            shown = DEFAULT_PARTITION if sample_path is None else paths.shown_part(sample_path, number)
            if shown != DEFAULT_PARTITION:
                times_of_paths = time_texts(shown, zone)
            elif any(pa.types.is_timestamp(field.type) for field in fields):
                times_of_paths = times
            else:
                raise UnsupportedTable(
                    f"no partition path shows how the table has the timestamps of {config.partition_fields[number]}",
                    hint="write to this table with Apache Hudi",
                )
            paths = paths.with_times(times_of_paths)
        return cls(fields, is_named, times, paths)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that keys and partition paths are made of."""
        fields = (*self.fields, *(part.field for part in self.paths.parts))
        return frozenset(one.name.partition(".")[0] for one in fields)

    @staticmethod
    def depends_on_rows(config: TableConfig, schema: pa.Schema) -> bool:
        """Whether `of` must know a row of the table. Raises ConfigError and UnsupportedTable as `of`."""
        if _generator(config) is KeyGenerator.COMPLEX and len(config.record_key_fields) == 1:
            return True
        keys = [Field.of(schema, name, "record key") for name in config.record_key_fields]
        paths = [Field.of(schema, name, "partition") for name in config.partition_fields]
        return any(pa.types.is_timestamp(one.type) for one in (*keys, *paths)) or may_have_slashes(config)

    def record_keys(self, rows: pa.Table) -> pa.ChunkedArray:
        """The record key of each row. Raises ConfigError when a row has no key, as Hudi does."""
        columns = [texts(field.values(rows), field.name, self.times) for field in self.fields]
        missing = pc.equal(pc.fill_null(columns[0], ""), "")
        for column in columns[1:]:
            missing = pc.and_(missing, pc.equal(pc.fill_null(column, ""), ""))
        count = pc.sum(missing).as_py() or 0
        if count:
            names = ",".join(field.name for field in self.fields)
            raise ConfigError(
                f"the record key {names} is null or empty in {count} of {rows.num_rows} rows",
                hint=f"give every row a value of {names}, or leave these rows out",
            )
        if not self.is_named:
            return columns[0]
        parts: list[pa.Scalar | Values] = []
        for field, column in zip(self.fields, columns, strict=True):
            known = pc.fill_null(pc.if_else(pc.equal(column, ""), _EMPTY, column), _NULL)
            parts += [pa.scalar(f"{',' if parts else ''}{field.name}:"), known]
        return pc.binary_join_element_wise(*parts, "")

    def partition_paths(self, rows: pa.Table) -> pa.ChunkedArray:
        """The partition path of each row, encoded with a dictionary.

        Raises ConfigError for a value that makes no path, UnsupportedTable for times that Arrow or we do not know.
        """
        return self.paths.make(rows)


def _generator(config: TableConfig) -> KeyGenerator:
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


def _times_of_keys(fields: tuple[Field, ...], is_named: bool, sample: str | None, zone: Zone) -> TimeTexts | None:
    """How the keys of the table show timestamps."""
    names = [field.name for field in fields if pa.types.is_timestamp(field.type)]
    if sample is None or not names:
        return None
    if not is_named:
        return time_texts(sample, zone)
    for name in names:
        found = re.search(rf"(?:^|,){re.escape(name)}:(-?[0-9]+|{TIME_TEXT.pattern})(?=,|$)", sample)
        if found is not None:
            return time_texts(found[1], zone)
    raise UnsupportedTable(
        f"the record key {sample!r} of the table does not show how it has the timestamps of {names[0]}",
        hint="write to this table with Apache Hudi",
    )
