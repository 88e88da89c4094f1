"""Locks in S3 and DynamoDB, as moto serves them: real Hudi and we exclude each other, and store the same.

StorageBasedLockProvider is Hudi's of 1.0.2 and 1.2.0 (its requests are sent by a class of ours, see
S3StorageLockClient.java), DynamoDBBasedLockProvider and the lock client of awslabs are those of 0.15.0.
"""

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from hudi_services.errors import ConflictError
from hudi_services.locking.dynamodb import DynamoDBProvider
from hudi_services.locking.protocol import LockProvider, LockWait, TableLock
from hudi_services.locking.registry import lock_provider
from hudi_services.locking.storage_based import LOCK_FILE, StorageLock
from hudi_services.locking.zookeeper import implicit_name
from hudi_services.options import lock_keys, resolve
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from ..servers.bucket import upload
from ..servers.moto import moto
from . import ours
from .conftest import Tables
from .lock_holder import HudiLock, give_dynamodb, give_s3_client
from .peer import Peer, PeerError
from .reading import newer

QUICK = LockWait(wait_millis=100, retry_wait_millis=10)
# Longer than a storage lock is valid. In DynamoDB it is the lease, too, for which Hudi waits before it gives up.
PATIENT, FOR_DYNAMODB = LockWait(30_000, 20), LockWait(4_000, 20)
REGION = "us-east-1"
CREDENTIALS = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}
_WAITS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.wait_time_ms": "1500",
    "hoodie.write.lock.num_retries": "1",
    "hoodie.write.lock.wait_time_ms_between_retry": "100",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "100",
    "hoodie.write.lock.client.num_retries": "1",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}
