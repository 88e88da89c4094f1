"""Beside a Spark session that was there before: it is used, and stays as it is."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from hudi_services.cli.app import run
from hudi_services.jobs import clustering
from hudi_services.jobs.report import State
from hudi_services.jobs.request import Mode
from tests.unit.tables import listed_view, open_local, request, rows, unpack

pytestmark = pytest.mark.spark

SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "_hoodie_record_key"}
JOB = {"spark.jobGroup.id": "mine", "spark.job.description": "of mine", "spark.job.interruptOnCancel": "true"}


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """As a notebook has one."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = (
        SparkSession.builder.master("local[2]").appName("notebook").config("spark.ui.enabled", "false").getOrCreate()
    )
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


def state(session: SparkSession) -> dict[str, Any]:
    """What nobody may change."""
    context = session.sparkContext
    # Which adds the place of its warehouse to the conf, once.
    session.sql("SET").collect()
    return {
        "conf": sorted(context.getConf().getAll()),
        "sql conf": sorted((row.key, row.value) for row in session.sql("SET").collect()),
        "environment": dict(os.environ),
        "import path": list(sys.path),
        "files for Python": list(context._python_includes),
        "Arrow": pa.default_memory_pool().backend_name,
        "of a worker": context.parallelize([0], 1).map(lambda _: pa.default_memory_pool().backend_name).collect(),
        "log level": str(context._jvm.org.apache.log4j.LogManager.getRootLogger().getLevel()),  # type: ignore[union-attr]
        "job": {name: context.getLocalProperty(name) for name in JOB},
        "Ctrl-C": signal.getsignal(signal.SIGINT),
        "application": context.applicationId,
    }


def clustered(path: Path) -> bool:
    """Whether the newest write is a clustering."""
    return open_local(path).timeline.last_clustering() is not None and bool(
        open_local(path).timeline.last_clustering().is_completed  # type: ignore[union-attr]
    )


def test_the_command_line_leaves_the_session_alone(
    session: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = unpack("1.2.0", tmp_path)
    before_rows = rows(open_local(table), listed_view(open_local(table)))
    for name, value in JOB.items():
        session.sparkContext.setLocalProperty(name, value)
    before = state(session)
    assert run(["execute", "-sp", str(table), "-m", "scheduleAndExecute", "--spark-master", "local[1]"]) == 0
    assert state(session) == before
    assert session.range(5).count() == 5
    assert clustered(table) and rows(open_local(table), listed_view(open_local(table))).equals(before_rows)
    assert "a Spark session was running before" in capfd.readouterr().err


def test_two_threads_on_two_tables(session: SparkSession, tmp_path: Path) -> None:
    """Each has its progress, and a job group that one cancels is its own."""
    tables = [unpack(release, tmp_path / release) for release in ("1.2.0", "0.15.0")]
    expected = [rows(open_local(table), listed_view(open_local(table))) for table in tables]
    seen: list[list[tuple[str, int, int]]] = [[], []]
    groups: list[set[str | None]] = [set(), set()]
    both = threading.Barrier(2)

    def cluster(number: int) -> object:
        def progress(phase: str, done: int, total: int) -> None:
            seen[number].append((phase, done, total))

        session.sparkContext.setJobGroup(f"mine {number}", "mine")
        both.wait()
        wanted = request(tables[number], Mode.SCHEDULE_AND_EXECUTE, SORTED, progress=progress)
        report = clustering.schedule_and_execute(wanted)
        groups[number].add(session.sparkContext.getLocalProperty("spark.jobGroup.id"))
        return report.state, report.groups

    before = state(session)
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(cluster, range(2)))
    assert state(session) == before
    assert groups == [{"mine 0"}, {"mine 1"}]
    for number, (table, rows_before) in enumerate(zip(tables, expected, strict=True)):
        ended, count = outcomes[number]  # type: ignore[misc]
        assert ended is State.COMPLETED
        assert {total for phase, _, total in seen[number] if phase == "rewrite"} == {count}
        assert clustered(table) and rows(open_local(table), listed_view(open_local(table))).equals(rows_before)


def test_the_package_is_shipped_once(session: SparkSession) -> None:
    files = [name for name in session.sparkContext.listFiles if "hudi_services" in name]
    assert len(files) == 1
    assert SparkContext._active_spark_context is session.sparkContext
