"""The memory that a dry run predicts is what the worker of `execute` then has."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import __version__ as SPARK

from tests.unit.page_examples import demo_table

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
SORTED = ("--hoodie-conf", "hoodie.clustering.plan.strategy.sort.columns=_hoodie_record_key")


def run(*words: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "hudi_services", *words, "--format", "json"]
    return json.loads(subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


@pytest.mark.thorough
def test_memory_of_a_task(tmp_path: Path) -> None:
    path = str(demo_table(tmp_path))
    flags = ("--base-path", path, "--memory-per-task", "64m", *SORTED)
    estimate = run("schedule", "--dry-run", *flags)
    run("schedule", *flags)
    done = run("execute", *flags)
    assert (estimate["files"], estimate["rows"]) == (done["files"], done["rows"])
    assert estimate["bytes"]["out"] == pytest.approx(done["bytes"]["out"], rel=0.15)
    (predicted,), (measured,) = estimate["tables"]["memory"], done["tables"]["memory"]
    assert predicted["limit_bytes"] == measured["limit_bytes"] == 64 << 20
    assert measured["peak_bytes"] <= measured["process_limit_bytes"] == (64 + 160) << 20
    # The estimate knows the workers of Spark 3.5; those of Spark 4 have up to 60 MiB more.
    assert predicted["peak_bytes"] == pytest.approx(measured["peak_bytes"], rel=0.3 if SPARK[0] == "3" else 0.5)
