import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs import hashing


@given(st.text(max_size=200))
def test_xxh64_agrees_with_the_library(text: str) -> None:
    expected = xxhash.xxh64(text.encode(), seed=0xFFFFFFFFDABADABA).intdigest()
    assert hashing._xxh64(text.encode(), hashing._SEED) == expected


@pytest.mark.parametrize(("text", "key"), [("part", "+WGrmgkN3io="), (".", "FXThHwelITM="), ("p0", "Z+KNMU8CLlo=")])
def test_keys_that_hudi_wrote(text: str, key: str) -> None:
    assert hashing.xxh64_key(text) == key


def test_md5_key() -> None:
    assert hashing.md5_key("") == "1B2M2Y8AsgTpgAmY7PhCfg=="


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("😀", 1772899), ("\ud800", 0xD800)],
)
def test_java_string_hash(text: str, value: int) -> None:
    assert hashing.java_string_hash(text) == value


def test_file_group_index() -> None:
    assert hashing.file_group_index("anything", 1) == 0
    assert hashing.file_group_index("hello", 10) == 2
    # |MIN_VALUE| is negative in Java; the result still is not.
    assert hashing.file_group_index("polygenelubricants", 10) == 8


@given(st.text(max_size=30), st.integers(1, 10000))
def test_file_group_index_is_in_range(key: str, count: int) -> None:
    assert 0 <= hashing.file_group_index(key, count) < count
