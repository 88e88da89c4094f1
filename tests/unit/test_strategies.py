from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.clustering.strategies import STRATEGIES, PlanContext, PlanStrategy, Range, plan_strategy
from hudi_services.errors import ConfigError
from hudi_services.model import BaseFile, FileSlice

A, B = (5, "20260101000000000"), (9, "20260102000000000")
C, D = (7, "20260103000000000"), (1, "20260104000000000")
FILES = {"a": A, "b": B, "c": C, "d": D}
"""Size and instant by file id."""


def a_slice(file_id: str, size: int, instant: str) -> FileSlice:
    name = f"{file_id}_0-0-0_{instant}.parquet"
    return FileSlice("p", file_id, instant, BaseFile("p", name, file_id, "0-0-0", instant, size))


SLICES = [a_slice(file_id, *facts) for file_id, facts in FILES.items()]


def groups(name: str, ranges: dict[str, dict[str, Range]] | None = None, **facts: Any) -> list[str]:
    """The file ids of each group."""

    def find(slices: Sequence[FileSlice], column: str) -> list[Range]:
        return [(ranges or {})[column].get(one.file_id) for one in slices]

    context = PlanContext(**{"max_group": 1000, "ranges": find, **facts})
    return ["".join(one.file_id for one in group) for group in plan_strategy(name, context).groups(SLICES)]


@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [
        ("size", {}, ["bcad"]),
        ("size", {"max_group": 14}, ["b", "cad"]),
        ("size", {"sort_by": ("INSTANT_TIME",)}, ["abcd"]),
        ("size", {"sort_by": ("INSTANT_TIME", "SIZE")}, ["abcd"]),
        ("commit_time", {}, ["abcd"]),
        ("commit_time", {"max_group": 14}, ["ab", "cd"]),
        ("commit_time", {"after": "20260102000000000"}, ["cd"]),
        ("single_file", {}, ["b", "c", "a", "d"]),
    ],
)
def test_by_what_the_names_say(name: str, facts: dict[str, Any], expected: list[str]) -> None:
    assert groups(name, **facts) == expected


def test_neighbours_in_the_key_space() -> None:
    ranges = {"_hoodie_record_key": {"a": ("m", "p"), "b": ("a", "c"), "c": ("n", "z")}}
    assert groups("key_range", ranges) == ["bac"]
    assert groups("key_range", ranges, max_group=14) == ["ba", "c"]


def test_what_overlaps() -> None:
    by_x: dict[str, Range] = {"a": (1, 5), "b": (4, 9), "c": (20, 30), "d": (25, 26)}
    assert groups("overlap", {"x": by_x}, columns=("x",)) == ["ab", "cd"]
    # Boxes overlap in all columns, or not at all.
    by_y: dict[str, Range] = {"a": (0, 1), "b": (2, 3), "c": (0, 9), "d": (1, 2)}
    assert groups("overlap", {"x": by_x, "y": by_y}, columns=("x", "y")) == ["cd"]
    # What is unknown overlaps what is unknown.
    assert groups("overlap", {"x": {"a": (1, 5), "b": (6, 9)}}, columns=("x",)) == ["cd"]
    with pytest.raises(ConfigError, match="needs columns"):
        groups("overlap", {})


def test_an_order_by_chance_is_the_same_again() -> None:
    orders = {tuple(groups("random", seed=seed)) for seed in range(20)}
    assert len(orders) > 5
    assert groups("random", seed=3) == groups("random", seed=3)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_no_two_overlapping_files_are_parted(boxes: list[tuple[int, int, int, int]]) -> None:
    slices = [a_slice(f"f{i}", 1, "1") for i in range(len(boxes))]
    by_column = {
        "x": [(low, low + width) for low, _, width, _ in boxes],
        "y": [(low, low + height) for _, low, _, height in boxes],
    }

    def find(some: Sequence[FileSlice], column: str) -> list[tuple[int, int]]:
        return [by_column[column][int(one.file_id[1:])] for one in some]

    context = PlanContext(1000, find, columns=("x", "y"))
    found = {
        one.file_id: n for n, group in enumerate(plan_strategy("overlap", context).groups(slices)) for one in group
    }
    for i in range(len(boxes)):
        for j in range(i):
            if all(c[i][0] <= c[j][1] and c[j][0] <= c[i][1] for c in by_column.values()):
                assert found[f"f{i}"] == found[f"f{j}"]


class Mine(PlanStrategy):
    """Two by two."""

    def groups(self, slices: Sequence[FileSlice]) -> list[Sequence[FileSlice]]:
        size = int(self.context.options["my.size"])
        return [slices[at : at + size] for at in range(0, len(slices), size)]


def test_a_class_of_the_operators_own() -> None:
    assert groups(f"{__name__}:Mine", options={"my.size": "2"}) == ["ab", "cd"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no.such.module:Mine", "the plan strategy no.such.module:Mine cannot be loaded"),
        (f"{__name__}:NoSuch", "cannot be loaded"),
        (f"{__name__}:groups", "is no subclass of hudi_services.clustering.strategies.PlanStrategy"),
    ],
)
def test_what_is_no_strategy(name: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        plan_strategy(name, PlanContext(1, lambda slices, column: []))


def test_every_name_of_the_option_is_there() -> None:
    from hudi_services.options import clustering_keys as keys

    assert {keys.PLAN_STRATEGY_CLASS.parse(name) for name in STRATEGIES} == STRATEGIES.keys()
