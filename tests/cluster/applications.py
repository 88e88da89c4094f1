"""Our program as an application on a cluster: submitted as docs/cluster.md says, on a table in a store."""

import io
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_services
from hudi_services.clock import SystemClock
from hudi_services.snapshot import open_snapshot
from hudi_services.stores import open_storage
from hudi_services.stores.options import StorageOptions, Value
from tests.servers.bucket import Bucket
from tests.servers.s3 import KEY, REGION, SECRET
from tests.servers.spark_client import SparkClient
from tests.unit.tables import merged_rows_of

# What docs/cluster.md has as the program of --py-files; small groups are divided, too.
_PROGRAM = """\
from hudi_services.runs import group_tasks
group_tasks._LEAST_BYTES = 1
from hudi_services.__main__ import main
main()
"""
_LONGEST = 480
"""Seconds of an application."""


@dataclass(frozen=True)
class Lake:
    """A place for tables: its URL, and how this process, and the applications, reach it."""

    url: str
    options: dict[str, Value] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, bucket: Bucket) -> "Lake":
        known = {"AWS_ENDPOINT": bucket.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": REGION}
        keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        return cls(bucket.url, bucket.options_at(bucket.endpoint), known | keys)

    def put(self, name: str, rows: pa.Table) -> str:
        """The URL of a new parquet file of these rows."""
        sink = io.BytesIO()
        pq.write_table(rows, sink)
        open_storage(self.url, StorageOptions(self.options)).create(name, sink.getvalue())
        return f"{self.url}/{name}"

    def rows(self, name: str) -> pa.Table:
        """The rows of a table, by key; with the metadata table and without it they are the same."""
        storage = open_storage(f"{self.url}/{name}", StorageOptions(self.options))
        return merged_rows_of(open_snapshot(storage, SystemClock()))

    def check(self, name: str) -> None:
        """Nothing is wrong with the metadata table, and nobody has left a file."""
        table = hudi_services.open(f"{self.url}/{name}", storage_options=self.options)
        assert table.validate().state == "completed"
        assert strays(self, name) == []


def strays(lake: Lake, name: str) -> list[str]:
    """Base files of completed instants that the commits do not name, and markers that are left."""
    storage = open_storage(f"{lake.url}/{name}", StorageOptions(lake.options))
    table = open_snapshot(storage, SystemClock())
    named = set()
    for instant in table.timeline.completed_writes():
        named |= {stat.path for of in table.timeline.read_commit(instant).stats.values() for stat in of}
    found = [file.path for file in storage.list_tree("")]
    bases = {path for path in found if path.endswith(".parquet") and not path.startswith(".hoodie/")}
    left = [path for path in found if path.startswith((".hoodie/.temp/", ".hoodie/.hudi_services/"))]
    return sorted(bases - named) + left


@dataclass(frozen=True)
class Application:
    """How applications are submitted to a cluster: what is sent along, and settings of Spark."""

    cluster: SparkClient
    lake: Lake
    sent: Sequence[object]
    """Words of spark-submit that send our package to the machines."""
    python: str = "python3"
    program: object = None
    """The file that runs; None for one of two lines, which loads the package that was sent along."""

    def run(self, *words: str, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The report of one that ends well."""
        return self.ended(self.start(*words, settings=settings))

    def start(self, *words: str, settings: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        main, report = self.cluster.folder / "cluster_tables.py", self.cluster.folder / "report.json"
        main.write_text(_PROGRAM)
        report.unlink(missing_ok=True)
        known = {"spark.executor.memory": "600m", "spark.executor.cores": "1", "spark.ui.enabled": "false"}
        known |= {f"spark.executorEnv.{name}": value for name, value in self.lake.environment.items()}
        conf = [
            word for name, value in (known | dict(settings or {})).items() for word in ("--conf", f"{name}={value}")
        ]
        environment = {**self.lake.environment, "PYSPARK_PYTHON": self.python}
        program = main if self.program is None else self.program
        line = [*conf, *self.sent, program, *words, *(["--report", report] if words else [])]
        return self.cluster.submit(*line, environment=environment)

    def ended(self, process: subprocess.Popen[bytes], code: int = 0) -> dict[str, Any]:
        try:
            out, errors = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            out, errors = process.communicate()
        told = f"{out.decode()[-4000:]}\n{errors.decode()[-6000:]}"
        assert process.returncode == code, told
        report = Path(self.cluster.folder, "report.json")
        assert report.exists(), told
        found: dict[str, Any] = json.loads(report.read_text())
        return found


def conf(**options: str) -> list[str]:
    """Flags; two underscores stand for a dot."""
    return [word for name, value in options.items() for word in ("--hoodie-conf", f"{name.replace('__', '.')}={value}")]
