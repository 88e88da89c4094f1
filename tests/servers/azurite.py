"""Azure Blob Storage as Azurite serves it."""

import base64
import hashlib
import hmac
import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from wsgiref.handlers import format_date_time

from hudi_services.stores.options import Value

from .bucket import Bucket
from .process import accepts, free_port, running
from .tools import node_program

_VERSION = "3.35.0"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that Azurite's documentation gives; they are the same everywhere."""


@contextmanager
def azurite(folder: Path) -> Iterator[Bucket]:
    """A server with the container `lake`; its files and its log are in `folder`."""
    port = free_port()
    place = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", folder / "files"]
    flags = ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    command = [node_program("azurite", _VERSION, "azurite-blob"), *place, *flags]
    with running(command, folder / "log", partial(accepts, port)):
        _make_container(port, "lake")
        yield Bucket("az://lake", f"http://127.0.0.1:{port}/{_ACCOUNT}", _options_at)


def _options_at(endpoint: str) -> dict[str, Value]:
    return {"account_name": _ACCOUNT, "account_key": _KEY, "endpoint": endpoint, "allow_http": True}


def _make_container(port: int, name: str) -> None:
    """A request that obstore cannot make, signed with the key of the account."""
    headers = {"x-ms-date": format_date_time(time.time()), "x-ms-version": "2021-08-06"}
    signed = "\n".join(
        [
            "PUT",
            *[""] * 11,
            *(f"{header}:{value}" for header, value in headers.items()),
            f"/{_ACCOUNT}/{_ACCOUNT}/{name}",
            "restype:container",
        ]
    )
    digest = hmac.digest(base64.b64decode(_KEY), signed.encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}"
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("PUT", f"/{_ACCOUNT}/{name}?restype=container", headers=headers)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    if answer.status != 201:
        raise RuntimeError(f"Azurite makes no container: {answer.status} {said[:500]!r}")
