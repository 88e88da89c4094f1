"""The lock providers: one holder at a time, documents and items as Hudi's, and locks whose holder died or lost them."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from hudi_services.errors import ConfigError, ConflictError, LockBusy
from hudi_services.locking.dynamodb import DynamoDBProvider
from hudi_services.locking.file_system import FileSystemProvider
from hudi_services.locking.protocol import LockProvider, LockWait, NoLockProvider, PolledLock
from hudi_services.locking.registry import lock_provider
from hudi_services.locking.storage_based import LOCK_FILE, StorageBasedProvider, StorageLock
from hudi_services.locking.zookeeper import ZooKeeperProvider, implicit_path
from hudi_services.options import lock_keys, resolve
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from ..servers.moto import moto
from ..servers.started import ON_ATOMIC, Servers
from .dict_storage import registered

QUICK = LockWait(wait_millis=100, retry_wait_millis=10)
PATIENT = LockWait(wait_millis=20_000, retry_wait_millis=10)
CREDENTIALS = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a stand-in for S3 and DynamoDB."""
    with moto(tmp_path_factory.mktemp("aws")) as bucket:
        yield bucket.endpoint


@pytest.fixture(params=["local", "moto", *ON_ATOMIC])
def storage(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Storage:
    if request.param == "local":
        return open_storage(str(tmp_path))
    return servers.bucket(request.param).open(tmp_path.name)


@pytest.fixture
def dynamodb(aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DynamoDBProvider:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name.upper(), value)
    return DynamoDBProvider("hudi_locks", tmp_path.name, "us-east-1", aws)


def exclude_each_other(provider: LockProvider, storage: Storage) -> None:
    """Threads add to a number that only one of them may change at a time."""
    total, most = 0, 0
    inside: list[int] = []

    def add() -> None:
        nonlocal total, most
        for _ in range(3):
            with provider.lock(storage, PATIENT) as lock:
                inside.append(1)
                most = max(most, len(inside))
                before = total
                lock.check()
                time.sleep(0.005)
                total = before + 1
                inside.pop()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (total, most) == (12, 1)


# ---- StorageBasedLockProvider


def document(storage: Storage) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(storage.read(LOCK_FILE))
    return found


def write(storage: Storage, **fields: object) -> None:
    storage.put(LOCK_FILE, json.dumps({"expired": False, "validUntil": 0, "owner": "other", **fields}).encode())


def in_seconds(seconds: float) -> int:
    return int((time.time() + seconds) * 1000)


def test_the_document_of_a_storage_lock(storage: Storage) -> None:
    with StorageBasedProvider(300, 30).lock(storage, QUICK) as lock:
        held = document(storage)
        assert list(held) == ["expired", "validUntil", "owner"]
        assert held["expired"] is False and abs(held["validUntil"] - in_seconds(300)) < 5_000
        lock.check()
        with pytest.raises(LockBusy, match=rf"another writer \({held['owner']}\), valid until 20"):
            StorageBasedProvider().lock(storage, QUICK).__enter__()
    assert document(storage) == {**held, "expired": True}
    with StorageBasedProvider().lock(storage, QUICK):
        assert document(storage)["owner"] != held["owner"]


@pytest.mark.parametrize("server", ["local", *ON_ATOMIC])
def test_storage_locks_exclude_each_other(server: str, servers: Servers, tmp_path: Path) -> None:
    """Not on moto, where two of a race may win."""
    is_local = server == "local"
    storage = open_storage(str(tmp_path)) if is_local else servers.bucket(server).open(tmp_path.name)
    exclude_each_other(StorageBasedProvider(), storage)


def test_a_storage_lock_whose_holder_died(storage: Storage) -> None:
    """It has missed two renewals, and clocks may differ by half a second."""
    for ended, is_free in ((-60.0, False), (0.2, False), (6.0, False), (6.7, True)):
        write(storage, validUntil=in_seconds(-ended))
        if is_free:
            with StorageBasedProvider(30, 3).lock(storage, LockWait(0, 10)):
                pass
        else:
            with pytest.raises(LockBusy, match="other"):
                StorageBasedProvider(30, 3).lock(storage, LockWait(0, 10)).__enter__()


def test_a_storage_lock_that_was_lost(storage: Storage) -> None:
    with StorageBasedProvider().lock(storage, QUICK) as lock:
        write(storage, validUntil=in_seconds(60), owner="thief")
        with pytest.raises(ConflictError, match="was taken over by another writer"):
            lock.check()
    assert document(storage)["owner"] == "thief" and not document(storage)["expired"]


def test_a_storage_lock_is_renewed(storage: Storage) -> None:
    with StorageLock(storage, 2, 0.05, QUICK) as lock:
        first = document(storage)
        deadline = time.monotonic() + 20
        while document(storage)["validUntil"] == first["validUntil"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        lock.check()
        write(storage, validUntil=in_seconds(60), owner="thief")
        time.sleep(0.3)
        # The renewal does not take it back.
        assert document(storage)["owner"] == "thief"
        with pytest.raises(ConflictError):
            lock.check()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"expired":"no"}', b'{"expired":false,"validUntil":true,"owner":1}']
)
def test_a_lock_file_that_says_nothing_is_held(content: bytes, tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put(LOCK_FILE, content)
    with pytest.raises(LockBusy, match="is held by another writer"):
        StorageBasedProvider().lock(storage, LockWait(0, 10)).__enter__()
    assert storage.read(LOCK_FILE) == content


# ---- DynamoDBBasedLockProvider


def items(provider: DynamoDBProvider) -> list[dict[str, Any]]:
    service = boto3.client("dynamodb", region_name=provider.region, endpoint_url=provider.endpoint)
    found: list[dict[str, Any]] = service.scan(TableName=provider.table)["Items"]
    return [one for one in found if one["key"]["S"] == provider.key]


def put_item(provider: DynamoDBProvider, **fields: str) -> None:
    service = boto3.client("dynamodb", region_name=provider.region, endpoint_url=provider.endpoint)
    item = {"key": provider.key, "ownerName": "other", "leaseDuration": "60000", "recordVersionNumber": "1", **fields}
    service.put_item(TableName=provider.table, Item={name: {"S": value} for name, value in item.items()})


def test_the_item_of_a_dynamodb_lock(dynamodb: DynamoDBProvider, tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    with dynamodb.lock(storage, LockWait(3_000, 10)) as lock:
        (held,) = items(dynamodb)
        assert set(held) == {"key", "ownerName", "leaseDuration", "recordVersionNumber"}
        assert held["leaseDuration"] == {"S": "3000"}
        lock.check()
        with pytest.raises(LockBusy, match=f"another writer .{held['ownerName']['S'][:20]}"):
            dynamodb.lock(storage, QUICK).__enter__()
        # Three heartbeats in a lease.
        time.sleep(1.3)
        assert items(dynamodb)[0]["recordVersionNumber"] != held["recordVersionNumber"]
        lock.check()
    assert items(dynamodb) == []


def test_dynamodb_locks_exclude_each_other(dynamodb: DynamoDBProvider, tmp_path: Path) -> None:
    exclude_each_other(dynamodb, open_storage(str(tmp_path)))


def test_a_dynamodb_lock_whose_holder_died(dynamodb: DynamoDBProvider, tmp_path: Path) -> None:
    """It is free when its version stays for a lease, by the clock of who waits; or at once when it was given back."""
    storage = open_storage(str(tmp_path))
    with dynamodb.lock(storage, QUICK):
        pass
    put_item(dynamodb, leaseDuration="300")
    start = time.monotonic()
    with dynamodb.lock(storage, PATIENT):
        assert time.monotonic() - start > 0.3
    put_item(dynamodb, isReleased="1")
    with dynamodb.lock(storage, LockWait(0, 10)):
        pass


def test_a_dead_holder_with_a_long_lease(dynamodb: DynamoDBProvider, tmp_path: Path) -> None:
    """The wait is longer by its lease, as that of Hudi's writers."""
    storage = open_storage(str(tmp_path))
    with dynamodb.lock(storage, QUICK):
        pass
    put_item(dynamodb, leaseDuration="2000")
    with dynamodb.lock(storage, LockWait(wait_millis=1_000, retry_wait_millis=10)) as lock:
        lock.check()


def test_a_try_whose_answer_was_lost(dynamodb: DynamoDBProvider, tmp_path: Path) -> None:
    """The lock is ours, although the service said that its condition did not hold; or it is given back."""
    storage = open_storage(str(tmp_path))
    lock = dynamodb.lock(storage, LockWait(5_000, 10))
    put = lock._put  # type: ignore[attr-defined]
    lock._put = lambda *of: bool(put(*of)) and False  # type: ignore[attr-defined]
    with lock:
        lock.check()
    assert items(dynamodb) == []


def test_a_dynamodb_lock_that_was_lost(dynamodb: DynamoDBProvider, tmp_path: Path) -> None:
    with dynamodb.lock(open_storage(str(tmp_path)), QUICK) as lock:
        put_item(dynamodb)
        with pytest.raises(ConflictError, match="was taken over by another writer"):
            lock.check()
    assert [one["ownerName"]["S"] for one in items(dynamodb)] == ["other"]


# ---- the registry

_URL = {"hoodie.write.lock.zookeeper.url": "zk:2181"}


def provider_of(name: str, table: Storage, **more: str) -> LockProvider:
    options = {lock_keys.LOCK_PROVIDER.key: name, "hoodie.table.name": "trips", **more}
    return lock_provider(resolve([("test", options)]), table)


def test_providers_by_name(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    base_path = {"hoodie.write.lock.zookeeper.base_path": "/hudi"}
    assert provider_of("", storage) == NoLockProvider()
    assert provider_of(lock_keys.FILE_SYSTEM_LOCK, storage) == FileSystemProvider()
    assert provider_of(lock_keys.STORAGE_LOCK, storage) == StorageBasedProvider(300, 30)
    # The name of 1.0.2.
    old = {"hoodie.write.lock.storage.heartbeat.poll.secs": "7"}
    assert provider_of(lock_keys.STORAGE_LOCK, storage, **old) == StorageBasedProvider(300, 7)
    assert provider_of(lock_keys.ZOOKEEPER_LOCK, storage, **_URL, **base_path) == ZooKeeperProvider(
        "zk:2181", "/hudi", "trips"
    )
    assert provider_of(lock_keys.ZOOKEEPER_IMPLICIT_LOCK, storage, **_URL) == ZooKeeperProvider("zk:2181", "", "")
    found = provider_of(lock_keys.DYNAMODB_LOCK, storage, **{"hoodie.write.lock.dynamodb.region": "eu-north-1"})
    assert found == DynamoDBProvider("hudi_locks", "trips", "eu-north-1")


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://[::1]:8000/", "https://[::1]:8000/"),
        # As in Hudi.
        ("dynamodb.eu-north-1.amazonaws.com", "https://dynamodb.eu-north-1.amazonaws.com"),
        ("", ""),
    ],
)
def test_an_endpoint_of_dynamodb(text: str, endpoint: str, tmp_path: Path) -> None:
    option = {lock_keys.DYNAMODB_ENDPOINT.key: text}
    found = provider_of(lock_keys.DYNAMODB_LOCK, open_storage(str(tmp_path)), **option)
    assert isinstance(found, DynamoDBProvider) and found.endpoint == endpoint


def test_the_place_that_is_derived_from_the_base_path() -> None:
    assert implicit_path("s3a://lake/trips") == implicit_path("s3://lake/trips") == implicit_path("S3A://lake/trips")
    # As Hudi 1.2.0 made it.
    hudi = "/tmp/pytest-of-root/pytest-4/test_one_zookeeper_1_2_0_impli0/plain"
    assert implicit_path(hudi) == "/tmp/69749FDD72AFFC5C/lock_key"


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        (lock_keys.ZOOKEEPER_LOCK, {}, "needs hoodie.write.lock.zookeeper.base_path"),
        (lock_keys.ZOOKEEPER_IMPLICIT_LOCK, {}, "needs hoodie.write.lock.zookeeper.url"),
        (lock_keys.STORAGE_LOCK, {"hoodie.write.lock.storage.renew.interval.secs": "31"}, "is less than ten times"),
        ("org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider", {}, "cannot hold together"),
        ("org.apache.hudi.client.transaction.lock.InProcessLockProvider", {}, "excludes nobody outside"),
        ("no.such.Provider", {}, "cannot hold together"),
        (
            lock_keys.DYNAMODB_LOCK,
            {lock_keys.DYNAMODB_ENDPOINT.key: "http://me:secret@host"},
            r"=http://… .*no endpoint",
        ),
    ],
)
def test_what_is_refused(name: str, more: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=says):
        provider_of(name, open_storage(str(tmp_path)), **more)


