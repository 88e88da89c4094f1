import os
from pathlib import Path

import pytest
from hypothesis import settings

from hudi_services.engine import LocalEngine
from hudi_services.file_cache import shared_cache
from hudi_services.jobs import clustering
from hudi_services.jobs.request import ClusteringRequest

# The machine is shared and noisy: a slow example is no failure.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "deep: only with HUDI_DEEP=1 (make test-deep)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With HUDI_DEEP=1 the deep tests, without it all others."""
    here, deep = Path(__file__).parent, bool(os.environ.get("HUDI_DEEP"))
    dropped = [item for item in items if here in item.path.parents and deep != bool(item.get_closest_marker("deep"))]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]


@pytest.fixture(autouse=True)
def nothing_read_yet() -> None:
    """Each test begins as a process does."""
    shared_cache().forget()


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """`execute` of the command line on the local engine: these tests start no JVM."""
    original = clustering.execute

    def local(wanted: ClusteringRequest, storage: None = None, engine: None = None) -> object:
        return original(wanted, storage, LocalEngine())

    monkeypatch.setattr(clustering, "execute", local)
