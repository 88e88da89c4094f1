import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.base_files.key_sort import sort_keys

# Few letters, and pieces that are longer than a word: many keys begin alike for long.
ALIKE = st.lists(st.sampled_from([b"\0", b"a", b"b", b"\xff", b"0123456789abcdef", b"0123456789abcdee"]), max_size=6)
KEYS = st.binary(max_size=12) | ALIKE.map(b"".join)


@pytest.mark.thorough
@settings(max_examples=300)
@given(st.lists(KEYS, max_size=40), st.booleans(), st.integers(0, 3))
def test_keys_are_sorted_by_unsigned_bytes_and_equal_ones_stay(keys: list[bytes], wide: bool, cut: int) -> None:
    array = pa.array([b"before"] * cut + keys, pa.large_binary() if wide else pa.binary())[cut:]
    assert sort_keys(array).to_pylist() == sorted(range(len(keys)), key=lambda i: keys[i])


@given(st.lists(st.text(max_size=12), max_size=40), st.sampled_from([pa.string(), pa.large_string()]))
def test_texts_are_sorted_as_utf8(keys: list[str], kind: pa.DataType) -> None:
    assert sort_keys(pa.array(keys, kind)).to_pylist() == sorted(range(len(keys)), key=lambda i: keys[i].encode())


@pytest.mark.parametrize("prefix", ["", "region-", "a prefix that is much longer than what the rounds take of keys-"])
def test_many_keys(prefix: str) -> None:
    draw = random.Random(5)
    keys = [f"{prefix * draw.randrange(2)}{draw.randrange(30_000)}" for _ in range(20_000)]
    assert sort_keys(pa.array(keys)).to_pylist() == sorted(range(len(keys)), key=keys.__getitem__)
