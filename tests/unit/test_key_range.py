"""The range of record keys in a footer holds every key, by code point and as Java compares strings."""

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_services.base_files.bloom import SIMPLE, BloomFilter
from hudi_services.base_files.record_keys import MAX_KEY, MIN_KEY, RecordKeys
from hudi_services.codecs.text_order import java_order, lower_bound, upper_bound

# Where the two orders part, and both sides of it.
_CHARACTERS = "\0aé\ud7ff\ue000\uff71\ufffe\uffff\U00010000\U0001f600\U0010ffff"
KEYS = st.text(st.sampled_from(_CHARACTERS), max_size=5) | st.text(max_size=5)


def footer(*ranges: list[str], by_ends: bool) -> tuple[str, str]:
    """Of a file with these keys; `by_ends`: as copying collects them, which knows the ends of each row group first."""
    keys = RecordKeys(None)
    for values in ranges:
        if not (by_ends and keys.add_range(min(values), max(values))):
            keys.add(pa.array(values))
    found = keys.footer()
    return found[MIN_KEY], found[MAX_KEY]


@settings(max_examples=200)
@given(st.lists(st.lists(KEYS, min_size=1, max_size=6), min_size=1, max_size=4), st.booleans())
@example([["\uff71", "\U00020bb7", "\uffe5"]], True)
@example([["\uff71"], ["\U00020bb7"]], True)
@example([["a\uffff\U0001f600", "a\uffff\uffff"]], False)
@example([["a\ud7ff\U0001f600"]], False)
def test_no_reader_misses_a_key(ranges: list[list[str]], by_ends: bool) -> None:
    low, high = footer(*ranges, by_ends=by_ends)
    keys = [key for values in ranges for key in values]
    assert all(java_order(low) <= java_order(key) <= java_order(high) for key in keys)
    assert all(low <= key for key in keys)
    if upper_bound(max(keys)) is not None:
        assert all(key <= high for key in keys)


@given(st.lists(st.text(st.characters(max_codepoint=0xD7FF), max_size=5), min_size=1), st.booleans())
def test_the_range_is_exact_where_the_orders_agree(keys: list[str], by_ends: bool) -> None:
    assert footer(keys, by_ends=by_ends) == (min(keys), max(keys))


@settings(max_examples=300)
@given(KEYS, KEYS)
def test_bounds_hold_for_both_orders(bound: str, other: str) -> None:
    if bound <= other:
        low = lower_bound(bound)
        assert low <= other and java_order(low) <= java_order(other)
    if other <= bound and (high := upper_bound(bound)) is not None:
        assert other <= high and java_order(other) <= java_order(high)
        assert upper_bound(high) == high
    assert lower_bound(lower_bound(bound)) == lower_bound(bound)


def test_java_orders_by_utf_16_units() -> None:
    assert java_order("\U0001f600") < java_order("\ue000") < java_order("\uffff")
    assert "\U0001f600" > "\uffff"


def test_a_filter_that_needs_the_keys_is_not_content_with_their_range() -> None:
    keys = RecordKeys(BloomFilter.for_config(10, 0.01, 20, SIMPLE))
    assert not keys.add_range("a", "b")
    assert keys.footer().get(MIN_KEY) is None
