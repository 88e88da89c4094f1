import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.packing import pack


@pytest.mark.parametrize(
    ("items", "capacity", "bins"),
    [
        ([], 10, []),
        ([1, 2, 3], 10, [[1, 2, 3]]),
        ([6, 4, 1], 10, [[6, 4], [1]]),
        ([11, 1], 10, [[11], [1]]),
        ([0, 0, 10, 0], 10, [[0, 0, 10, 0]]),
        ([5, 6, 5], 10, [[5], [6], [5]]),
    ],
)
def test_bins(items: list[int], capacity: int, bins: list[list[int]]) -> None:
    assert pack(items, lambda size: size, capacity) == bins


@given(st.lists(st.integers(0, 100)), st.integers(1, 150))
def test_nothing_is_lost_and_no_bin_is_over_full(items: list[int], capacity: int) -> None:
    bins = pack(items, lambda size: size, capacity)
    assert [item for one in bins for item in one] == items
    assert all(one and (sum(one) <= capacity or len(one) == 1) for one in bins)
