"""Data frames of Spark that we write in turns with real Hudi: the table must be as the one that Hudi writes alone."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from .peer import Peer
from .test_upserts import CASES, Twins, batches


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A session of Spark without Hudi: real Hudi has a process of its own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    yield found
    found.stop()


@pytest.mark.deep
@pytest.mark.parametrize("case", ["bloom", "record index", "rows move", "log files", "log files, buckets"])
def test_upserts_and_deletes_in_turns(peer: Peer, case: str, session: SparkSession, tmp_path: Path) -> None:
    def frame(new: pa.Table) -> DataFrame:
        pq.write_table(new, tmp_path / "given.parquet")
        return session.read.parquet(str(tmp_path / "given.parquet")).repartition(3)

    twins = Twins(peer, tmp_path, CASES[case], frame)
    names: list[str] = []
    moves = CASES[case]["hoodie.index.type"] not in ("BLOOM", "BUCKET")
    for number, (operation, new) in enumerate(batches(len(case), moves=moves, by_ordering=True)):
        if case.startswith("log files"):
            # See test_upserts.
            new = new.set_column(2, "ts", new.column("ts").cast(pa.int32()))
        names = list(dict.fromkeys([*names, *new.column_names]))
        result = twins.write(operation, new, we=number % 3 != 0)
        if number % 3 == 2:
            twins.compare((case, number, operation, result), names)
    assert twins.ours.validate(strict=True).ok
