"""What a store promises, shown by experiments: contenders race for objects, and look at what the others have written.

Every change of a table rests on these promises (docs/stores). The experiments are in a folder of their own below the
root, which is deleted afterwards; the table itself is not touched.
"""

import pickle
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Barrier, BrokenBarrierError

from ..errors import AlreadyExists
from ..storage import FileInfo, Storage

CONTENDERS = 4
ROUNDS = 12
"""Objects that are created, and turns in which one is replaced: by all contenders at the same time."""
_LONGEST_WAIT = 10.0
_NAMES = ("day=2026-01-01", "day=2026-01-01 10%3A00", "a b+c", "é", "x=__HIVE_DEFAULT_PARTITION__")
"""Names that Hudi gives to partitions."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What came out of one experiment. `kept` is None for a promise that the store's client does not make."""

    name: str
    kept: bool | None
    detail: str


def show_promises(storage: Storage) -> Iterator[Promise]:
    """The promises of the store of `storage`, one after the other. Raises the StorageError family."""
    # As on executors, each contender has connections of its own.
    contenders = [pickle.loads(pickle.dumps(storage)) for _ in range(CONTENDERS)]
    folder = f".hudi_services_check_{secrets.token_hex(8)}"
    try:
        with _together(contenders) as race:
            yield _creates(storage, race, folder)
            yield _replaces(storage, race, folder)
        yield _reads_after_writes(storage, contenders, folder)
        yield _lists_after_writes(storage, contenders, folder)
        yield _keeps_names(storage, folder)
        yield _answers_in(storage, folder)
    finally:
        storage.delete_tree(folder)
        storage.remove_empty_dirs(folder)


_Race = Callable[[Callable[[int, Storage], bool]], list[int]]
"""Lets all contenders begin at the same time; gives the numbers of those that won."""


@contextmanager
def _together(contenders: Sequence[Storage]) -> Iterator[_Race]:
    start = Barrier(len(contenders))

    def begin(number: int, turn: Callable[[int, Storage], bool]) -> bool:
        # On a busy machine a thread may begin late: then the race is less close, and its outcome counts all the same.
        with suppress(BrokenBarrierError):
            start.wait(_LONGEST_WAIT)
        return turn(number, contenders[number])

    with ThreadPoolExecutor(len(contenders)) as pool:

        def race(turn: Callable[[int, Storage], bool]) -> list[int]:
            begun = [pool.submit(begin, number, turn) for number in range(len(contenders))]
            return [number for number, one in enumerate(begun) if one.result()]

        yield race


def _content(number: int, turn: int) -> bytes:
    return b"contender %d, turn %d\n" % (number, turn) * 100


def _create(path: str, at: int, number: int, own: Storage) -> bool:
    try:
        own.create(path, _content(number, at))
    except AlreadyExists:
        return False
    return True


def _replace(path: str, at: int, seen: FileInfo, number: int, own: Storage) -> bool:
    return own.replace(path, _content(number, at), seen)


def _creates(storage: Storage, race: _Race, folder: str) -> Promise:
    name = "create if absent"
    if not storage.capabilities.atomic_create:
        return Promise(name, None, "the client of this store does not offer it: every change of a table is refused")

    for at in range(ROUNDS):
        path = f"{folder}/create/{at}"
        won = race(partial(_create, path, at))
        if wrong := _wrong(storage, path, won, at, "created"):
            return Promise(name, False, wrong)
    return Promise(name, True, f"{CONTENDERS} creators of each of {ROUNDS} files: one created it, each time")


def _replaces(storage: Storage, race: _Race, folder: str) -> Promise:
    name = "conditional replacement"
    if not storage.capabilities.conditional_replace:
        return Promise(name, None, "the client of this store does not offer it: the storage-based lock is refused")
    path = f"{folder}/replaced"
    storage.put(path, b"at first")
    for at in range(ROUNDS):
        seen = storage.head(path)
        if seen is None:
            return Promise(name, False, "a file that was written is not there")
        won = race(partial(_replace, path, at, seen))
        if wrong := _wrong(storage, path, won, at, "replaced"):
            return Promise(name, False, wrong)
    return Promise(name, True, f"{CONTENDERS} processes replaced a file that all had seen: one did, {ROUNDS} times")


def _wrong(storage: Storage, path: str, won: Sequence[int], at: int, what: str) -> str:
    """What is wrong with the file that was raced for; "" when one contender won, and the file is its own."""
    if len(won) != 1:
        return f"{len(won)} of {CONTENDERS} contenders believe that they {what} the same file"
    if storage.read(path) != _content(won[0], at):
        return f"one contender {what} a file, and it has not the bytes of this contender"
    return ""


def _reads_after_writes(storage: Storage, contenders: Sequence[Storage], folder: str) -> Promise:
    path = f"{folder}/overwritten"
    for at in range(ROUNDS):
        storage.put(path, _content(at, at))
        other = contenders[at % CONTENDERS]
        found, size = other.read(path), other.head(path)
        if found != _content(at, at) or size is None or size.size != len(found):
            return Promise("read after write", False, "an overwritten file was read as it was before")
    return Promise("read after write", True, f"{ROUNDS} overwritten files were read at once by another connection")


def _lists_after_writes(storage: Storage, contenders: Sequence[Storage], folder: str) -> Promise:
    name = "list after write"
    listed = f"{folder}/listed"
    for at in range(ROUNDS):
        storage.put(f"{listed}/{at}", b"x")
        if f"{listed}/{at}" not in _paths(contenders[at % CONTENDERS], listed):
            return Promise(name, False, "a file that was written was not listed")
    for at in range(ROUNDS):
        storage.delete(f"{listed}/{at}")
        if f"{listed}/{at}" in _paths(contenders[at % CONTENDERS], listed):
            return Promise(name, False, "a file that was deleted was still listed")
    return Promise(name, True, f"{ROUNDS} new and {ROUNDS} deleted files, each by the listing right afterwards")


def _keeps_names(storage: Storage, folder: str) -> Promise:
    for one in _NAMES:
        storage.put(f"{folder}/names/{one}/file", b"x")
    found = {path.split("/")[-2] for path in _paths(storage, f"{folder}/names", tree=True)}
    changed = [one for one in _NAMES if one not in found]
    if changed:
        return Promise("names of partitions", False, f"a folder {changed[0]!r} was listed by another name")
    return Promise("names of partitions", True, f"{len(_NAMES)} names as Hudi gives them, listed as they were written")


def _paths(storage: Storage, folder: str, *, tree: bool = False) -> set[str]:
    return {file.path for file in (storage.list_tree(folder) if tree else storage.list_dir(folder)[0])}


def _answers_in(storage: Storage, folder: str) -> Promise:
    """How long one request takes: no promise, and what a run's seconds are made of."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        storage.head(f"{folder}/overwritten")
        seconds.append(time.perf_counter() - began)
    middle, most = statistics.median(seconds) * 1000, max(seconds) * 1000
    return Promise("answers", True, f"a request for a file took {middle:.1f} ms (median), at most {most:.1f} ms")
