"""The lock providers by name: Hudi's classes, and operators' own as `package.module:Class`."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import ConfigError
from ..options import lock_keys as keys
from ..options.resolve import Options
from ..plugins import guarded, load
from ..storage import Storage
from .dynamodb import DynamoDBProvider
from .file_system import FileSystemProvider
from .protocol import LockProvider, LockWait, NoLockProvider, TableLock
from .storage_based import StorageBasedProvider
from .zookeeper import ZooKeeperProvider

_TABLE_NAME = "hoodie.table.name"


@dataclass(frozen=True, slots=True)
class OwnProvider:
    """A class of the operator, `package.module:Class`, which is called with the options, the storage and the wait.

    The result is a `TableLock`. The options are the texts of all keys that are set, as
    `{"hoodie.write.lock.provider": …}`.
    """

    name: str
    options: Mapping[str, str]
    is_shared = True

    def lock(self, table: Storage, wait: LockWait) -> TableLock:
        kind = load(self.name, "lock provider")
        with guarded("lock provider", kind):
            found = kind(self.options, table, wait)
        if not all(hasattr(found, name) for name in ("check", "__enter__", "__exit__")):
            raise ConfigError(f"the lock provider {self.name} is no {TableLock.__module__}.{TableLock.__name__}")
        lock: TableLock = found
        return lock


def lock_provider(options: Options, table: Storage) -> LockProvider:
    """The provider that `options` name. Raises ConfigError when an option that it needs is not set."""
    name = options[keys.LOCK_PROVIDER]
    if not name:
        return NoLockProvider()
    if name in _PROVIDERS:
        return _PROVIDERS[name](options, table)
    return OwnProvider(name, options.texts())


def _file_system(options: Options, table: Storage) -> LockProvider:
    folder = options[keys.LOCK_FOLDER]
    return FileSystemProvider(table.elsewhere(folder) if folder else None, options[keys.LOCK_EXPIRE_MINUTES])


def _storage_based(options: Options, table: Storage) -> LockProvider:
    valid, renew = options[keys.STORAGE_VALID_SECONDS], options[keys.STORAGE_RENEW_SECONDS]
    if valid < 10 * renew:
        raise ConfigError(
            f"{keys.STORAGE_VALID_SECONDS.key}={valid} is less than ten times {keys.STORAGE_RENEW_SECONDS.key}={renew}",
            hint=f"set {keys.STORAGE_RENEW_SECONDS.key} to a tenth of it or less: Hudi's writers refuse more, too",
        )
    return StorageBasedProvider(valid, renew)


def _zookeeper(options: Options, table: Storage) -> LockProvider:
    return _in_zookeeper(
        options,
        _required(options, keys.ZOOKEEPER_BASE_PATH.key, options[keys.ZOOKEEPER_BASE_PATH]),
        _or_table_name(options, keys.ZOOKEEPER_KEY.key, options[keys.ZOOKEEPER_KEY]),
    )


def _zookeeper_implicit(options: Options, table: Storage) -> LockProvider:
    return _in_zookeeper(options, "", "")


def _in_zookeeper(options: Options, base_path: str, key: str) -> LockProvider:
    return ZooKeeperProvider(
        hosts=_required(options, keys.ZOOKEEPER_URL.key, options[keys.ZOOKEEPER_URL]),
        base_path=base_path,
        key=key,
        session_millis=options[keys.ZOOKEEPER_SESSION_MILLIS],
        connection_millis=options[keys.ZOOKEEPER_CONNECTION_MILLIS],
    )


def _dynamodb(options: Options, table: Storage) -> LockProvider:
    return _in_dynamodb(options, _or_table_name(options, keys.DYNAMODB_KEY.key, options[keys.DYNAMODB_KEY]))


def _dynamodb_implicit(options: Options, table: Storage) -> LockProvider:
    return _in_dynamodb(options, "")


def _in_dynamodb(options: Options, key: str) -> LockProvider:
    return DynamoDBProvider(
        table=options[keys.DYNAMODB_TABLE],
        key=key,
        region=options[keys.DYNAMODB_REGION] or os.environ.get("AWS_REGION", "us-east-1"),
        endpoint=options[keys.DYNAMODB_ENDPOINT],
        billing=options[keys.DYNAMODB_BILLING],
        read_capacity=options[keys.DYNAMODB_READ_CAPACITY],
        write_capacity=options[keys.DYNAMODB_WRITE_CAPACITY],
        creation_millis=options[keys.DYNAMODB_CREATION_MILLIS],
    )


def _required(options: Options, key: str, value: str) -> str:
    if not value:
        raise ConfigError(
            f"{keys.LOCK_PROVIDER.key}={options[keys.LOCK_PROVIDER]} needs {key}, which is not set",
            hint="set it as the other writers of the table do",
        )
    return value


def _or_table_name(options: Options, key: str, value: str) -> str:
    """As Hudi infers the name of a lock."""
    return _required(options, key, value or options.texts().get(_TABLE_NAME, ""))


_PROVIDERS: Mapping[str, Callable[[Options, Storage], LockProvider]] = {
    keys.FILE_SYSTEM_LOCK: _file_system,
    keys.STORAGE_LOCK: _storage_based,
    keys.ZOOKEEPER_LOCK: _zookeeper,
    keys.ZOOKEEPER_IMPLICIT_LOCK: _zookeeper_implicit,
    keys.DYNAMODB_LOCK: _dynamodb,
    keys.DYNAMODB_IMPLICIT_LOCK: _dynamodb_implicit,
}
