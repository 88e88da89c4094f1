"""The tests with Spark, all of them, on the newest Spark 4."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.python_environment import SPARK_4, spark_home

pytestmark = [pytest.mark.deep, pytest.mark.server("tests/spark on Spark 4")]

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_with_spark() -> None:
    """The package of that release stands before the one of the environment on the import path."""
    known = {**os.environ, "HUDI_TESTS": "quick", "PYTHONPATH": str(spark_home(SPARK_4).parent)}
    known.pop("SPARK_HOME", None)
    shown = [sys.executable, "-c", "import pyspark; print(pyspark.__version__)"]
    assert subprocess.run(shown, env=known, capture_output=True, text=True, check=True).stdout.strip() == SPARK_4
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "tests/spark"],
        cwd=ROOT,
        env=known,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]
