"""The cases that a test with very many similar cases tries: all in the deep run, a share in the quick run.

Tests that do the same for several releases, or for several jobs, take another share each. So a third of the cases is
tried by one of them, and what often goes wrong, whatever the release, is found by the quick run, too.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

from ..tiers import DEEP
from .tables import RELEASES

T = TypeVar("T")

_NUMBERS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+|[0-9a-f]{16,}|[0-9]+")


def places(log: Sequence[str]) -> Sequence[int]:
    """Where a run with these writes (see FaultyStorage) may be killed; in the quick run, of like writes, which differ
    by their numbers, the first and the last."""
    return range(len(log)) if DEEP else ends(_NUMBERS.sub("#", write) for write in log)


def ends(names: Iterable[str]) -> list[int]:
    """Where each name is for the first and for the last time."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, name in enumerate(names):
        first.setdefault(name, number)
        last[name] = number
    return sorted({*first.values(), *last.values()})


def share(cases: Sequence[T], number: int, of: int) -> Sequence[T]:
    """Every third case of share `number` out of `of` shares; all cases in the deep run."""
    return cases if DEEP else cases[number % of :: 3 * of]


TWO_SHARES = [pytest.param("0.15.0", 0, id="0.15.0"), pytest.param("1.2.0", 1, id="1.2.0")]
THREE_SHARES = [pytest.param(release, number, id=release) for number, release in enumerate(RELEASES)]
"""Releases of Hudi, and the number of the share of each."""
