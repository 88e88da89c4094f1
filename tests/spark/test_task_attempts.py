"""When a job has ended, nobody works for it any more, and the engine says which of its tasks ran more than once."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from hudi_services.errors import JobLost
from hudi_services.spark.spark_engine import SparkEngine

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def context() -> Iterator[SparkContext]:
    """Two tasks at the same time, each of which may fail once."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = SparkContext(conf=SparkConf().setMaster("local[2,2]").set("spark.ui.enabled", "false"))
    found.setLogLevel("OFF")
    # With it, Spark makes errors of its own of those of Java.
    SparkSession(found)
    yield found
    SparkSession(found).stop()


def run(context: SparkContext, function: object, tasks: list[str]) -> SparkEngine:
    engine = SparkEngine(context)
    engine.map(function, tasks, "write", lambda done, total: None)  # type: ignore[arg-type]
    return engine


def test_a_task_that_ran_twice(context: SparkContext, tmp_path: Path) -> None:
    def fail_once(place: str, token: str) -> str:
        is_first = not os.path.exists(place)
        with open(place, "w") as file:
            file.write("tried")
        if place.endswith("1") and is_first:
            raise MemoryError("no room")
        return token

    (found,) = run(context, fail_once, [str(tmp_path / str(number)) for number in range(3)]).repeated
    assert (found.description, found.task, found.attempts) == ("write", 1, 2)
    assert found.why.startswith("MemoryError: no room (on ")
    assert run(context, fail_once, [str(tmp_path / "1")]).repeated == []


def test_nobody_writes_after_a_job_that_failed(context: SparkContext, tmp_path: Path) -> None:
    """The other task would write on for minutes."""

    def work(place: str, token: str) -> None:
        if place.endswith("fails"):
            while not os.path.exists(os.path.dirname(place) + "/works"):
                time.sleep(0.01)
            raise ValueError("the other one works")
        for _ in range(10_000):
            with open(place, "a") as file:
                file.write("more\n")
            time.sleep(0.02)

    with pytest.raises(JobLost, match="the other one works"):
        run(context, work, [str(tmp_path / "fails"), str(tmp_path / "works")])
    size = (tmp_path / "works").stat().st_size
    time.sleep(0.5)
    assert (tmp_path / "works").stat().st_size == size > 0
