"""Exactly one of several processes wins, on servers that promise it."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier

import pytest

from hudi_services.errors import AlreadyExists
from hudi_services.storage import Storage

from ..servers.started import ATOMIC, Servers, deep_on

pytestmark = pytest.mark.threads

RACERS = 8
KEYS = 300
"""Keys that are created, and rounds in which one is replaced."""
_LONGEST_WAIT = 60.0

_together: Barrier


def _begin(together: Barrier) -> None:
    global _together
    _together = together


def _content(key: int, number: int) -> bytes:
    """What a process writes: at some keys all write the same."""
    return b"%d" % number * 1000 if key % 3 else b"" if key % 2 else b"the same"


def _create(storage: Storage, number: int) -> list[int]:
    """The keys that this process created."""
    won = []
    for key in range(KEYS):
        _together.wait(_LONGEST_WAIT)
        try:
            storage.create(f"p/{key}", _content(key, number))
            won.append(key)
        except AlreadyExists:
            pass
    return won


def _replace(storage: Storage, number: int) -> list[int]:
    """The rounds in which this process replaced what all had seen."""
    won = []
    for turn in range(KEYS):
        _together.wait(_LONGEST_WAIT)
        seen = storage.head("lock")
        assert seen is not None
        _together.wait(_LONGEST_WAIT)
        # New bytes each time: the tags of S3 are of the content.
        if storage.replace("lock", b"%d of %d" % (turn, number), seen):
            won.append(turn)
    return won


Race = Callable[[Callable[[Storage, int], list[int]], Storage], list[list[int]]]


@pytest.fixture(scope="module")
def race() -> Iterator[Race]:
    """Runs a function in all processes at the same time."""
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(RACERS)
    with ProcessPoolExecutor(RACERS, context, _begin, (together,)) as pool:
        yield lambda run, storage: list(pool.map(run, [storage] * RACERS, range(RACERS)))


@pytest.fixture(params=[pytest.param(server, marks=deep_on(server)) for server in ATOMIC])
def storage(request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Storage:
    return servers.bucket(request.param).open(tmp_path_factory.mktemp("race").name)


def test_one_creates_a_file(storage: Storage, race: Race) -> None:
    won = race(_create, storage)
    assert Counter(key for keys in won for key in keys) == dict.fromkeys(range(KEYS), 1)
    for number, keys in enumerate(won):
        assert all(storage.read(f"p/{key}") == _content(key, number) for key in keys)


def test_one_replaces_what_all_have_seen(storage: Storage, race: Race) -> None:
    storage.put("lock", b"expired")
    won = race(_replace, storage)
    assert Counter(turn for turns in won for turn in turns) == dict.fromkeys(range(KEYS), 1)
    last = next(number for number, turns in enumerate(won) if KEYS - 1 in turns)
    assert storage.read("lock") == b"%d of %d" % (KEYS - 1, last)
