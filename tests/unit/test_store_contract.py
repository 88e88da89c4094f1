"""What `Storage` promises, on every store: a new one is a line in `PLACES`, and keeps what its capabilities promise."""

import os
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import obstore
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hudi_services.errors import AlreadyExists, ConfigError, CorruptFile, NotFound, StorageError
from hudi_services.limits import MIB
from hudi_services.schemes import SCHEMES, Scheme
from hudi_services.storage import FileInfo, Storage, check_creates, check_replaces
from hudi_services.stores import open_storage
from hudi_services.stores.options import StorageOptions

from ..servers.hdfs import hdfs_server
from ..servers.started import ATOMIC, Servers, deep_on
from ..tiers import DEEP
from .dict_storage import registered

pytestmark = pytest.mark.threads

Opener = Callable[[str], Storage]
"""Opens a storage at a place of this name."""


def _local(request: pytest.FixtureRequest) -> Opener:
    folder: Path = request.getfixturevalue("tmp_path")

    def at(name: str) -> Storage:
        (folder / name).mkdir(exist_ok=True)
        return open_storage(f"file://{folder}/{name}")

    return at


def _bucket(request: pytest.FixtureRequest, *, server: str, **more: str) -> Opener:
    servers: Servers = request.getfixturevalue("servers")
    bucket = servers.bucket(server)
    options = StorageOptions({**bucket.options_at(bucket.endpoint), **more})
    place = f"{bucket.url}/{uuid.uuid4()}"
    return lambda name: open_storage(f"{place}/{name}", options)


def _memory(request: pytest.FixtureRequest) -> Opener:
    """obstore's store in memory, opened as every object store is: unlike moto, it lets nobody win a race twice."""
    request.getfixturevalue("monkeypatch").setitem(SCHEMES, "memory", Scheme(SCHEMES["s3"].storage, "memory"))
    number = uuid.uuid4()
    return lambda name: open_storage(f"memory:///{number}/{name}")


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


def _hdfs(request: pytest.FixtureRequest) -> Opener:
    folder = f"{request.getfixturevalue('hdfs')}/{uuid.uuid4()}"
    return lambda name: open_storage(f"{folder}/{name}")


def _dict(request: pytest.FixtureRequest) -> Opener:
    stack = ExitStack()
    stack.enter_context(registered())
    request.addfinalizer(stack.close)
    return lambda name: open_storage(f"dict://lake/{name}")


PLACES: dict[str, Callable[[pytest.FixtureRequest], Opener]] = {
    "local": _local,
    "s3": partial(_bucket, server="moto"),
    "s3 without conditions": partial(_bucket, server="moto", aws_conditional_put="disabled"),
    "memory": _memory,
    "dict": _dict,
    **{server: partial(_bucket, server=server) for server in ATOMIC},
    "hdfs": _hdfs,
}
CHANGED = {"azurite": "\\"}
"""Characters that a store does not keep in names: to Azure a backslash is a slash."""


def places(*names: str) -> pytest.MarkDecorator:
    """A test in each of these places; those on servers other than moto are deep."""
    cases = [pytest.param(name, marks=deep_on(name) if name in (*ATOMIC, "hdfs") else ()) for name in names]
    return pytest.mark.parametrize("opened", cases, indirect=True)


everywhere = places(*PLACES)
atomic = places("local", "memory", "dict", *ATOMIC, "hdfs")
"""moto loses races itself."""
comparing = places("memory", "dict", *ATOMIC, "hdfs")
"""Stores that compare and replace in one step."""


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Opener:
    return PLACES[request.param](request)


@pytest.fixture
def changed(request: pytest.FixtureRequest) -> str:
    return CHANGED.get(request.node.callspec.params["opened"], "")


@pytest.fixture
def store(opened: Opener) -> Storage:
    return opened("table")


def put_all(storage: Storage, *paths: str) -> None:
    for path in paths:
        storage.put(path, path.encode())


def content(storage: Storage) -> dict[str, tuple[bytes, str]]:
    return {file.path: (storage.read(file.path), file.tag) for file in storage.list_tree("")}


def write(storage: Storage, path: str, *parts: bytes) -> None:
    file = storage.open_output(path)
    for part in parts:
        file.write(part)
    file.close()


