"""Fixtures: one JVM per release, the tables that each release made once and for all, and a copy for each test.

HUDI_RELEASES (names with blanks between) limits a run to these releases, so that runs can go side by side; tests that
need none belong to the run of the first.

HUDI_INTEROP_TABLES names a folder that keeps the unpacked tables between runs.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ..tiers import is_wanted, one_release_of_each
from .peer import Peer
from .pristine import ALL, NAMED, Pristine
from .recipes import VERSIONS

# Gives a copy of the table of a recipe, in the release of this test.
Tables = Callable[[str], Path]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All tests of a release after each other, so that no JVM starts twice, and only the releases they ask for.

    HUDI_RELEASES names the releases, HUDI_PART (1/2, 2/2) a part of their tests, both for runs side by side.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.interop)
    ours = [item for item in items if here in item.path.parents]
    kept = _kept([item for item in ours if _applies(item)])
    part, parts = map(int, os.environ.get("HUDI_PART", "1/1").split("/"))
    wanted = [item for item in kept if _is_of_this_run(item)][part - 1 :: parts]
    dropped = {*ours} - {*wanted}
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = sorted((item for item in items if item not in dropped), key=_release)


def _applies(item: pytest.Item) -> bool:
    """Whether the test has this case."""
    params = _params(item)
    releases, cases = item.get_closest_marker("releases"), item.get_closest_marker("cases")
    if params.get("version") in NAMED and releases is None:
        return False
    if releases is not None and params["version"] not in releases.args:
        return False
    return cases is None or cases.args[0](params["recipe"], params["version"])


def _kept(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The cases that HUDI_TESTS asks for. Of a case on several releases, or beside writers with several settings
    (columns of test_writer_meets_clustering), the quick run has one, drawn by name."""
    quick = one_release_of_each((item for item in items if not _is_marked_deep(item)), "version", "column")
    return [item for item in items if is_wanted(item, is_deep=item not in quick)]


def _is_marked_deep(item: pytest.Item) -> bool:
    params = _params(item)
    version = params.get("version")
    if version in NAMED:
        return True
    cases = {version, f"{version}-{params.get('recipe')}"}
    return any(not deep.args or not cases.isdisjoint(deep.args) for deep in item.iter_markers("deep"))


def _is_of_this_run(item: pytest.Item) -> bool:
    here = os.environ.get("HUDI_RELEASES", " ".join(ALL)).split()
    return _params(item).get("version", VERSIONS[0]) in here


def _params(item: pytest.Item) -> dict[str, str]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec else {}


def _release(item: pytest.Item) -> int:
    version = _params(item).get("version")
    return ALL.index(version) if version in ALL else -1


@pytest.fixture(scope="session", params=ALL)
def version(request: pytest.FixtureRequest) -> str:
    """A release of Apache Hudi."""
    found: str = request.param
    return found


@pytest.fixture(scope="session")
def peer(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """Real Hudi of this release."""
    started = Peer(version, tmp_path_factory.mktemp(f"peer-{version}") / "log", "--small-tables")
    yield started
    started.close()


@pytest.fixture(scope="session")
def known(version: str, tmp_path_factory: pytest.TempPathFactory) -> Pristine:
    """The tables of this release as real Hudi left them, and what it read of them: not to be changed."""
    kept = os.environ.get("HUDI_INTEROP_TABLES")
    if kept is None:
        return Pristine.unpack(version, tmp_path_factory.mktemp(f"made-{version}"))
    return Pristine.kept(version, Path(kept))


@pytest.fixture
def table(known: Pristine, tmp_path: Path) -> Tables:
    """A copy of the table of a recipe, for this test alone."""

    def copy(recipe: str) -> Path:
        path = tmp_path / recipe
        shutil.copytree(known.table(recipe), path)
        return path

    return copy
