"""The types with which the columns of CSV and JSON files are read: those of the table, where it has the column.

A text is parsed into the type of its column, or refused: it is never a number first. Types of other columns are found
out by all values of all files (`csv_types`, `json_types`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError
from ..keygen.key_maker import key_generator
from ..keygen.partition_paths import part_kinds
from ..keygen.partition_times import takes_texts
from ..merging.log_records import IS_DELETED
from ..new_tables.definition import PartKind
from ..options.creation_keys import KeyGenerator
from ..schema.arrow_types import arrow_type, column_type, number_type
from ..schema.table_schema import META_COLUMNS, TableSchema
from ..schema.widening import fits_json, promotable
from ..table_config import TableConfig

Values: TypeAlias = "pa.Array | pa.ChunkedArray"

_NAN = ("NaN", "nan", "-NaN", "-nan")
_NULL = ("", "NULL", "null", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN")
NULLS = pa.array(_NULL)
"""The texts of CSV that are nulls in columns that are no texts: those of Arrow, except NaN."""
_NULLS_AND_NAN = pa.array(_NULL + _NAN)
_NO_VALUE = re.compile(r"Failed to parse string: '(.*)' as a scalar|Failed to parse value: (.*)|couldn't parse:(.*)")
_SAID = {
    "Rescaling": "a value has more digits",
    "requires scale": "a value has more digits",
    "requires precision": "a value has more digits",
    "invalid UTF8": "a value is not in UTF-8",
}


@dataclass(frozen=True, slots=True)
class InputTypes:
    """What is known of the columns of a write before its files are read."""

    known: Mapping[str, pa.DataType] = field(default_factory=dict)
    """The types of columns that the table has."""
    texts: frozenset[str] = frozenset()
    """Columns of CSV that are texts where no type is known, whatever they look like: those of keys and paths."""
    only: frozenset[str] | None = None
    """The columns that the write uses, None for all."""

    @classmethod
    def of(cls, config: TableConfig, schema: TableSchema | None, *, keys_only: bool) -> "InputTypes":
        """What the table says; `schema` is that of the table, if it has one.

        `keys_only`: no columns are used but those of keys and paths. Raises UnsupportedTable.
        """
        types: dict[str, pa.DataType | None] = {}
        if schema is not None:
            types |= {one.name: arrow_type(one.type) for one in schema.columns}
            types |= {name: pa.list_(number_type(one)) for name, one in schema.vectors.items()}
        known = {IS_DELETED: pa.bool_()} | {name: kind for name, kind in types.items() if kind is not None}
        paths = [one.partition(".")[0] for one in config.partition_fields]
        keys = [one.partition(".")[0] for one in config.record_key_fields]
        texts = frozenset((*keys, *paths, *META_COLUMNS)) - _numbers_of_paths(config)
        return cls(known, texts, frozenset((*keys, *paths)) if keys_only else None)

    def uses(self, name: str) -> bool:
        """Whether the write uses this column."""
        return self.only is None or name in self.only


def _numbers_of_paths(config: TableConfig) -> frozenset[str]:
    """The partition fields that are numbers which count the time since 1970."""
    generator, fields = key_generator(config), config.partition_fields
    if generator not in (KeyGenerator.TIMESTAMP, KeyGenerator.CUSTOM) or takes_texts(config.raw):
        return frozenset()
    pairs = zip(fields, part_kinds(config, generator), strict=True)
    return frozenset(name for name, kind in pairs if kind is PartKind.TIMESTAMP)


# ------------------------------------------------------------------------------------------------------- values of CSV


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are texts."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values of this type are bytes."""
    one_of = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(is_it(kind) for is_it in one_of)


def parsed(texts: Values, kind: pa.DataType, *, with_nulls: bool) -> Values:
    """The values of texts, of a type that is no nested one; `with_nulls`: some texts are nulls, as in CSV.

    Raises ValueError, with a part of a sentence, for a text that is no value.
    """
    if is_text(kind) or is_bytes(kind):
        return texts.cast(kind)
    try:
        values = texts.cast(kind)
    except pa.ArrowInvalid:
        # Most columns do not need this.
        try:
            values = _plain(texts, kind, with_nulls).cast(kind)
        except pa.ArrowInvalid as error:
            raise ValueError(said_of(error)) from error
    if pa.types.is_floating(kind):
        _check_infinite(texts, values)
    return values


