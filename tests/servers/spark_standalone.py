"""A standalone cluster of Spark: a master and workers, which stand for machines without a shared file system.

Each worker has a host name, a folder and a Python environment of its own. The source tree, and the environment of the
tests, are not on their import paths.
"""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from .process import free_port, kill, running
from .python_environment import environment

HOSTS = ("127.0.0.1", "127.0.0.2")
"""Two host names: Spark starts a second copy of a task on another host only."""


@dataclass(slots=True)
class Standalone:
    """A cluster, and the machine from which applications are submitted; `home` is that of Spark."""

    home: Path
    url: str
    folder: Path
    python: Path
    """The Python of the machine that submits."""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def submit(self, *words: object, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """spark-submit in client mode with these words, in the folder of the machine that submits."""
        return subprocess.Popen(
            [str(self.home / "bin" / "spark-submit"), "--master", self.url, *map(str, words)],
            cwd=self.folder,
            env=machine(self.home, HOSTS[0], self.python.parent)
            | {"PYSPARK_DRIVER_PYTHON": str(self.python)}
            | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def lose(self, number: int) -> None:
        """A worker's machine dies, with its executors."""
        kill(self.workers[number])


def machine(home: Path, host: str, programs: Path | None) -> dict[str, str]:
    """The environment variables of a machine with this host name, whose `python3` is in the folder `programs`."""
    known = {name: os.environ[name] for name in ("JAVA_HOME", "HOME", "LANG", "TZ") if name in os.environ}
    path = os.environ["PATH"] if programs is None else f"{programs}:{os.environ['PATH']}"
    return {**known, "PATH": path, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}


@contextmanager
def standalone(
    home: Path, folder: Path, *, cores: int = 1, memory: str = "900m", has_packages: bool = True
) -> Iterator[Standalone]:
    """A cluster with two workers of so many cores; without `has_packages` their Python has none."""
    for name in ("client", "master", "worker-0", "worker-1"):
        (folder / name).mkdir()
    port, web = free_port(), free_port()
    url = f"spark://{HOSTS[0]}:{port}"
    client = environment(folder / "client" / "python")
    cluster = Standalone(home, url, folder / "client", client)
    with ExitStack() as stack:
        place = ["--host", HOSTS[0], "--port", port, "--webui-port", web]
        master = [home / "bin" / "spark-class", "org.apache.spark.deploy.master.Master", *place]
        ready = partial(_has_workers, web, 0)
        stack.enter_context(running(master, folder / "master" / "log", ready, machine(home, HOSTS[0], None)))
        for number, host in enumerate(HOSTS):
            own = folder / f"worker-{number}"
            programs = environment(own / "python").parent if has_packages else None
            size = ["--host", host, "--cores", cores, "--memory", memory, "--webui-port", free_port()]
            command = [home / "bin" / "spark-class", "org.apache.spark.deploy.worker.Worker", *size, "-d", own, url]
            ready = partial(_has_workers, web, number + 1)
            variables = machine(home, host, programs)
            cluster.workers.append(stack.enter_context(running(command, own / "log", ready, variables)))
        yield cluster


def _has_workers(web: int, count: int) -> None:
    """Raises OSError until the master has so many workers that are alive."""
    with urllib.request.urlopen(f"http://{HOSTS[0]}:{web}/json/", timeout=5) as answer:
        state = json.load(answer)
    alive = [one for one in state["workers"] if one["state"] == "ALIVE"]
    if state["status"] != "ALIVE" or len(alive) < count:
        raise OSError(f"the master is {state['status']} and has {len(alive)} workers")
