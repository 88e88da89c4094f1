import functools
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import settings

from hudi_services.engine import LocalEngine
from hudi_services.file_cache import shared_cache
from hudi_services.jobs import clustering
from hudi_services.runs import config_files
from hudi_services.runs.request import ClusteringRequest

from ..interop.pristine import Pristine
from ..servers.started import Servers
from ..tiers import DEEP, is_wanted, one_release_of_each

# Gives a copy of the table of a release and a recipe of tests/interop, as real Hudi left it, at this path.
ByHudi = Callable[[str, str, Path], Path]

# The machine is shared and noisy: a slow example is no failure.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")

# Typer builds all commands anew for each command line, of which a process has one, and these tests have thousands.
typer.main.get_command = functools.cache(typer.main.get_command)

_MEMORY = "/dev/shm"
_ROOM = 4 << 30


def _in_memory() -> bool:
    """Whether a folder in memory is there with room for the tables of all workers; they need a tenth of it."""
    return os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM


# A few hundred thousand small files come and go.
if _in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests that HUDI_TESTS asks for; sweeps also with the deep ones."""
    here = Path(__file__).parent
    ours = [item for item in items if here in item.path.parents]
    drawn = _drawn([item for item in ours if item.get_closest_marker("deep") is None])
    dropped = set()
    for item in ours:
        is_sweep = item.get_closest_marker("sweep") is not None and item in drawn
        is_deep = item not in drawn
        if not is_wanted(item, is_deep=is_deep) and not (is_sweep and DEEP):
            dropped.add(item)
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]


def _drawn(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The cases of the quick run, drawn by name, the same each time: of a case on several releases of Hudi, or table
    versions, one, and of a test that is `spread` one of so many cases. Sweeps divide what they do between the releases
    themselves."""
    drawn, others = set(), []
    for item in items:
        spread = item.get_closest_marker("spread")
        if spread is None and item.get_closest_marker("sweep") is not None:
            drawn.add(item)
        elif spread is None or zlib.crc32(item.name.encode()) % spread.args[0] == 0:
            others.append(item)
    return drawn | one_release_of_each(others, "version")


@pytest.fixture(autouse=True)
def nothing_read_yet() -> None:
    """Each test begins as a process does."""
    shared_cache().forget()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Servers of this process."""
    with Servers(tmp_path_factory.mktemp) as started:
        yield started


@pytest.fixture(scope="session")
def by_hudi(tmp_path_factory: pytest.TempPathFactory) -> ByHudi:
    """Each table is unpacked once, which takes longer than to copy it."""

    @functools.cache
    def unpacked(release: str, recipe: str) -> Path:
        return Pristine.unpack(release, tmp_path_factory.mktemp(f"by-hudi-{release}"), recipe).table(recipe)

    def copy(release: str, recipe: str, path: Path) -> Path:
        return Path(shutil.copytree(unpacked(release, recipe), path))

    return copy


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """`execute` of the command line on the local engine: these tests start no JVM."""
    original = clustering.execute

    def local(wanted: ClusteringRequest, storage: None = None, engine: None = None) -> object:
        return original(wanted, storage, LocalEngine())

    monkeypatch.setattr(clustering, "execute", local)


@pytest.fixture(autouse=True)
def without_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given to a pool of threads is done at once: to start them takes longer than to read a small file.

    Tests with the marker `threads` have them, as have all processes that tests start.
    """
    if request.node.get_closest_marker("threads") is not None:
        return

    def submit(pool: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*args, **more))
        except BaseException as error:  # as the pool does: Killed, too
            done.set_exception(error)
        return done

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)


@pytest.fixture
def no_conf_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The conf files of Hudi that this machine has, by its environment, do not count."""
    monkeypatch.setattr(config_files, "default_files", lambda environment: [])
