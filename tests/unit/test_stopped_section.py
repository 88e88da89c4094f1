"""A process that is stopped in its critical section: what it saw before counts for nothing when it goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_services
from hudi_services.clock import SystemClock, uptime
from hudi_services.commit.critical_section import critical_section
from hudi_services.commit.lease import LEASE_FOLDER
from hudi_services.commit.settings import TransactionSettings
from hudi_services.errors import ConflictError
from hudi_services.jobs import clean, writing
from hudi_services.options import resolve
from hudi_services.runs.request import CleanRequest, WriteOperation, WriteRequest
from hudi_services.snapshot import open_snapshot
from hudi_services.storage import FileInfo
from hudi_services.stores.local import LocalStorage

from .request_scenarios import rows
from .rides import create
from .tables import open_local

NO_SERVICES = {"hoodie.table.services.enabled": "false"}
VERSIONS_1 = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


class Stopped(LocalStorage):
    """Local storage with which the process is stopped once, for two minutes: right after a listing of the leases, when
    `is_time` says so. Meanwhile another process takes the lease of the table, which has expired.
    """

    def __init__(self, path: Path, is_time: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(str(path))
        self._leases = path / LEASE_FOLDER
        self._is_time = is_time
        self.seconds = 0
        for module in ("commit.critical_section", "timeline.active"):
            monkeypatch.setattr(f"hudi_services.{module}.uptime", lambda: uptime() + self.seconds)

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        found = super().list_dir(path)
        if path == LEASE_FOLDER and not self.seconds and self._is_time():
            self._stop()
        return found

    def _stop(self) -> None:
        number = max(int(file.name.split(".")[1]) for file in self._leases.glob("table.*.json"))
        (self._leases / f"table.{number + 1}.json").write_text("{}")
        self.seconds = 120


class StoppedLast(Stopped):
    """As `Stopped`, but while the last looks before a commit are under way: the store has told of the leases, and not
    yet of the metadata table."""

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        return LocalStorage.list_dir(self, path)

    def list_few(self, path: str, most: int) -> list[FileInfo] | None:
        if not self.seconds and self._is_time():
            self._stop()
        return super().list_few(path, most)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create(tmp_path / "rides")
    return tmp_path / "rides"


def test_between_the_look_of_the_beginning_and_its_use(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look has no age but that of its request: what a store has answered is old when the process goes on."""
    table = open_snapshot(Stopped(path, lambda: any(path.glob(f"{LEASE_FOLDER}/*")), monkeypatch), SystemClock())
    with critical_section(table, "test", TransactionSettings()) as current, pytest.raises(ConflictError, match="took"):
        current.check_held()


def test_before_the_completed_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has taken the lease may be rolling the write back."""
    hudi_services.open(path, engine="local").bulk_insert(rows(range(4), 1), options=NO_SERVICES)

    def is_time() -> bool:
        metadata = open_local(path).metadata
        return metadata is not None and not metadata.data_timeline.at(metadata.timeline.instants[-1].ts)[0].is_completed

    storage = StoppedLast(path, is_time, monkeypatch)
    options = resolve([("test", NO_SERVICES)])
    request = WriteRequest(base_path=str(path), options=options, operation=WriteOperation.BULK_INSERT)
    before = open_local(path).timeline.completed_writes()
    with pytest.raises(ConflictError, match="took over"):
        writing.write(request, rows(range(4, 8), 1).to_reader, storage)
    assert storage.seconds and open_local(path).timeline.completed_writes() == before


def test_before_a_clean_removes_an_emptied_partition(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that has begun since may have found the partition, and made its metafile."""
    table = hudi_services.open(path, engine="local")
    table.bulk_insert(rows(range(4), 1), options=NO_SERVICES)
    table.delete_partitions(["2026-01-01"], options=NO_SERVICES)
    partition = path / "2026-01-01"
    storage = Stopped(path, lambda: not any(partition.glob("*.parquet")), monkeypatch)
    with pytest.raises(ConflictError, match="took over"):
        clean.clean(CleanRequest(base_path=str(path), options=resolve([("test", VERSIONS_1)])), storage)
    assert storage.seconds and [one.name for one in partition.iterdir() if one.suffix != ".crc"]