# ---- any sequence of changes

FILES = ("a", "b é", "p/x", "p/odd %41+&#?'~", "p/q/z", "p1/x", "p1/..y/z")
"""None of them is a folder, too: local storage has no such places."""
FOLDERS = ("p", "p/q", "p1", "p1/..y", "nowhere")
CHANGES = st.one_of(
    *(
        st.tuples(st.just(one), st.sampled_from(FILES))
        for one in ("create", "put", "output", "look", "replace", "delete")
    ),
    st.tuples(st.just("move"), st.sampled_from(FILES), st.sampled_from(FILES)),
    st.tuples(st.just("delete_all"), st.lists(st.sampled_from(FILES), min_size=1, unique=True)),
    st.tuples(st.just("delete_tree"), st.sampled_from(FOLDERS)),
)


@dataclass
class Model:
    """What a storage must have after changes; every write has content of its own."""

    storage: Storage
    files: dict[str, bytes] = field(default_factory=dict)
    seen: dict[str, tuple[FileInfo, bytes]] = field(default_factory=dict)
    writes: int = 0

    def do(self, change: str, *of: Any) -> None:
        self.writes += 1
        getattr(self, change)(*of)

    @property
    def data(self) -> bytes:
        return f"{self.writes:05}".encode()

    def create(self, path: str) -> None:
        if not self.storage.capabilities.atomic_create:
            return
        if path in self.files:
            with pytest.raises(AlreadyExists, match="exists already") as told:
                self.storage.create(path, self.data)
            assert self.storage.full_path(path) in told.value.message
        else:
            self.storage.create(path, self.data)
            self.files[path] = self.data

    def put(self, path: str) -> None:
        self.storage.put(path, self.data)
        self.files[path] = self.data

    def output(self, path: str) -> None:
        write(self.storage, path, self.data[:2], b"", self.data[2:])
        self.files[path] = self.data

    def look(self, path: str) -> None:
        found = self.storage.head(path)
        assert (found is None) == (path not in self.files)
        if found is not None:
            self.seen[path] = found, self.files[path]

    def replace(self, path: str) -> None:
        if path not in self.seen or not self.storage.capabilities.conditional_replace:
            return
        seen, data = self.seen[path]
        is_same = self.files.get(path) == data
        assert self.storage.replace(path, self.data, seen) is is_same
        if is_same:
            self.files[path] = self.data

    def delete(self, path: str) -> None:
        self.storage.delete(path)
        self.files.pop(path, None)

    def delete_all(self, paths: list[str]) -> None:
        counts: list[int] = []
        self.storage.delete_all(paths, counts.append)
        assert sum(counts) == len(paths)
        for path in paths:
            self.files.pop(path, None)

    def delete_tree(self, folder: str) -> None:
        self.storage.delete_tree(folder)
        for path in [path for path in self.files if path.startswith(f"{folder}/")]:
            del self.files[path]

    def move(self, source: str, target: str) -> None:
        if source in self.files and target not in self.files:
            self.storage.move(source, target)
            self.files[target] = self.files.pop(source)
            return
        refused = [error for error, is_so in ((NotFound, source not in self.files), (AlreadyExists, True)) if is_so]
        with pytest.raises(tuple(refused)) as told:
            self.storage.move(source, target)
        assert isinstance(told.value, AlreadyExists) <= (target in self.files)

    def check(self) -> None:
        """The listings, the files and what is said of them agree."""
        listed = {file.path: file for file in self.storage.list_tree("")}
        assert listed.keys() == self.files.keys() and self.storage.list_staged() == []
        for path, data in self.files.items():
            found = self.storage.head(path)
            assert found is not None and (found, found.tag) == (listed[path], listed[path].tag)
            assert found.size == len(data) and found.name == path.rpartition("/")[2]
            assert self.storage.read(path) == data
        for folder in ("", *FOLDERS):
            self._check_folder(folder)

    def _check_folder(self, folder: str) -> None:
        prefix = f"{folder}/" if folder else ""
        below = [path.removeprefix(prefix) for path in self.files if path.startswith(prefix)]
        files, folders = self.storage.list_dir(folder)
        assert sorted(file.path for file in files) == sorted(f"{prefix}{path}" for path in below if "/" not in path)
        known = {file.name for file in files[::2]}
        new = [file for file in files if file.name not in known]
        assert [(file, file.tag) for file in self.storage.list_new(folder, known)] == [(file, file.tag) for file in new]
        expected = {f"{prefix}{path.partition('/')[0]}" for path in below if "/" in path}
        assert expected <= {*folders} and len(folders) == len({*folders})
        # Local storage has empty folders, too.
        assert all(self.storage.list_tree(one) == [] for one in {*folders} - expected)
        tree = self.storage.list_tree(folder)
        assert sorted(file.path for file in tree) == sorted(prefix + path for path in below)
        few = self.storage.list_few(folder, len(tree))
        assert few is not None and {(file, file.tag) for file in few} == {(file, file.tag) for file in tree}
        assert not tree or self.storage.list_few(folder, len(tree) - 1) is None


