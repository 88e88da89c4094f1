"""Turns what a caller of the Python API has into Arrow record batches."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..engine import Frame
from ..errors import ConfigError, ConflictError


def record_batches(rows: Any) -> Callable[[], pa.RecordBatchReader]:
    """A function that gives the rows of an Arrow table, batch or reader, or of an object with Arrow's stream interface.

    Tables of pandas, polars and DuckDB have that interface. A reader gives its rows once: to ask for them again raises
    ConflictError. Raises ConfigError for anything else.
    """
    if isinstance(rows, pa.RecordBatchReader):
        return _Once(rows)
    if isinstance(rows, pa.Table):
        return lambda: rows.to_reader()
    if isinstance(rows, pa.RecordBatch):
        return lambda: pa.RecordBatchReader.from_batches(rows.schema, [rows])
    if hasattr(rows, "__arrow_c_stream__"):
        return lambda: pa.RecordBatchReader.from_stream(rows)
    raise ConfigError(
        f"the rows are of the type {type(rows).__name__}, which does not give Arrow data",
        hint="give an Arrow table or reader, a table of pandas (from 2.2 on), polars or DuckDB, or a Spark data frame",
    )


def data_frame(rows: Any) -> Frame | None:
    """The rows as a data frame of Spark; None for anything else. Raises ConfigError as `SparkFrame`."""
    if not type(rows).__module__.startswith("pyspark.sql."):
        return None
    # Only here: other rows need no Spark.
    from ..spark.frames import SparkFrame

    return SparkFrame(rows)


class _Once:
    """The rows of a reader."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader: pa.RecordBatchReader | None = reader

    def __call__(self) -> pa.RecordBatchReader:
        reader, self._reader = self._reader, None
        if reader is None:
            raise ConflictError(
                "another process has archived or cleaned the table meanwhile, and the reader has given its rows",
                hint="nothing was committed; write again, with a new reader",
            )
        return reader
