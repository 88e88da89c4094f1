"""Whatever a file of a table contains: errors of the family, no hang, no loss, and a 0 only with the right result.

A failure says how to try its case alone. HUDI_FUZZ="SEED CASES" draws others: so many, of each table.
"""

import os
from collections.abc import Iterator

import pytest

from .fuzzing.runner import Runner
from .fuzzing.tables import NAMES

_SEED, _CASES = 3, 2
"""42 in all, and 2,100 in the deep run."""
_DEEP_SEED, _DEEP_CASES = map(int, os.environ.get("HUDI_FUZZ", "1000 100").split())


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    started = Runner(tmp_path_factory.mktemp("fuzz"))
    yield started
    started.close()


def try_cases(runner: Runner, name: str, seed: int, cases: int) -> None:
    found = [one for number in range(cases) for one in runner.run(name, seed, number)]
    assert not found, "\n".join(found)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_damaged_files(name: str, runner: Runner) -> None:
    try_cases(runner, name, _SEED, _CASES)


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES)
def test_many_damaged_files(name: str, runner: Runner) -> None:
    try_cases(runner, name, _DEEP_SEED, _DEEP_CASES)
