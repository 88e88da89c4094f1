"""The lock providers by name: Hudi's classes, and operators' own as `package.module:Class`."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import ConfigError
from ..options import Option, Options, lock_keys
from ..plugins import guarded, load
from ..storage import Storage, check_creates, check_replaces
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
    """The provider that `options` name. Raises ConfigError when an option that it needs is not set, or when the
    store cannot hold its lock."""
    name = options[lock_keys.LOCK_PROVIDER]
    if not name:
        return NoLockProvider()
    if name in _PROVIDERS:
        return _PROVIDERS[name](options, table)
    return OwnProvider(name, options.texts())


def _file_system(options: Options, table: Storage) -> LockProvider:
    folder = options[lock_keys.LOCK_FOLDER]
    found = options.of(FileSystemProvider, table.elsewhere(folder) if folder else None)
    check_creates(found.folder or table, f"{lock_keys.LOCK_PROVIDER.key}={lock_keys.FILE_SYSTEM_LOCK}")
    if found.expire_minutes:
        check_replaces(found.folder or table, lock_keys.LOCK_EXPIRE_MINUTES.key)
    return found


def _storage_based(options: Options, table: Storage) -> LockProvider:
    found = options.of(StorageBasedProvider)
    if found.valid_seconds < 10 * found.renew_seconds:
        valid, renew = lock_keys.STORAGE_VALID_SECONDS, lock_keys.STORAGE_RENEW_SECONDS
        raise ConfigError(
            f"{valid.key}={found.valid_seconds} is less than ten times {renew.key}={found.renew_seconds}",
            hint=f"set {renew.key} to a tenth of it or less: Hudi's writers refuse more, too",
        )
    check_creates(table, f"{lock_keys.LOCK_PROVIDER.key}={lock_keys.STORAGE_LOCK}")
    check_replaces(table, f"{lock_keys.LOCK_PROVIDER.key}={lock_keys.STORAGE_LOCK}")
    return found


def _zookeeper(options: Options, table: Storage) -> LockProvider:
    base_path = _required(options, lock_keys.ZOOKEEPER_BASE_PATH)
    return _in_zookeeper(options, base_path, _or_table_name(options, lock_keys.ZOOKEEPER_KEY))


def _zookeeper_implicit(options: Options, table: Storage) -> LockProvider:
    return _in_zookeeper(options, "", "")


def _in_zookeeper(options: Options, base_path: str, key: str) -> LockProvider:
    return options.of(ZooKeeperProvider, _required(options, lock_keys.ZOOKEEPER_URL), base_path, key)


def _dynamodb(options: Options, table: Storage) -> LockProvider:
    return _in_dynamodb(options, _or_table_name(options, lock_keys.DYNAMODB_KEY))


def _dynamodb_implicit(options: Options, table: Storage) -> LockProvider:
    return _in_dynamodb(options, "")


def _in_dynamodb(options: Options, key: str) -> LockProvider:
    region = options[lock_keys.DYNAMODB_REGION] or os.environ.get("AWS_REGION", "us-east-1")
    return options.of(DynamoDBProvider, options[lock_keys.DYNAMODB_TABLE], key, region)


def _required(options: Options, option: Option[str], instead: str = "") -> str:
    value = options[option] or instead
    if not value:
        raise ConfigError(
            f"{lock_keys.LOCK_PROVIDER.key}={options[lock_keys.LOCK_PROVIDER]} needs {option.key}, which is not set",
            hint="set it as the other writers of the table do",
        )
    return value


def _or_table_name(options: Options, option: Option[str]) -> str:
    """As Hudi infers the name of a lock."""
    return _required(options, option, options.texts().get(_TABLE_NAME, ""))


_PROVIDERS: Mapping[str, Callable[[Options, Storage], LockProvider]] = {
    lock_keys.FILE_SYSTEM_LOCK: _file_system,
    lock_keys.STORAGE_LOCK: _storage_based,
    lock_keys.ZOOKEEPER_LOCK: _zookeeper,
    lock_keys.ZOOKEEPER_IMPLICIT_LOCK: _zookeeper_implicit,
    lock_keys.DYNAMODB_LOCK: _dynamodb,
    lock_keys.DYNAMODB_IMPLICIT_LOCK: _dynamodb_implicit,
}