_VALID_SECONDS = 10
_STORAGE = {
    "hoodie.write.lock.provider": lock_keys.STORAGE_LOCK,
    "hoodie.write.lock.storage.validity.timeout.secs": str(_VALID_SECONDS),
    # 1.0.2 has the second name alone.
    "hoodie.write.lock.storage.renew.interval.secs": "1",
    "hoodie.write.lock.storage.heartbeat.poll.secs": "1",
}
_DYNAMODB = {
    "hoodie.write.lock.provider": lock_keys.DYNAMODB_LOCK,
    "hoodie.write.lock.dynamodb.table": "hudi_locks",
    "hoodie.write.lock.dynamodb.region": REGION,
}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of S3 and DynamoDB, with the bucket `lake`."""
    with moto(tmp_path_factory.mktemp("aws")) as bucket, pytest.MonkeyPatch.context() as patch:
        for name, value in {**CREDENTIALS, "aws_region": REGION, "aws_endpoint": bucket.endpoint}.items():
            patch.setenv(name.upper(), value)
        patch.setenv("AWS_ALLOW_HTTP", "true")
        yield bucket.endpoint


@dataclass(frozen=True)
class Place:
    """A table whose lock Hudi and we take with the same options. `stored`: what the lock is at the moment."""

    peer: Peer
    base_path: str
    options: Mapping[str, str]
    of_hudi: Mapping[str, str]
    stored: Callable[[], Any]

    @property
    def storage(self) -> Storage:
        return open_storage(self.base_path)

    @property
    def provider(self) -> LockProvider:
        return lock_provider(resolve([("test", self.options)]), self.storage)

    def ours(self, wait: LockWait | None = None) -> TableLock:
        provider = self.provider
        patient = FOR_DYNAMODB if isinstance(provider, DynamoDBProvider) else PATIENT
        return provider.lock(self.storage, wait or patient)

    def hudi(self) -> HudiLock:
        return HudiLock(self.peer, self.base_path, {**self.options, **self.of_hudi})


@pytest.fixture(
    params=[
        pytest.param("storage", marks=pytest.mark.releases("1.0.2", "1.2.0")),
        pytest.param("dynamodb", marks=[pytest.mark.releases("0.15.0"), pytest.mark.deep]),
        pytest.param("dynamodb_implicit", marks=[pytest.mark.releases("0.15.0"), pytest.mark.deep]),
    ]
)
def place(request: pytest.FixtureRequest, peer: Peer, aws: str, table: Tables, tmp_path: Path) -> Place:
    """A copy of a table, in S3 for the provider that needs it to be there."""
    path = table("plain")
    if request.param == "storage":
        give_s3_client(peer)
        url = f"s3a://lake/{tmp_path.name}"
        upload(path, url)
        return in_s3(peer, url, aws)
    give_dynamodb(peer, REGION, CREDENTIALS)
    return in_dynamodb(peer, path, aws, is_implicit=request.param == "dynamodb_implicit")


def in_s3(peer: Peer, url: str, endpoint: str) -> Place:
    storage = open_storage(url)
    return Place(
        peer, url, {**_WAITS, **_STORAGE}, {"hoodie.test.s3.endpoint": endpoint}, lambda: storage.read(LOCK_FILE)
    )


def in_dynamodb(peer: Peer, path: Path, endpoint: str, *, is_implicit: bool) -> Place:
    """Hudi 0.15.0 has no provider that derives the key: it gets the one that ours derives."""
    key = implicit_name(str(path)) if is_implicit else path.parent.name
    named = {"hoodie.write.lock.dynamodb.partition_key": key}
    options = {**_WAITS, **_DYNAMODB, "hoodie.write.lock.dynamodb.endpoint_url": endpoint}
    if is_implicit:
        options["hoodie.write.lock.provider"] = lock_keys.DYNAMODB_IMPLICIT_LOCK
        of_hudi = {**named, "hoodie.write.lock.provider": lock_keys.DYNAMODB_LOCK}
    else:
        options, of_hudi = {**options, **named}, {}
    service = boto3.client("dynamodb", region_name=REGION, endpoint_url=endpoint)

    def stored() -> Any:
        return service.get_item(TableName="hudi_locks", Key={"key": {"S": key}}, ConsistentRead=True).get("Item")

    return Place(peer, str(path), options, of_hudi, stored)


def test_the_same_is_stored(place: Place) -> None:
    theirs = place.hudi()
    assert theirs.take()
    hudis = place.stored()
    theirs.give_back()
    hudis_after = place.stored()
    with place.ours(LockWait(1_500, 10)):
        mine = place.stored()
    after = place.stored()
    if isinstance(hudis, bytes):
        assert shape(mine) == shape(hudis) and shape(after) == shape(hudis_after)
        # The spelling: ours of Hudi's values is what Hudi wrote.
        for one in (hudis, hudis_after, mine, after):
            assert json.dumps(json.loads(one), separators=(",", ":")).encode() == one
        until = json.loads(hudis)["validUntil"]
        assert hudis_after == hudis.replace(b"false", b"true")
        assert after == mine.replace(b"false", b"true")
        assert 0 <= json.loads(mine)["validUntil"] - until < 60_000
    else:
        assert {name: list(value) for name, value in mine.items()} == {name: list(v) for name, v in hudis.items()}
        assert (mine["key"], mine["leaseDuration"]) == (hudis["key"], hudis["leaseDuration"])
        assert hudis_after is None and after is None
    theirs.close()


def shape(document: bytes) -> Any:
    found = json.loads(document)
    return [(name, type(value).__name__) for name, value in found.items()], found["expired"]


def test_each_waits_for_the_other(place: Place) -> None:
    theirs = place.hudi()
    held: list[float] = []

    def enter() -> None:
        with place.ours() as lock:
            held.append(time.monotonic())
            lock.check()

    # Hudi holds it: a command ends, with the name of the holder, and who waits comes in when Hudi gives it back.
    assert theirs.take()
    run = ours.run("schedule", place.base_path, options=place.options)
    now = place.stored()
    owner = json.loads(now)["owner"] if isinstance(now, bytes) else now["ownerName"]["S"]
    assert run.code == 4 and f"is held by another writer ({owner[:80]}" in run.stderr
    waiting = threading.Thread(target=enter)
    waiting.start()
    time.sleep(0.7)
    assert not held
    released = time.monotonic()
    theirs.give_back()
    waiting.join(timeout=30)
    assert held and held[0] >= released
    # We hold it: Hudi does not get it, and does when we give it back.
    with ThreadPoolExecutor(1) as pool:
        with place.ours() as lock:
            assert not theirs.take(300)
            later = pool.submit(theirs.take, 30_000)
            time.sleep(0.7)
            assert not later.done()
            lock.check()
        assert later.result(timeout=60)
    with pytest.raises(Exception, match="is held by another writer"):
        place.ours(QUICK).__enter__()
    theirs.close()
    # close gives it back.
    with place.ours(LockWait(0, 10)):
        pass


@pytest.mark.deep
@pytest.mark.releases("0.15.0")
def test_writes_of_hudi(peer: Peer, table: Tables, aws: str) -> None:
    path = table("plain")
    give_dynamodb(peer, REGION, CREDENTIALS)
    place = in_dynamodb(peer, path, aws, is_implicit=True)
    row = peer.rows(path).slice(0, 1)
    options = {**place.options, **place.of_hudi}
    with place.ours(LockWait(1_000, 10)) as lock:
        with pytest.raises(PeerError, match=r"(?i)lock"):
            peer.upsert(path, newer(row), **options)
        lock.check()
    ours.execute(path, "--mode", "scheduleAndExecute", "--publish", "first", options=place.options)
    peer.upsert(path, newer(row), **options)
    assert place.stored() is None


def test_locks_of_dead_holders(place: Place) -> None:
    """Each takes over the other's lock by Hudi's rule, and who was dead, and comes back, does no harm."""
    theirs = place.hudi()
    assert theirs.take()
    theirs.die()
    start = time.time()
    deadline = free_at(place.stored(), start)
    deadline += 0 if isinstance(place.provider, DynamoDBProvider) else 2
    with place.ours() as lock:
        assert time.time() >= deadline
        mine = place.stored()
        # 1.2.0 reports that its lock was lost.
        with suppress(PeerError):
            theirs.give_back()
        # The heartbeat of DynamoDB changes the version.
        assert owner_of(place.stored()) == owner_of(mine)
        lock.check()
    theirs.close()
    theirs = place.hudi()
    dead = short_lock(place)
    dead.__enter__()
    dead.check()
    stop_renewing(dead)
    deadline = free_at(place.stored(), time.time())
    assert theirs.take(30_000)
    assert time.time() >= deadline
    hudis = place.stored()
    with pytest.raises(ConflictError, match="was taken over by another writer"):
        dead.check()
    dead.__exit__(None, None, None)
    assert owner_of(place.stored()) == owner_of(hudis)
    with pytest.raises(Exception, match="is held by another writer"):
        place.ours(QUICK).__enter__()
    theirs.close()


def free_at(stored: Any, now: float) -> float:
    """When Hudi takes it over; we do so two renewals later."""
    if isinstance(stored, bytes):
        return float(json.loads(stored)["validUntil"]) / 1000 + 0.5
    return now + int(stored["leaseDuration"]["S"]) / 1000


def owner_of(stored: Any) -> Any:
    if isinstance(stored, bytes):
        found = json.loads(stored)
        return found["owner"], found["expired"]
    return stored["ownerName"]


def short_lock(place: Place) -> TableLock:
    """A lock of ours that is free two seconds after its last renewal."""
    if isinstance(place.provider, DynamoDBProvider):
        return place.ours(LockWait(2_000, 10))
    return StorageLock(place.storage, 2, 0.2, PATIENT)


def stop_renewing(lock: Any) -> None:
    lock._ended.set()
    (lock._renewal if isinstance(lock, StorageLock) else lock._heartbeat).join()


def test_they_count_together(place: Place, tmp_path: Path) -> None:
    seed = random.Random(os.environ.get("HUDI_SEED", "7")).randrange(1 << 30)
    draw, file, times = random.Random(seed), tmp_path / "number", 6
    file.write_text("0")
    theirs = place.hudi()
    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(theirs.count, file, times, seed)
        for _ in range(times):
            with place.ours() as lock:
                before = int(file.read_text())
                lock.check()
                time.sleep(draw.choice((0.01, 0.05, 0.8)))
                file.write_text(str(before + 1))
            time.sleep(draw.random() * 1.2)
        counting.result(timeout=120)
    theirs.close()
    assert int(file.read_text()) == 2 * times


_KEYS = """
known = jvm.org.apache.hudi.common.util.hash.HashID
s3 = jvm.org.apache.hudi.common.fs.FSUtils.s3aToS3
result = [known.generateXXHashAsString(s3(path), known.Size.BITS_64) for path in paths]
"""


@pytest.mark.releases("1.0.2", "1.2.0")
def test_the_key_that_is_derived(peer: Peer) -> None:
    """By the functions of Hudi that DynamoDBBasedImplicitPartitionKeyLockProvider calls."""
    draw = random.Random(11)
    letters = "abz09-_./ é東\U0001f600%=:"
    schemes = ("s3a://lake/", "s3://lake/", "S3A://lake/", "s3a:", "gs://b/", "/data/", "file:/data/", "")
    paths = [
        draw.choice(schemes) + "".join(draw.choices(letters, k=draw.randrange(40))) + draw.choice(["", "/"])
        for _ in range(200)
    ]
    found = peer.eval(_KEYS, paths=paths)
    assert [path for path, key in zip(paths, found, strict=True) if implicit_name(path) != key] == []
