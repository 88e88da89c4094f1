"""A table's own configuration: `.hoodie/hoodie.properties`.

Java-properties text. `hoodie.table.checksum` is the decimal CRC32 of `<database>.<table name>`: it never changes, and
only shows that the file was written whole. `hoodie.properties.backup` holds the old content while the file is being
replaced, and readers use it in between:

    1 recover  file missing or invalid, backup valid: the backup becomes the file; an invalid backup is deleted
    2 backup   create hoodie.properties.backup with the old content
    3 replace  delete hoodie.properties, create it with the new content
    4 verify   read it back, then delete the backup

Source: HoodieTableConfig (modify), ConfigUtils.fetchConfigs of Apache Hudi.
"""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from .clock import Clock, SystemClock
from .codecs.properties import format_properties, parse_properties
from .errors import (
    AlreadyExists,
    CheckFailed,
    CorruptFile,
    HudiServicesError,
    NotFound,
    StorageError,
    TableNotFound,
    UnsupportedTable,
)
from .limits import SMALL_FILE
from .paths import TABLE_FOLDER, is_below, is_name
from .storage import Storage
from .versions import TableVersion, table_version

COLUMNS_DROPPED = "hoodie.datasource.write.drop.partition.columns"
CHANGES_CAPTURED = "hoodie.table.cdc.enabled"
CHANGES_MODE = "hoodie.table.cdc.supplemental.logging.mode"
PARTITION_FIELDS = "hoodie.table.partition.fields"
METADATA_TABLE_FOLDER = f"{TABLE_FOLDER}/metadata"

