"""hoodie.properties: reading, typed access, and the update that readers can watch."""

import contextlib
import zlib
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from hudi_services.errors import CheckFailed, CorruptFile, StorageError, TableNotFound, UnsupportedTable
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.stores.local import LocalStorage
from hudi_services.table_config import METADATA_TABLE_FOLDER, TableConfig

PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = ".hoodie/hoodie.properties.backup"
MINIMAL = {"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}


class StillClock:
    """No time passes, and waiting takes none."""

    def now(self) -> datetime:
        return datetime(2026, 11, 21, 8, 0, tzinfo=timezone.utc)

    def sleep(self, seconds: float) -> None:
        pass


CLOCK = StillClock()


class FailingStorage(LocalStorage):
    """Refuses all writes after the first `allowed` ones, as a process that dies would."""

    allowed = 0

    def _spend(self) -> None:
        if self.allowed == 0:
            raise StorageError("stopped")
        self.allowed -= 1

    def put(self, path: str, data: bytes) -> None:
        self._spend()
        super().put(path, data)

    def create(self, path: str, data: bytes) -> None:
        self._spend()
        super().create(path, data)

    def delete(self, path: str) -> None:
        self._spend()
        super().delete(path)


def text(properties: dict[str, str]) -> bytes:
    return "".join(f"{key}={value}\n" for key, value in properties.items()).encode()


def table(tmp_path: Path, **more: str) -> Storage:
    """A table whose further keys are given with "__" for "."."""
    storage = open_storage(str(tmp_path))
    storage.put(PROPERTIES, text(MINIMAL | {key.replace("__", "."): value for key, value in more.items()}))
    return storage


def load(storage: Storage) -> TableConfig:
    return TableConfig.load(storage, clock=CLOCK)


def test_defaults(tmp_path: Path) -> None:
    config = load(table(tmp_path))
    assert config.name == "t"
    assert config.type == "COPY_ON_WRITE"
    assert config.version.number == 9
    assert config.base_file_format == "PARQUET"
    assert config.timeline_zone == "LOCAL"
    assert config.populate_meta_fields
    assert config.record_key_fields == config.partition_fields == config.ordering_fields == ()
    assert config.metadata_partitions == config.metadata_partitions_inflight == ()
    assert not (config.hive_style or config.url_encode or config.dropped_columns)
    assert not config.partition_metafile_in_base_format
    assert config.create_schema is None
    assert config.key_generator == ""
    assert config.index_defs_path == ".hoodie/.index_defs/index.json"


def test_typed_values(tmp_path: Path) -> None:
    config = load(
        table(
            tmp_path,
            hoodie__table__type="MERGE_ON_READ",
            hoodie__table__recordkey__fields="a, b",
            hoodie__table__partition__fields="p:SIMPLE,q:timestamp",
            hoodie__table__precombine__field="old",
            hoodie__table__metadata__partitions="files,column_stats",
            hoodie__populate__meta__fields="false",
            hoodie__table__timeline__timezone="utc",
            hoodie__table__ro__file__format="orc",
            hoodie__table__keygenerator__class="org.Key",
            hoodie__datasource__write__hive_style_partitioning="TRUE",
        )
    )
    assert config.type == "MERGE_ON_READ"
    assert config.record_key_fields == ("a", "b")
    assert config.partition_fields == ("p", "q")
    assert config.ordering_fields == ("old",)
    assert config.metadata_partitions == ("files", "column_stats")
    assert not config.populate_meta_fields
    assert config.timeline_zone == "UTC"
    assert config.base_file_format == "ORC"
    assert config.key_generator == "org.Key"
    assert config.hive_style


def test_folders_of_both_layouts(tmp_path: Path) -> None:
    config = load(table(tmp_path, hoodie__archivelog__folder="ignored", hoodie__timeline__history__path="h"))
    assert (config.timeline_path, config.history_path) == (".hoodie/timeline", ".hoodie/timeline/h")
    old = {"hoodie__table__version": "6", "hoodie__timeline__layout__version": "1"}
    config = load(table(tmp_path, **old))
    assert (config.timeline_path, config.history_path) == (".hoodie", ".hoodie/archived")


def test_the_metadata_table_has_its_own(tmp_path: Path) -> None:
    storage = table(tmp_path)
    storage.put(f"{METADATA_TABLE_FOLDER}/{PROPERTIES}", text(MINIMAL | {"hoodie.table.name": "t_metadata"}))
    config = TableConfig.load(storage, METADATA_TABLE_FOLDER, clock=CLOCK)
    assert config.name == "t_metadata"
    assert config.timeline_path == ".hoodie/metadata/.hoodie/timeline"


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound, match=str(tmp_path)):
        load(open_storage(str(tmp_path)))
    with pytest.raises(TableNotFound, match="nowhere"):
        load(open_storage(str(tmp_path / "nowhere")))


