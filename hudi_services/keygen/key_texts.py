"""The columns that keys and partition paths are made of, and Java's texts of their values.

    string               as it is
    int8 to int64, bool  as in Java: -5, true
    date32               2024-01-02
    decimal128           as BigDecimal shows it: 1.50, but 1.0E-7
    timestamp[us]        microseconds since 1970, or 2024-01-02 03:04:05.6 on the clock of the writer's zone

The two forms of timestamps are those of Hudi's two paths, by Avro and by Spark's rows: a table can have either.
Source: HoodieAvroUtils.getNestedFieldVal, SparkKeyGenUtils, BuiltinKeyGenerator, java.sql.Timestamp, BigDecimal.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..derived_indexes.expression_index.time_functions import UTC_MICROS, Zone, local
from ..errors import ConfigError, HudiServicesError, UnsupportedTable

Values: TypeAlias = "pa.Array | pa.ChunkedArray"

UTC = Zone("UTC", is_fixed=True)
TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,3}")
_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_signed_integer,
    pa.types.is_boolean,
    pa.types.is_date32,
    pa.types.is_decimal128,
)
_DATES = (-719_162, 2_932_896)
"""The days of the years from 0001 to 9999."""
_GREGORIAN = int(datetime(1582, 10, 15, tzinfo=timezone.utc).timestamp()) * 1_000_000
"""java.sql.Timestamp shows earlier times in the Julian calendar."""


def is_micros(type: pa.DataType) -> bool:
    """Whether this is the type of timestamps that keys can have."""
    return bool(pa.types.is_timestamp(type) and type.unit == "us")


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a key, or by a name with dots a field of nested structs."""

    name: str
    type: pa.DataType

    @classmethod
    def of(cls, schema: pa.Schema, name: str, role: str) -> "Field":
        """The field of this name; `role` is "record key" or "partition".

        Raises ConfigError when there is no such column, UnsupportedTable when no text of its values is a key.
        """
        found = pa.struct(list(schema))
        for step in name.split("."):
            at = found.get_field_index(step) if pa.types.is_struct(found) else -1
            if at < 0:
                raise ConfigError(
                    f"the {role} field {name} is not a column of the rows",
                    hint=f"add the column {name}, which every row of this table needs",
                )
            found = found.field(at).type
        type = found.value_type if pa.types.is_dictionary(found) else found
        if not is_micros(type) and not any(is_kind(type) for is_kind in _KINDS):
            raise UnsupportedTable(
                f"the {role} field {name} has the type {type}, of which no {role} can be made",
                hint="cast it to string, an integer, boolean, date32, decimal128 or timestamp[us] where the table has "
                "such a column, or write to this table with Apache Hudi",
            )
        return cls(name, type)

    @property
    def column(self) -> str:
        """The column that it is in."""
        return self.name.partition(".")[0]

    def values(self, rows: pa.Table) -> pa.ChunkedArray:
        """The values of these rows; null where a struct around them is null. Strings have the type string."""
        first, *nested = self.name.split(".")
        column = rows.column(first)
        if nested:
            column = pc.struct_field(column, nested)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


@dataclass(frozen=True, slots=True)
class TimeTexts:
    """Timestamps as java.sql.Timestamp shows them on the clock of a zone. Hudi cuts off what is below a millisecond."""

    zone: Zone

    def of(self, times: Values) -> Values:
        """The texts of timestamps. Raises UnsupportedTable for times that Java may show in another way."""
        thousand = int64(1000)
        # Towards 1970, as in Java.
        micros = pc.multiply(pc.divide(times.cast(pa.int64()), thousand), thousand)
        least = pc.min(micros).as_py()
        if least is not None and least < _GREGORIAN:
            raise UnsupportedTable("there are times before 1582-10-15, which Java shows in another calendar")
        shown = local(micros.cast(UTC_MICROS), self.zone).cast(pa.string())
        return pc.replace_substring_regex(shown, pattern="0{1,5}$", replacement="")


def time_texts(sample: str, zone: Zone) -> TimeTexts | None:
    """How a table whose rows have this text of a timestamp shows timestamps; None for microseconds since 1970.

    Raises UnsupportedTable for a text of neither form.
    """
    if re.fullmatch("-?[0-9]+", sample):
        return None
    if not TIME_TEXT.fullmatch(sample):
        raise UnsupportedTable(
            f"the table has {sample!r} for a timestamp, which is neither microseconds since 1970 nor yyyy-MM-dd "
            "HH:mm:ss.f",
            hint="write to this table with Apache Hudi",
        )
    return TimeTexts(zone)


def texts(values: Values, name: str, times: TimeTexts | None) -> Values:
    """The texts of values of the field `name`; timestamps as `times` says, None for microseconds since 1970.

    Raises UnsupportedTable for dates and times of which we do not know Java's text.
    """
    if pa.types.is_date32(values.type):
        found = pc.min_max(values.cast(pa.int32()))
        least, most = found["min"].as_py(), found["max"].as_py()
        if least is not None and (least < _DATES[0] or most > _DATES[1]):
            raise UnsupportedTable(f"{name} has dates that are not between the years 0001 and 9999")
    if not pa.types.is_timestamp(values.type):
        return values.cast(pa.string())
    if times is None:
        return values.cast(pa.int64()).cast(pa.string())
    try:
        return times.of(values)
    except UnsupportedTable as e:
        raise in_column(e, name) from e


def int64(value: int) -> pa.Scalar:
    """A number that Arrow takes for an int64, whatever the other numbers are."""
    return pa.scalar(value, pa.int64())


def in_column(error: HudiServicesError, name: str) -> HudiServicesError:
    """The same error with the name of its column."""
    return type(error)(f"{name}: {error.message}", hint=error.hint)
