"""Executors die, workers are lost or slow, hosts are bad: the rows are right, and nobody has left a file.

The store is behind a proxy, which sees what tasks write: an executor is killed at the moment when a task of it stores a
file.
"""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import hudi_services
from tests.servers.breaking_proxy import Asked, Break, BreakingProxy, breaking_proxy
from tests.servers.python_environment import SPARK_3, SPARK_4, spark_home, wheel
from tests.servers.spark_client import HOSTS
from tests.servers.spark_standalone import Standalone, standalone
from tests.servers.versitygw import versitygw

from .applications import Application, Lake, conf

pytestmark = pytest.mark.deep

At = tuple[Application, BreakingProxy]

# A layout whose tasks wait, or die, on the second host.
_LAYOUT = f"""
import os, time
import numpy as np
from hudi_services.rows.row_order import RowOrder


class OnOneHost(RowOrder):
    def learn(self, sample):
        pass

    def places(self, keys):
        if os.environ["SPARK_LOCAL_IP"] == "{HOSTS[1]}":
            self.happen()
        return np.arange(len(keys[0]))[::-1].astype(np.int64)


class Slow(OnOneHost):
    def happen(self):
        while not os.path.exists(os.environ["COMMITTED"]):
            time.sleep(0.01)


class Bad(OnOneHost):
    def happen(self):
        os._exit(1)
"""
# As a notebook does it: the session, and its executors, live on.
_NOTEBOOK = """
import json, time
import hudi_services
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
# Both executors have their packages loaded.
session.sparkContext.parallelize(range(8), 8).foreach(lambda _: __import__("time").sleep(0.5))
table = hudi_services.open("{url}", options={options})
report = table.cluster().report
open("{committed}", "w").close()
time.sleep(6)
open("report.json", "w").write(json.dumps(report))
"""
_BOTH = {"spark.cores.max": "2", "spark.scheduler.minRegisteredResourcesRatio": "1"}
"""No task begins before both executors are there."""
_FILES = conf(hoodie__clustering__plan__strategy__target__file__max__bytes="40000")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(release, marks=pytest.mark.server(f"dying executors of Spark {release[0]}"), id=release[0])
        for release in (SPARK_3, SPARK_4)
    ],
)
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[At]:
    """An application on a cluster, and the proxy before its store."""
    folder = tmp_path_factory.mktemp("broken")
    for name in ("cluster", "store", "wheel"):
        (folder / name).mkdir()
    home = spark_home(request.param)
    with (
        versitygw(folder / "store") as bucket,
        breaking_proxy(bucket.endpoint) as proxy,
        standalone(home, folder / "cluster") as cluster,
    ):
        (cluster.folder / "layouts.py").write_text(_LAYOUT)
        sent = ["--py-files", f"{wheel(folder / 'wheel')},{cluster.folder / 'layouts.py'}"]
        yield Application(cluster, Lake.of(bucket.behind(proxy.endpoint)), sent), proxy