_FILE = "hoodie.properties"
_BACKUP = "hoodie.properties.backup"
_CHECKSUM = "hoodie.table.checksum"
_NAME = "hoodie.table.name"
_VERSION = "hoodie.table.version"
_LAYOUT = "hoodie.timeline.layout.version"
_PATHS = (
    "hoodie.timeline.path",
    "hoodie.timeline.history.path",
    "hoodie.archivelog.folder",
    "hoodie.table.index.defs.path",
)
_PARTITION_LISTS = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")
_INDEX_DEFINITIONS = ".index_defs/index.json"
# A writer may replace the file between the read of it and the read of its backup.
_ATTEMPTS = 3
_RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class TableConfig:
    """The properties of one table, typed. `root` is the table's folder relative to the storage ("" mostly)."""

    raw: Mapping[str, str]
    version: TableVersion
    root: str = ""

    @classmethod
    def load(cls, storage: Storage, root: str = "", *, clock: Clock | None = None) -> "TableConfig":
        """Read and check the properties of the table in folder `root`.

        Raises TableNotFound when there is no table, CorruptFile when neither the file nor its backup is whole,
        UnsupportedTable for a table version or timeline layout that we do not handle.
        """
        clock = clock or SystemClock()
        folder = _below(root, TABLE_FOLDER)
        for attempt in range(_ATTEMPTS):
            try:
                raw = _read_either(storage, folder)
                break
            except StorageError as e:
                # A local store whose root does not exist raises another error than NotFound.
                _require_table(storage, root)
                if not isinstance(e, NotFound):
                    raise
                failure: HudiServicesError = e
            except CorruptFile as e:
                failure = e
            if attempt + 1 < _ATTEMPTS:
                clock.sleep(_RETRY_SECONDS)
        else:
            raise _unreadable(storage, folder, failure) from failure
        source = storage.full_path(f"{folder}/{_FILE}")
        _check_paths(raw, source)
        return cls(raw, _version(raw, source), root)

    @classmethod
    def create(
        cls, storage: Storage, properties: Mapping[str, str], root: str = "", *, clock: Clock | None = None
    ) -> "TableConfig":
        """Write the properties of a new table in the folder `root`, whose folder `.hoodie` may exist.

        Raises AlreadyExists for a table.
        """
        moment = (clock or SystemClock()).now()
        folder = _below(root, TABLE_FOLDER)
        raw = {**properties, _CHECKSUM: str(_checksum(properties))}
        version = _version(raw, storage.full_path(f"{folder}/{_FILE}"))
        if storage.head(f"{folder}/{_BACKUP}") is not None:
            raise AlreadyExists(f"{storage.full_path(root)} is a table whose properties are being changed")
        storage.create(f"{folder}/{_FILE}", _content(raw, moment))
        return cls(raw, version, root)

    def make_folders(self, storage: Storage) -> None:
        """Make the folders of the timeline and of its archive, which Hudi lists whether they have files or not."""
        for folder in (self.timeline_path, self.history_path):
            storage.make_folder(folder)

    def withdraw(self, storage: Storage, partition: str) -> "TableConfig":
        """Take a metadata partition out of those that readers use; otherwise as `update`."""
        kept = [one for one in self.metadata_partitions if one != partition]
        return self.update(storage, {_PARTITION_LISTS[0]: ",".join(kept)})

    def update(
        self, storage: Storage, changes: Mapping[str, str | None], *, clock: Clock | None = None
    ) -> "TableConfig":
        """Change some keys (None removes a key) and return the new configuration. The caller holds the table's lock.

        Starts from the file as it is now, not from this value, and keeps all other keys.
        Raises CheckFailed when the file does not read back as written; the backup then stays.
        """
        moment = (clock or SystemClock()).now()
        folder = _below(self.root, TABLE_FOLDER)
        old = _recover(storage, folder)
        kept = {key: value for key, value in old.items() if key not in changes}
        new = kept | {key: value for key, value in changes.items() if value is not None}
        new[_CHECKSUM] = str(_checksum(new))
        version = _version(new, storage.full_path(f"{folder}/{_FILE}"))
        storage.create(f"{folder}/{_BACKUP}", _content(old, moment))
        storage.delete(f"{folder}/{_FILE}")
        storage.create(f"{folder}/{_FILE}", _content(new, moment))
        if _read(storage, f"{folder}/{_FILE}") != new:
            storage.delete(f"{folder}/{_FILE}")
            raise CheckFailed(f"{storage.full_path(folder)}/{_FILE} did not read back as written")
        storage.delete(f"{folder}/{_BACKUP}")
        return TableConfig(new, version, self.root)

    def file_digest(self, storage: Storage) -> str:
        """The SHA-256 of the stored file, in hex. It differs when a table was created anew in this place: the file has
        a date."""
        path = f"{_below(self.root, TABLE_FOLDER)}/{_FILE}"
        return hashlib.sha256(storage.read(path, SMALL_FILE)).hexdigest()

    @property
    def name(self) -> str:
        return self.raw[_NAME]

    @property
    def type(self) -> str:
        """COPY_ON_WRITE or MERGE_ON_READ."""
        return self.raw.get("hoodie.table.type", "COPY_ON_WRITE")

    @property
    def is_merge_on_read(self) -> bool:
        return self.type == "MERGE_ON_READ"

    @property
    def record_key_fields(self) -> tuple[str, ...]:
        return self._list("hoodie.table.recordkey.fields")

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The partition fields, without the `:TYPE` that a custom key generator keeps there."""
        return tuple(text.partition(":")[0] for text in self.listed_partition_fields)

    @property
    def listed_partition_fields(self) -> tuple[str, ...]:
        """The partition fields as they are listed; those of a custom key generator may be `name:TYPE`."""
        return self._list(PARTITION_FIELDS)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The fields that decide between two records of one key; called precombine field before version 9."""
        return self._list("hoodie.table.ordering.fields") or self._list("hoodie.table.precombine.field")

    @property
    def key_generator(self) -> str:
        """The type (SIMPLE, COMPLEX …) or the class name, "" when the table names none."""
        return self.raw.get("hoodie.table.keygenerator.type") or self.raw.get("hoodie.table.keygenerator.class", "")

    @property
    def populate_meta_fields(self) -> bool:
        return self._flag("hoodie.populate.meta.fields", True)

    @property
    def timeline_zone(self) -> str:
        """LOCAL (the zone of the writing process) or UTC."""
        return self.raw.get("hoodie.table.timeline.timezone", "LOCAL").upper()

    @property
    def meta_path(self) -> str:
        """The folder `.hoodie`, relative to the storage, as all paths here."""
        return _below(self.root, TABLE_FOLDER)

    @property
    def timeline_path(self) -> str:
        """The folder of the active timeline."""
        if self.version.timeline_layout == 1:
            return self.meta_path
        return _below(self.meta_path, self.raw.get("hoodie.timeline.path", "timeline"))

    @property
    def history_path(self) -> str:
        """The folder of the archived timeline."""
        if self.version.timeline_layout == 1:
            return _below(self.meta_path, self.raw.get("hoodie.archivelog.folder", "archived"))
        return _below(self.timeline_path, self.raw.get("hoodie.timeline.history.path", "history"))

    @property
    def metadata_partitions(self) -> tuple[str, ...]:
        """Partitions of the metadata table that are ready."""
        return self._list("hoodie.table.metadata.partitions")

    @property
    def metadata_partitions_inflight(self) -> tuple[str, ...]:
        """Partitions of the metadata table that are being built."""
        return self._list("hoodie.table.metadata.partitions.inflight")

    @property
    def index_defs_path(self) -> str:
        """The index definitions file; it need not exist."""
        configured = self.raw.get("hoodie.table.index.defs.path")
        return _below(self.root, configured) if configured else f"{self.meta_path}/{_INDEX_DEFINITIONS}"

    @property
    def hive_style(self) -> bool:
        return self._flag("hoodie.datasource.write.hive_style_partitioning", False)

    @property
    def url_encode(self) -> bool:
        return self._flag("hoodie.datasource.write.partitionpath.urlencode", False)

    @property
    def dropped_columns(self) -> tuple[str, ...]:
        """Partition columns that the base files need not have."""
        return self.partition_fields if self.drops_columns else ()

    @property
    def drops_columns(self) -> bool:
        """Whether writers leave the partition columns out of files."""
        return self._flag(COLUMNS_DROPPED, False)

    @property
    def captures_changes(self) -> bool:
        """Whether merges into base files write the changes that they make (change data capture)."""
        return self._flag(CHANGES_CAPTURED, False)

    @property
    def changes_mode(self) -> str:
        """What records of changes hold: Hudi's supplemental logging mode."""
        return self.raw.get(CHANGES_MODE, "DATA_BEFORE_AFTER").upper()

    @property
    def partition_metafile_in_base_format(self) -> bool:
        """True: `.hoodie_partition_metadata.parquet` instead of the plain file."""
        return self._flag("hoodie.partition.metafile.use.base.format", False)

    @property
    def create_schema(self) -> str | None:
        """The Avro schema as JSON that was given at creation; None when there was none."""
        return self.raw.get("hoodie.table.create.schema") or None

    @property
    def base_file_format(self) -> str:
        """PARQUET, ORC or HFILE."""
        alternative = self.raw.get("hoodie.table.ro.file.format", "PARQUET")
        return self.raw.get("hoodie.table.base.file.format", alternative).upper()

    def _list(self, key: str) -> tuple[str, ...]:
        return tuple(text.strip() for text in self.raw.get(key, "").split(",") if text.strip())

    def _flag(self, key: str, default: bool) -> bool:
        text = self.raw.get(key, "").strip().lower()
        return text == "true" if text else default


