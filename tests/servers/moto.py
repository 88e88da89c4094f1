"""S3 as moto serves it: in Python and at once there, for the quick tests.

Its conditional puts are not atomic: two writers of one key may both win. Nothing that rests on one winner is tested
on it.
"""

import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from .bucket import Bucket
from .process import free_port, running
from .s3 import options_at


@contextmanager
def moto(folder: Path) -> Iterator[Bucket]:
    """A server with the bucket `lake`; its log goes to `folder`."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, folder / "log", partial(_put, f"{endpoint}/lake")):
        yield Bucket("s3://lake", endpoint, options_at)


def _put(url: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, data=b"", method="PUT")) as answer:
        assert answer.status == 200
