"""What a test with very many like cases tries: all of them in the deep run, a share in the quick one.

Tests that do the same for several releases, or for several jobs, take another share each. So every case is tried by
one of them, and what goes wrong whatever the release is found by the quick run, too.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

from .tables import RELEASES

T = TypeVar("T")

DEEP = bool(os.environ.get("HUDI_DEEP"))


def share(cases: Sequence[T], number: int, of: int) -> Sequence[T]:
    """Those of the share with this number, of so many; all in the deep run."""
    return cases if DEEP else cases[number % of :: of]


TWO_SHARES = [pytest.param("0.15.0", 0, id="0.15.0"), pytest.param("1.2.0", 1, id="1.2.0")]
THREE_SHARES = [pytest.param(release, number, id=release) for number, release in enumerate(RELEASES)]
"""Releases of Hudi, and the number of the share of each."""
