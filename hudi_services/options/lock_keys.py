"""The options that say how the table is locked.

Sources: HoodieLockConfig, StorageBasedLockConfig, DynamoDbBasedLockConfig and HoodieWriteConfig of Apache Hudi 0.15.0
to 1.2.0.
"""

from typing import Any

from .option import ANY_VALUE, BUT_CODE, NEVER, Option, Phase, Section, between
from .value_types import CENTURY_MINUTES, DAY_MILLIS, choice, endpoint, integer, is_code, url

_PACKAGE = "org.apache.hudi.client.transaction.lock"
_AWS_PACKAGE = "org.apache.hudi.aws.transaction.lock"
FILE_SYSTEM_LOCK = f"{_PACKAGE}.FileSystemBasedLockProvider"
STORAGE_LOCK = f"{_PACKAGE}.StorageBasedLockProvider"
ZOOKEEPER_LOCK = f"{_PACKAGE}.ZookeeperBasedLockProvider"
ZOOKEEPER_IMPLICIT_LOCK = f"{_PACKAGE}.ZookeeperBasedImplicitBasePathLockProvider"
DYNAMODB_LOCK = f"{_AWS_PACKAGE}.DynamoDBBasedLockProvider"
DYNAMODB_IMPLICIT_LOCK = f"{_AWS_PACKAGE}.DynamoDBBasedImplicitPartitionKeyLockProvider"
_KNOWN = (
    FILE_SYSTEM_LOCK,
    STORAGE_LOCK,
    ZOOKEEPER_LOCK,
    ZOOKEEPER_IMPLICIT_LOCK,
    DYNAMODB_LOCK,
    DYNAMODB_IMPLICIT_LOCK,
)
_UNPROTECTED = (f"{_PACKAGE}.InProcessLockProvider", f"{_PACKAGE}.NoopLockProvider")


def _provider(value: str) -> str:
    if value in _UNPROTECTED:
        raise ValueError(
            "excludes nobody outside the writer's own process: leave the key out where one writer runs alone"
        )
    if value and value not in _KNOWN and not is_code(value):
        known = ", ".join(name.rpartition(".")[2] for name in _KNOWN)
        raise ValueError(
            f"is a lock that this tool cannot hold together with other writers: use {known} with the name of its "
            "package, or package.module:Class"
        )
    return value