@pytest.fixture
def table(at: At, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a table of two files in each of four partitions; what comes of it is compared at the end."""
    (application, proxy), name = at, re.sub(r"\W+", "-", request.node.name).strip("-")
    lake = application.lake
    made = hudi_services.create(
        f"{lake.url}/{name}", record_key="id", partition_by="day", ordering="ts", storage_options=lake.options
    )
    for first in (0, 4000):
        numbers = range(first, first + 4000)
        days, texts = [f"d{n % 4}" for n in numbers], [f"{n * 7919 % 100_003}" * 3 for n in numbers]
        rows = pa.table({"id": [f"k{n:06d}" for n in numbers], "day": days, "ts": [1] * 4000, "text": texts})
        made.insert(rows, options={"hoodie.parquet.small.file.limit": "0"})
    before = lake.rows(name)
    yield name
    proxy.reset()
    proxy.delay = 0.0
    assert lake.rows(name).equals(before)
    lake.check(name)


def cluster_of(application: Application) -> Standalone:
    assert isinstance(application.cluster, Standalone)
    return application.cluster


def executors(worker: subprocess.Popen[bytes]) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(worker.pid)], capture_output=True, text=True).stdout
    return [int(pid) for pid in found.split()]


def when_a_file_is_stored(proxy: BreakingProxy, table: str, happen: Callable[[], None]) -> None:
    """Once, when the second base file of a table is about to be stored; requests take their time."""
    stored: list[str] = []

    def rule(asked: Asked) -> Break | None:
        path = asked.request.path
        if asked.request.method == "PUT" and f"/{table}/d" in path and path.endswith(".parquet"):
            stored.append(path)
            if len(stored) == 2:
                happen()
        return None

    proxy.reset(rule)
    proxy.delay = 0.05


def clustered(application: Application, table: str, *words: str, settings: dict[str, str]) -> dict[str, Any]:
    target = ["--base-path", f"{application.lake.url}/{table}", "--mode", "scheduleAndExecute"]
    report = application.run("execute", *target, *words, settings=settings)
    assert (report["state"], report["rows"]) == ("completed", {"in": 8000, "out": 8000})
    return report


@pytest.mark.parametrize("sort", [False, True], ids=["unsorted", "sorted"])
def test_killed_executors(at: At, table: str, sort: bool) -> None:
    """All of them, while they store files: those are there, and their tasks run again."""
    application, proxy = at

    def kill() -> None:
        for worker in cluster_of(application).workers:
            for executor in executors(worker):
                with suppress(ProcessLookupError):
                    os.kill(executor, signal.SIGKILL)

    when_a_file_is_stored(proxy, table, kill)
    words = conf(hoodie__clustering__plan__strategy__sort__columns="text") if sort else []
    repeated = clustered(application, table, *_FILES, *words, settings=_BOTH)["tables"]["repeated_tasks"]
    assert all(one["attempts"] == 2 for one in repeated)
    assert any("ExecutorLostFailure" in one["why"] for one in repeated)


def test_a_slow_worker(at: At, table: str) -> None:
    """Its tasks run on the other one, too; then they go on as soon as the commit is there, but nobody is there."""
    application, _ = at
    cluster, url = application.cluster, f"{application.lake.url}/{table}"
    committed = cluster.folder / f"committed-{table}"
    options = {"hoodie.layout.optimize.strategy": "layouts:Slow", "hoodie.clustering.plan.strategy.sort.columns": "id"}
    program = cluster.folder / "notebook.py"
    program.write_text(_NOTEBOOK.format(url=url, options=options, committed=committed))
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.executorEnv.COMMITTED": str(committed),
    }
    notebook = replace(application, program=program)
    report = notebook.ended(notebook.start(settings=_BOTH | speculation))
    (repeated,) = report["tables"]["repeated_tasks"]
    assert repeated["attempts"] == 2 and repeated["why"].startswith("another attempt ended first: ")
    assert repeated["why"].endswith(f"(on {HOSTS[1]})")


def test_an_excluded_host(at: At, table: str) -> None:
    application, _ = at
    excluded = {
        "spark.excludeOnFailure.enabled": "true",
        "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "1",
        "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "1",
        "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "1",
    }
    bad = conf(hoodie__layout__optimize__strategy="layouts:Bad", hoodie__clustering__plan__strategy__sort__columns="id")
    repeated = clustered(application, table, *bad, settings=_BOTH | excluded)["tables"]["repeated_tasks"]
    assert all(one["attempts"] == 2 and one["why"].endswith(f"(on {HOSTS[1]})") for one in repeated), repeated
    assert 1 <= len(repeated) <= 2, repeated


def test_dynamic_allocation(at: At, table: str) -> None:
    """Executors come when there are tasks, and go at once."""
    application, _ = at
    dynamic = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
    }
    by_text = conf(hoodie__clustering__plan__strategy__sort__columns="text")
    report = clustered(application, table, *_FILES, *by_text, settings=dynamic)
    assert report["files"]["out"] > 4


def test_a_lost_worker(at: At, table: str) -> None:
    """The last test: the machine does not come back."""
    application, proxy = at
    when_a_file_is_stored(proxy, table, lambda: cluster_of(application).lose(1))
    report = clustered(application, table, *_FILES, settings=_BOTH)
    assert any(HOSTS[1] in one["why"] for one in report["tables"]["repeated_tasks"])