def _below(root: str, path: str) -> str:
    return f"{root}/{path}" if root and path else root or path


def _check_paths(raw: Mapping[str, str], source: str) -> None:
    """Raise CorruptFile for a configured path that is not below the folder to which it is relative."""
    values = [(key, raw.get(key, "")) for key in _PATHS]
    values += [(key, name.strip()) for key in _PARTITION_LISTS for name in raw.get(key, "").split(",")]
    for key, path in values:
        if path and not (is_below(path) and (key in _PATHS or is_name(path))):
            raise CorruptFile(
                f"{source} has {key}={path}, which leads out of the table", hint="put the right value in its place"
            )


def _read_either(storage: Storage, folder: str) -> dict[str, str]:
    """The properties of the file when it is whole, otherwise of the backup; raises the error of the file."""
    try:
        return _read(storage, f"{folder}/{_FILE}")
    except (NotFound, CorruptFile) as first:
        try:
            return _read(storage, f"{folder}/{_BACKUP}")
        except (NotFound, CorruptFile):
            raise first from None


def _read(storage: Storage, path: str) -> dict[str, str]:
    full = storage.full_path(path)
    data = storage.read(path, SMALL_FILE)
    raw = parse_properties(data, full)
    if not data.endswith((b"\n", b"\r")):
        raise CorruptFile(f"{full} is cut off at byte {len(data)}", hint="end the file with a newline if it is whole")
    absent = [key for key in (_NAME, _VERSION, _LAYOUT) if not raw.get(key)]
    if absent:
        raise CorruptFile(f"{full} is not whole: {absent[0]} is missing")
    if raw.get(_CHECKSUM, str(_checksum(raw))) != str(_checksum(raw)):
        raise CorruptFile(f"{full} does not match its hoodie.table.checksum={raw[_CHECKSUM]}")
    return raw


