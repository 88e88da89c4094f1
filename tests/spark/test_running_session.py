"""A Spark session that was running before is used, and stays as it is."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import hudi_services
from hudi_services.cli.app import run
from hudi_services.rewriting.time_limit import TimedTask
from hudi_services.runs import group_tasks
from hudi_services.spark import spark_engine as engine
from hudi_services.stores.options import StorageOptions
from tests.servers.breaking_proxy import breaking_proxy
from tests.servers.bucket import upload
from tests.servers.moto import moto
from tests.unit.page_examples import ROOT, TABLE, demo_table, examples, run_examples
from tests.unit.tables import listed_view, open_local, rows, unpack

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


def test_two_threads_on_two_tables(session: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each has its own progress and its own job group, and then again what it had before."""
    paths = [unpack(release, tmp_path / release) for release in ("1.2.0", "0.15.0")]
    expected = [rows(open_local(path), listed_view(open_local(path))) for path in paths]
    seen: list[list[tuple[str, int, int]]] = [[], []]
    both = threading.Barrier(2)

    def cluster(number: int) -> tuple[hudi_services.Result, str | None]:
        session.sparkContext.setJobGroup(f"mine {number}", "mine")
        table = hudi_services.open(paths[number], progress=lambda *now: seen[number].append(now))
        both.wait()
        result = table.cluster(options=SORTED)
        return result, session.sparkContext.getLocalProperty("spark.jobGroup.id")

    before = state(session)
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(cluster, range(2)))
    assert state(session) == before
    assert [group for _, group in outcomes] == ["mine 0", "mine 1"]
    for number, (path, rows_before) in enumerate(zip(paths, expected, strict=True)):
        result = outcomes[number][0]
        assert result.state == "completed"
        (total,) = {total for phase, _, total in seen[number] if phase == "rewrite"}
        assert total == result.report["bytes"]["in"], "progress counts bytes"
        assert clustered(path) and rows(open_local(path), listed_view(open_local(path))).equals(rows_before)
    told = capfd.readouterr()
    assert told.out == "" and "hudi" not in told.err


