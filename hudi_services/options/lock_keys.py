"""The options that say how the table is locked.

Sources: HoodieLockConfig, StorageBasedLockConfig, DynamoDbBasedLockConfig and HoodieWriteConfig of Apache Hudi 0.15.0
to 1.2.0.
"""

from typing import Any

from .option import ANY_VALUE, BUT_CODE, Option, Phase, between, choice, endpoint, integer, is_code, text, url

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
_DAY_MILLIS = 86_400_000
_MINUTES = 876_000 * 60
"""A century: a larger value is a mistake, and beyond the range of times."""


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


CONCURRENCY_MODE = Option(
    "hoodie.write.concurrency.mode",
    choice("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    "SINGLE_WRITER",
    Phase.ANY,
    "Whether other writers may write to the table at the same time.",
    in_table=ANY_VALUE,
)
LOCK_PROVIDER = Option(
    "hoodie.write.lock.provider",
    _provider,
    "",
    Phase.ANY,
    "The lock provider of the table: Hudi's class, or package.module:Class; when empty, no lock.",
    in_table=BUT_CODE,
)
LOCK_FOLDER = Option(
    "hoodie.write.lock.filesystem.path",
    url,
    "",
    Phase.ANY,
    "Folder of the lock file; when empty, .hoodie of the table.",
)
LOCK_EXPIRE_MINUTES = Option(
    "hoodie.write.lock.filesystem.expire",
    integer(0, _MINUTES),
    0,
    Phase.ANY,
    "Minutes after which another process may take over a lock file; 0 is never.",
    in_table=between(0, 10_080),
)
LOCK_WAIT_MILLIS = Option(
    "hoodie.write.lock.wait_time_ms",
    integer(0, 7 * _DAY_MILLIS),
    60_000,
    Phase.ANY,
    "Milliseconds to wait for the lock.",
    in_table=between(0, 600_000),
)
LOCK_RETRY_WAIT_MILLIS = Option(
    "hoodie.write.lock.wait_time_ms_between_retry",
    integer(1, _DAY_MILLIS),
    1_000,
    Phase.ANY,
    "Milliseconds between two attempts to take the lock.",
    in_table=between(1, 60_000),
)
STORAGE_VALID_SECONDS = Option(
    "hoodie.write.lock.storage.validity.timeout.secs",
    integer(10, 86_400),
    300,
    Phase.ANY,
    "StorageBasedLockProvider: seconds for which the lock is valid after it was taken or renewed.",
    in_table=between(10, 3_600),
)
STORAGE_RENEW_SECONDS = Option(
    "hoodie.write.lock.storage.renew.interval.secs",
    integer(1, 8_640),
    30,
    Phase.ANY,
    "StorageBasedLockProvider: seconds between two renewals; at most a tenth of the validity.",
    ("hoodie.write.lock.storage.heartbeat.poll.secs",),
    in_table=between(1, 360),
)
ZOOKEEPER_URL = Option(
    "hoodie.write.lock.zookeeper.url",
    text,
    "",
    Phase.ANY,
    "ZookeeperBasedLockProvider: the servers, as host:port,host:port.",
)
ZOOKEEPER_BASE_PATH = Option(
    "hoodie.write.lock.zookeeper.base_path",
    text,
    "",
    Phase.ANY,
    "ZookeeperBasedLockProvider: the folder of the lock in ZooKeeper.",
)
ZOOKEEPER_KEY = Option(
    "hoodie.write.lock.zookeeper.lock_key",
    text,
    "",
    Phase.ANY,
    "ZookeeperBasedLockProvider: the name of the lock in that folder; when empty, the name of the table.",
)
ZOOKEEPER_SESSION_MILLIS = Option(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    integer(1_000, _DAY_MILLIS),
    60_000,
    Phase.ANY,
    "ZookeeperBasedLockProvider: milliseconds after which ZooKeeper ends the session of a silent process.",
    in_table=between(1_000, 600_000),
)
ZOOKEEPER_CONNECTION_MILLIS = Option(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    integer(1, _DAY_MILLIS),
    15_000,
    Phase.ANY,
    "ZookeeperBasedLockProvider: milliseconds to wait for a connection.",
    in_table=between(100, 600_000),
)
DYNAMODB_TABLE = Option(
    "hoodie.write.lock.dynamodb.table",
    text,
    "hudi_locks",
    Phase.ANY,
    "DynamoDBBasedLockProvider: the table of locks in DynamoDB.",
)
DYNAMODB_KEY = Option(
    "hoodie.write.lock.dynamodb.partition_key",
    text,
    "",
    Phase.ANY,
    "DynamoDBBasedLockProvider: the key of the lock in that table; when empty, the name of the table.",
)
DYNAMODB_REGION = Option(
    "hoodie.write.lock.dynamodb.region",
    text,
    "",
    Phase.ANY,
    "DynamoDBBasedLockProvider: the region; when empty, that of AWS_REGION, else us-east-1.",
)
DYNAMODB_ENDPOINT = Option(
    "hoodie.write.lock.dynamodb.endpoint_url",
    endpoint,
    "",
    Phase.ANY,
    "DynamoDBBasedLockProvider: another endpoint than that of the region.",
)
DYNAMODB_BILLING = Option(
    "hoodie.write.lock.dynamodb.billing_mode",
    choice("PAY_PER_REQUEST", "PROVISIONED"),
    "PAY_PER_REQUEST",
    Phase.ANY,
    "DynamoDBBasedLockProvider: the billing mode of a new table of locks.",
)
DYNAMODB_READ_CAPACITY = Option(
    "hoodie.write.lock.dynamodb.read_capacity",
    integer(1, 40_000),
    20,
    Phase.ANY,
    "DynamoDBBasedLockProvider: the provisioned read capacity of a new table of locks.",
)
DYNAMODB_WRITE_CAPACITY = Option(
    "hoodie.write.lock.dynamodb.write_capacity",
    integer(1, 40_000),
    10,
    Phase.ANY,
    "DynamoDBBasedLockProvider: the provisioned write capacity of a new table of locks.",
)
DYNAMODB_CREATION_MILLIS = Option(
    "hoodie.write.lock.dynamodb.table_creation_timeout",
    integer(1, _DAY_MILLIS),
    120_000,
    Phase.ANY,
    "DynamoDBBasedLockProvider: milliseconds to wait for a new table of locks.",
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

ALL: tuple[Option[Any], ...] = tuple(value for value in list(globals().values()) if isinstance(value, Option))