@pytest.mark.thorough
@everywhere
@settings(
    max_examples=15 if DEEP else 5, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(changes=st.lists(CHANGES, min_size=40, max_size=40))
def test_any_changes(opened: Opener, changes: list[tuple[Any, ...]]) -> None:
    model = Model(opened(str(uuid.uuid4())))
    for number, change in enumerate(changes, 1):
        model.do(*change)
        if number % 10 == 0:
            model.check()


NAME = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Cn"], exclude_characters="/"), min_size=1, max_size=30
).filter(lambda name: name not in (".", "..") and not name.rpartition("#")[2].isdecimal())
"""Any name, except those that obstore gives to unfinished local files."""


@pytest.mark.thorough
@everywhere
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(names=st.tuples(NAME, NAME, NAME))
def test_any_names(opened: Opener, changed: str, names: tuple[str, str, str]) -> None:
    assume(set(changed).isdisjoint("".join(names)))
    storage, (folder, name, other) = opened(str(uuid.uuid4())), names
    if storage.root.startswith("hdfs:"):
        folder, name, other = (one.replace(":", "-") for one in names)
    path, target = f"{folder}/{name}", f"{folder}/sub/{other}"
    storage.put(path, b"123")
    assert storage.list_dir("") == ([], [folder]) and [file.path for file in storage.list_dir(folder)[0]] == [path]
    assert storage.read(path) == b"123" and storage.read_range(path, 1, 1) == b"2"
    storage.move(path, target)
    assert storage.head(path) is None and [file.path for file in storage.list_tree("")] == [target]
    write(storage, target, b"new")
    assert storage.read(target) == b"new" and storage.full_path(target) == f"{storage.root}/{folder}/sub/{other}"
    storage.delete_output(target)
    assert storage.list_tree("") == []


# ---- reading


@everywhere
def test_parts_of_a_file(store: Storage) -> None:
    store.put("p/a", b"1234")
    parts = [store.read_range("p/a", start, length) for start, length in ((0, 4), (1, 2), (3, 9), (9, 0))]
    assert parts == [b"1234", b"23", b"4", b""]
    with pytest.raises(StorageError, match="p/a"):
        store.read_range("p/a", 4, 1)
    store.put("empty", b"")
    assert store.read("empty") == store.read_range("empty", 0, 0) == b""


@everywhere
def test_a_file_that_is_too_large_is_not_read(store: Storage) -> None:
    store.put("p/a", b"1234")
    assert store.read("p/a", 4) == b"1234"
    with pytest.raises(CorruptFile, match="p/a has 4 bytes, and a valid file of its kind never has more than 3"):
        store.read("p/a", 3)


@everywhere
@pytest.mark.parametrize("path", ["p", "q", "p/b", "q/b", "p/a/b"])
def test_what_is_not_there(path: str, store: Storage) -> None:
    """A folder is no file, and what does not exist is deleted already."""
    store.put("p/a", b"1")
    before = content(store)
    assert store.head(path) is None
    deeds = (lambda: store.read(path), lambda: store.read_range(path, 0, 1))
    for deed in (*deeds, *((lambda: store.move(path, "new"),) if path != "p" else ())):
        with pytest.raises(NotFound) as told:
            deed()
        assert told.value.message == f"{store.full_path(path)} does not exist"
    for delete in (store.delete, store.delete_output, lambda one: store.delete_all([one], lambda _: None)):
        delete(path)
    if path != "p":
        assert store.list_dir(path) == ([], []) and store.list_tree(path) == []
        store.delete_tree(path)
        store.remove_empty_dirs(path)
    assert content(store) == before


