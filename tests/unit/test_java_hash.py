import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs import java_hash
from hudi_services.codecs.hashing import file_group_index
from hudi_services.codecs.java_hash import file_group_indexes
from hudi_services.errors import CheckFailed

# Its hash is Integer.MIN_VALUE, as that of every text with zeros before it is.
LEAST = "polygenelubricants"
KEYS = (
    st.text(max_size=20) | st.text("abc-019", max_size=60) | st.sampled_from(["", LEAST, "\0" + LEAST, "😀", "\uffff"])
)
COUNTS = st.sampled_from([1, 2, 10, 997, 10000, 2**31 - 1]) | st.integers(1, 10000)
TYPES = st.sampled_from([pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])


@given(st.lists(KEYS, max_size=30), COUNTS, TYPES, st.integers(1, 40), st.integers(0, 9))
def test_whole_arrays_as_key_by_key(keys: list[str], count: int, kind: pa.DataType, chunk: int, cut: int) -> None:
    array = pa.array([key.encode() for key in keys], pa.binary()).cast(kind)
    expected = [file_group_index(key, count) for key in keys]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_hash, "_CHUNK_BYTES", chunk)
        assert file_group_indexes(array, count).tolist() == expected
        assert file_group_indexes(array[cut : cut + 9], count).tolist() == expected[cut : cut + 9]
        pieces = pa.chunked_array([array[:cut], array[cut:]])
        assert file_group_indexes(pieces, count).tolist() == expected


def test_more_than_a_chunk() -> None:
    keys = [f"key-{i}" for i in range(60_000)] + ["ä" * 300_000, "x" * 300_000, *(f"ключ-{i}" for i in range(30_000))]
    found = file_group_indexes(pa.array(keys), 10)
    assert found.dtype == np.int32
    assert found.tolist() == [file_group_index(key, 10) for key in keys]


def test_nothing() -> None:
    assert file_group_indexes(pa.array([], pa.string()), 10).tolist() == []
    assert file_group_indexes(pa.chunked_array([], pa.string()), 10).tolist() == []


def test_nulls_are_no_keys() -> None:
    with pytest.raises(CheckFailed, match="1 record keys are null"):
        file_group_indexes(pa.array(["a", None]), 10)


@pytest.mark.parametrize("broken", [[b"a\xff"], [b"\xe4"], [b"\xc3", b"\xa4"], [b"\xed\xa0\x80"]])
def test_what_is_not_utf8(broken: list[bytes]) -> None:
    with pytest.raises(CheckFailed, match="not UTF-8"):
        file_group_indexes(pa.array([b"good", *broken, b"good"]), 10)
