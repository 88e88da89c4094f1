"""One program by three names, on tables that real Apache Hudi wrote; executors get the package from the job."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyspark
import pytest

from tests.unit.tables import listed_view, open_local, rows, unpack

ROOT = Path(__file__).resolve().parents[2]
MAIN = str(ROOT / "hudi_services" / "__main__.py")
SUBMIT = str(ROOT / "scripts" / "hudi-services-submit")
SORT = "hoodie.clustering.plan.strategy.sort.columns=_hoodie_record_key desc"
pytestmark = pytest.mark.spark


def without_repository() -> dict[str, str]:
    """An environment that knows nothing of this repository, whose own spark-submit is that of Spark 3.5."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    environment["PYSPARK_PYTHON"] = sys.executable
    if not pyspark.__version__.startswith("3."):
        environment["SPARK_HOME"] = pyspark.__path__[0]
    return environment


def run(folder: Path, *line: str) -> dict[str, Any]:
    """The report of a run from `folder`."""
    done = subprocess.run(line, cwd=folder, env=without_repository(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    if line[0] == sys.executable:
        assert "log level" not in done.stderr, "Spark tells nothing of its own"
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def schedule(folder: Path, table: Path) -> dict[str, Any]:
    return run(folder, sys.executable, MAIN, "schedule", "-sp", str(table), "--hoodie-conf", SORT, "--format", "json")


@pytest.mark.parametrize(
    ("release", "program"),
    [
        ("1.2.0", [sys.executable, MAIN]),
        ("0.15.0", [SUBMIT, "--master", "local-cluster[1,2,1024]", "--conf", "spark.ui.enabled=false", "--"]),
    ],
    ids=["alone", "submitted"],
)
def test_schedule_and_execute(tmp_path: Path, release: str, program: list[str]) -> None:
    table = unpack(release, tmp_path)
    before = rows(open_local(table), listed_view(open_local(table)))
    if program[0] == sys.executable and sys.version_info >= (3, 11):
        # Neither we nor Spark's workers take modules from where they are started.
        for name in ("numpy", "pyarrow", "fastavro", "typer"):
            (tmp_path / f"{name}.py").write_text("raise SystemExit(99)")
    planned = schedule(tmp_path, table)
    assert planned["state"] == "requested" and planned["files"]["in"] > planned["files"]["out"]
    done = run(tmp_path, *program, "execute", "-sp", "table", "--format", "json")
    assert (done["state"], done["instant"], done["files"]) == ("completed", planned["instant"], planned["files"])
    assert done["rows"]["in"] == done["rows"]["out"]
    assert [check["result"] for check in done["checks"]] == ["passed"]
    opened = open_local(table)
    assert opened.timeline.last_clustering().ts == planned["instant"]  # type: ignore[union-attr]
    assert rows(opened, listed_view(opened)).equals(before)


_OWN = """
import pyarrow as pa
from hudi_services.rewriting.group_writer import GroupWriter


class Lossy(GroupWriter):
    def write(self):
        with self.new_file(self.rows) as file:
            file.write(pa.concat_tables(self.tables()).slice(1))
"""


@pytest.mark.deep
def test_an_execution_strategy_of_ones_own(tmp_path: Path) -> None:
    """Executors load it by its name, from a file that is sent to them; what it loses is found there."""
    table = unpack("1.2.0", tmp_path)
    before = rows(open_local(table), listed_view(open_local(table)))
    (tmp_path / "own_writers.py").write_text(_OWN)
    planned = run(tmp_path, sys.executable, MAIN, "schedule", "-sp", str(table), "--format", "json")
    assert planned["state"] == "requested"
    cluster = [
        "--master",
        "local-cluster[1,2,1024]",
        "--conf",
        "spark.ui.enabled=false",
        "--py-files",
        "own_writers.py",
    ]
    own = ["--hoodie-conf", "hoodie.clustering.execution.strategy.class=own_writers:Lossy"]
    line = [SUBMIT, *cluster, "--", "execute", "-sp", str(table), *own]
    done = subprocess.run(line, cwd=tmp_path, env=without_repository(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 5 and "the same rows" in f"{done.stdout}{done.stderr}", done.stdout
    opened = open_local(table)
    assert rows(opened, listed_view(opened)).equals(before)
    assert [one.ts for one in opened.timeline.pending_clusterings()] == [planned["instant"]]


def test_write_by_spark(tmp_path: Path) -> None:
    """Tasks on executors read files of two formats, in parts, make the table, and look keys up."""
    new, path = tmp_path / "new", tmp_path / "rides"
    new.mkdir()
    for number in range(3):
        # Texts that look like numbers: their types reach the tasks.
        keys = [f"{n:05d}" for n in range(number * 1000, number * 1000 + 1000)]
        table = pa.table({"id": keys, "day": [f"d{n % 2}" for n in range(1000)], "ts": [1] * 1000})
        if number:
            pq.write_table(table, new / f"{number}.parquet", row_group_size=300)
        else:
            pa.csv.write_csv(table, new / "0.csv")
    program = [SUBMIT, "--master", "local-cluster[1,2,1024]", "--conf", "spark.ui.enabled=false", "--", "write"]
    made = ["--table-name", "rides", "--record-key", "id", "--partition-by", "day", "--ordering", "ts"]
    target = ["--base-path", str(path), "--format", "json"]
    done = run(tmp_path, *program, *target, *made, "--input", str(new), "--operation", "insert")
    assert (done["state"], done["rows"]["in"]) == ("completed", 3000)
    assert "start spark" in done["seconds"]
    files = ["--input", str(new / "1.parquet"), "--spark-master", "local[2]"]
    done = run(tmp_path, sys.executable, MAIN, "write", *target, *files)
    assert done["tables"]["written"][0]["updates"] == 1000
    opened = open_local(path)
    found = rows(opened, listed_view(opened))
    assert sorted(found.column("id").to_pylist()) == [f"{n:05d}" for n in range(3000)]
    wrong = [sys.executable, MAIN, "write", *target, "--operation", "delete_partition", "--spark-master", "local[2]"]
    refused = subprocess.run(wrong, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2 and "delete_partition takes no --spark-master" in refused.stderr