@everywhere
def test_nothing_at_the_root(opened: Opener) -> None:
    store = opened("empty")
    assert store.list_dir("") == ([], []) and store.list_tree("") == store.list_staged() == []
    assert store.head("a") is None
    with pytest.raises(NotFound, match="empty/a does not exist"):
        store.read("a")


@everywhere
def test_when_files_were_written(store: Storage) -> None:
    before = time.time() * 1000
    store.put("a", b"1")
    found = store.head("a")
    # S3 tells whole seconds.
    assert found is not None and before - 1000 <= found.mtime_millis <= time.time() * 1000


# ---- writing


@everywhere
def test_a_file_is_created_once(store: Storage) -> None:
    if not store.capabilities.atomic_create:
        with pytest.raises(ConfigError, match=f"that of {store.root} does not"):
            check_creates(store)
        return
    store.create("a b/é%2F.json", b"1")
    for data in (b"2", b"1"):
        with pytest.raises(AlreadyExists) as told:
            store.create("a b/é%2F.json", data)
        assert told.value.message == f"{store.root}/a b/é%2F.json exists already"
    assert store.read("a b/é%2F.json") == b"1"
    store.delete("a b/é%2F.json")
    store.delete("a b/é%2F.json")
    assert store.head("a b/é%2F.json") is None


@everywhere
def test_only_what_was_seen_is_replaced(store: Storage) -> None:
    """A lock that expired is taken over by one of those who saw it."""
    if not store.capabilities.conditional_replace:
        with pytest.raises(ConfigError, match=f"that of {store.root} does not"):
            check_replaces(store, "a lock")
        return
    store.put("lock", b"expired")
    seen = store.head("lock")
    assert seen is not None and seen.tag
    assert store.replace("lock", b"first", seen)
    assert not store.replace("lock", b"second", seen)
    assert store.read("lock") == b"first"
    mine = store.head("lock")
    store.delete("lock")
    assert mine is not None and not store.replace("lock", b"again", mine)
    assert store.head("lock") is None


@everywhere
def test_what_was_seen_in_a_listing_is_replaced(store: Storage) -> None:
    if not store.capabilities.conditional_replace:
        return
    listings: list[Callable[[], list[FileInfo] | None]] = [
        lambda: store.list_tree(""),
        lambda: store.list_dir("p")[0],
        lambda: store.list_new("p", set()),
        lambda: store.list_few("", 1),
    ]
    store.put("p/lock", b"expired")
    for number, listed in enumerate(listings):
        (seen,) = listed() or []
        assert store.replace("p/lock", b"%d" % number, seen)
        assert not store.replace("p/lock", b"again", seen)
        assert store.read("p/lock") == b"%d" % number


@everywhere
def test_a_file_is_moved(store: Storage) -> None:
    store.put("a/é b.txt", b"1")
    store.move("a/é b.txt", "c/d/é b.txt")
    assert store.head("a/é b.txt") is None and store.read("c/d/é b.txt") == b"1"
    store.put("a/other", b"2")
    with pytest.raises(AlreadyExists, match=r"c/d/é b\.txt exists already"):
        store.move("a/other", "c/d/é b.txt")
    assert (store.read("a/other"), store.read("c/d/é b.txt")) == (b"2", b"1")
    with pytest.raises(NotFound, match="nowhere does not exist"):
        store.move("nowhere", "c/new")
    assert store.head("c/new") is None


