"""DynamoDBBasedLockProvider: an item of a DynamoDB table, as the lock client of awslabs keeps it, with boto3.

    key                   hash key: the name of the lock
    ownerName             of the holder
    leaseDuration         milliseconds, as text: for so long the holder may be silent
    recordVersionNumber   a uuid, which the holder changes with each heartbeat
    isReleased            "1" when the holder has given the lock back, and left the item

A process takes the lock by a conditional put: when there is no item, when the item is released, or when it has seen the
same version number for a whole lease, by its own clock. The holder changes the version number three times in a lease,
and deletes the item in the end, if it is still its own.
DynamoDBBasedImplicitPartitionKeyLockProvider is the same with a key made from the table's base path.
Source: DynamoDBBasedLockProviderBase of Apache Hudi, 0.15 to 1.2; AmazonDynamoDBLockClient of dynamodb-lock-client 1.x.
"""

import socket
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from ..clock import uptime
from ..errors import ConflictError, StorageError
from ..extras import imported
from ..options import lock_keys, value_of
from ..storage import Storage
from .clients import failing_as_storage
from .implicit_names import implicit_name
from .protocol import LockWait, PolledLock, TableLock

_KEY, _OWNER, _LEASE, _VERSION, _RELEASED = "key", "ownerName", "leaseDuration", "recordVersionNumber", "isReleased"
_WHAT = "the lock in DynamoDB"
_LONGEST_LEASE_SECONDS = 3600.0
Item = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class DynamoDBProvider:
    """`key` "" derives the lock's name from the table's base path; an empty `endpoint` is that of the region."""

    table: str
    key: str
    region: str
    endpoint: str = value_of(lock_keys.DYNAMODB_ENDPOINT)
    billing: str = value_of(lock_keys.DYNAMODB_BILLING)
    read_capacity: int = value_of(lock_keys.DYNAMODB_READ_CAPACITY)
    write_capacity: int = value_of(lock_keys.DYNAMODB_WRITE_CAPACITY)
    creation_millis: int = value_of(lock_keys.DYNAMODB_CREATION_MILLIS)
    is_shared = True

    def lock(self, table: Storage, wait: LockWait) -> TableLock:
        service = imported("boto3", "dynamodb", _WHAT).client(
            "dynamodb", region_name=self.region, endpoint_url=self.endpoint or None
        )
        return DynamoDBLock(service, self, self.key or implicit_name(table.root), wait)


