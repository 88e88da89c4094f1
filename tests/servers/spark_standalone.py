"""A standalone cluster of Spark: a master and workers, which stand for machines without a shared file system.

Each worker has a host name, a folder and a Python environment of its own. The source tree, and the environment of the
tests, are not on their import paths.
"""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from .process import free_port, kill, running
from .python_environment import environment
from .spark_client import HOSTS, SparkClient, machine


@dataclass
class Standalone(SparkClient):
    """A cluster, and the machine from which applications are submitted in client mode."""

    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def lose(self, number: int) -> None:
        """A worker's machine dies, with its executors."""
        kill(self.workers[number])


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
