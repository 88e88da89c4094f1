"""Data frames of Spark as Arrow tables, which Java makes.

Java gives each batch as an Arrow IPC message without its schema. Source: Dataset.toArrowBatchRdd, ArrowConverters of
Apache Spark 3.5 and 4.0, which `toPandas` and `toArrow` use, too.
"""

import functools
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql.pandas.types import to_arrow_schema

from ..errors import ConfigError
from ..writing.row_store import joined
from .pieces import SparkPieces
from .spark_engine import SparkEngine

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


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
            self.schema: pa.Schema = _batch_schema(frame)
        except Exception as error:
            raise ConfigError(f"the rows have a column that Arrow does not have: {error}") from error
        self.engine = SparkEngine(frame.sparkSession.sparkContext)

    def is_known_empty(self) -> bool:
        return False

    def pieces(self) -> SparkPieces:
        batches = self._frame._jdf.toArrowBatchRdd().toJavaRDD()
        rdd: RDD[bytes] = RDD(batches, self._frame.sparkSession.sparkContext, NoOpSerializer())
        return SparkPieces(self.engine, rdd, functools.partial(_batches, self.schema))

    @property
    def parallelism(self) -> int:
        shuffles = int(self._frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        return max(1, min(shuffles, int(self._frame._jdf.rdd().getNumPartitions())))


def _batch_schema(frame: Any) -> pa.Schema:
    """The schema of the batches that Java makes of a data frame, whose messages do not have it.

    From Spark 4 on, the session says whether texts and bytes in them have offsets of 64 bits. Moments are UTC, which
    Spark 4.3 wants to be told.
    """
    known = inspect.signature(to_arrow_schema).parameters
    told: dict[str, Any] = {"timezone": "UTC"} if "timezone" in known else {}
    if "prefers_large_types" in known and frame.sparkSession.conf.get(_LARGE_TYPES, "false") == "true":
        told["prefers_large_types"] = True
    return to_arrow_schema(frame.schema, **told)


def _batches(schema: pa.Schema, batches: Iterable[bytes]) -> Iterator[tuple[None, pa.Table]]:
    found = (pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(data), schema)]) for data in batches)
    return ((None, table) for table in joined(found))
