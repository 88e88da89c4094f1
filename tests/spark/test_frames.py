"""Data frames of Spark as the rows of writes: without pandas, and a bulk insert by Spark's own tasks."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_services
from hudi_services.errors import ConfigError
from hudi_services.spark import frames
from tests.unit.rides import FILTERS
from tests.unit.tables import both_views, open_local

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


def rows(session: SparkSession, first: int, end: int, text: str = "text", partitions: int = 3) -> DataFrame:
    return session.range(first, end, 1, partitions).selectExpr(
        "concat('k', lpad(id, 6, '0')) AS id",
        "concat('d', id % 3) AS day",
        "cast(id % 7 AS int) AS ts",
        f"concat('{text} ', id) AS text",
        "array(id, id + 1) AS numbers",
        "map('x', id) AS words",
        "named_struct('q', id) AS place",
        "cast(id AS decimal(20,2)) AS price",
        "timestamp_seconds(id) AS at",
        "date_from_unix_date(cast(id AS int)) AS date",
        "if(id % 5 = 0, null, id / 4) AS share",
    )


def as_rows(found: list[Any]) -> list[Any]:
    return sorted((row.asDict(recursive=True) for row in found), key=lambda row: row["id"])


def seen(session: SparkSession, path: Path) -> list[Any]:
    """The rows of the base files, as Spark reads them."""
    table = open_local(path)
    files = [
        str(path / one.base_file.path)
        for of in table.view.partitions()
        for one in table.view.latest_slices(of)
        if one.base_file
    ]
    return as_rows(session.read.parquet(*files).select(rows(session, 0, 1).columns).collect())


def test_writes_of_data_frames(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rides"
    table = hudi_services.create(
        path, name="rides", record_key="id", partition_by="day", ordering="ts", options=FILTERS, engine="local"
    )
    first = rows(session, 0, 20_000)
    with monkeypatch.context() as changed:
        # No row of a bulk insert passes through this process.
        changed.setattr(frames.SparkFrame, "reader", None)
        result = table.bulk_insert(first)
    written = result.tables["written"].to_pylist()[0]
    assert (written["rows"], written["inserts"], written["new_files"], written["partitions"]) == (20_000, 20_000, 9, 3)
    assert seen(session, path) == as_rows(first.collect())
    both = both_views(path)
    assert both[0].equals(both[1])
    assert table.validate(strict=True).ok

    changed_rows = rows(session, 100, 200, "new")
    assert table.upsert(changed_rows).tables["written"].column("updates").to_pylist() == [100]
    assert table.insert(rows(session, 30_000, 30_010)).report["rows"]["in"] == 10
    assert table.delete(rows(session, 0, 50).select("id", "day")).tables["written"].column("deletes").to_pylist() == [
        50
    ]
    wanted = first.filter("id >= 'k000050' AND (id < 'k000100' OR id >= 'k000200')")
    wanted = wanted.union(changed_rows).union(rows(session, 30_000, 30_010))
    assert seen(session, path) == as_rows(wanted.collect())
    assert table.validate(strict=True).ok


def test_frames_that_are_not_written(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = hudi_services.create(path, name="rides", record_key="id", partition_by="day", engine="local")
    assert table.bulk_insert(rows(session, 0, 0)).idle
    assert not open_local(path).timeline.completed()
    nulls = rows(session, 0, 100).selectExpr("if(id = 'k000077', null, id) AS id", "day", "ts")
    with pytest.raises(ConfigError, match="null or empty in 1 of"):
        table.bulk_insert(nulls)
    # The write had begun: it is rolled back, with its files.
    assert not open_local(path).timeline.pending() and not list(path.glob("d*/*.parquet"))
    doubled = table.bulk_insert(
        rows(session, 0, 10).union(rows(session, 0, 10)), options={"hoodie.combine.before.insert": "true"}
    )
    assert doubled.tables["written"].column("inserts").to_pylist() == [10]

    class Connected:
        """As a data frame of Spark Connect."""

    Connected.__module__ = "pyspark.sql.connect.dataframe"
    with pytest.raises(ConfigError, match="a data frame of Spark Connect"):
        table.upsert(Connected())
