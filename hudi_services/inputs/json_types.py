"""The types of JSON fields, by all objects of all files: a string is a text, whatever it looks like.

Fields that an object lacks are nulls. Whole numbers beside others are doubles; any other values of two types in one
field are errors, and so are numbers that a double cannot hold.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ..schema.arrow_types import column_type
from ..schema.widening import joined
from .input_types import shown

_LARGEST = (1 << 53) - 1
"""Doubles have all whole numbers up to this one, and no others become it."""


@dataclass(frozen=True, slots=True)
class JsonTypes:
    """The types of fields, as far as they are read. `large`: paths of fields with numbers that doubles cannot hold."""

    fields: dict[str, pa.DataType] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, pieces: Iterable[tuple[bytes, pa.Table]]) -> "JsonTypes":
        """Those of one file, as `json_tables` gives it. Raises ValueError for two types in one field."""
        found = cls()
        for text, table in pieces:
            found.add(cls({one.name: _without_guesses(one.type) for one in table.schema}))
            for name, column in zip(table.column_names, table.columns, strict=True):
                found.large.update(path for chunk in column.chunks for path in _large(name, name, chunk, text))
        return found

    def add(self, other: "JsonTypes") -> None:
        """Be the types of both. Raises ValueError for two types in one field."""
        for name, kind in other.fields.items():
            self.fields[name] = _joined(name, self.fields.get(name, pa.null()), kind)
        self.large.update(other.large)

    def too_large(self, known: Collection[str]) -> str | None:
        """The path of a field of doubles with numbers that no double is, in a column whose type is not known."""
        doubles = (path for name, kind in self.fields.items() if name not in known for path in _doubles(name, kind))
        return min(self.large.intersection(doubles), default=None)


def _without_guesses(kind: pa.DataType) -> pa.DataType:
    """The type without Arrow's guess that a string is a time."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, _without_guesses(one.type)) for one in kind])
    return pa.list_(_without_guesses(kind.value_type)) if pa.types.is_list(kind) else kind


def _joined(path: str, data_type: pa.DataType, other: pa.DataType) -> pa.DataType:
    if data_type == other or pa.types.is_null(other):
        return data_type
    if pa.types.is_null(data_type):
        return other
    if not pa.types.is_nested(data_type) and not pa.types.is_nested(other):
        kinds = {column_type(path, kind, nullable=True).kind: kind for kind in (data_type, other)}
        wider = joined(*kinds)
        if wider is not None:
            return kinds[wider]
    if pa.types.is_list(data_type) and pa.types.is_list(other):
        return pa.list_(_joined(f"{path}.element", data_type.value_type, other.value_type))
    if pa.types.is_struct(data_type) and pa.types.is_struct(other):
        fields = {part.name: part.type for part in data_type}
        for part in other:
            fields[part.name] = _joined(f"{path}.{part.name}", fields.get(part.name, pa.null()), part.type)
        return pa.struct(list(fields.items()))
    raise ValueError(f"column {path} has values of several types, as {shown(data_type)} and {shown(other)}")


def _large(path: str, name: str, values: pa.Array, text: bytes) -> Iterator[str]:
    """The paths of fields with whole numbers that doubles cannot hold; `name` is that of the last field."""
    kind = values.type
    if pa.types.is_struct(kind):
        for number, part in enumerate(kind):
            yield from _large(f"{path}.{part.name}", part.name, values.field(number), text)
    elif pa.types.is_list(kind):
        yield from _large(f"{path}.element", name, values.flatten(), text)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        limits = pc.min_max(values)
        least, most = limits["min"].as_py(), limits["max"].as_py()
        if least is not None and max(-least, most) > _LARGEST and (pa.types.is_integer(kind) or _is_whole(name, text)):
            yield path


def _is_whole(name: str, text: bytes) -> bool:
    """Whether a text has whole numbers of many digits in a field of this name: Arrow has made doubles of them.

    A double that is so large by itself is written with an exponent, or a fraction.
    """
    names = (json.dumps(name), json.dumps(name, ensure_ascii=False))
    either = b"|".join(re.escape(one.encode()) for one in names)
    after = rb'\s*:[^"{}]*?(?<![0-9.eE+-])-?[0-9]{16,}(?![0-9.eE])'
    return re.search(b"(?:" + either + b")" + after, text) is not None


def _doubles(path: str, kind: pa.DataType) -> Iterator[str]:
    """The paths of all doubles in a column."""
    if pa.types.is_struct(kind):
        for part in kind:
            yield from _doubles(f"{path}.{part.name}", part.type)
    elif pa.types.is_list(kind):
        yield from _doubles(f"{path}.element", kind.value_type)
    elif pa.types.is_floating(kind):
        yield path
