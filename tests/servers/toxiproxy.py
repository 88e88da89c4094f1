"""Toxiproxy: a TCP proxy before a server, which delays what the server sends, or breaks connections."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from .process import accepts, free_port, running
from .tools import kept, run

_MODULE, _VERSION = "github.com/Shopify/toxiproxy/v2/cmd/server", "v2.12.0"
_NAME = "store"


class Toxiproxy:
    """The proxy at `endpoint`. Toxics are named by their types, of which there is one at a time."""

    def __init__(self, control: str, endpoint: str) -> None:
        self._control = control
        self.endpoint = endpoint

    def add(self, kind: str, toxicity: float = 1.0, **attributes: int) -> None:
        """Add a toxic to what the server sends; `toxicity` is the share of connections that have it."""
        toxic = {"name": kind, "type": kind, "stream": "downstream", "toxicity": toxicity, "attributes": attributes}
        self._ask("POST", f"/proxies/{_NAME}/toxics", toxic)

    def remove(self, kind: str) -> None:
        self._ask("DELETE", f"/proxies/{_NAME}/toxics/{kind}")

    def make(self, upstream: str) -> None:
        place = {"name": _NAME, "listen": urlsplit(self.endpoint).netloc, "upstream": upstream, "enabled": True}
        self._ask("POST", "/proxies", place)

    def _ask(self, method: str, path: str, body: object = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._control}{path}", data, method=method)
        with urllib.request.urlopen(request) as answer:
            answer.read()


@contextmanager
def toxiproxy(server: str, folder: Path) -> Iterator[Toxiproxy]:
    """A proxy before the server at the endpoint `server`; its log goes to `folder`."""
    port = free_port()
    with running([_program(), "-port", port], folder / "toxiproxy.log", partial(accepts, port)):
        place = urlsplit(server)
        proxy = Toxiproxy(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}{place.path}")
        proxy.make(place.netloc)
        yield proxy


def _program() -> Path:
    def install(folder: Path) -> None:
        run(["go", "install", f"{_MODULE}@{_VERSION}"], {"GOBIN": str(folder)})

    return kept(f"toxiproxy-{_VERSION}", install) / "server"