@everywhere
def test_a_file_appears_when_its_writer_is_closed(store: Storage) -> None:
    """Also one that is uploaded in several parts."""
    parts = [bytes([number]) * (3 * MIB) for number in range(6)]
    store.put("p/a", b"old")
    first, second = store.open_output("p/a"), store.open_output("p/b")
    for part in parts:
        first.write(part)
        second.write(part)
    assert store.read("p/a") == b"old" and store.head("p/b") is None
    assert [file.path for file in store.list_tree("")] == [file.path for file in store.list_dir("p")[0]] == ["p/a"]
    first.close()
    second.close()
    assert store.read("p/a") == store.read("p/b") == b"".join(parts)
    assert store.read_range("p/a", 8 * MIB - 1, 2) == b"".join(parts)[8 * MIB - 1 : 8 * MIB + 1]
    write(store, "empty")
    assert store.read("empty") == b"" and store.list_staged() == []


@everywhere
def test_many_files_are_deleted_in_several_rounds(store: Storage) -> None:
    put_all(store, "p/0", "p/1000", "p/1001", "q")
    counts: list[int] = []
    store.delete_all([f"p/{number}" for number in range(1500)], counts.append)
    assert sum(counts) == 1500 and len(counts) > 1 and content(store).keys() == {"q"}
    store.delete_all([], counts.append)


@everywhere
def test_a_file_is_not_moved_onto_itself(store: Storage) -> None:
    store.put("a", b"1")
    with pytest.raises(AlreadyExists):
        store.move("a", "a")
    assert store.read("a") == b"1"


@everywhere
def test_folders(store: Storage) -> None:
    for _ in range(2):
        store.make_folder("p/q")
    assert store.list_dir("")[1] == ["p"] and store.list_dir("p")[1] == ["p/q"]
    store.put("p/q/a", b"1")
    store.remove_empty_dirs("p")
    assert store.read("p/q/a") == b"1"
    store.delete_tree("p")
    store.remove_empty_dirs("p")
    assert store.list_dir("") == ([], [])