def test_stages_have_names_and_progress_counts_bytes(session: SparkSession) -> None:
    """What Spark's UI shows, by the store that it reads."""
    context = session.sparkContext
    seen: list[tuple[int, int]] = []

    def work(task: TimedTask, token: str) -> int:
        time.sleep(task.bytes / (1 << 20))
        return task.bytes

    def hand_on(task: None, tables: Any, token: str) -> Iterator[Any]:
        for label, table in tables:
            yield (label, None), table

    def count_tables(task: None, tables: Any, token: str) -> Iterator[int]:
        yield sum(1 for _ in tables)

    engine_here = engine.SparkEngine(context)
    sizes = [1 << 18, 6 << 18, 3 << 18]
    tasks = [TimedTask(SimpleNamespace(bytes=one, rows=one // 256), 0.0) for one in sizes]  # type: ignore[arg-type]
    results = engine_here.map(work, tasks, "weigh", lambda *now: seen.append(now))
    assert results == sizes
    assert {total for _, total in seen} == {sum(sizes)} and seen[-1][0] == sum(sizes)
    assert any(0 < done < sum(sizes) for done, _ in seen), "the smallest task ended first"
    counted: list[tuple[int, int]] = []
    sent = engine_here.labels([0, 1]).then(hand_on, None).divided(3, "send")
    assert sent.results(count_tables, None, "receive", lambda *now: counted.append(now)) == [1, 1, 0]
    assert counted[-1] == (3, 3)
    store: Any = context._jsc.sc().statusStore()
    java: Any = context._jvm
    nothing, no_shares = java.java.util.ArrayList(), context._gateway.new_array(java.double, 0)  # type: ignore[union-attr]
    stages = store.stageList(nothing, False, False, no_shares, nothing)
    names = [stages.apply(at).name() for at in range(stages.size())]
    weighed = "weigh (3 tasks, 2.5 MiB, 10,240 rows)"
    assert {weighed, "send", "receive (3 tasks)"} <= {*names}
    described = {stages.apply(at).description().get() for at in range(stages.size()) if "we" in stages.apply(at).name()}
    assert described == {weighed}
    (shuffled,) = (stages.apply(at) for at in range(stages.size()) if names[at] == "send")
    assert shuffled.shuffleWriteBytes() > 0 and shuffled.shuffleWriteRecords() == 2


def test_a_job_that_is_cancelled_is_the_only_one(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    names = threading.local()
    monkeypatch.setattr(engine, "uuid", SimpleNamespace(uuid4=lambda: names.own))

    def linger(seconds: float, token: str) -> float:
        time.sleep(seconds)
        return seconds

    def run_job(name: str, seconds: float) -> list[float]:
        names.own = name
        return engine.SparkEngine(session.sparkContext).map(linger, [seconds], name, lambda done, total: None)

    with ThreadPoolExecutor(2) as pool:
        long, short = pool.submit(run_job, "long", 300.0), pool.submit(run_job, "short", 3.0)
        tracker = session.sparkContext.statusTracker()
        while not all(tracker.getJobIdsForGroup(f"hudi_services-{name}") for name in ("long", "short")):
            time.sleep(0.1)
        session.sparkContext.cancelJobGroup("hudi_services-long")
        with pytest.raises(hudi_services.JobLost, match=r"the Spark job 'long' failed: .*cancelled"):
            long.result()
        assert short.result() == [3.0]


def test_the_examples_of_the_readme_and_the_page(session: SparkSession, tmp_path: Path) -> None:
    path = demo_table(tmp_path)
    run_examples(examples(page=ROOT / "README.md"), {TABLE: str(path)})
    assert run_examples(examples("spark"), {TABLE: str(path)}, {"hudi_services": hudi_services}) == 2
    assert session.range(2).count() == 2


def test_the_options_of_a_store_reach_the_executors(session: SparkSession, tmp_path: Path) -> None:
    """Nothing in the environment tells them of it."""
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "aws_region": "us-east-1"}
    with moto(tmp_path) as bucket, breaking_proxy(bucket.endpoint) as proxy:
        options = {"aws_endpoint": proxy.endpoint, "allow_http": True, **keys}
        upload(unpack("1.2.0", tmp_path), "s3://lake/table", StorageOptions(options))
        table = hudi_services.open("s3://lake/table", storage_options=options)
        proxy.reset()
        done = table.cluster()
        assert done.state == "completed"
        told = done.report["requests"]
        assert told["tasks"]["get"] and told["tasks"]["put"] >= done.report["files"]["out"]
        assert Counter(told["driver"]) + Counter(told["tasks"]) == Counter(proxy.kinds)
        assert table.slices().num_rows == 2


def test_the_package_is_shipped_once(session: SparkSession) -> None:
    def place(task: int, token: str) -> str:
        import hudi_services

        return hudi_services.__file__

    (found,) = engine.SparkEngine(session.sparkContext).map(place, [0], "look", lambda done, total: None)
    assert ".zip/hudi_services/" in found
    files = [name for name in session.sparkContext.listFiles if "hudi_services" in name]
    assert len(files) == 1
    assert SparkContext._active_spark_context is session.sparkContext


OWN = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
import hudi_services

def state():
    return dict(os.environ), list(sys.path), signal.getsignal(signal.SIGINT)

before = state()
with ThreadPoolExecutor(2) as pool:
    results = pool.map(lambda url: hudi_services.open(url).cluster().state.value, sys.argv[1:])
    print(*results)
from pyspark import SparkContext
from pyspark.sql import SparkSession
print(SparkContext._active_spark_context, SparkContext._gateway, [a == b for a, b in zip(state(), before)])
mine = SparkSession.builder.master("local[1]").config("spark.driver.memory", "600m").config("spark.ui.enabled", "false")
conf = mine.getOrCreate().sparkContext.getConf().get
print(conf("spark.app.name"), conf("spark.driver.memory"), "log4j2" in conf("spark.driver.extraJavaOptions"))
print(mine.getOrCreate().sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory() < 1 << 30)
"""


@pytest.mark.thorough
def test_a_session_of_our_own_leaves_nothing_behind(tmp_path: Path) -> None:
    """Two threads share it, and the session that somebody starts later has its own Java."""
    tables = [str(unpack(release, tmp_path / release)) for release in ("1.2.0", "0.15.0")]
    done = subprocess.run([sys.executable, "-c", OWN, *tables], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "completed completed",
        "None None [True, True, True]",
        "pyspark-shell 600m False",
        "True",
    ], done.stderr[-3000:]
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("sort", [pytest.param({}, marks=pytest.mark.deep), SORTED], ids=["unsorted", "sorted"])
def test_a_group_on_two_cores(
    sort: dict[str, str], session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several tasks write one group, and hand rows to each other where they are sorted."""
    monkeypatch.setattr(group_tasks, "_LEAST_BYTES", 1)
    path = unpack("1.2.0", tmp_path)
    before = rows(open_local(path), listed_view(open_local(path)))
    table = hudi_services.open(str(path))
    small = {
        "hoodie.clustering.plan.strategy.target.file.max.bytes": "6000",
        "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS",
        "hoodie.clustering.plan.strategy.daybased.lookback.partitions": "1",
        "hoodie.index.bloom.num_entries": "100",
        "hoodie.bloom.index.filter.dynamic.max.entries": "100",
    }
    done = table.cluster(options={**small, **sort})
    assert done.report["groups"] == 1 < done.report["files"]["out"] <= done.report["tasks"]
    assert rows(open_local(path), listed_view(open_local(path))).equals(before)
