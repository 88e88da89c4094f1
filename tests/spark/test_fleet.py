"""`fleet` with Spark: the clusterings and compactions of all tables in one application, several at a time."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ..unit.fleets import DUE, KINDS, Seeds, make, rows_of

pytestmark = pytest.mark.spark

_PROGRAM = """
import sys
from pyspark import SparkContext
from hudi_services.cli.app import main
from hudi_services.fleet import places
from hudi_services.spark import context as of_spark
from hudi_services.spark.spark_engine import SparkEngine

begin, gather = of_spark.begin, SparkEngine.map

def begun(settings):
    print("application", settings.get("spark.scheduler.mode"), file=sys.stderr)
    return begin(settings)

def gathered(engine, function, tasks, description, progress):
    pool = engine.context.getLocalProperty("spark.scheduler.pool")
    print("pool", pool, len(tasks), file=sys.stderr)
    return gather(engine, function, tasks, description, progress)

of_spark.begin, SparkEngine.map = begun, gathered
main()
"""
"""The program; it tells on stderr which applications it starts, and the pool of each job."""


def test_one_application_for_all_tables(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    seeds = Seeds(tmp_path / "seeds")
    for kind in KINDS:
        make(seeds.folder, kind)
    paths = [seeds.copy(kind, tmp_path / "lake" / kind) for kind in KINDS]
    (paths[0].parent / "broken" / ".hoodie").mkdir(parents=True)
    (paths[0].parent / "broken" / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=broken")
    tables = tmp_path / "tables.txt"
    tables.write_text(f"{tmp_path}/lake/*\n")
    words = [word for key, value in DUE.items() for word in ("--hoodie-conf", f"{key}={value}")]
    flags = ["--apply", "--at-once", "3", "--spark-master", "local[2]", "--max-requests", "5000", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "fleet", str(tables), *flags, *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    report = json.loads(done.stdout)
    states = {Path(row["base_path"]).name: row["state"] for row in report["tables"]["tables"]}
    assert states == {**dict.fromkeys(KINDS, "done"), "broken": "failed"}
    told = [line.split() for line in done.stderr.splitlines()]
    assert [line[1] for line in told if line[:1] == ["application"]] == ["FAIR"]
    jobs = Counter(Path(line[1]).name for line in told if line[:1] == ["pool"])
    assert {*jobs} == {*KINDS}, done.stderr
    assert report["requests"]["tasks"], "the tasks ran in other processes"
    for path in paths:
        assert rows_of(path).equals(seeds.rows(path.name)), path
