"""Spark as an engine."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark import SparkConf, SparkContext

from hudi_services.engine import Engine
from hudi_services.spark.spark_engine import SparkEngine

from ..engine_contract import EngineContract

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def context() -> Iterator[SparkContext]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = SparkContext(conf=SparkConf().setMaster("local[2]").set("spark.ui.enabled", "false"))
    found.setLogLevel("OFF")
    yield found
    found.stop()


class TestSpark(EngineContract):
    @pytest.fixture
    def engine(self, context: SparkContext) -> Engine:
        return SparkEngine(context)
