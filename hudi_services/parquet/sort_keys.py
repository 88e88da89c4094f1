"""Sort keys of raw columns: values that order as the column's true type does."""

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError
from .conversion import natural
from .file_schema import FileSchema


def sort_key(schema: FileSchema, table: pa.Table, column: str) -> pa.ChunkedArray:
    """An array of the length of `table` to sort by; `table` is in the raw form of `schema`.

    INT96 becomes UTC micros, decimals become decimals, dictionary-encoded strings become int32 ranks that order as the
    strings do (byte order), nulls stay nulls. Raises ConfigError when there is no such column or it has no order.
    """
    values = sort_value(schema, table, column)
    return _ranks(values) if pa.types.is_dictionary(values.type) else values


def sort_value(schema: FileSchema, table: pa.Table, column: str) -> pa.ChunkedArray:
    """As `sort_key`, with values that compare between tables: dictionary-encoded strings stay encoded strings."""
    leaf = schema.column(column)
    if leaf is None or leaf.is_group:
        what = "has no order" if leaf is not None else "does not exist"
        raise ConfigError(f"the sort column {column} {what}", hint=f"columns: {', '.join(schema.columns)}")
    values = table.column(column)
    if pa.types.is_dictionary(values.type):
        return values
    return pa.chunked_array(
        [natural(chunk, leaf) for chunk in values.chunks] or [natural(pa.nulls(0, values.type), leaf)]
    )


def _ranks(values: pa.ChunkedArray) -> pa.ChunkedArray:
    unified = values.unify_dictionaries()
    if not unified.num_chunks:
        return pa.chunked_array([], type=pa.int32())
    ranks = pc.rank(unified.chunk(0).dictionary, sort_keys="ascending", tiebreaker="dense").cast(pa.int32())
    return pa.chunked_array([ranks.take(chunk.indices) for chunk in unified.chunks], type=pa.int32())
