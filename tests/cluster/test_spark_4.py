"""The tests with Spark, all of them, on the newest Spark 4."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.servers.python_environment import SPARK_4, python_of_tests

pytestmark = [pytest.mark.deep, pytest.mark.server("tests/spark on Spark 4")]

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_with_spark() -> None:
    known = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYTHONPATH")}
    known["HUDI_TESTS"] = "quick"
    python = python_of_tests(SPARK_4)
    shown = subprocess.run(
        [python, "-c", "import pyspark; print(pyspark.__version__)"], env=known, capture_output=True, text=True
    )
    assert shown.stdout.strip() == SPARK_4, shown.stderr
    line = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "tests/spark"]
    done = subprocess.run(line, cwd=ROOT, env=known, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]
