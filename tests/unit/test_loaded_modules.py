"""What each command loads: nothing that it does not need, because loading takes longer than most of its work."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .page_examples import demo_table

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import contextlib, io, json, sys
from hudi_services.cli.app import run
with contextlib.redirect_stdout(io.StringIO()):
    code = run(sys.argv[1:])
names = {name.split(".")[0] for name in sys.modules}
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("hudi_services.")}
print(json.dumps([code, sorted(names), sorted(rooms)]))
"""
SERVERS = {"kazoo", "boto3", "hdfs_native"}
METRICS = {"prometheus_client", "opentelemetry", "grpc"}
SPARK = {"pyspark", "py4j", "pydantic", "pandas", *SERVERS, *METRICS}
ARROW = {"pyarrow", "numpy", "isal"}
ROWS = {"rewriting", "rows", "merging", "parquet", "calendars", "metadata_updates", "processes", "ingest", "inputs"}
TASKS = {"processes", "ingest", "inputs", "writing", "validation", "archival", "orphan_files"}
CASES: dict[str, tuple[list[str], set[str], set[str]]] = {
    "clean": (["clean"], SPARK | ARROW | {"rich"}, ROWS - {"merging"}),
    "clean shows tables": (["clean", "--format", "table"], SPARK | ARROW, ROWS),
    "recover": (["recover"], SPARK | ARROW | {"rich"}, ROWS - {"merging"}),
    "archive": (["archive"], SPARK | ARROW | {"rich"}, ROWS | {"clustering", "rollback"}),
    "orphan-files": (["orphan-files"], SPARK | ARROW | {"rich"}, ROWS | {"clustering", "rollback"}),
    "index-drop": (
        ["index-drop", "--index", "partition_stats", "--dry-run"],
        SPARK | ARROW | {"rich"},
        ROWS - {"merging"},
    ),
    "validate": (["validate"], SPARK | {"rich"}, {"rewriting", "rows", "processes", "ingest", "inputs", "clustering"}),
    "schedule": (["schedule", "--dry-run"], SPARK | {"rich"}, TASKS | {"merging"}),
    "execute": (["execute"], SPARK | {"rich"}, TASKS | {"spark"}),
    "a wrong flag": (["clean", "--none"], SPARK | ARROW | {"rich"}, ROWS | {"commit", "metadata", "clustering"}),
}
"""The words of the command line, the libraries, and the rooms of this package, that it does not load."""


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_loaded_that_a_command_does_not_need(case: str, tmp_path: Path) -> None:
    """Of a small table where nothing is to be done, or to be executed."""
    path = str(demo_table(tmp_path))
    words, libraries, rooms = CASES[case]
    line = [*words, "--base-path", path, *([] if "--format" in words else ["--format", "json"])]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *line], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    code, loaded, of_ours = json.loads(done.stdout)
    assert code == (2 if "--none" in words else 0)
    assert libraries.intersection(loaded) == set() and rooms.intersection(of_ours) == set()
