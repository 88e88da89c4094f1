"""Data frames of Spark as Arrow tables: Java makes them and shuffles their bytes, and no row becomes a Python object.

Java gives each batch as an Arrow IPC message without its schema; between the tasks of Python, tables are IPC streams
(LZ4). Source: Dataset.toArrowBatchRdd, ArrowConverters of Apache Spark 3.5 and 4.0, which `toPandas` and `toArrow` use,
too; PairwiseRDD, PythonPartitioner.
"""

import functools
import inspect
import pickle
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import RDD, StorageLevel
from pyspark.serializers import CPickleSerializer, NoOpSerializer
from pyspark.sql.pandas.types import to_arrow_schema

from ..engine import Pieces, Step
from ..errors import ConfigError, HudiServicesError
from ..writing.row_store import joined
from .shipping import ship, shipped
from .spark_engine import SparkEngine, in_task

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")

Piece = tuple[Any, "bytes | HudiServicesError"]
"""A label, and a table; or the error that ended its task, which every later step hands on."""


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

    def pieces(self) -> "SparkPieces":
        batches = self._frame._jdf.toArrowBatchRdd().toJavaRDD()
        rdd: RDD[bytes] = RDD(batches, self._frame.sparkSession.sparkContext, NoOpSerializer())
        return SparkPieces(self.engine, rdd, functools.partial(_batches, self.schema))

    def labels(self, labels: Sequence[Any]) -> "SparkPieces":
        return SparkPieces.of_labels(self.engine, labels)

    @property
    def parallelism(self) -> int:
        shuffles = int(self._frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        return max(1, min(shuffles, int(self._frame._jdf.rdd().getNumPartitions())))


class SparkPieces:
    """An `engine.Pieces`."""

    def __init__(
        self, engine: SparkEngine, rdd: "RDD[Any]", read: Callable[[Iterable[Any]], Iterator[tuple[Any, Any]]]
    ) -> None:
        """`read` makes labelled tables of the elements of `rdd`."""
        self._engine = engine
        self._rdd = rdd
        self._read = read

    @classmethod
    def of_labels(cls, engine: SparkEngine, labels: Sequence[Any]) -> "SparkPieces":
        """A partition for each label, with a table without rows."""
        empty = _bytes(pa.table({}))
        return cls(engine, engine.context.parallelize([(one, empty) for one in labels], max(1, len(labels))), _tables)

    def joined(self, other: Pieces) -> "SparkPieces":
        assert isinstance(other, SparkPieces), "both are of one engine"
        return SparkPieces(self._engine, self._rdd.union(other._rdd), _tables)

    def then(self, step: Step, task: Any) -> "SparkPieces":
        run = shipped(ship(self._rdd.context), functools.partial(_pieces, self._read, step, pickle.dumps(task)))
        return SparkPieces(self._engine, self._rdd.mapPartitions(run), _tables)

    def divided(self, partitions: int) -> "SparkPieces":
        # RDD.partitionBy would gather up to a thousand tables in a worker before it hands them on; this hands on each.
        context: Any = self._rdd.context
        keyed: Any = self._rdd.mapPartitions(shipped(ship(context), _numbered), preservesPartitioning=True)
        keyed._bypass_serializer = True
        pairs = context._jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()
        partitioner = context._jvm.PythonPartitioner(partitions, id(_numbered))
        divided = context._jvm.PythonRDD.valueOfPair(pairs.partitionBy(partitioner))
        return SparkPieces(self._engine, RDD(divided, context, CPickleSerializer()), _tables)

    def keep(self) -> "SparkPieces":
        self._rdd = self._rdd.persist(StorageLevel.DISK_ONLY)
        return self

    def release(self) -> None:
        self._rdd.unpersist()

    def results(self, step: Step, task: Any, description: str, progress: Callable[[int, int], None]) -> list[Any]:
        count = self._rdd.getNumPartitions()
        run = functools.partial(_results, self._read, step, pickle.dumps(task))
        return self._engine.collect(self._rdd, count, run, count, description, progress)


def _batch_schema(frame: Any) -> pa.Schema:
    """The schema of the batches that Java makes of a data frame, whose messages do not have it.

    From Spark 4 on, the session says whether texts and bytes in them have offsets of 64 bits.
    """
    is_told = "prefers_large_types" in inspect.signature(to_arrow_schema).parameters
    large = is_told and frame.sparkSession.conf.get(_LARGE_TYPES, "false") == "true"
    return to_arrow_schema(frame.schema, **({"prefers_large_types": True} if large else {}))


def _batches(schema: pa.Schema, batches: Iterable[bytes]) -> Iterator[tuple[None, pa.Table]]:
    found = (pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(data), schema)]) for data in batches)
    return ((None, table) for table in joined(found))


def _tables(pieces: Iterable[Piece]) -> Iterator[tuple[Any, pa.Table]]:
    """The labelled tables. Raises the error that stands in the place of one."""
    for label, data in pieces:
        if isinstance(data, HudiServicesError):
            raise data
        with pa.ipc.open_stream(data) as stream:
            yield label, stream.read_all()


def _pieces(
    read: Callable[[Iterable[Any]], Iterator[tuple[Any, Any]]], step: Step, task: bytes, pieces: Iterable[Any]
) -> Iterator[Piece]:
    with in_task() as token:
        try:
            for label, table in step(pickle.loads(task), read(pieces), token):
                yield label, _bytes(table)
        except HudiServicesError as error:
            yield (0, None), error


def _results(
    read: Callable[[Iterable[Any]], Iterator[tuple[Any, Any]]], step: Step, task: bytes, pieces: Iterable[Any]
) -> Iterator[Any]:
    with in_task() as token:
        try:
            yield from step(pickle.loads(task), read(pieces), token)
        except HudiServicesError as error:
            yield error


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_LZ4) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _numbered(pieces: Iterable[Piece]) -> Iterator[bytes]:
    """In turns the number of a partition, and a piece for it, as Spark's own shuffle of pairs has them."""
    for (number, label), data in pieces:
        yield struct.pack("!q", number)
        yield pickle.dumps((label, data))
