"""The servers by name, each started when a test first asks for it, and the marks of tests that need one of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from .azurite import azurite
from .bucket import Bucket
from .gcs import gcs
from .moto import moto
from .versitygw import versitygw

SERVERS: dict[str, Callable[[Path], AbstractContextManager[Bucket]]] = {
    "moto": moto,
    "versitygw": versitygw,
    "azurite": azurite,
    "gcs": gcs,
}
ATOMIC = ("versitygw", "azurite", "gcs")
"""Of those who create one key, or replace what they have seen, exactly one wins."""


class Servers:
    """A context that ends all that it has started; `new_folder` gives each an empty folder of its own."""

    def __init__(self, new_folder: Callable[[str], Path]) -> None:
        self._new_folder = new_folder
        self._stack = ExitStack()
        self._started: dict[str, Bucket] = {}

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def bucket(self, name: str) -> Bucket:
        """The bucket on this server."""
        if name not in self._started:
            self._started[name] = self._stack.enter_context(SERVERS[name](self._new_folder(name)))
        return self._started[name]


def deep_on(server: str) -> list[pytest.MarkDecorator]:
    """The marks of a deep test on this server."""
    return [pytest.mark.deep, pytest.mark.server(server)]


ON_ATOMIC = [pytest.param(server, marks=deep_on(server)) for server in ATOMIC]
"""The parameters of a test that runs on each of them."""
