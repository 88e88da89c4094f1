"""A process that is stopped in its critical section: what it saw before counts for nothing when it goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.clock import SystemClock, uptime
from hudi_services.commit.critical_section import critical_section
from hudi_services.commit.lease import LEASE_FOLDER
from hudi_services.commit.settings import TransactionSettings
from hudi_services.errors import ConflictError
from hudi_services.snapshot import open_snapshot
from hudi_services.storage import FileInfo
from hudi_services.stores.local import LocalStorage

from .rides import create


class Stopped(LocalStorage):
    """Local storage with which `stop` is called once, right after the listing of the leases with this number."""

    def __init__(self, path: Path, number: int, stop: Callable[[], None]) -> None:
        super().__init__(str(path))
        self._number = number
        self._stop = stop

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        found = super().list_dir(path)
        if path == LEASE_FOLDER:
            self._number -= 1
            if self._number == 0:
                self._stop()
        return found


def take_over(path: Path) -> None:
    """Another process takes the lease of the table, which has expired."""
    number = max(int(file.name.split(".")[1]) for file in (path / LEASE_FOLDER).glob("table.*.json"))
    (path / LEASE_FOLDER / f"table.{number + 1}.json").write_text("{}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create(tmp_path / "rides")
    return tmp_path / "rides"


def test_stopped_between_the_look_of_the_beginning_and_its_use(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look has no age but that of its request: what a store has answered is old when the process goes on."""
    asleep = [0.0]

    def stop() -> None:
        take_over(path)
        asleep[0] += 120

    monkeypatch.setattr("hudi_services.commit.critical_section.uptime", lambda: uptime() + asleep[0])
    # The lease is taken by the first listing, and the second one is the look.
    table = open_snapshot(Stopped(path, 2, stop), SystemClock())
    with critical_section(table, "test", TransactionSettings()) as current, pytest.raises(ConflictError, match="took"):
        current.check_held()
