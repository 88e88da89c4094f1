"""Prometheus, its push gateway, its node exporter with the textfile collector, and promtool, as Debian has them."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from .process import accepts, free_port, running
from .tools import debian_program

_CONFIGURATION = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - {{job_name: gateway, honor_labels: true, static_configs: [{{targets: ['127.0.0.1:{gateway}']}}]}}
  - {{job_name: node, static_configs: [{{targets: ['127.0.0.1:{node}']}}]}}
"""


@contextmanager
def push_gateway(folder: Path) -> Iterator[int]:
    """The port of a push gateway."""
    port = free_port()
    program = debian_program("prometheus-pushgateway", "prometheus-pushgateway")
    command = [program, f"--web.listen-address=127.0.0.1:{port}"]
    with running(command, folder / "gateway.log", partial(accepts, port)):
        yield port


@contextmanager
def node_exporter(folder: Path, text_files: Path) -> Iterator[int]:
    """The port of a node exporter that reads the text files, and nothing else."""
    port = free_port()
    command = [
        debian_program("prometheus-node-exporter", "prometheus-node-exporter"),
        f"--web.listen-address=127.0.0.1:{port}",
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={text_files}",
    ]
    with running(command, folder / "node.log", partial(accepts, port)):
        yield port


class Prometheus:
    def __init__(self, port: int) -> None:
        self._port = port

    def query(self, text: str) -> list[dict[str, Any]]:
        """The series that a query has now, each with its labels (`metric`) and its `value`."""
        url = f"http://127.0.0.1:{self._port}/api/v1/query?{urlencode({'query': text})}"
        with urlopen(url, timeout=10) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return list(found["data"]["result"])

    def await_scrapes(self) -> None:
        """Until both have been read, and once more."""
        end = time.monotonic() + 30
        while len(self.query("min_over_time(up[3s]) == 1 and count_over_time(up[10s]) > 1")) < 2:
            assert time.monotonic() < end, self.query("up")
            time.sleep(0.3)


@contextmanager
def prometheus(folder: Path, gateway: int, node: int) -> Iterator[Prometheus]:
    """A server that reads the gateway and the node exporter each second."""
    configuration, port = folder / "prometheus.yml", free_port()
    configuration.write_text(_CONFIGURATION.format(gateway=gateway, node=node))
    command = [
        debian_program("prometheus", "prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(command, folder / "prometheus.log", partial(accepts, port)):
        yield Prometheus(port)


def lint(text: str) -> str:
    """What `promtool check metrics` says of a text; "" where nothing is wrong."""
    promtool = debian_program("prometheus", "promtool")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""