@pytest.mark.parametrize("opened", ["memory"], indirect=True)
def test_a_store_whose_request_ends_at_a_missing_file(store: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other files of the request are deleted all the same."""
    original = obstore.delete

    def strict(of: Any, paths: str | list[str]) -> None:
        for path in [paths] if isinstance(paths, str) else paths:
            obstore.head(of, path)
            original(of, path)

    monkeypatch.setattr(obstore, "delete", strict)
    put_all(store, "a", "c", "d")
    store.delete_all(["a", "b", "c"], lambda _: None)
    assert content(store).keys() == {"d"}


# ---- several at once

RACERS = 8


def race(deed: Callable[[int], bool]) -> list[int]:
    """Who won of those who did it at the same moment."""
    start = threading.Barrier(RACERS)

    def run(number: int) -> bool:
        start.wait()
        return deed(number)

    with ThreadPoolExecutor(RACERS) as pool:
        return [number for number, won in enumerate(pool.map(run, range(RACERS))) if won]


@atomic
@pytest.mark.parametrize("content", [lambda number: b"%d" % number * 1000, lambda number: b""], ids=["own", "same"])
def test_one_of_those_who_create_a_file(content: Callable[[int], bytes], store: Storage) -> None:
    def create(number: int) -> bool:
        try:
            store.create(path, content(number))
        except AlreadyExists:
            return False
        return True

    for path in ("a", "p/b", "p/c"):
        (winner,) = race(create)
        assert store.read(path) == content(winner)


@comparing
def test_one_of_those_who_saw_a_file_replaces_it(store: Storage) -> None:
    """Every content is new, as it is in a lease: to S3 the same bytes are the same file (its tags are of them)."""
    store.put("a", b"0")
    for turn in range(5):
        seen = store.head("a")
        assert seen is not None
        (winner,) = race(lambda number: store.replace("a", b"%d %d" % (turn, number) * 1000, seen))  # noqa: B023
        assert store.read("a") == b"%d %d" % (turn, winner) * 1000


# ---- a storage as a value


@everywhere
def test_a_storage_is_sent_to_executors(opened: Opener) -> None:
    store, other = opened("table"), opened("other")
    store.put("a", b"1")
    sent = pickle.loads(pickle.dumps(store))
    assert type(sent) is type(store) and sent.read("a") == b"1"
    assert sent.identity == store.identity != other.identity and hash(sent.identity) == hash(store.identity)
    assert sent.root == store.root == store.full_path("") and store.root in repr(store)
    assert sent.capabilities == store.capabilities


@everywhere
def test_another_place_of_the_same_store(opened: Opener) -> None:
    store, other = opened("table"), opened("other")
    other.put("a", b"1")
    found = store.elsewhere(other.root)
    assert found.read("a") == b"1" and found.identity == other.identity


# ---- the door: every path is checked before anything is touched

Deed = Callable[[Storage, str], object]
ON_FILES: dict[str, Deed] = {
    "read": lambda storage, path: storage.read(path),
    "read_range": lambda storage, path: storage.read_range(path, 0, 1),
    "read nothing": lambda storage, path: storage.read_range(path, 0, 0),
    "head": lambda storage, path: storage.head(path),
    "create": lambda storage, path: storage.create(path, b"x"),
    "put": lambda storage, path: storage.put(path, b"x"),
    "replace": lambda storage, path: storage.replace(path, b"x", FileInfo(path, 1, 1)),
    "delete": lambda storage, path: storage.delete(path),
    "delete_all": lambda storage, path: storage.delete_all(["p/a", path], lambda _: None),
    "open_output": lambda storage, path: write(storage, path, b"x"),
    "delete_output": lambda storage, path: storage.delete_output(path),
    "move": lambda storage, path: storage.move(path, "p/new"),
    "move to": lambda storage, path: storage.move("p/a", path),
    "check_paths": lambda storage, path: storage.check_paths([path]),
}
ON_FOLDERS: dict[str, Deed] = {
    "list_dir": lambda storage, path: storage.list_dir(path),
    "list_new": lambda storage, path: storage.list_new(path, set()),
    "list_tree": lambda storage, path: storage.list_tree(path),
    "list_few": lambda storage, path: storage.list_few(path, 9),
    "delete_tree": lambda storage, path: storage.delete_tree(path),
    "make_folder": lambda storage, path: storage.make_folder(path),
    "remove_empty_dirs": lambda storage, path: storage.remove_empty_dirs(path),
}
LEADING_OUT = ("../out/f", "p/../../out/f", "..", ".", "p/..", "p/./a", "p//a", "/p/a", "p/", "a\0b")
NO_FILES = (*LEADING_OUT, "", "p/a\tb", "p\n", "a\x7f", "\ud800")


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All below a folder; what links lead to is not."""
    found = {}
    for here, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(here, name)
            mode = path.lstat().st_mode
            found[str(path)] = (mode, path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
    return found


@dataclass
class Guarded:
    """A storage, and another one beside it that no path below the first may lead to."""

    store: Storage
    out: Storage
    folder: Path

    def state(self) -> object:
        """Of local folders it shows folders and the rights of files, too."""
        return content(self.store), content(self.out), everything(self.folder)


@pytest.fixture
def guarded(opened: Opener, tmp_path: Path) -> Guarded:
    found = Guarded(opened("table"), opened("out"), tmp_path)
    put_all(found.store, "p/a")
    put_all(found.out, "f", ".f.crc", "d/g")
    return found


@pytest.mark.thorough
@everywhere
@pytest.mark.parametrize("deed", ON_FILES)
def test_the_door(deed: str, guarded: Guarded) -> None:
    """Nothing is touched for a path that leads out, not even the checksum twin, nor another path of the same call."""
    before = guarded.state()
    for path in NO_FILES:
        with pytest.raises(CorruptFile) as told:
            ON_FILES[deed](guarded.store, path)
        assert repr(path) in told.value.message and told.value.hint
        assert guarded.state() == before


@pytest.mark.thorough
@everywhere
@pytest.mark.parametrize("deed", ON_FOLDERS)
def test_the_door_of_folders(deed: str, guarded: Guarded) -> None:
    before = guarded.state()
    for path in LEADING_OUT:
        with pytest.raises(CorruptFile, match="leaves"):
            ON_FOLDERS[deed](guarded.store, path)
        assert guarded.state() == before


def test_the_door_of_object_stores() -> None:
    """Before anybody is asked."""
    for deed in (*ON_FILES.values(), *ON_FOLDERS.values()):
        with pytest.raises(CorruptFile, match="leaves s3://nowhere/table"):
            deed(open_storage("s3://nowhere/table"), "../other/f")