@pytest.mark.parametrize(
    ("kind", "name", "more", "says"),
    [
        (
            "WithoutAtomicCreate",
            lock_keys.FILE_SYSTEM_LOCK,
            {},
            "FileSystemBasedLockProvider needs .* creates",
        ),
        ("WithoutAtomicCreate", lock_keys.STORAGE_LOCK, {}, "StorageBasedLockProvider needs .* creates"),
        (
            "WithoutConditionalReplace",
            lock_keys.STORAGE_LOCK,
            {},
            "StorageBasedLockProvider needs .* replaces",
        ),
        (
            "WithoutConditionalReplace",
            lock_keys.FILE_SYSTEM_LOCK,
            {lock_keys.LOCK_EXPIRE_MINUTES.key: "5"},
            "filesystem.expire needs .* replaces",
        ),
    ],
)
def test_a_store_that_cannot_hold_the_lock(
    kind: str, name: str, more: dict[str, str], says: str, tmp_path: Path
) -> None:
    """The folder of the lock counts, where that is in another store than the table."""
    with registered(kind):
        with pytest.raises(ConfigError, match=rf"{says}.* that of dict://lake/rides does not"):
            provider_of(name, open_storage("dict://lake/rides"), **more)
        if name == lock_keys.FILE_SYSTEM_LOCK:
            folder = {lock_keys.LOCK_FOLDER.key: "dict://locks"}
            with pytest.raises(ConfigError, match="that of dict://locks does not"):
                provider_of(name, open_storage(str(tmp_path)), **more, **folder)
            elsewhere = {lock_keys.LOCK_FOLDER.key: str(tmp_path)}
            provider_of(name, open_storage("dict://lake/rides"), **more, **elsewhere)