def _recover(storage: Storage, folder: str) -> dict[str, str]:
    """Finish or undo an update that stopped half-way; return the properties and leave no backup."""
    raw = _read_either(storage, folder)
    try:
        current = _read(storage, f"{folder}/{_FILE}")
    except (NotFound, CorruptFile):
        storage.put(f"{folder}/{_FILE}", storage.read(f"{folder}/{_BACKUP}", SMALL_FILE))
        current = raw
    storage.delete(f"{folder}/{_BACKUP}")
    return current


def _checksum(raw: Mapping[str, str]) -> int:
    return zlib.crc32(f"{raw.get('hoodie.database.name', '')}.{raw[_NAME]}".encode())


def _content(raw: Mapping[str, str], moment: datetime) -> bytes:
    utc = moment.astimezone(timezone.utc)
    return format_properties(
        raw, (f"Updated at {utc:%Y-%m-%dT%H:%M:%S.%f}Z", f"{utc:%a %b %d %H:%M:%S} UTC {utc.year}")
    )


def _version(raw: Mapping[str, str], source: str) -> TableVersion:
    try:
        number, layout = int(raw[_VERSION]), int(raw[_LAYOUT])
    except ValueError as e:
        raise CorruptFile(f"{source} has a version that is no number: {e}") from e
    version = table_version(number, source)
    if layout != version.timeline_layout:
        raise UnsupportedTable(
            f"{source} says {_LAYOUT}={layout}, and table version {number} has layout {version.timeline_layout}"
        )
    return version


def _require_table(storage: Storage, root: str) -> None:
    files, folders = storage.list_dir(_below(root, TABLE_FOLDER))
    if not files and not folders:
        raise TableNotFound(
            f"{storage.full_path(root)} is no Hudi table: it has no folder {TABLE_FOLDER}",
            hint="check the path of the table",
        )


def _unreadable(storage: Storage, folder: str, error: HudiServicesError) -> CorruptFile:
    if isinstance(error, CorruptFile):
        return CorruptFile(error.message, hint=error.hint or f"restore {_FILE} from a backup")
    return CorruptFile(
        f"{storage.full_path(folder)}/{_FILE} is missing, and there is no valid {_BACKUP}",
        hint=f"restore {_FILE} from a backup",
    )
