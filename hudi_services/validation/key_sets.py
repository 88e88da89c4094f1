"""Comparison of two sets of index entries, the actual and the expected entries, without either set whole in memory.

Each key belongs to a slot. First the number and the hashes of the entries are summed by slot, on both sides. Then only
the entries of slots that differ are compared in memory, a limited number at a time.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.row_hash import mix, row_hashes

_P = TypeVar("_P")
_T = TypeVar("_T")
_Ints = npt.NDArray[np.int32]
_Slots = npt.NDArray[np.int64]
_SLOT_BITS = 16
_PLACE = np.uint64(0x9E3779B97F4A7C15)
_BUCKET = np.uint64(0xC2B2AE3D27D4EB4F)
_HELD_AT_ONCE = 2_000_000
"""Entries of differing slots that are in memory at a time, of both sides."""
_MOST_MISMATCHES = 100_000


@dataclass(frozen=True, slots=True)
class PlacedKeys:
    """Some entries of one side: binary keys, the shard where each is or should be, and the number of its place."""

    keys: pa.Array
    shards: _Ints
    places: _Ints

    def filter(self, mask: npt.NDArray[np.bool_]) -> "PlacedKeys":
        return PlacedKeys(self.keys.filter(pa.array(mask)), self.shards[mask], self.places[mask])


Part = Callable[[], Iterator[PlacedKeys]]
"""A part of one side, such as one file; may be read several times, in any thread."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A key of a shard with the place where it should be and the place where it is; None for no place."""

    key: str
    shard: int
    should: int | None
    stored: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`entries`: the number of entries in the index. `is_whole`: whether `mismatches` has all mismatches."""

    mismatches: list[Mismatch]
    entries: int
    is_whole: bool = True


def compare(should: Sequence[Part], stored_parts: Sequence[Part], progress: Callable[[int, int], None]) -> Comparison:
    """All mismatches, up to a hundred thousand."""
    expected, stored = _both_sums(should, stored_parts, progress)
    differing = np.flatnonzero((expected.rows != stored.rows) | (expected.hashes != stored.hashes))
    mismatches: list[Mismatch] = []
    for slots in _rounds(differing, expected.rows + stored.rows):
        wanted = np.zeros(1 << _SLOT_BITS, bool)
        wanted[slots] = True
        sides = [_collect(parts, partial(_in_slots, wanted)) for parts in (should, stored_parts)]
        mismatches += islice(_mismatches(*sides), _MOST_MISMATCHES + 1 - len(mismatches))
        if len(mismatches) > _MOST_MISMATCHES:
            return Comparison(mismatches[:_MOST_MISMATCHES], int(stored.rows.sum()), is_whole=False)
    return Comparison(mismatches, int(stored.rows.sum()))


def compare_keys(should: Sequence[Part], stored: Sequence[Part], keys: pa.Array) -> Comparison:
    """The mismatches of these binary keys."""

    def wanted(entries: PlacedKeys) -> npt.NDArray[np.bool_]:
        return np.asarray(pc.is_in(entries.keys, keys).to_numpy(zero_copy_only=False), np.bool_)

    sides = [_collect(parts, wanted) for parts in (should, stored)]
    return Comparison(list(_mismatches(*sides)), len(sides[1].keys))


def _hashes(entries: PlacedKeys) -> "tuple[_Slots, npt.NDArray[np.uint64]]":
    """The slot and the hash of each entry."""
    parts = list(row_hashes(pa.table({"key": entries.keys})))
    keys = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    slots = (keys >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
    where = (entries.places.astype(np.uint64) + np.uint64(1)) * _PLACE + entries.shards.astype(np.uint64) * _BUCKET
    return slots, mix(keys + where)


def _in_slots(slots: npt.NDArray[np.bool_], entries: PlacedKeys) -> npt.NDArray[np.bool_]:
    return slots[_hashes(entries)[0]]


class _Sums:
    """By slot: the number of entries, and the sum of their hashes modulo 2**64. `add` may be called in any thread."""

    def __init__(self) -> None:
        self.rows, self.hashes = np.zeros(1 << _SLOT_BITS, np.int64), np.zeros(1 << _SLOT_BITS, np.uint64)
        self._lock = threading.Lock()

    def add(self, part: Part) -> None:
        for entries in part():
            slots, hashes = _hashes(entries)
            with self._lock:
                np.add.at(self.rows, slots, 1)
                np.add.at(self.hashes, slots, hashes)


def _both_sums(
    should: Sequence[Part], stored_parts: Sequence[Part], progress: Callable[[int, int], None]
) -> tuple[_Sums, _Sums]:
    expected, stored = _Sums(), _Sums()
    # The largest parts first: a file group of an index has more entries than a file.
    parts = [(stored, part) for part in stored_parts] + [(expected, part) for part in should]
    done, lock = 0, threading.Lock()

    def add(sums_and_part: tuple[_Sums, Part]) -> None:
        nonlocal done
        sums, part = sums_and_part
        sums.add(part)
        with lock:
            done += 1
            progress(done, len(parts))

    _in_threads(add, parts)
    return expected, stored


def _rounds(slots: _Slots, rows: _Slots) -> Iterator[_Slots]:
    """The slots in runs, each with about `_HELD_AT_ONCE` entries or fewer."""
    if not len(slots):
        return
    number = np.cumsum(rows[slots]) // _HELD_AT_ONCE
    yield from np.split(slots, np.flatnonzero(np.diff(number)) + 1)


def _collect(parts: Sequence[Part], chosen: Callable[[PlacedKeys], npt.NDArray[np.bool_]]) -> PlacedKeys:
    def some(part: Part) -> list[PlacedKeys]:
        return [one.filter(chosen(one)) for one in part()]

    found = [one for of_part in _in_threads(some, parts) for one in of_part]
    keys = pa.chunked_array([one.keys for one in found], pa.binary()).combine_chunks()
    shards, places = ([getattr(one, name) for one in found] for name in ("shards", "places"))
    empty = np.zeros(0, np.int32)
    return PlacedKeys(keys, np.concatenate([empty, *shards]), np.concatenate([empty, *places]))


def _mismatches(should: PlacedKeys, entries: PlacedKeys) -> Iterator[Mismatch]:
    """The mismatches, in no order. A key that should be in several places may be in any of them."""
    keys = pa.chunked_array([should.keys, entries.keys]).combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy().astype(np.int64)
    shards = np.concatenate([should.shards, entries.shards]).astype(np.int64)
    # One number for a key in its shard: a partitioned index may have it in several.
    codes = codes * (int(shards.max(initial=0)) + 1) + shards
    true, stored = codes[: len(should.keys)], codes[len(should.keys) :]
    places = int(max(should.places.max(initial=0), entries.places.max(initial=0))) + 1
    right = np.isin(stored * places + entries.places, true * places + should.places)
    order = np.argsort(true, kind="stable")
    ordered = true[order]
    # The last of equal keys, as in the bootstrap.
    at = np.searchsorted(ordered, stored, "right") - 1
    is_known = np.isin(stored, true)
    for row in np.flatnonzero(~right).tolist():
        place = int(should.places[order[at[row]]]) if is_known[row] else None
        yield Mismatch(_name(entries, row), int(entries.shards[row]), place, int(entries.places[row]))
    is_last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.zeros(0, bool)
    for row in order[is_last & ~np.isin(ordered, stored)].tolist():
        yield Mismatch(_name(should, row), int(should.shards[row]), int(should.places[row]), None)


def _name(entries: PlacedKeys, row: int) -> str:
    return str(entries.keys[row].as_py().decode(errors="replace"))


def _in_threads(function: Callable[[_P], _T], parts: Iterable[_P]) -> list[_T]:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(function, parts))