LOCK = Section("The lock", Phase.ANY | Phase.FLEET, NEVER)
CONCURRENCY_MODE = LOCK(
    "hoodie.write.concurrency.mode",
    "SINGLE_WRITER",
    "Whether other writers may write to the table at the same time.",
    parse=choice("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    in_table=ANY_VALUE,
)
LOCK_PROVIDER = LOCK(
    "hoodie.write.lock.provider",
    "",
    "The lock provider of the table: Hudi's class, or package.module:Class; when empty, no lock.",
    parse=_provider,
    in_table=BUT_CODE,
)
LOCK_FOLDER = LOCK(
    "hoodie.write.lock.filesystem.path", "", "Folder of the lock file; when empty, .hoodie of the table.", parse=url
)
LOCK_EXPIRE_MINUTES = LOCK(
    "hoodie.write.lock.filesystem.expire",
    0,
    "Minutes after which another process may take over a lock file; 0 is never.",
    parse=integer(0, CENTURY_MINUTES),
    in_table=between(0, 10_080),
)
LOCK_WAIT_MILLIS = LOCK(
    "hoodie.write.lock.wait_time_ms",
    60_000,
    "Milliseconds to wait for the lock.",
    parse=integer(0, 7 * DAY_MILLIS),
    in_table=between(0, 600_000),
)
LOCK_RETRY_WAIT_MILLIS = LOCK(
    "hoodie.write.lock.wait_time_ms_between_retry",
    1_000,
    "Milliseconds between two attempts to take the lock.",
    parse=integer(1, DAY_MILLIS),
    in_table=between(1, 60_000),
)
STORAGE_VALID_SECONDS = LOCK(
    "hoodie.write.lock.storage.validity.timeout.secs",
    300,
    "StorageBasedLockProvider: seconds for which the lock is valid after it was taken or renewed.",
    parse=integer(10, 86_400),
    in_table=between(10, 3_600),
)
STORAGE_RENEW_SECONDS = LOCK(
    "hoodie.write.lock.storage.renew.interval.secs",
    30,
    "StorageBasedLockProvider: seconds between two renewals; at most a tenth of the validity.",
    ("hoodie.write.lock.storage.heartbeat.poll.secs",),
    parse=integer(1, 8_640),
    in_table=between(1, 360),
)
ZOOKEEPER_URL = LOCK(
    "hoodie.write.lock.zookeeper.url", "", "ZookeeperBasedLockProvider: the servers, as host:port,host:port."
)
ZOOKEEPER_BASE_PATH = LOCK(
    "hoodie.write.lock.zookeeper.base_path", "", "ZookeeperBasedLockProvider: the folder of the lock in ZooKeeper."
)
ZOOKEEPER_KEY = LOCK(
    "hoodie.write.lock.zookeeper.lock_key",
    "",
    "ZookeeperBasedLockProvider: the name of the lock in that folder; when empty, the name of the table.",
)
ZOOKEEPER_SESSION_MILLIS = LOCK(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    60_000,
    "ZookeeperBasedLockProvider: milliseconds after which ZooKeeper ends the session of a silent process.",
    parse=integer(1_000, DAY_MILLIS),
    in_table=between(1_000, 600_000),
)
ZOOKEEPER_CONNECTION_MILLIS = LOCK(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    15_000,
    "ZookeeperBasedLockProvider: milliseconds to wait for a connection.",
    parse=integer(1, DAY_MILLIS),
    in_table=between(100, 600_000),
)
DYNAMODB_TABLE = LOCK(
    "hoodie.write.lock.dynamodb.table", "hudi_locks", "DynamoDBBasedLockProvider: the table of locks in DynamoDB."
)
DYNAMODB_KEY = LOCK(
    "hoodie.write.lock.dynamodb.partition_key",
    "",
    "DynamoDBBasedLockProvider: the key of the lock in that table; when empty, the name of the table.",
)
DYNAMODB_REGION = LOCK(
    "hoodie.write.lock.dynamodb.region",
    "",
    "DynamoDBBasedLockProvider: the region; when empty, that of AWS_REGION, else us-east-1.",
)
DYNAMODB_ENDPOINT = LOCK(
    "hoodie.write.lock.dynamodb.endpoint_url",
    "",
    "DynamoDBBasedLockProvider: another endpoint than that of the region.",
    parse=endpoint,
)
DYNAMODB_BILLING = LOCK(
    "hoodie.write.lock.dynamodb.billing_mode",
    "PAY_PER_REQUEST",
    "DynamoDBBasedLockProvider: the billing mode of a new table of locks.",
    parse=choice("PAY_PER_REQUEST", "PROVISIONED"),
)
DYNAMODB_READ_CAPACITY = LOCK(
    "hoodie.write.lock.dynamodb.read_capacity",
    20,
    "DynamoDBBasedLockProvider: the provisioned read capacity of a new table of locks.",
    parse=integer(1, 40_000),
)
DYNAMODB_WRITE_CAPACITY = LOCK(
    "hoodie.write.lock.dynamodb.write_capacity",
    10,
    "DynamoDBBasedLockProvider: the provisioned write capacity of a new table of locks.",
    parse=integer(1, 40_000),
)
DYNAMODB_CREATION_MILLIS = LOCK(
    "hoodie.write.lock.dynamodb.table_creation_timeout",
    120_000,
    "DynamoDBBasedLockProvider: milliseconds to wait for a new table of locks.",
    parse=integer(1, DAY_MILLIS),
)

_PLACES = (
    LOCK_FOLDER,
    ZOOKEEPER_URL,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_KEY,
    DYNAMODB_TABLE,
    DYNAMODB_KEY,
    DYNAMODB_REGION,
)
LOCKING: tuple[Option[Any], ...] = (CONCURRENCY_MODE, LOCK_PROVIDER, *_PLACES, DYNAMODB_ENDPOINT)
"""A process that takes a wrong value for one of these works without the lock that others hold."""
