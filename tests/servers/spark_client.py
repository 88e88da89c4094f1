"""The machine from which applications are submitted to a cluster of Spark, and what the machines of a cluster know."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HOSTS = ("127.0.0.1", "127.0.0.2")
"""Two host names: Spark starts a second copy of a task on another host only."""


@dataclass
class SparkClient:
    """`home` is that of Spark, `folder` and `python` are those of the machine that submits to `master`."""

    home: Path
    master: str
    folder: Path
    python: Path
    environment: dict[str, str] = field(default_factory=dict)
    submitter: Path | None = None
    """What is called in place of spark-submit."""

    def submit(self, *words: object, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """spark-submit with these words."""
        known = machine(self.home, HOSTS[0], self.python.parent) | self.environment
        return subprocess.Popen(
            [str(self.submitter or self.home / "bin" / "spark-submit"), "--master", self.master, *map(str, words)],
            cwd=self.folder,
            env=known | {"PYSPARK_DRIVER_PYTHON": str(self.python)} | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def machine(home: Path, host: str, programs: Path | None) -> dict[str, str]:
    """The environment variables of a machine with this host name, whose `python3` is in the folder `programs`."""
    known = {name: os.environ[name] for name in ("JAVA_HOME", "HOME", "LANG", "TZ") if name in os.environ}
    path = os.environ["PATH"] if programs is None else f"{programs}:{os.environ['PATH']}"
    return {**known, "PATH": path, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
