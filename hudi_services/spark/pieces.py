"""Tables that tasks of Spark hand to each other: Java shuffles their bytes, and no row becomes a Python object.

Between the tasks of Python, tables are IPC streams (LZ4). Source: PairwiseRDD, PythonPartitioner of Apache Spark.
"""

import functools
import pickle
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import RDD, StorageLevel
from pyspark.serializers import CPickleSerializer

from ..engine import Pieces, Step
from ..errors import HudiServicesError
from .job_names import stages_called
from .shipping import ship, shipped
from .workers import in_task

if TYPE_CHECKING:
    from .spark_engine import SparkEngine

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")

Piece = tuple[Any, "bytes | HudiServicesError"]
"""A label, and a table; or the error that ended its task, which every later step hands on."""


class SparkPieces:
    """An `engine.Pieces`."""

    def __init__(
        self, engine: "SparkEngine", rdd: "RDD[Any]", read: Callable[[Iterable[Any]], Iterator[tuple[Any, Any]]]
    ) -> None:
        """`read` makes labelled tables of the elements of `rdd`."""
        self._engine = engine
        self._rdd = rdd
        self._read = read

    @classmethod
    def of_labels(cls, engine: "SparkEngine", labels: Sequence[Any]) -> "SparkPieces":
        """A partition for each label, with a table without rows."""
        empty = _bytes(pa.table({}))
        return cls(engine, engine.context.parallelize([(one, empty) for one in labels], max(1, len(labels))), _tables)

    def joined(self, other: Pieces) -> "SparkPieces":
        assert isinstance(other, SparkPieces), "both are of one engine"
        return SparkPieces(self._engine, self._rdd.union(other._rdd), _tables)

    def then(self, step: Step, task: Any) -> "SparkPieces":
        run = shipped(ship(self._rdd.context), functools.partial(_pieces, self._read, step, pickle.dumps(task)))
        return SparkPieces(self._engine, self._rdd.mapPartitions(run), _tables)

    def divided(self, partitions: int, description: str) -> "SparkPieces":
        # RDD.partitionBy would gather up to a thousand tables in a worker before it hands them on; this hands on each.
        context: Any = self._rdd.context
        keyed: Any = self._rdd.mapPartitions(shipped(ship(context), _numbered), preservesPartitioning=True)
        keyed._bypass_serializer = True
        with stages_called(context, description):
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
        return self._engine.collect(self._rdd, count, run, description, progress)


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
