"""S3 as moto serves it on this machine, with conditional puts and listings."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hudi_services.stores import open_storage
from hudi_services.stores.options import StorageOptions


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """The endpoint of a server with the bucket `lake`; its log goes to `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "log").open("wb")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=log, stderr=log)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                _put(f"{endpoint}/lake")
                break
            except (urllib.error.URLError, ConnectionError):
                assert server.poll() is None
                time.sleep(0.1)
        yield endpoint
    finally:
        server.kill()
        server.wait()
        log.close()


def upload(path: Path, url: str, options: StorageOptions | None = None) -> None:
    storage = open_storage(url, options)
    for file in path.rglob("*"):
        if file.is_file():
            storage.create(str(file.relative_to(path)), file.read_bytes())


def _put(url: str, data: bytes = b"") -> None:
    with urllib.request.urlopen(urllib.request.Request(url, data=data, method="PUT")) as answer:
        assert answer.status == 200
