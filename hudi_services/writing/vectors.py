"""Lists of numbers as values of VECTOR columns.

A list must have the dimension of the vector, and no nulls in it; a null list is a null. The numbers may be those of the
vector, or of a type whose values all are: no double becomes a float here, which Hudi refuses, too.
Source: HoodieRowParquetWriteSupport of Apache Hudi 1.2.0.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError
from ..schema.arrow_types import doubles_of, number_type
from ..schema.column_type import ColumnType, Kind
from ..schema.hudi_types import Vector
from ..schema.widening import promotable

_STORED: "dict[str, np.dtype[Any]]" = {"FLOAT": np.dtype("<f4"), "DOUBLE": np.dtype("<f8"), "INT8": np.dtype("i1")}
"""Numbers as a vector has them."""


def check_lists(name: str, column_type: ColumnType, vector: Vector) -> None:
    """Raise ConfigError unless a column of the type `column_type` may have the values of a vector."""
    element = column_type.element
    is_vector = element is not None and promotable(ColumnType(element.kind), ColumnType(vector.kind))
    if column_type.kind is not Kind.LIST or not is_vector:
        raise ConfigError(
            f"column {name} has the type {column_type}, and {vector} in the table",
            hint=f"give lists of {vector.dimension} numbers of the type {number_type(vector)}",
        )


def stored_vectors(name: str, lists: pa.ChunkedArray, vector: Vector) -> pa.ChunkedArray:
    """The bytes of each list, as a fixed-size binary. Raises ConfigError for a list that does not fit."""
    chunks = [_stored(name, chunk, vector) for chunk in lists.chunks]
    return pa.chunked_array(chunks, pa.binary(vector.width))


def _stored(name: str, lists: pa.Array, vector: Vector) -> pa.Array:
    present = lists.drop_null()
    # Of lists of a fixed size, too.
    other = pc.list_value_length(present).filter(pc.not_equal(pc.list_value_length(present), vector.dimension))
    if len(other):
        raise ConfigError(
            f"column {name} has a list of {other[0].as_py()} numbers, and {vector} in the table",
            hint=f"give lists of {vector.dimension} numbers",
        )
    numbers = _numbers(name, present.flatten(), vector)
    rows = np.zeros((len(lists), vector.width), np.uint8)
    is_present = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    rows[is_present] = numbers.view(np.uint8).reshape(len(present), vector.width)
    validity = pa.array(is_present).buffers()[1] if lists.null_count else None
    return pa.Array.from_buffers(pa.binary(vector.width), len(lists), [validity, pa.py_buffer(rows)])


def _numbers(name: str, values: pa.Array, vector: Vector) -> "npt.NDArray[Any]":
    if values.null_count:
        raise ConfigError(
            f"column {name} has lists with nulls in them, and {vector} in the table",
            hint="give each list all of its numbers, or a null in the place of the list",
        )
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        if pa.types.is_float32(values.type) and pa.types.is_float64(number_type(vector)):
            values = doubles_of(values)
        found = pc.cast(values, number_type(vector)).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise ConfigError(f"column {name} cannot be written as {vector}: {str(error).splitlines()[0]}") from error
    return np.ascontiguousarray(found, _STORED[vector.element])
