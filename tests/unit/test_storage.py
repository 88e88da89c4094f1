"""Local storage where it differs from a plain folder."""

import errno
import os
from pathlib import Path

import pytest

from hudi_services.errors import StorageError
from hudi_services.storage import ObjectStorage, Storage
from hudi_services.table.partitions import StorageLister


def test_what_a_killed_writer_left_is_deleted_with_the_file(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.parquet#1", "a.parquet#2", ".a.parquet.crc", "b.parquet#1"):
        (tmp_path / name).write_bytes(b"x")
    storage = ObjectStorage(str(tmp_path))
    storage.delete_output("a.parquet")
    storage.delete_output("nowhere/a.parquet")
    assert os.listdir(tmp_path) == ["b.parquet#1"]


def test_a_folder_that_cannot_be_looked_at_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = ObjectStorage(str(tmp_path))
    assert storage.list_dir("nowhere") == ([], [])
    assert storage.list_tree("nowhere") == []

    def stale(path: str) -> os.stat_result:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(os, "lstat", stale)
    for ask in (storage.list_dir, storage.list_tree):
        with pytest.raises(StorageError, match="Stale file handle"):
            ask("p")


def test_partitions_are_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("a=1/b=1", "a=1/b=2", "a=2/b=1", "c", ".hoodie"):
        (tmp_path / folder).mkdir(parents=True)
        if folder[0] == "a":
            (tmp_path / folder / ".hoodie_partition_metadata").write_bytes(b"")
            (tmp_path / folder / "f.parquet").write_bytes(b"1234")
    storage = ObjectStorage(str(tmp_path))
    asked: list[str] = []
    original = storage.list_dir
    monkeypatch.setattr(storage, "list_dir", lambda path: (asked.append(path), original(path))[1])
    lister = StorageLister(storage)
    assert lister.partitions() == ["a=1/b=1", "a=1/b=2", "a=2/b=1"]
    assert all(lister.files(p)["f.parquet"] == 4 for p in ("a=1/b=1", "a=2/b=1"))
    assert sorted(asked) == ["", "a=1", "a=1/b=1", "a=1/b=2", "a=2", "a=2/b=1", "c"]


def test_only_what_was_seen_is_replaced(tmp_path: Path) -> None:
    replaces(ObjectStorage(str(tmp_path)))


def replaces(storage: Storage) -> None:
    """A lock that expired is taken over by one of those who saw it."""
    storage.create("lock", b"expired")
    seen = storage.head("lock")
    assert seen is not None and seen.tag
    assert storage.replace("lock", b"first", seen)
    assert not storage.replace("lock", b"second", seen)
    assert storage.read("lock") == b"first"
    mine = storage.head("lock")
    storage.delete("lock")
    assert mine is not None and not storage.replace("lock", b"again", mine)
    assert storage.head("lock") is None
