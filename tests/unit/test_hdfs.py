"""HDFS, beyond what `test_store_contract` asks of every store: races of processes, killed writers, lost answers."""

import gc
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import AlreadyExists, ConfigError, CorruptFile, PermissionDenied, StorageError
from hudi_services.jobs import clustering
from hudi_services.jobs.orphan_files import manage_orphan_files
from hudi_services.jobs.validate import validate
from hudi_services.options import resolve
from hudi_services.orphan_files.leftovers import list_uploads
from hudi_services.orphan_files.model import OrphanKind
from hudi_services.orphan_files.quarantine import list_quarantines
from hudi_services.runs.report import CheckResult, RunState
from hudi_services.runs.request import Mode, OrphanFilesMode, OrphanFilesRequest, ValidateRequest
from hudi_services.storage import Storage
from hudi_services.stores import hdfs_client, hdfs_replacement, open_storage
from hudi_services.stores.hdfs_client import HdfsClient
from hudi_services.stores.options import StorageOptions
from hudi_services.urls import message_without_secrets

from ..servers.bucket import upload
from ..servers.hdfs import hdfs_server
from ..servers.lossy_rpc import LossyRpc, lossy_rpc
from ..servers.started import deep_on
from .tables import RELEASES, request, rows_at, unpack

pytestmark = pytest.mark.threads


def on_a_server(test: Any) -> Any:
    """The marks of a test on HDFS."""
    for mark in deep_on("hdfs"):
        test = mark(test)
    return test


PROCESSES = 16
THREADS = 8
KEYS = 300


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


@pytest.fixture
def root(hdfs: str) -> str:
    return f"{hdfs}/lake/{uuid4()}"


@pytest.fixture
def store(root: str) -> Storage:
    return open_storage(root)


# ---- without a server


def test_a_table_on_hdfs_needs_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(ConfigError, match="needs the Python module hdfs_native") as told:
        open_storage("hdfs://namenode:8020/rides")
    assert told.value.hint == "install it: pip install 'hudi-services[hdfs]'"


@pytest.mark.parametrize("url", ["hdfs://namenode:8020/a/rides", "hdfs://service/a/rides", "hdfs:///a/rides"])
def test_nobody_is_asked_before_the_first_file(url: str) -> None:
    store = open_storage(f"{url}/", StorageOptions({"dfs.client.use.datanode.hostname": True}))
    sent = pickle.loads(pickle.dumps(store))
    assert sent.root == store.root == url and sent.identity == store.identity
    assert store.full_path("p/a") == f"{url}/p/a"


def test_no_name_has_a_colon() -> None:
    store = open_storage("hdfs://namenode:8020/rides")
    deeds: list[Callable[[str], object]] = [store.read, store.head, store.delete, lambda path: store.create(path, b"")]
    for deed in [*deeds, lambda path: store.check_paths([path])]:
        with pytest.raises(CorruptFile, match="at=12:00/a: no name on HDFS can have a colon") as told:
            deed("at=12:00/a")
        assert "urlencode" in told.value.hint


# ---- who answers


@on_a_server
def test_the_check_of_the_store(store: Storage) -> None:
    """Its contenders are processes with connections of their own."""
    report = validate(ValidateRequest(options=resolve([]), base_path=store.root, store=True), store)
    assert {one.result for one in report.checks} == {CheckResult.PASSED}
    assert not store.list_tree("")


@on_a_server
def test_a_port_that_nobody_listens_on() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"hdfs://127.0.0.1:{taken.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(StorageError) as told:
            open_storage(f"{url}/rides").list_dir("")
    assert time.monotonic() - start < 10
    assert told.value.message == f"{url}/rides: no NameNode answers at {url}: Connection refused (os error 111)"
    assert "fs.defaultFS" in told.value.hint


@on_a_server
def test_a_port_where_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"hdfs://127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(StorageError, match=f"no NameNode answers at {url}: nothing came within 20 s"):
            open_storage(f"{url}/rides").list_dir("")
    assert time.monotonic() - start < 30


def _configuration(folder: Path, values: dict[str, str]) -> None:
    properties = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items())
    (folder / "core-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>")


