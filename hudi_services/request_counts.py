"""How many requests this process has made of stores, by kind: what the report tells of a run.

Storages count what they ask for. A listing counts each page of it, and a file that is uploaded in parts each request.
What an object store's client asks again by itself is not seen here, and does not count.
"""

import threading
from collections import Counter
from enum import Enum

from .request_pace import wait_for_turn

PAGE = 1_000
"""Files that stores list in one request."""


class Asked(str, Enum):
    """A kind of request."""

    GET = "get"
    HEAD = "head"
    LIST = "list"
    PUT = "put"
    CONDITIONAL_PUT = "conditional put"
    """A create only where there is nothing, or a replacement only of what was seen."""
    DELETE = "delete"
    COPY = "copy"
    RENAME = "rename"
    RETRY = "retry"
    """A request that was made again here because the one before it failed; it counts by its own kind, too."""


_lock = threading.Lock()
_here: Counter[str] = Counter()
_in_tasks: Counter[str] = Counter()


def count(kind: Asked, requests: int = 1) -> None:
    """Note that this process makes so many requests, when it may make them; any thread may."""
    with _lock:
        _here[kind.value] += requests
    if kind is not Asked.RETRY:
        wait_for_turn(requests)


def count_pages(files: int, counted: int = 0) -> None:
    """Note the requests of a listing that gave so many files, but for those that are counted already."""
    count(Asked.LIST, max(1, -(-files // PAGE)) - counted)


def count_upload(size: int, part: int) -> None:
    """Note the requests that write `size` bytes: one, or one for each part of the object, its begin and its end."""
    count(Asked.PUT, 1 if size < part else 2 + -(-size // part))


def add_of_tasks(requests: "Counter[str]") -> None:
    """Note what tasks in other processes have asked for."""
    with _lock:
        _in_tasks.update(requests)


def requests_so_far() -> "Counter[str]":
    """What this process has asked for, by the values of `Asked`."""
    with _lock:
        return Counter(_here)


class RequestsOfRun:
    """What is asked for from now on, by this process and by tasks in other ones.

    Runs at the same time in one process each have the requests of all of them.
    """

    def __init__(self) -> None:
        with _lock:
            self._here, self._in_tasks = Counter(_here), Counter(_in_tasks)

    def so_far(self) -> dict[str, dict[str, int]]:
        """By who has asked (`driver`, `tasks`) and by kind, in the order of `Asked`."""
        with _lock:
            driver, tasks = _here - self._here, _in_tasks - self._in_tasks
        return {
            who: {kind.value: asked[kind.value] for kind in Asked if asked[kind.value]}
            for who, asked in (("driver", driver), ("tasks", tasks))
        }
