"""Hudi's writers roll incomplete delta commits of the metadata table back: ours may go while we complete it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError
from hudi_services.jobs import clean, clustering
from hudi_services.options import resolve
from hudi_services.runs.request import CleanRequest, Mode
from hudi_services.storage import Storage
from hudi_services.stores.local import LocalStorage

from .repairs import both
from .tables import RELEASES, open_local, request, unpack

CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}


class RolledBack(LocalStorage):
    """Another writer deletes a file of the delta commit just when its completed file appears."""

    def __init__(self, path: Path, lost: str) -> None:
        super().__init__(str(path))
        self._metadata = path / ".hoodie/metadata"
        self._lost = lost
        self.is_done = False

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        name = path.rpartition("/")[2]
        if path.startswith(".hoodie/metadata/.hoodie/") and name.endswith(".deltacommit") and not self.is_done:
            self.is_done = True
            ts = name.partition(".")[0].partition("_")[0]
            found = self._metadata.rglob(self._lost.format(ts=ts))
            max(found, key=lambda file: file.stat().st_mtime_ns).unlink()


def clustered(path: Path, storage: Storage | None = None) -> None:
    clustering.execute(request(path, Mode.EXECUTE), storage, LocalEngine())


def cleaned(path: Path, storage: Storage | None = None) -> None:
    clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", QUICK | CLEAN)])), storage)


@pytest.mark.spread(4)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("service", [clustered, cleaned])
@pytest.mark.parametrize("lost", [".*.log.*", "{ts}.deltacommit.inflight"], ids=["log file", "inflight"])
def test_it_is_noticed_before_the_commit(release: str, service: Callable[..., None], lost: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    clustering.schedule(request(path, Mode.SCHEDULE))
    if service is cleaned:
        clustered(path)
    before = both(path)[1]
    storage = RolledBack(path, lost)
    known = open_local(path).timeline.completed_writes()
    with pytest.raises(ConflictError, match="another writer has rolled the delta commit"):
        service(path, storage)
    assert storage.is_done
    assert open_local(path).timeline.completed_writes() == known
    # The next run repairs what the writer left, and finishes.
    service(path)
    for rows in both(path):
        assert rows.equals(before)