@on_a_server
def test_places_of_the_configuration(hdfs: str, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name service, the file system that is the default, and a mount table of viewfs."""
    folder = root.removeprefix(hdfs)
    service = f"service{uuid4().hex}"
    values = {
        "fs.defaultFS": f"hdfs://{service}",
        f"dfs.ha.namenodes.{service}": "one,two",
        f"dfs.namenode.rpc-address.{service}.one": "127.0.0.1:1",
        f"dfs.namenode.rpc-address.{service}.two": hdfs.removeprefix("hdfs://"),
        f"fs.viewfs.mounttable.{service}.link./mounted": f"{hdfs}{folder}",
        f"fs.viewfs.mounttable.{service}.linkFallback": f"{hdfs}/nowhere",
    }
    _configuration(tmp_path, values)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    stores = [open_storage(url) for url in (f"hdfs://{service}{folder}", f"viewfs://{service}/mounted")]
    # The client of the default file system is the first of this process that asks for it.
    stores.append(open_storage(f"hdfs://{folder}", StorageOptions({"some.other": service})))
    for number, store in enumerate(stores):
        store.create(f"{number}/a", b"1")
        store.put(f"{number}/a", b"2")
        seen = store.head(f"{number}/a")
        assert seen is not None and store.replace(f"{number}/a", b"3", seen)
        store.move(f"{number}/a", f"{number}/b/c")
        assert [file.path for file in store.list_tree(str(number))] == [f"{number}/b/c"]
    assert [file.path for file in open_storage(root).list_tree("")] == ["0/b/c", "1/b/c", "2/b/c"]


@on_a_server
def test_a_url_that_the_configuration_does_not_resolve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _configuration(tmp_path, {})
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    for url in ("hdfs:///rides", f"viewfs://{uuid4().hex}/rides"):
        with pytest.raises(ConfigError, match="names no NameNode: No ") as told:
            open_storage(url).list_dir("")
        assert "HADOOP_CONF_DIR" in told.value.hint
        assert "hdfs://namenode:8020/path" in message_without_secrets(told.value.hint)
        assert ("linkFallback" in told.value.hint) == url.startswith("viewfs:")


@on_a_server
def test_a_user_without_rights(store: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("p/a", b"1")
    monkeypatch.setenv("HADOOP_USER_NAME", "mallory")
    other = open_storage(store.root, StorageOptions({"client.of": "mallory"}))
    assert other.read("p/a") == b"1"
    seen = other.head("p/a")
    assert seen is not None
    deeds: list[Callable[[], object]] = [
        lambda: other.create("p/b", b""),
        lambda: other.put("p/a", b""),
        lambda: other.replace("p/a", b"", seen),
        lambda: other.open_output("p/b"),
        lambda: other.move("p/a", "p/b"),
        lambda: other.delete("p/a"),
        lambda: other.delete_tree("p"),
        lambda: other.make_folder("p/q"),
    ]
    for deed in deeds:
        with pytest.raises(PermissionDenied, match=f"no permission for {store.root}/p"):
            deed()
    assert [file.path for file in store.list_tree("")] == ["p/a"] and store.list_staged() == []


# ---- names


@on_a_server
def test_listings_are_in_the_order_of_code_points(store: Storage) -> None:
    """HDFS has names that are not ASCII first."""
    names = sorted(["a", "z", "~", "é", "日本", "\uffee", "𝒳"])
    for name in names:
        store.put(f"p/{name}", b"")
        store.put(f"q/{name}/a", b"")
    assert [file.name for file in store.list_dir("p")[0]] == [file.name for file in store.list_tree("p")] == names
    assert store.list_dir("q")[1] == [f"q/{name}" for name in names]
    few = store.list_few("q", 100)
    assert few is not None and [file.path for file in few] == [f"q/{name}/a" for name in names]


@on_a_server
def test_a_name_that_is_too_long(store: Storage) -> None:
    with pytest.raises(StorageError, match="The maximum path component name limit of") as told:
        store.put("a" * 300, b"")
    assert "\n" not in told.value.message


# ---- races of processes


@pytest.fixture(scope="module")
def racers() -> Iterator[Pool]:
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        yield pool


def _run(racers: Pool, root: str, deed: Callable[[Storage, int, int, Any], bool]) -> dict[str, int]:
    """Who won each key, of which there must be one."""
    start = time.time() + 3
    works = [(deed, root, number, start) for number in range(PROCESSES)]
    won = [(key, number) for number, keys in enumerate(racers.map(_race, works, chunksize=1)) for key in keys]
    assert Counter(key for key, _ in won) == {f"k{number}": 1 for number in range(KEYS)}
    return dict(won)


def _race(work: tuple[Callable[[Storage, int, str, Any], bool], str, int, float]) -> list[str]:
    deed, root, number, start = work
    store = open_storage(root)
    seen = {file.name: file for file in store.list_dir("")[0]}
    while time.time() < start:
        time.sleep(0.001)
    keys = [f"k{key}" for key in range(KEYS)]
    with ThreadPoolExecutor(THREADS) as pool:
        won = pool.map(lambda key: deed(store, number, key, seen.get(key)), keys)
        return [key for key, is_mine in zip(keys, won, strict=True) if is_mine]


def _create(store: Storage, number: int, key: str, seen: Any) -> bool:
    with suppress(AlreadyExists):
        store.create(key, b"%03d" % number)
        return True
    return False


def _replace(store: Storage, number: int, key: str, seen: Any) -> bool:
    return store.replace(key, b"%03d" % number, seen)


def _replace_by_the_same(store: Storage, number: int, key: str, seen: Any) -> bool:
    return store.replace(key, b"same", seen)


@on_a_server
def test_one_process_of_sixteen_creates_or_replaces_a_file(racers: Pool, store: Storage) -> None:
    """Creation, two rounds of replacements, and one of replacements by the same bytes."""
    for deed in (_create, _replace, _replace, _replace_by_the_same, _replace_by_the_same):
        won = _run(racers, store.root, deed)
        if deed is not _replace_by_the_same:
            assert {key: int(store.read(key)) for key in won} == won
    assert store.list_staged() == [] and len(store.list_dir("")[0]) == KEYS and store.list_dir("")[1] == []


@on_a_server
def test_a_forked_process_has_a_connection_of_its_own(store: Storage) -> None:
    store.put("a", b"1")
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(0 if store.read("a") == b"1" else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- processes that are killed


def _killed(root: str, deed: Callable[[Storage], object], renames: int = 0) -> None:
    """Do it in a process that is killed before it renames once more than so often."""
    process = multiprocessing.get_context("spawn").Process(target=_killed_here, args=(root, deed, renames))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def _killed_here(root: str, deed: Callable[[Storage], object], renames: int) -> None:
    left = iter(range(renames))
    original = HdfsClient.rename

    def rename(client: HdfsClient, source: str, target: str, *, overwrite: bool = False) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        original(client, source, target, overwrite=overwrite)

    HdfsClient.rename = rename  # type: ignore[method-assign]
    deed(open_storage(root))


DATA_FILE = "p/3f2c6a8e-0000-4000-8000-000000000000-0_0-0-0_20260101000000000.parquet"


def _creates(store: Storage) -> None:
    store.create(".hoodie/timeline/20260101000000000.commit.requested", b"new")


def _puts(store: Storage) -> None:
    store.put(".hoodie/hoodie.properties", b"new")


def _writes(store: Storage) -> None:
    output = store.open_output(DATA_FILE)
    output.write(b"new")
    output.close()


def _replaces(store: Storage) -> None:
    seen = store.head(".hoodie/.locks/lock")
    assert seen is not None
    store.replace(".hoodie/.locks/lock", b"of a dead", seen)


@on_a_server
@pytest.mark.parametrize("deed", [_creates, _puts, _writes, _replaces])
def test_a_killed_writer_leaves_no_file(deed: Callable[[Storage], object], store: Storage) -> None:
    store.put(".hoodie/.locks/lock", b"old")
    store.put(".hoodie/hoodie.properties", b"old")
    before = store.list_tree("")
    _killed(store.root, deed)
    assert store.list_tree("") == before and {store.read(file.path) for file in before} == {b"old"}
    assert all(store.list_dir(folder) == ([], []) for folder in ("p", ".hoodie/timeline"))
    (left,) = list_uploads(store, ())
    assert left.reason is OrphanKind.UPLOAD and store.list_staged() == list(left.files)
    assert left.attempt == ("20260101000000000" if deed in (_creates, _writes) else "")
    deed(store)
    assert store.list_staged() == list(left.files)
    store.delete_output(DATA_FILE)
    assert (store.list_staged() == []) is (deed is _writes)
    store.delete(left.files[0].path)
    assert store.list_staged() == []


@on_a_server
def test_the_claim_of_a_killed_process_is_carried_out(store: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is old enough; nobody replaces the version twice."""
    path = ".hoodie/.locks/lock"
    store.put(path, b"old")
    seen = store.head(path)
    assert seen is not None
    _killed(store.root, _replaces, renames=1)
    assert not store.replace(path, b"early", seen) and store.read(path) == b"old"
    monkeypatch.setattr(hdfs_replacement, "_DEAD_MILLIS", 0)
    assert not store.replace(path, b"late", seen) and store.read(path) == b"of a dead"
    now = store.head(path)
    assert now is not None and store.replace(path, b"new", now) and not store.replace(path, b"newer", now)
    assert store.read(path) == b"new" and store.list_staged() == []
    assert store.list_dir(".hoodie/.locks")[1] == []


@on_a_server
def test_a_claim_that_lost_its_content_stops_nobody(store: Storage) -> None:
    path = ".hoodie/.locks/lock"
    store.put(path, b"old")
    seen = store.head(path)
    assert seen is not None
    _killed(store.root, _replaces, renames=1)
    for file in store.list_staged():
        store.delete(file.path)
    assert store.replace(path, b"new", seen) and store.read(path) == b"new"


# ---- answers that are lost


@pytest.fixture
def lossy(hdfs: str) -> Iterator[LossyRpc]:
    with lossy_rpc(hdfs) as proxy:
        yield proxy


REQUESTS = ("getFileInfo", "create", "addBlock", "complete", "rename2", "delete", "mkdirs", "getListing")


@on_a_server
@pytest.mark.parametrize("lost", [*((one,) for one in REQUESTS), ("rename2", "rename2")], ids=" ".join)
def test_a_lost_answer_is_as_good_as_one(lost: tuple[str, ...], lossy: LossyRpc) -> None:
    store = open_storage(f"{lossy.url}/lake/{uuid4()}")
    for path in ("put", "move", "replace", "deleted"):
        store.put(path, b"1")
    seen = store.head("replace")
    assert seen is not None
    deeds: list[Callable[[], object]] = [
        lambda: store.create("p/new", b"2"),
        lambda: store.put("put", b"2"),
        lambda: store.move("move", "q/moved"),
        lambda: store.delete("deleted"),
        lambda: store.make_folder("f"),
    ]
    for deed in deeds:
        lossy.lose(*lost)
        deed()
    lossy.lose(*lost)
    assert store.replace("replace", b"2", seen)
    lossy.lose()
    assert not store.replace("replace", b"3", seen)
    for path in ("p/new", "replace"):
        lossy.lose(*lost)
        with pytest.raises(AlreadyExists):
            store.create(path, b"3")
    lossy.lose(*lost)
    found = {file.path: store.read(file.path) for file in store.list_tree("")}
    assert found == {"p/new": b"2", "put": b"2", "q/moved": b"1", "replace": b"2"} and store.list_staged() == []


@on_a_server
@pytest.mark.parametrize("stalled", REQUESTS)
def test_a_request_that_stalls_is_made_again(stalled: str, lossy: LossyRpc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs_client, "_STALL_SECONDS", 3.0)
    store = open_storage(f"{lossy.url}/lake/{uuid4()}")
    store.put("put", b"1")
    seen = store.head("put")
    assert seen is not None
    lossy.to_stall = stalled
    store.create("p/new", b"2")
    assert store.replace("put", b"2", seen)
    store.make_folder("f")
    store.delete("p/new")
    assert {file.path: store.read(file.path) for file in store.list_tree("")} == {"put": b"2"}
    assert lossy.to_stall == "" and store.list_staged() == []


@on_a_server
def test_a_writer_that_is_dropped_does_not_finish_its_file(lossy: LossyRpc) -> None:
    """Python closes a stream that is dropped; where the connection is gone, hdfs-native would wait for ever."""
    name = f"/dropped-{uuid4()}"
    file = hdfs_client.client_of(lossy.url, None, "/").create(name)
    file.write(b"1")
    lossy.lose("complete")
    del file
    gc.collect()
    assert lossy.to_lose == ["complete"]


@on_a_server
def test_a_large_file_whose_writer_lost_an_answer(lossy: LossyRpc) -> None:
    """It cannot be written again: the error is told, and there is no file. The last rename is looked for."""
    store = open_storage(f"{lossy.url}/lake/{uuid4()}")
    for lost in ("create", "rename2", "complete"):
        name = f"after {lost[:3]}"
        output = store.open_output(name)
        output.write(b"12")
        lossy.lose(lost)
        with suppress(StorageError):
            output.close()
        assert lossy.lost == (lost != "create")
        assert store.head(name) is None if lost == "complete" else store.read(name) == b"12"
    assert store.list_staged() == []


# ---- tables


@on_a_server
@pytest.mark.parametrize("release", RELEASES)
def test_cluster_a_table_on_hdfs(release: str, root: str, tmp_path: Path) -> None:
    upload(unpack(release, tmp_path), root)
    before = rows_at(root)
    ts = clustering.schedule(request(root, Mode.SCHEDULE)).instant
    report = clustering.execute(request(root, Mode.EXECUTE), engine=LocalEngine())
    assert (report.state, report.instant) == (RunState.COMPLETED, ts)
    assert rows_at(root).equals(before) and open_storage(root).list_staged() == []


@on_a_server
def test_what_killed_writers_left_goes_into_quarantine_and_back(root: str, tmp_path: Path) -> None:
    upload(unpack("1.2.0", tmp_path), root)
    store, options = open_storage(root), resolve([])
    _killed(root, _writes)
    (left,) = store.list_staged()
    manage_orphan_files(
        OrphanFilesRequest(base_path=root, options=options, mode=OrphanFilesMode.QUARANTINE, min_age_minutes=0)
    )
    assert store.list_staged() == []
    (one,) = list_quarantines(store)
    manage_orphan_files(
        OrphanFilesRequest(base_path=root, options=options, mode=OrphanFilesMode.RESTORE, quarantine=one.id)
    )
    assert store.list_staged() == [left]