def test_a_lock_file_that_never_expires_is_never_replaced() -> None:
    with registered("WithoutConditionalReplace"):
        storage = open_storage("dict://lake/rides")
        with provider_of(lock_keys.FILE_SYSTEM_LOCK, storage).lock(storage, QUICK) as lock:
            lock.check()


class OneOfUs(PolledLock):
    """An operator's own lock: a file in a folder that the options name."""

    def __init__(self, options: dict[str, str], table: Storage, wait: LockWait) -> None:
        super().__init__("our own", wait)
        self._file = Path(options["our.folder"]) / "held"
        self._is_held = False

    def check(self) -> None:
        assert self._file.exists()

    def _try(self) -> bool:
        try:
            self._file.touch(exist_ok=False)
        except FileExistsError:
            return False
        self._is_held = True
        return True

    def _holder(self) -> str:
        return "one of us"

    def _release(self) -> None:
        if self._is_held:
            self._file.unlink()


def no_lock(options: dict[str, str], table: Storage, wait: LockWait) -> object:
    return object()


def test_a_class_of_the_operator(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    provider = provider_of("tests.unit.test_locks:OneOfUs", storage, **{"our.folder": str(tmp_path)})
    assert provider.is_shared
    with provider.lock(storage, QUICK) as lock:
        lock.check()
        with pytest.raises(LockBusy, match="our own is held by one of us"):
            provider.lock(storage, QUICK).__enter__()
    with pytest.raises(ConfigError, match=r"is no hudi_services\.locking\.protocol\.TableLock"):
        provider_of("tests.unit.test_locks:no_lock", storage).lock(storage, QUICK)


@pytest.mark.thorough
def test_a_client_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    storage = open_storage(str(tmp_path))
    asked: list[tuple[str, Callable[[], object], str]] = [
        ("kazoo.client", lambda: ZooKeeperProvider("zk", "/a", "b").lock(storage, QUICK), "zookeeper"),
        ("boto3", lambda: DynamoDBProvider("t", "k", "r").lock(storage, QUICK), "dynamodb"),
    ]
    for module, lock, extra in asked:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ConfigError, match="needs the Python module") as caught:
            lock()
        assert caught.value.hint == f"install it: pip install 'hudi-services[{extra}]'"