class DynamoDBLock(PolledLock):
    """The item of one lock; a thread gives heartbeats while it is held."""

    advice = "wait for that writer; the lock of a holder that died is free after its lease"

    def __init__(self, service: Any, provider: DynamoDBProvider, key: str, wait: LockWait) -> None:
        super().__init__(f"{key} in the DynamoDB table {provider.table}", wait)
        self._service = service
        self._provider = provider
        self._id = {_KEY: {"S": key}}
        # Hudi's writers wait for a lease of the time that they wait for the lock.
        self._lease_millis = max(1_000, wait.wait_millis)
        self._owner = f"{socket.gethostname()}{uuid.uuid4()}"
        self._version = ""
        self._beaten = 0.0
        """When the last heartbeat was begun, by `uptime`."""
        self._seen: tuple[str, float] = "", 0.0
        """The holder's version number, and when it was first seen."""
        self._found_lease_seconds = 0.0
        self._is_ready = False
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._heartbeat: threading.Thread | None = None

    def check(self) -> None:
        with self._errors(), self._writing:
            is_fresh = uptime() - self._beaten < self._lease_millis / 1000
            if is_fresh and self._is_ours(self._item()):
                return
        raise ConflictError(
            f"the lock {self.name} was taken over by another writer",
            hint="run again; where this process was stopped for longer than hoodie.write.lock.wait_time_ms, "
            "set that to more, here and in the writers",
        )

    def _try(self) -> bool:
        with self._errors():
            if not self._is_ready:
                self._make_table()
                self._is_ready = True
            held = self._item()
            begun = uptime()
            if not self._take(held):
                return False
        self._beaten = begun
        self._heartbeat = threading.Thread(target=self._beat_until_end, name="beats for a lock", daemon=True)
        self._heartbeat.start()
        return True

    def _more_seconds(self) -> float:
        return self._found_lease_seconds

    def _take(self, held: Item | None) -> bool:
        if held is None:
            return self._put("attribute_not_exists(#k)", {})
        version = held.get(_VERSION, {}).get("S", "")
        if self._is_ours(held):
            # The answer to a try of ours that had succeeded was lost.
            self._version = version
            return True
        if held.get(_RELEASED, {}).get("S") == "1":
            return self._put("#v = :v AND #r = :r", {":v": version, ":r": "1"})
        lease = held.get(_LEASE, {}).get("S", "")
        if self._seen[0] != version:
            # As the client of awslabs: the wait is longer by the lease that was found first.
            if not self._seen[0] and lease.isdigit():
                self._found_lease_seconds = min(int(lease) / 1000, _LONGEST_LEASE_SECONDS)
            self._seen = version, time.monotonic()
            return False
        if not lease.isdigit() or time.monotonic() - self._seen[1] <= int(lease) / 1000:
            return False
        return self._put("#v = :v", {":v": version})

    def _put(self, condition: str, values: Mapping[str, str]) -> bool:
        version = str(uuid.uuid4())
        item = {
            **self._id,
            _OWNER: {"S": self._owner},
            _LEASE: {"S": str(self._lease_millis)},
            _VERSION: {"S": version},
        }
        names = {"#k": _KEY, "#v": _VERSION, "#r": _RELEASED}
        more: dict[str, Any] = {"ExpressionAttributeNames": {n: of for n, of in names.items() if n in condition}}
        if values:
            more["ExpressionAttributeValues"] = {name: {"S": value} for name, value in values.items()}
        done = self._conditional("put_item", Item=item, ConditionExpression=condition, **more)
        if done:
            self._version = version
        return done

    def _beat_until_end(self) -> None:
        while not self._ended.wait(self._lease_millis / 3000):
            with self._writing:
                if self._ended.is_set():
                    return
                # An error: the next heartbeat may reach the service before the lease has ended.
                with suppress(StorageError), self._errors():
                    begun, version = uptime(), str(uuid.uuid4())
                    ours = {":o": {"S": self._owner}, ":v": {"S": self._version}, ":n": {"S": version}}
                    if not self._conditional(
                        "update_item",
                        Key=self._id,
                        UpdateExpression="SET #v = :n",
                        ConditionExpression="#o = :o AND #v = :v",
                        ExpressionAttributeNames={"#o": _OWNER, "#v": _VERSION},
                        ExpressionAttributeValues=ours,
                    ):
                        return
                    self._version, self._beaten = version, begun

    def _release(self) -> None:
        self._ended.set()
        # The lock that cannot be given back is free after its lease.
        with suppress(StorageError), self._writing, self._errors():
            self._conditional(
                "delete_item",
                Key=self._id,
                ConditionExpression="#o = :o AND #v = :v",
                ExpressionAttributeNames={"#o": _OWNER, "#v": _VERSION},
                ExpressionAttributeValues={":o": {"S": self._owner}, ":v": {"S": self._version}},
            )
        if self._heartbeat is not None:
            self._heartbeat.join()

    def _holder(self) -> str:
        with suppress(StorageError), self._errors():
            held = self._item() or {}
            who = held.get(_OWNER, {}).get("S", "")[:80]
            return f"another writer ({who})" if who else "another writer"
        return "another writer"

    def _item(self) -> Item | None:
        found: Item | None = self._service.get_item(
            TableName=self._provider.table, Key=self._id, ConsistentRead=True
        ).get("Item")
        return found

    def _is_ours(self, held: Item | None) -> bool:
        return held is not None and held.get(_OWNER, {}).get("S") == self._owner

    def _conditional(self, request: str, **arguments: Any) -> bool:
        """Send a conditional write; False when its condition does not hold."""
        try:
            getattr(self._service, request)(TableName=self._provider.table, **arguments)
        except self._service.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def _make_table(self) -> None:
        """Create the table of locks if it is missing, as Hudi does."""
        found = self._service.exceptions
        provider = self._provider
        with suppress(found.ResourceInUseException):
            try:
                self._service.describe_table(TableName=provider.table)
                return
            except found.ResourceNotFoundException:
                capacity = {"ReadCapacityUnits": provider.read_capacity, "WriteCapacityUnits": provider.write_capacity}
                self._service.create_table(
                    TableName=provider.table,
                    KeySchema=[{"AttributeName": _KEY, "KeyType": "HASH"}],
                    AttributeDefinitions=[{"AttributeName": _KEY, "AttributeType": "S"}],
                    BillingMode=provider.billing,
                    **({"ProvisionedThroughput": capacity} if provider.billing == "PROVISIONED" else {}),
                )
        self._service.get_waiter("table_exists").wait(
            TableName=provider.table, WaiterConfig={"Delay": 1, "MaxAttempts": max(1, provider.creation_millis // 1000)}
        )

    def _errors(self) -> AbstractContextManager[None]:
        exceptions = imported("botocore.exceptions", "dynamodb", _WHAT)
        return failing_as_storage(
            self.name,
            (exceptions.BotoCoreError, exceptions.ClientError),
            hint="check hoodie.write.lock.dynamodb.region and endpoint_url, and the credentials of AWS",
        )
