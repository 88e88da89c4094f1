"""The client of an object store, as obstore has it: how long it waits, and how often it asks again.

A stall is no byte for a while, and no slow total: large objects on slow links take as long as they take. The client
counts from the last byte that came, and while a request is sent none comes: so the more a request may send, the longer
it waits. Pauses before further tries grow, and differ at random between the clients of a busy store.
"""

import functools
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

from obstore import exceptions as obx
from obstore.store import from_url

from ..request_counts import Asked, count
from ..urls import scheme_of
from .options import CLIENT_OPTIONS, StorageOptions, Value

STALL_SECONDS = 10.0
"""No answer, or no further byte of it, for so long: the request is given up, and made again."""
_SLOWEST = 256 << 10
"""Bytes in a second of the slowest link on which everything works."""
_NO_LIMIT = "24 hours"
_TRIES = 12
_SECONDS = 60.0
"""No try begins later than this after the first one."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 8.0
_RETRIES = {
    "max_retries": _TRIES - 1,
    "retry_timeout": timedelta(seconds=_SECONDS),
    # Each pause is drawn between the first one and five times the one before it: the middle one is 1.8 times as long.
    # With the client's own base of 2 pauses do not grow, and eleven are over after three seconds.
    "backoff": {
        "init_backoff": timedelta(seconds=_FIRST_PAUSE),
        "max_backoff": timedelta(seconds=_LONGEST_PAUSE),
        "base": 5,
    },
}
_ONCE = {"max_retries": 0, "retry_timeout": timedelta(0)}
_ENVIRONMENT = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
"""How the names of a store's variables begin, by the scheme that obstore opens."""
_MAY_PASS = re.compile(r"HTTP error|status code: (5\d\d|408|429)")
"""What the client says of requests that another try may mend, and that may have been carried out all the same."""
_T = TypeVar("_T")


def may_pass(error: obx.GenericError) -> bool:
    """Whether another try may help; what was asked for may have been done all the same."""
    return _MAY_PASS.search(str(error)) is not None


def is_cut_off(error: obx.GenericError) -> bool:
    """Whether an answer broke off in its middle: the client makes a listing again before its answer, and not then."""
    return "response body error" in str(error)


def pauses() -> Iterator[None]:
    """Waits before each further try, a longer time each; ends when there are to be no more of them."""
    began = time.monotonic()
    for number in range(_TRIES - 1):
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**number)
        if time.monotonic() - began > _SECONDS:
            return
        time.sleep(random.uniform(longest / 2, longest))
        yield


def tried(kind: Asked, ask: Callable[[], _T], may_help: Callable[[obx.GenericError], bool] = may_pass) -> _T:
    """What `ask` gives, which makes one request; it is asked again while that may help, whether or not it was done."""
    count(kind)
    further = pauses()
    while True:
        try:
            return ask()
        except obx.GenericError as error:
            if not may_help(error) or next(further, further) is further:
                raise
        count(kind)
        count(Asked.RETRY)


def client(url: str, options: StorageOptions | None, sent: int = 0, *, retries: bool = True) -> Any:
    """obstore's store at `url`, for requests that have up to `sent` bytes in their bodies.

    Without `retries` it sends each request once.
    """
    scheme = scheme_of(url)
    if scheme not in _ENVIRONMENT:
        return _in_memory(url)
    # A power of two, so that there are few clients, each with its own connections.
    longer = 1 << int(1 + sent / (STALL_SECONDS * _SLOWEST)).bit_length() - 1
    return _client(url, options, STALL_SECONDS * longer, retries=retries)


@functools.lru_cache(maxsize=256)
def _client(url: str, options: StorageOptions | None, stall: float, *, retries: bool) -> Any:
    given: Any = {"read_timeout": f"{1000 * stall:.0f} ms", "timeout": _NO_LIMIT}
    given |= _of_environment(_ENVIRONMENT[scheme_of(url)])
    config: Any = None
    if options is not None:
        given |= options.client
        config = options.config
    how: Any = _RETRIES if retries else _ONCE
    return from_url(url, config=config, client_options=given, retry_config=how)


@functools.lru_cache(maxsize=64)
def _in_memory(url: str) -> Any:
    """A store in the memory of this process: it makes no requests."""
    return from_url(url)


def _of_environment(prefix: str) -> Iterator[tuple[str, Value]]:
    """The options of the HTTP client that the environment gives: obstore forgets them when it is given others."""
    for name in CLIENT_OPTIONS:
        for variable in (f"{prefix}_{name.upper()}", f"{prefix.lower()}_{name}"):
            if variable in os.environ:
                yield name, os.environ[variable]
