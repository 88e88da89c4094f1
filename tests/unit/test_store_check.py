"""`validate --store`: each promise that a store breaks is seen, on storages into which the fault was put."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from hudi_services.cli.app import run
from hudi_services.errors import CheckFailed, ConfigError
from hudi_services.jobs.validate import validate
from hudi_services.options import resolve
from hudi_services.runs.report import CheckResult
from hudi_services.runs.request import ValidateRequest
from hudi_services.storage import FileInfo, StoreCapabilities
from hudi_services.stores.local import LocalStorage

from ..servers.started import ON_ATOMIC, Servers
from .tables import unpack

pytestmark = pytest.mark.threads

REQUEST = {"options": resolve([]), "store": True}


class NoCondition(LocalStorage):
    """Creates files that are there already: two creators both succeed, as with s3a's create(overwrite=false)."""

    def create(self, path: str, data: bytes) -> None:
        time.sleep(0.001)
        self.put(path, data)


class TornCreate(LocalStorage):
    """Leaves the first half of a file."""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data[: len(data) // 2])


class NoComparison(LocalStorage):
    """Replaces whatever is there."""

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        self.put(path, data)
        return True


class StaleReads(LocalStorage):
    """Reads what was there at first, of one file."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._known: dict[str, bytes] = {}

    def read(self, path: str, limit: int = 1 << 30) -> bytes:
        found = super().read(path, limit)
        return self._known.setdefault(path, found) if path.endswith("overwritten") else found


class StaleListing(LocalStorage):
    """Lists a file some time after it was written."""

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        files, folders = super().list_dir(path)
        return files[:-1], folders


class GhostListing(LocalStorage):
    """Still lists a file that was deleted."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._seen: dict[str, dict[str, FileInfo]] = {}

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        files, folders = super().list_dir(path)
        seen = self._seen.setdefault(path, {})
        seen |= {file.path: file for file in files}
        return list(seen.values()), folders


class OtherNames(LocalStorage):
    """Decodes names, as some gateways do."""

    def put(self, path: str, data: bytes) -> None:
        super().put(path.replace("%3A", "_"), data)


FAULTS = {
    NoCondition: "create if absent",
    TornCreate: "create if absent",
    NoComparison: "conditional replacement",
    StaleReads: "read after write",
    StaleListing: "list after write",
    GhostListing: "list after write",
    OtherNames: "names of partitions",
}


@pytest.mark.parametrize(("faulty", "promise"), FAULTS.items(), ids=[one.__name__ for one in FAULTS])
def test_a_broken_promise_is_seen(tmp_path: Path, faulty: Callable[[str], Any], promise: str) -> None:
    with pytest.raises(CheckFailed, match=promise):
        validate(ValidateRequest(base_path=str(tmp_path), **REQUEST), faulty(str(tmp_path)))
    assert not [*tmp_path.iterdir()]


def test_a_store_that_offers_no_conditions_says_so(tmp_path: Path) -> None:
    class Plain(LocalStorage):
        capabilities = StoreCapabilities(atomic_create=False, conditional_replace=False, renames=True)

    report = validate(ValidateRequest(base_path=str(tmp_path), **REQUEST), _unpicklable(Plain(str(tmp_path))))
    skipped = [one.name for one in report.checks if one.result is CheckResult.SKIPPED]
    assert skipped == ["create if absent", "conditional replacement"]
    assert report.reason is not None and all(name in report.reason for name in skipped)


def _unpicklable(storage: LocalStorage) -> LocalStorage:
    storage.__class__.__reduce__ = lambda self: (LocalStorage, (self.root,))  # type: ignore[method-assign]
    return storage


def test_a_table_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = unpack("1.2.0", tmp_path)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert run(["validate", "--store", "--base-path", str(path)]) == 0
    assert "one created it, each time" in " ".join(capsys.readouterr().out.split())
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_it_looks_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--apply"):
        validate(ValidateRequest(base_path=str(tmp_path), repair=True, **REQUEST))


@pytest.mark.parametrize("server", ON_ATOMIC)
def test_real_stores_keep_them(servers: Servers, server: str) -> None:
    storage = servers.bucket(server).open("check")
    report = validate(ValidateRequest(base_path=storage.root, **REQUEST), storage)
    assert {one.result for one in report.checks} == {CheckResult.PASSED}
    assert not storage.list_tree("")


def test_one_replaces_a_local_file(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    start = Barrier(4)

    def replace(number: int) -> list[int]:
        won = []
        for turn in range(100):
            start.wait(60)
            seen = storage.head("lock")
            assert seen is not None
            start.wait(60)
            if storage.replace("lock", b"%d of %d" % (turn, number), seen):
                won.append(turn)
        return won

    storage.put("lock", b"at first")
    with ThreadPoolExecutor(4) as pool:
        won = [turn for turns in pool.map(replace, range(4)) for turn in turns]
    assert sorted(won) == [*range(100)]
