"""Exactly one of several processes wins, on servers that promise it."""

import multiprocessing
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier

import pytest

from hudi_services.errors import AlreadyExists
from hudi_services.storage import Storage

from ..servers.breaking_proxy import LOST, LOST_AS_500, breaking_proxy
from ..servers.bucket import Bucket
from ..servers.started import ON_ATOMIC, Servers

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


def _create(storage: Storage, keys: int, number: int) -> list[int]:
    """The keys that this process created."""
    won = []
    for key in range(keys):
        _together.wait(_LONGEST_WAIT)
        try:
            storage.create(f"p/{key}", _content(key, number))
            won.append(key)
        except AlreadyExists:
            pass
    return won


def _replace(storage: Storage, turns: int, number: int) -> list[int]:
    """The rounds in which this process replaced what all had seen."""
    won = []
    for turn in range(turns):
        _together.wait(_LONGEST_WAIT)
        seen = storage.head("lock")
        assert seen is not None
        _together.wait(_LONGEST_WAIT)
        # New bytes each time: the tags of S3 are of the content.
        if storage.replace("lock", b"%d of %d" % (turn, number), seen):
            won.append(turn)
    return won


Racer = Callable[[Storage, int, int], list[int]]
Race = Callable[[Racer, Storage, int], list[list[int]]]


@pytest.fixture(scope="module")
def race() -> Iterator[Race]:
    """Runs a racer in all processes at the same time, for so many keys or rounds."""
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(RACERS)
    with ProcessPoolExecutor(RACERS, context, _begin, (together,)) as pool:
        yield lambda racer, storage, count: list(pool.map(partial(racer, storage, count), range(RACERS)))


@dataclass(frozen=True)
class Course:
    """A storage to race on, and how many keys or rounds: fewer where answers get lost, which takes time."""

    storage: Storage
    count: int


@pytest.fixture(params=ON_ATOMIC)
def bucket(request: pytest.FixtureRequest, servers: Servers) -> Bucket:
    return servers.bucket(request.param)


@pytest.fixture(params=["all answers", "losing answers"])
def course(request: pytest.FixtureRequest, bucket: Bucket) -> Iterator[Course]:
    name = uuid.uuid4().hex
    if request.param == "all answers":
        yield Course(bucket.open(name), KEYS)
        return
    with breaking_proxy(bucket.endpoint) as proxy:
        proxy.rule = lambda asked: [LOST, LOST_AS_500][asked.number % 2] if asked.number % 7 == 0 else None
        yield Course(bucket.behind(proxy.endpoint).open(name), KEYS // 6)


def test_one_creates_a_file(course: Course, race: Race) -> None:
    won = race(_create, course.storage, course.count)
    assert Counter(key for keys in won for key in keys) == dict.fromkeys(range(course.count), 1)
    for number, keys in enumerate(won):
        assert all(course.storage.read(f"p/{key}") == _content(key, number) for key in keys)


def test_one_replaces_what_all_have_seen(course: Course, race: Race) -> None:
    course.storage.put("lock", b"expired")
    won = race(_replace, course.storage, course.count)
    assert Counter(turn for turns in won for turn in turns) == dict.fromkeys(range(course.count), 1)
    last = next(number for number, turns in enumerate(won) if course.count - 1 in turns)
    assert course.storage.read("lock") == b"%d of %d" % (course.count - 1, last)
