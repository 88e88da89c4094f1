"""Tests on real clusters are deep: those of one kind of cluster are in one share (tests/tiers.py)."""

from pathlib import Path

import pytest

from ..tiers import is_wanted


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    ours = [item for item in items if here in item.path.parents]
    dropped = {item for item in ours if not is_wanted(item, is_deep=True)}
    config.hook.pytest_deselected(items=[*dropped])
    items[:] = [item for item in items if item not in dropped]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A share without a cluster, and the quick run, have no tests, and that is right."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