def test_a_table_without_properties(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put(".hoodie/timeline/1.commit", b"")
    with pytest.raises(CorruptFile, match=r"hoodie\.properties is missing"):
        load(storage)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 200,
        b"\x1f\x8b garbage",
        text(MINIMAL)[:-1],
        text({**MINIMAL, "hoodie.table.name": ""}),
        text({**MINIMAL, "hoodie.table.version": "x"}),
        text({**MINIMAL, "hoodie.table.checksum": "1"}),
        text({key: value for key, value in MINIMAL.items() if key != "hoodie.timeline.layout.version"}),
    ],
)
def test_broken_properties_are_named(tmp_path: Path, data: bytes) -> None:
    storage = open_storage(str(tmp_path))
    storage.put(PROPERTIES, data)
    with pytest.raises(CorruptFile, match=f"{tmp_path}/{PROPERTIES}"):
        load(storage)


@pytest.mark.parametrize("data", [None, b"", b"\x00", text({**MINIMAL, "hoodie.table.checksum": "1"})])
def test_a_valid_backup_is_used(tmp_path: Path, data: bytes | None) -> None:
    storage = open_storage(str(tmp_path))
    storage.put(BACKUP, text(MINIMAL))
    if data is not None:
        storage.put(PROPERTIES, data)
    assert load(storage).name == "t"


def test_a_broken_backup_does_not_hide_the_file(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put(PROPERTIES, b"\x00")
    storage.put(BACKUP, b"\x00")
    with pytest.raises(CorruptFile, match=f"{PROPERTIES} "):
        load(storage)


@pytest.mark.parametrize(("version", "layout"), [("5", "1"), ("10", "2"), ("6", "2"), ("9", "1")])
def test_unsupported_versions(tmp_path: Path, version: str, layout: str) -> None:
    with pytest.raises(UnsupportedTable, match=PROPERTIES):
        load(table(tmp_path, hoodie__table__version=version, hoodie__timeline__layout__version=layout))


def test_a_missing_file_is_looked_for_again(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put(".hoodie/timeline/1.commit", b"")

    class Rescue(StillClock):
        def sleep(self, seconds: float) -> None:
            storage.put(PROPERTIES, text(MINIMAL))

    assert TableConfig.load(storage, clock=Rescue()).name == "t"


def test_update_keeps_what_it_does_not_know(tmp_path: Path) -> None:
    storage = table(tmp_path, custom__key="a\\=b", hoodie__table__cdc__enabled="false", hoodie__database__name="db")
    config = load(storage).update(
        storage, {"hoodie.table.metadata.partitions": "files", "hoodie.table.cdc.enabled": None}, clock=CLOCK
    )
    assert config.metadata_partitions == ("files",)
    assert config.raw["custom.key"] == "a=b"
    assert "hoodie.table.cdc.enabled" not in config.raw
    assert config.raw["hoodie.table.checksum"] == str(zlib.crc32(b"db.t"))
    assert load(storage) == config
    assert storage.head(BACKUP) is None
    assert storage.read(PROPERTIES).startswith(
        b"#Updated at 2026-11-21T08:00:00.000000Z\n#Sat Nov 21 08:00:00 UTC 2026\n"
    )


def test_the_checksum_is_hudis(tmp_path: Path) -> None:
    storage = table(tmp_path)
    assert load(storage).update(storage, {}, clock=CLOCK).raw["hoodie.table.checksum"] == "498511606"


@pytest.mark.parametrize("allowed", range(5))
def test_an_update_that_stops_leaves_a_readable_table(tmp_path: Path, allowed: int) -> None:
    config = load(table(tmp_path))
    storage = FailingStorage(str(tmp_path))
    storage.allowed = allowed
    with pytest.raises(StorageError):
        config.update(storage, {"k": "new"}, clock=CLOCK)
    seen = load(storage)
    assert seen.raw.get("k") in (None, "new")
    storage.allowed = 100
    assert seen.update(storage, {"m": "2"}, clock=CLOCK).raw == seen.raw | {
        "m": "2",
        "hoodie.table.checksum": "498511606",
    }
    assert storage.head(BACKUP) is None


def test_an_update_that_does_not_read_back(tmp_path: Path) -> None:
    class Forgetful(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data.replace(b"k=new\n", b""))

    config = load(table(tmp_path))
    storage = Forgetful(str(tmp_path))
    with pytest.raises(CheckFailed, match=PROPERTIES):
        config.update(storage, {"k": "new"}, clock=CLOCK)
    assert load(storage).raw == MINIMAL


def _truncated(data: bytes) -> list[bytes]:
    return [data[:length] for length in range(0, len(data), 7)]


@pytest.mark.parametrize(
    "damage", [_truncated, lambda data: [data[:n] + b"\x00" + data[n + 1 :] for n in range(len(data))]]
)
def test_any_damage_reads_or_fails_typed(tmp_path: Path, damage: Callable[[bytes], list[bytes]]) -> None:
    storage: Any = open_storage(str(tmp_path))
    for data in damage(text(MINIMAL)):
        storage.put(PROPERTIES, data)
        with contextlib.suppress(CorruptFile, UnsupportedTable):
            load(storage)
