"""Local storage where it differs from a plain folder."""

import errno
import os
import resource
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.errors import CorruptFile, NotFound, StorageError, SymbolicLink
from hudi_services.paths import is_below
from hudi_services.stores import open_storage
from hudi_services.table.partitions import StorageLister

from .test_store_contract import ON_FILES, ON_FOLDERS, everything


def test_what_a_killed_writer_left_is_deleted_with_the_file(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.parquet#1", "a.parquet#2", ".a.parquet.crc", "b.parquet#1"):
        (tmp_path / name).write_bytes(b"x")
    storage = open_storage(str(tmp_path))
    storage.delete_output("a.parquet")
    storage.delete_output("nowhere/a.parquet")
    assert os.listdir(tmp_path) == ["b.parquet#1"]


def test_a_folder_that_cannot_be_looked_at_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(str(tmp_path))
    assert storage.list_dir("nowhere") == ([], [])
    assert storage.list_tree("nowhere") == []

    def stale(path: str, **where: object) -> os.stat_result:
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
    storage = open_storage(str(tmp_path))
    asked: list[str] = []
    original = storage.list_dir
    monkeypatch.setattr(storage, "list_dir", lambda path: (asked.append(path), original(path))[1])
    lister = StorageLister(storage)
    assert lister.partitions() == ["a=1/b=1", "a=1/b=2", "a=2/b=1"]
    assert all(lister.files(p)["f.parquet"] == 4 for p in ("a=1/b=1", "a=2/b=1"))
    assert sorted(asked) == ["", "a=1", "a=1/b=1", "a=1/b=2", "a=2", "a=2/b=1", "c"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name in ("base/p/a", "out/f", "out/.f.crc", "out/d/g"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1234")
    return tmp_path / "base"


@given(st.text(st.sampled_from("./a%\\#~ \t"), max_size=8))
def test_what_passes_the_door_stays_inside(path: str) -> None:
    resolved = os.path.normpath(os.path.join("/base", path))
    plain = resolved == f"/base/{path}"
    assert is_below(path) == (plain and resolved != "/base")


@pytest.mark.parametrize("deed", [*ON_FILES, *ON_FOLDERS])
def test_nothing_goes_through_a_link(deed: str, base: Path) -> None:
    (base / "link").symlink_to(base.parent / "out")
    out = everything(base.parent / "out")
    path = "link/d" if deed in ON_FOLDERS else "link/f"
    with pytest.raises(SymbolicLink, match="base/link is a symbolic link"):
        {**ON_FILES, **ON_FOLDERS}[deed](open_storage(str(base)), path)
    assert everything(base.parent / "out") == out


@pytest.mark.parametrize("target", ["f", "d", "nowhere"])
@pytest.mark.parametrize("deed", ["delete", "delete_all", "delete_output", "delete_tree", "put"])
def test_a_link_itself_goes(deed: str, target: str, base: Path) -> None:
    (base / "link").symlink_to(base.parent / "out" / target)
    out = everything(base.parent / "out")
    {**ON_FILES, **ON_FOLDERS}[deed](open_storage(str(base)), "link")
    assert not (base / "link").is_symlink() and everything(base.parent / "out") == out


def test_a_folder_goes_with_all_that_is_in_it(base: Path) -> None:
    folder = base / "p/folder"
    for name in ("a", "b/c/d", "b#1", "e/f\n", "e/g\th/i"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    os.makedirs(os.fsencode(folder) + b"/\xff/\xfe")
    for name, target in (("l1", "out"), ("b/l2", "out/f"), ("b/l3", "nowhere"), ("l4", "base/p/folder/l4")):
        (folder / name).symlink_to(base.parent / target)
    os.mkfifo(folder / "pipe")
    out = everything(base.parent / "out")
    storage = open_storage(str(base))
    storage.delete_tree("p/folder")
    storage.delete_tree("p/folder")
    assert os.listdir(base / "p") == ["a"] and everything(base.parent / "out") == out


def test_what_listings_give(base: Path) -> None:
    """A link as what it leads to, whose size and time it has; of a tree, as a file. No pipes, no names without path."""
    (base / "p/b").mkdir()
    for name in ("b/c", "d#1", "e#x", "f\n", "g"):
        (base / "p" / name).write_bytes(b"12345")
    Path(os.fsdecode(os.fsencode(base) + b"/p/\xff")).write_bytes(b"x")
    for name, target in (("to_d", "out/d"), ("to_f", "out/f"), ("to_itself", "base/p/to_itself"), ("up", ".")):
        (base / "p" / name).symlink_to(base.parent / target)
    os.mkfifo(base / "p/pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.relpath(base / "p/socket"))
    server.close()
    storage = open_storage(str(base))
    files, folders = storage.list_dir("p")
    assert folders == ["p/b", "p/to_d", "p/up"]
    names = ["p/a", "p/e#x", "p/g", "p/to_f", "p/to_itself"]
    assert [file.path for file in files] == names
    assert {file.path: file.size for file in files}["p/to_f"] == 4
    for known in (set(), {"a", "b", "z"}, {file.name for file in files}):
        new = [file for file in files if file.name not in known]
        assert [(one, one.tag) for one in storage.list_new("p", known)] == [(one, one.tag) for one in new]
    assert sorted(f.path for f in storage.list_tree("p")) == sorted([*names, "p/b/c", "p/to_d", "p/up"])
    for file in files:
        seen = storage.head(file.path)
        assert seen == file and seen.tag == file.tag
    for link in folders[1:]:
        with pytest.raises(SymbolicLink, match=link):
            storage.list_dir(link)
        assert storage.list_tree(link) == []
    for path in ("p/to_f", "p/to_itself", "p/pipe", "p/socket"):
        with pytest.raises(StorageError, match=r"is a symbolic link|is a pipe, a socket"):
            storage.read(path)
    assert [file.path for file in storage.list_staged()] == ["p/d#1"]


def test_a_partition_may_look_like_an_upload(tmp_path: Path) -> None:
    """obstore's own listing hides such a folder: rows would be lost."""
    storage = open_storage(str(tmp_path))
    storage.create("x=#1/f", b"1")
    assert storage.list_dir("")[1] == ["x=#1"] and storage.read("x=#1/f") == b"1"


def test_the_root_may_be_a_link(base: Path) -> None:
    (base.parent / "link").symlink_to(base)
    storage = open_storage(str(base.parent / "link"))
    storage.create("p/b", b"2")
    assert storage.read("p/a") == b"1234" and len(storage.list_tree("")) == 2
    storage.delete_tree("p")
    assert (base.parent / "link").is_symlink() and os.listdir(base) == []


def test_reading(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(str(base))
    pread, size = os.pread, 4

    def in_pieces(file: int, length: int, start: int) -> bytes:
        return pread(file, min(length, 3), start)[: max(0, size - start)]

    for _ in range(2):
        assert storage.read("p/a") == storage.read("p/a", 4) == b"1234"
        parts = [storage.read_range("p/a", start, length) for start, length in ((0, 4), (1, 2), (3, 9), (9, 0))]
        assert parts == [b"1234", b"23", b"4", b""]
        monkeypatch.setattr(os, "pread", in_pieces)
    with pytest.raises(CorruptFile, match="p/a has 4 bytes, and a valid file of its kind never has more than 3"):
        storage.read("p/a", 3)
    with pytest.raises(StorageError, match="p/a"):
        storage.read_range("p/a", 4, 1)
    for path in ("p", "p/b", "q/b", "p/a/b"):
        for read in (lambda: storage.read(path), lambda: storage.read_range(path, 0, 1)):  # noqa: B023
            with pytest.raises(NotFound, match=f"{path} does not exist"):
                read()
    (base / "empty").touch()
    assert storage.read("empty") == b""
    size = 2
    with pytest.raises(StorageError, match=r"p/a.*became shorter"):
        storage.read("p/a")


def nest(folder: Path, depth: int, name: str = "a") -> None:
    """Make folders in each other, and a file in the last: deeper than any path can say."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@pytest.mark.thorough
@pytest.mark.parametrize(("depth", "name", "seen"), [(1200, "a", 1), (3000, "a", 0), (40, "n" * 250, 0)])
def test_folders_however_deep(depth: int, name: str, seen: int, base: Path) -> None:
    """No recursion, no descriptor for each level, and no looking at all of the way for each; in well below a second.

    What no path can name is no file of the table; a folder goes with it.
    """
    nest(base / "d", depth, name)
    storage = open_storage(str(base))
    lstat, looks = os.lstat, 0

    def counted(*given: Any, **named: Any) -> os.stat_result:
        nonlocal looks
        looks += 1
        return lstat(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "lstat", counted)
        assert len(storage.list_tree("")) - 1 == len(storage.list_tree("d")) == seen
        assert storage.list_staged() == []
    assert looks <= 3 * (depth + 2)
    storage.remove_empty_dirs("d")
    assert (base / "d" / name).exists()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 20, hard))
    try:
        storage.delete_tree("d")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir(base) == ["p"]


def test_empty_folders_however_deep(base: Path) -> None:
    nest(base / "d", 1200)
    storage = open_storage(str(base))
    for file in storage.list_tree("d"):
        storage.move(file.path, f"e/{file.path}")
        storage.delete(f"e/{file.path}")
    for folder in ("d", "e"):
        storage.remove_empty_dirs(folder)
    assert os.listdir(base) == ["p"]


@pytest.mark.parametrize("path", ["n" * 256, "p/" + "n" * 256 + "/f", "n/" * 2100 + "f"])
def test_what_no_path_can_name_is_not_there(path: str, base: Path) -> None:
    before = everything(base)
    storage = open_storage(str(base))
    assert storage.head(path) is None and storage.list_dir(path) == ([], []) and storage.list_tree(path) == []
    assert storage.list_new(path, set()) == []
    for deed in ("delete", "delete_output", "delete_tree", "remove_empty_dirs"):
        {**ON_FILES, **ON_FOLDERS}[deed](storage, path)
    storage.delete_all([path], lambda _: None)
    for deed in ("read", "read_range", "create", "put", "move", "move to"):
        with pytest.raises(StorageError):
            ON_FILES[deed](storage, path)
    assert everything(base) == before


def test_a_folder_that_is_moved_while_it_goes(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever follows `..` from there is in a folder of others."""
    (base / "p/b/c").mkdir(parents=True)
    (base / "p/b/c/f").write_bytes(b"x")
    unlink = os.unlink

    def moving(name: str, **where: Any) -> None:
        unlink(name, **where)
        if name == "f":
            (base / "p/b/c").rename(base.parent / "out/c")

    monkeypatch.setattr(os, "unlink", moving)
    out = everything(base.parent / "out")
    with pytest.raises(StorageError, match="was moved while it was deleted"):
        open_storage(str(base)).delete_tree("p")
    assert {path: found for path, found in everything(base.parent / "out").items() if "out/c" not in path} == out


def test_who_looks_while_files_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(str(tmp_path))
    for name in ("a", "b", "c"):
        storage.create(f"p/{name}", b"1")
    scandir = os.scandir

    class Vanishing:
        def __init__(self, folder: str) -> None:
            self._entries = scandir(folder)

        def __enter__(self) -> list[os.DirEntry[str]]:
            found = list(self._entries)
            (tmp_path / "p/b").unlink()
            return found

        def __exit__(self, *error: object) -> None:
            self._entries.close()

    monkeypatch.setattr(os, "scandir", Vanishing)
    assert [file.path for file in storage.list_dir("p")[0]] == ["p/a", "p/c"]
