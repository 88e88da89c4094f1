"""Files of rows as a data frame: tasks of Spark read them, with our own readers and storage, and never Java."""

import functools
import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ..engine import Engine
from ..inputs.input_files import InputFiles
from .pieces import SparkPieces
from .spark_engine import SparkEngine

_MOST_PARTITIONS = "200"
"""spark.sql.shuffle.partitions by default."""


class FileFrame:
    """An `engine.Frame`: each of its partitions has some files, or some row groups of one."""

    def __init__(self, engine: Engine, files: InputFiles) -> None:
        """Raises ConfigError for a file that cannot be read."""
        assert isinstance(engine, SparkEngine), "tasks of Spark read the files"
        self.engine = engine
        self.schema = files.schema
        self._files = files
        self._parts = [pickle.dumps(part) for part in files.parts(engine.context.defaultParallelism)]

    def is_known_empty(self) -> bool:
        return not any(batch.num_rows for batch in self._files.rows())

    def pieces(self) -> SparkPieces:
        rdd = self.engine.context.parallelize(self._parts, len(self._parts))
        return SparkPieces(self.engine, rdd, functools.partial(_batches, self.schema))

    @property
    def parallelism(self) -> int:
        most = int(self.engine.context.getConf().get("spark.sql.shuffle.partitions", _MOST_PARTITIONS) or 1)
        return max(1, min(most, len(self._parts)))


def _batches(schema: pa.Schema, parts: Iterable[Any]) -> Iterator[tuple[None, pa.Table]]:
    for part in parts:
        for file in pickle.loads(part):
            for batch in file.batches(schema):
                yield None, pa.Table.from_batches([batch])