def _plain(texts: Values, kind: pa.DataType, with_nulls: bool) -> Values:
    """Texts without what is around their values, as readers of CSV allow it, and without zeros below microseconds."""
    plain = pc.ascii_trim(texts, characters=" \t")
    if with_nulls:
        nulls = NULLS if pa.types.is_floating(kind) else _NULLS_AND_NAN
        plain = pc.if_else(pc.is_in(plain, value_set=nulls), None, plain)
    if pa.types.is_timestamp(kind):
        plain = pc.replace_substring_regex(plain, pattern=r"(\.[0-9]{6})0+", replacement=r"\1")
    return plain


def _check_infinite(texts: Values, values: Values) -> None:
    """Raise ValueError for a number that is too large for its type, and would be infinite."""
    infinite = pc.is_inf(values)
    if pc.any(infinite).as_py():
        found = texts.filter(infinite)
        wrong = found.filter(pc.invert(pc.match_substring(found, "inf", ignore_case=True)))
        if len(wrong):
            raise ValueError(f"{wrong[0].as_py()!r} is too large for this type")


def said_of(error: Exception) -> str:
    """What Arrow says of a value that it cannot parse, in plain English, as the second half of a sentence."""
    said = str(error).splitlines()[0]
    found = _NO_VALUE.search(said)
    if found is None:
        return next((plain for words, plain in _SAID.items() if words in said), said)
    shown = next(one for one in found.groups() if one is not None)
    if "expected a zone offset" in said:
        return f"{shown!r} has no time zone: UTC is a Z at the end"
    return f"{shown!r} has a time zone" if "expected no zone offset" in said else f"{shown!r} is no such value"


def shown(kind: pa.DataType) -> str:
    """A type as messages about the table show it."""
    try:
        return str(column_type("", kind, nullable=True))
    except ConfigError:
        return str(kind)


# ------------------------------------------------------------------------------------------------------ values of JSON


def json_type(kind: pa.DataType) -> pa.DataType:
    """The type by which JSON is read for a column of this type: a string is a text at first, a number is none."""
    if pa.types.is_dictionary(kind):
        return json_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, json_type(one.type)) for one in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(json_type(kind.value_type))
    if pa.types.is_temporal(kind) or is_text(kind) or is_bytes(kind):
        return pa.string()
    return kind


def agreed(data_type: pa.DataType, known: pa.DataType | None) -> pa.DataType | None:
    """The type of a column of JSON whose values are `data_type`: that of the table, where each is a value of it.

    Whole numbers for texts stay numbers, and structs with other fields as they are: the schema of the write decides
    about these. None where the values are none of the type.
    """
    if known is None:
        return data_type
    if pa.types.is_null(data_type):
        return known
    if pa.types.is_struct(data_type) and pa.types.is_struct(known):
        return _agreed_struct(data_type, known)
    if pa.types.is_list(data_type) and pa.types.is_list(known):
        element = agreed(data_type.value_type, known.value_type)
        return element and pa.list_(element)
    if pa.types.is_nested(data_type) or pa.types.is_nested(known):
        return None
    values, column = (column_type("", kind, nullable=True) for kind in (data_type, known))
    if fits_json(values.kind, column.kind):
        return known
    return data_type if promotable(values, column) else None


def _agreed_struct(struct: pa.StructType, known: pa.StructType) -> pa.DataType | None:
    of_table, own = {one.name: one.type for one in known}, {one.name: one.type for one in struct}
    # In the order of the table: the fields of an object in JSON have none.
    names = [*(name for name in of_table if name in own), *(name for name in own if name not in of_table)]
    types = [agreed(own[name], of_table.get(name)) for name in names]
    return None if any(one is None for one in types) else pa.struct(list(zip(names, types, strict=True)))
