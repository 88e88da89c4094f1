"""Data frames of Spark as Arrow record batches: Java makes them, and no row becomes a Python object.

Java gives each batch as an Arrow IPC message without its schema. Source: Dataset.toArrowBatchRdd, ArrowConverters of
Apache Spark 3.5 and 4.0, which `toPandas` and `toArrow` use, too.
"""

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql.pandas.types import to_arrow_schema

from ..errors import ConfigError, HudiServicesError
from .engine import SparkEngine, in_task

Task = TypeVar("Task")
Result = TypeVar("Result")


class SparkFrame:
    """An `engine.Frame`: a data frame of a Spark session of this process."""

    def __init__(self, frame: Any) -> None:
        """Raises ConfigError for a data frame of Spark Connect, and for a column of a type that Arrow does not have."""
        if not hasattr(frame, "_jdf"):
            raise ConfigError(
                "the rows are a data frame of Spark Connect, whose rows this process does not have",
                hint="use a classic Spark session, or give frame.toArrow()",
            )
        self._frame = frame
        try:
            self.schema: pa.Schema = to_arrow_schema(frame.schema)
        except Exception as error:
            raise ConfigError(f"the rows have a column that Arrow does not have: {error}") from error

    @property
    def engine(self) -> SparkEngine:
        return SparkEngine(self._frame.sparkSession.sparkContext)

    def reader(self) -> pa.RecordBatchReader:
        batches = (_batch(data, self.schema) for data in self._batches().toLocalIterator())
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def is_empty(self) -> bool:
        return bool(self._frame.isEmpty())

    def map(
        self,
        function: Callable[[Task, Iterator[pa.RecordBatch], str], Iterator[Result]],
        task: Task,
        description: str,
        progress: Callable[[int, int], None],
    ) -> list[Result]:
        batches = self._batches()
        count = batches.getNumPartitions()
        run = functools.partial(_run, function, pickle.dumps(task), self.schema)
        return self.engine.collect(batches, count, run, count, description, progress)

    def _batches(self) -> "RDD[bytes]":
        batches = self._frame._jdf.toArrowBatchRdd().toJavaRDD()
        return RDD(batches, self._frame.sparkSession.sparkContext, NoOpSerializer())


def _run(
    function: Callable[[Task, Iterator[pa.RecordBatch], str], Iterator[Result]],
    task: bytes,
    schema: pa.Schema,
    batches: Iterable[bytes],
) -> Iterator[Result | HudiServicesError]:
    """The results for the rows of one partition, and HudiServicesErrors as values."""
    with in_task() as token:
        try:
            yield from function(pickle.loads(task), (_batch(data, schema) for data in batches), token)
        except HudiServicesError as error:
            yield error


def _batch(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(data), schema)
