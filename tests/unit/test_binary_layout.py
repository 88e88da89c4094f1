from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs.binary_layout import from_offsets, has_offsets, offsets_and_bytes, pieces

TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
SLICES = st.tuples(st.integers(0, 5), st.integers(0, 5))


@given(st.lists(st.text(max_size=5), max_size=12), st.sampled_from(TYPES), SLICES)
def test_the_bytes_of_slices(texts: list[str], kind: pa.DataType, cut: tuple[int, int]) -> None:
    encoded = [text.encode() for text in texts]
    kept = slice(cut[0], max(cut[0], len(texts) - cut[1]))
    array = pa.array(texts if "string" in str(kind) else encoded, kind)[kept]
    expected = encoded[kept]
    offsets, data = offsets_and_bytes(array)
    assert [bytes(data[a:b]) for a, b in pairwise(offsets)] == expected
    again = from_offsets(offsets, data)
    again.validate(full=True)
    assert again.to_pylist() == expected


def test_types_of_the_layout() -> None:
    assert all(map(has_offsets, TYPES))
    assert not any(
        map(has_offsets, (pa.binary(4), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.int64()))
    )


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_arrays_without_rows_or_bytes(kind: pa.DataType) -> None:
    for array in (pa.array([], kind), pa.array([None, None], kind), pa.array(["a"], kind)[1:]):
        offsets, _ = offsets_and_bytes(array)
        assert len(offsets) == len(array) + 1
        assert offsets[0] == offsets[-1]


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 12))
def test_pieces(lengths: list[int], limit: int) -> None:
    offsets, _ = offsets_and_bytes(pa.array([bytes(n) for n in [7, *lengths]], pa.binary())[1:])
    found = list(pieces(offsets, limit))
    assert [row for start, end in found for row in range(start, end)] == list(range(len(lengths)))
    for start, end in found:
        assert start < end
        assert end == start + 1 or sum(lengths[start:end]) <= limit
        assert end == len(lengths) or sum(lengths[start : end + 1]) > limit or end - start == limit
