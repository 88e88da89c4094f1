"""An environment that is sent along: the machines of the cluster have Spark and a bare Python."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from tests.servers.hdfs import hdfs_server
from tests.servers.python_environment import SPARK_3, SPARK_4, packed, spark_home
from tests.servers.spark_client import SparkClient
from tests.servers.spark_standalone import standalone
from tests.servers.yarn import yarn

from .applications import Application, Lake, conf

pytestmark = pytest.mark.deep

_SENT = "./environment/bin/python"


@pytest.fixture(
    params=[
        pytest.param("standalone", marks=pytest.mark.server("archives, standalone")),
        pytest.param("yarn", marks=pytest.mark.server("archives, YARN")),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[SparkClient, Lake]]:
    """A cluster without our packages, and HDFS, with a table of two files in each of two partitions."""
    for name in ("hdfs", "cluster"):
        (tmp_path / name).mkdir()
    with ExitStack() as stack:
        url = stack.enter_context(hdfs_server(tmp_path / "hdfs"))
        lake, folder = Lake(f"{url}/lake"), tmp_path / "cluster"
        made = hudi_services.create(f"{lake.url}/rides", record_key="id", partition_by="day", ordering="ts")
        for first in (0, 2000):
            keys = [f"k{n:06d}" for n in range(first, first + 2000)]
            rows = pa.table({"id": keys, "day": [f"d{n % 2}" for n in range(2000)], "ts": [1] * 2000})
            made.insert(rows, options={"hoodie.parquet.small.file.limit": "0"})
        if request.param == "yarn":
            yield stack.enter_context(yarn(spark_home(SPARK_4), folder, url)), lake
        else:
            yield stack.enter_context(standalone(spark_home(SPARK_3), folder, has_packages=False)), lake


def test_an_environment_that_is_sent_along(place: tuple[SparkClient, Lake], tmp_path: Path) -> None:
    client, lake = place
    (tmp_path / "packed").mkdir()
    python, archive = packed(tmp_path / "packed")
    before, target = lake.rows("rides"), ("--base-path", f"{lake.url}/rides")
    cluster = replace(client, python=python, submitter=python.with_name("hudi-services-submit"))
    sent = ["--archives", f"{archive}#environment"]
    settings = {}
    if client.master == "yarn":
        # Spark is on all machines.
        settings = {"spark.yarn.jars": f"local:{client.home}/jars/*", "spark.yarn.am.memory": "512m"}
    application = Application(cluster, lake, sent, python=_SENT, program="--")
    by_key = conf(hoodie__clustering__plan__strategy__sort__columns="id")
    done = application.run("execute", *target, "--mode", "scheduleAndExecute", *by_key, settings=settings)
    assert (done["state"], done["rows"]) == ("completed", {"in": 4000, "out": 4000})
    done = application.run("index-bootstrap", *target, settings=settings)
    assert done["rows"] == {"in": 4000, "out": 4000}
    assert lake.rows("rides").equals(before)
    lake.check("rides")


@pytest.mark.server("YARN of Hadoop")
@pytest.mark.parametrize("place", ["yarn"], indirect=True)
def test_cluster_mode_of_yarn(place: tuple[SparkClient, Lake], tmp_path: Path) -> None:
    """The driver is on a machine of the cluster, too: its exit code and the table tell what it has done."""
    client, lake = place
    (tmp_path / "packed").mkdir()
    _, archive = packed(tmp_path / "packed")
    new = lake.put("new.parquet", pa.table({"id": ["new"], "day": ["d0"], "ts": [1]}))
    (client.folder / "cluster_tables.py").write_text("from hudi_services.__main__ import main\nmain()\n")
    settings = {
        "spark.yarn.jars": f"local:{client.home}/jars/*",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": _SENT,
        "spark.driver.memory": "512m",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    upsert = ["write", "--base-path", f"{lake.url}/rides", "--input", new, "--spark-master", "yarn"]
    line = ["--deploy-mode", "cluster", *words, "--archives", f"{archive}#environment", "cluster_tables.py", *upsert]
    driver = {"PYSPARK_PYTHON": _SENT, "PYSPARK_DRIVER_PYTHON": _SENT}
    process = client.submit(*line, environment=driver)
    _, errors = process.communicate(timeout=480)
    assert process.returncode == 0, errors.decode()[-6000:]
    assert lake.rows("rides")["id"].to_pylist().count("new") == 1
