"""Comparing sets of index entries: what differs is found exactly, in as many parts and rounds as it takes."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.validation import key_sets
from hudi_services.validation.key_sets import Comparison, Mismatch, Part, PlacedKeys, compare, compare_keys

Entry = tuple[str, int, int]
"""Key, shard, place."""

KEYS = st.text("abü", max_size=3)
ENTRIES = st.lists(st.tuples(KEYS, st.integers(0, 2), st.integers(0, 3)), max_size=12)
INDEX = st.dictionaries(st.tuples(KEYS, st.integers(0, 2)), st.integers(0, 3), max_size=12)


def parts(entries: Sequence[Entry], count: int) -> list[Part]:
    def some(number: int) -> Iterator[PlacedKeys]:
        # Two batches, one of which may be empty.
        own = entries[number::count]
        for batch in (own[:3], own[3:]):
            keys = pa.array([key.encode() for key, *_ in batch], pa.binary())
            shards, places = (np.array([entry[at] for entry in batch], np.int32) for at in (1, 2))
            yield PlacedKeys(keys, shards, places)

    return [partial(some, number) for number in range(count)]


def silent(done: int, total: int) -> None:
    assert 0 < done <= total


def expected(should: Sequence[Entry], index: dict[tuple[str, int], int]) -> set[tuple[str, int, bool, int | None]]:
    places: dict[tuple[str, int], set[int]] = {}
    for key, shard, place in should:
        places.setdefault((key, shard), set()).add(place)
    wrong = {(*at, at in places, place) for at, place in index.items() if place not in places.get(at, ())}
    return wrong | {(*at, True, None) for at in places.keys() - index.keys()}


def told(found: Comparison, should: Sequence[Entry]) -> set[tuple[str, int, bool, int | None]]:
    for one in found.mismatches:
        assert one.should is None or (one.key, one.shard, one.should) in should
    assert len(set(found.mismatches)) == len(found.mismatches)
    return {(one.key, one.shard, one.should is not None, one.stored) for one in found.mismatches}


@settings(max_examples=150)
@given(ENTRIES, INDEX, st.integers(1, 3))
def test_what_differs_is_found(should: list[Entry], index: dict[tuple[str, int], int], count: int) -> None:
    entries = [(*at, place) for at, place in index.items()]
    found = compare(parts(should, count), parts(entries, count), silent)
    assert told(found, should) == expected(should, index)
    assert (found.entries, found.is_whole) == (len(index), True)
    keys = sorted({key for key, *_ in should if key})[:3]
    again = compare_keys(
        parts(should, count), parts(entries, count), pa.array([key.encode() for key in keys], pa.binary())
    )
    assert told(again, should) == {one for one in expected(should, index) if one[0] in keys}


def test_little_is_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    should = [(f"key {i}", i % 3, i % 5) for i in range(500)]
    index = {(key, shard): place if int(key[4:]) % 50 else 7 for key, shard, place in should}
    entries = [(*at, place) for at, place in index.items()]
    monkeypatch.setattr(key_sets, "_HELD_AT_ONCE", 3)
    found = compare(parts(should, 2), parts(entries, 2), silent)
    assert told(found, should) == expected(should, index)
    assert len(found.mismatches) == 10

    monkeypatch.setattr(key_sets, "_MOST_MISMATCHES", 4)
    cut = compare(parts(should, 2), parts(entries, 2), silent)
    assert not cut.is_whole and len(cut.mismatches) == 4
    assert told(cut, should) <= expected(should, index)


def test_the_same_key_in_two_places() -> None:
    should = [("a", 0, 1), ("a", 0, 2), ("b", 0, 1), ("b", 0, 1)]
    assert compare(parts(should, 2), parts([("a", 0, 1), ("b", 0, 1)], 1), silent).mismatches == []
    wrong = compare(parts(should, 1), parts([("a", 0, 3)], 1), silent).mismatches
    assert wrong == [Mismatch("a", 0, 2, 3), Mismatch("b", 0, 1, None)]
    # In a shard where nobody looks for it, an entry is as good as none.
    other = compare(parts([("a", 0, 1)], 1), parts([("a", 1, 1)], 1), silent).mismatches
    assert set(other) == {Mismatch("a", 0, 1, None), Mismatch("a", 1, None, 1)}
