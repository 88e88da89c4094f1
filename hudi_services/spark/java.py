"""Java with Spark's driver, started before pyspark is imported, which takes some of the time that Java takes.

It is started as pyspark starts it: spark-submit writes the port and the secret of its gateway into the file that
_PYSPARK_DRIVER_CONN_INFO_PATH names, and ends when its stdin does. pyspark connects to the gateway that
PYSPARK_GATEWAY_PORT and PYSPARK_GATEWAY_SECRET name.

Source: launch_gateway in pyspark/java_gateway.py and PythonGatewayServer of Apache Spark 3.5 and 4.
"""

import importlib.util
import os
import shlex
import struct
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..errors import ConfigError, JobLost
from ..extras import missing
from ..process import wait_aside

_POLL_SECONDS = 0.005
_SIZES = struct.Struct("!ii")
"""The port, and the length of the secret that follows."""


class Java:
    """The process, until `close`; `settings` are those of Spark, by their names."""

    def __init__(self, settings: Mapping[str, str], folder: Path) -> None:
        """`folder` belongs to this user alone."""
        self._place = folder / "gateway"
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        self.process = subprocess.Popen(
            [
                f"{spark_home()}/bin/spark-submit",
                *words,
                *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")),
            ],
            stdin=subprocess.PIPE,
            env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._place)},
            # Ctrl-C is not for it: it ends when this process closes its stdin, or ends.
            start_new_session=True,
        )

    def gateway(self) -> dict[str, str]:
        """The variables by which pyspark finds it, once it is up. Raises JobLost when it has ended."""
        while not self._place.exists():
            if self.process.poll() is not None:
                raise JobLost(
                    f"Java ended with exit code {self.process.returncode} before Spark had started",
                    hint="see above what Java said; a wrong setting of Spark, or too little memory, may be the cause",
                )
            time.sleep(_POLL_SECONDS)
        told = self._place.read_bytes()
        port, length = _SIZES.unpack_from(told)
        secret = told[_SIZES.size : _SIZES.size + length].decode()
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}

    def close(self) -> None:
        """End the process, without waiting for it."""
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        wait_aside(self.process.wait)


def spark_home() -> str:
    """The folder of Spark: SPARK_HOME, else that of the package pyspark. Raises ConfigError when there is none.

    Source: find_spark_home.py of pyspark, which looks into the folder above the working directory, too.
    """
    told = os.environ.get("SPARK_HOME")
    if told:
        return told
    package = pyspark_folder()
    for found in (package / "spark-distribution", package, package.parents[1]):
        if (found / "bin/spark-submit").is_file() and ((found / "jars").is_dir() or (found / "assembly").is_dir()):
            return str(found)
    raise ConfigError(
        f"the Python package pyspark in {package} has no Spark beside it, and SPARK_HOME is not set",
        hint="set SPARK_HOME to the folder of Spark, or pip install pyspark",
    )


def pyspark_folder() -> Path:
    """The folder of the Python package pyspark, which is not imported. Raises ConfigError when there is none."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise missing("pyspark", "spark", "Spark")
    return Path(found.origin).resolve().parent
