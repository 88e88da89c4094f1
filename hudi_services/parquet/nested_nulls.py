"""Nulls inside of values: fields of structs, elements of lists and values of maps that may have none.

pyarrow's casts check the fields of structs alone, and take a null below a null struct for one of the field, as its
writer of parquet does. Here only nulls that a reader would see count; below a null value there are none afterwards.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ConfigError


def has_required(kind: pa.DataType) -> bool:
    """Whether values of this type have parts that may not be null; the keys of maps never are."""
    if pa.types.is_map(kind):
        return not kind.item_field.nullable or has_required(kind.item_type)
    inner = [kind.field(i) for i in range(kind.num_fields)]
    return any(not field.nullable or has_required(field.type) for field in inner)


def may_break(values: pa.Array, kind: pa.DataType) -> bool:
    """Whether parts of values that may not be null by this type are null somewhere: below nulls, too."""
    if pa.types.is_map(kind):
        parts = [(values.items, kind.item_field)]
    elif pa.types.is_struct(kind):
        parts = [(values.field(i), kind.field(i)) for i in range(kind.num_fields)]
    elif pa.types.is_list(kind):
        parts = [(values.values, kind.value_field)]
    else:
        return False
    return any((part.null_count and not field.nullable) or may_break(part, field.type) for part, field in parts)


def relaxed(kind: pa.DataType) -> pa.DataType:
    """The same type with parts that may all be null."""
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _relaxed(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_relaxed(kind.value_field))
    return pa.struct([_relaxed(field) for field in kind]) if pa.types.is_struct(kind) else kind


def with_required(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column of the type of `field`, or of its `relaxed` type, in its own type.

    Raises ConfigError, naming the part, for nulls where the field allows none.
    """
    return pa.chunked_array([_required(chunk, field.type, field.name) for chunk in column.chunks], type=field.type)


def refuse_nulls(name: str, count: int) -> None:
    """Raise ConfigError for nulls in a column, or a part of its values, that may have none."""
    if count:
        raise ConfigError(
            f"column {name} has {count} nulls, and the table allows none in it",
            hint=f"give every row a value of {name}, or leave these rows out",
        )


def _relaxed(field: pa.Field) -> pa.Field:
    return field.with_type(relaxed(field.type)).with_nullable(True)


def _required(values: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """The values, whose parts are checked, as this type."""
    if not has_required(kind):
        return values
    if pa.types.is_struct(kind):
        parts = []
        # A part is null where its struct is.
        for part, field in zip(values.flatten(), kind, strict=True):
            if not field.nullable:
                refuse_nulls(f"{name}.{field.name}", part.null_count - values.null_count)
            found = _required(part, field.type, f"{name}.{field.name}")
            parts.append(found if field.nullable else _without_nulls(found))
        return pa.Array.from_buffers(kind, len(values), [_validity(values)], children=parts)
    is_map = pa.types.is_map(kind)
    lists = _entries(values) if is_map else values
    item, items = kind.field(0), lists.flatten()
    if not is_map and not item.nullable:
        refuse_nulls(f"{name}.element", items.null_count)
    items = _required(items, item.type, name if is_map else f"{name}.element")
    lengths = np.where(_valid(lists), np.diff(np.asarray(lists.offsets.to_numpy())), 0)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.Array.from_buffers(kind, len(values), [_validity(values), pa.py_buffer(offsets)], children=[items])


def _entries(values: pa.MapArray) -> pa.ListArray:
    """A map as a list of structs of key and value, which `flatten` takes."""
    fields = [pa.field("key", values.type.key_type), pa.field("value", values.type.item_type)]
    entries = pa.StructArray.from_arrays([values.keys, values.items], fields=fields)
    kind = pa.list_(entries.type)
    return pa.Array.from_buffers(kind, len(values), values.buffers()[:2], offset=values.offset, children=[entries])


def _without_nulls(values: pa.Array) -> pa.Array:
    """The same values; any value in the place of a null."""
    if not values.null_count:
        return values
    kind = values.type
    if pa.types.is_struct(kind):
        # Not `flatten`, by which its parts are null again.
        parts = [values.field(i) for i in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(values), [None], children=parts)
    children = []
    if pa.types.is_map(kind):
        children = [pa.StructArray.from_arrays([values.keys, values.items], fields=list(kind.field(0).type))]
    elif pa.types.is_list(kind):
        children = [values.values]
    buffers = values.buffers()[: 2 if children else None]
    return pa.Array.from_buffers(kind, len(values), [None, *buffers[1:]], 0, values.offset, children)


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _validity(values: pa.Array) -> pa.Buffer | None:
    """The validity of values from offset 0 on."""
    return pa.array(_valid(values)).buffers()[1] if values.null_count else None
