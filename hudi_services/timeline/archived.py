"""The archive of timeline layout 2: completion times, and which instants it has.

See `lsm_archive` for the files. Source: ArchivedTimelineLoaderV2 of Apache Hudi.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from ..codecs import avro
from ..codecs.commit_metadata import decode_commit_avro
from ..codecs.rollback_plan import RollbackMetadata, decode_rollback_metadata
from ..errors import CorruptFile
from ..storage import Storage
from ..table_config import TableConfig
from .archived_instants import ArchivedAction, ArchivedInstants
from .instant import Action
from .lsm_archive import LsmArchive, parse_lsm_file

if TYPE_CHECKING:
    from .archive_file import ArchiveFile

_NEWEST_FILES = 3


def is_archived(storage: Storage, config: TableConfig) -> bool:
    """Whether the folder of the archive has any file."""
    files, _ = storage.list_dir(config.history_path)
    return bool(files)


_BARE_RELEASE = "1.0.2"
"""The release that leaves out containers (LegacyArchivedMetaEntryReader)."""


class ArchivedTimes:
    """Looks up completion times, reading each archive file at most once, and those first whose names have the instant.

    The names cannot be relied upon: when Hudi upgrades a table from version 6, it names the files after their first and
    last row, and the rows stand in the order of the old archive's files, newest first (LegacyArchivedMetaEntryReader).
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._archive = LsmArchive(storage, folder)
        self._times: dict[str, dict[str, str]] = {}

    def completion_time(self, ts: str) -> str | None:
        """The completion time of the archived instant of `ts`, None when no archive file has it. Raises CorruptFile."""
        files = [file for file in map(parse_lsm_file, self._archive.files) if file is not None]
        for file in sorted(files, key=lambda one: not one.overlaps(ts, ts)):
            found = self._load(file.name).get(ts)
            if found is not None:
                return found
        return None

    def _load(self, name: str) -> dict[str, str]:
        if name not in self._times:
            times = self._archive.open(name).texts("instantTime", "completionTime")
            self._times[name] = {start: end for start, end in times if start is not None and end is not None}
        return self._times[name]


def read_archive(storage: Storage, folder: str, file_ids: Collection[str] = ()) -> ArchivedInstants:
    """The instants that the archive in `folder` records, and which of `file_ids` its completed writes touched.

    Raises CorruptFile, naming the file, and StorageError.
    """
    archive = LsmArchive(storage, folder)
    return ArchivedInstants.of(
        entry for name in archive.files for entry in _read_actions(archive.open(name), frozenset(file_ids))
    )


def last_archived(storage: Storage, folder: str, is_wanted: Callable[[bytes], bool]) -> str:
    """The newest archived instant whose content, an Avro commit, is wanted, of the newest files; "" for none.

    Raises CorruptFile and StorageError.
    """
    archive = LsmArchive(storage, folder)
    files = [one for one in map(parse_lsm_file, archive.files) if one is not None]
    for file in sorted(files, key=lambda one: one.last, reverse=True)[:_NEWEST_FILES]:
        content = archive.open(file.name)
        instants = [ts for (ts,) in content.texts("instantTime")]
        wanted = content.results("metadata", [is_wanted] * len(instants))
        last = max((ts or "" for ts, is_there in zip(instants, wanted, strict=True) if is_there), default="")
        if last:
            return last
    return ""


def _read_actions(file: "ArchiveFile", file_ids: frozenset[str]) -> Iterator[ArchivedAction]:
    entries: list[ArchivedAction] = []
    for ts, action in file.texts("instantTime", "action"):
        if ts is None or action is None:
            raise CorruptFile(f"{file.path} has a row without instantTime or action")
        entries.append(ArchivedAction(ts, action))
    decoders = list(map(_decoders(file_ids, file.path), entries))
    # This column holds whole commits: it is large, and mostly not needed here.
    results = file.results("metadata", decoders) if any(decoders) else repeat(None, len(entries))
    for entry, result in zip(entries, results, strict=True):
        if isinstance(result, RollbackMetadata):
            yield replace(entry, rolled_back=result)
        else:
            yield entry if result is None else replace(entry, file_ids=result)


_Decoder = Callable[[bytes], RollbackMetadata | frozenset[str]]


def _decoders(file_ids: frozenset[str], path: str) -> Callable[[ArchivedAction], _Decoder | None]:
    """The decoder of an entry's metadata: for rollbacks, and for completed writes when there are `file_ids`."""

    def of_rollback(result: bytes) -> RollbackMetadata:
        return decode_rollback_metadata(_contained(result, "HoodieRollbackMetadata", path), path)

    def of_write(record: str, result: bytes) -> frozenset[str]:
        return file_ids & _file_ids(result, record, path)

    def of_entry(entry: ArchivedAction) -> _Decoder | None:
        if entry.action == Action.ROLLBACK.value:
            return of_rollback
        if not file_ids or not entry.is_completed_write:
            return None
        replaces = entry.action == Action.REPLACE_COMMIT.value
        return partial(of_write, "HoodieReplaceCommitMetadata" if replaces else "HoodieCommitMetadata")

    return of_entry


def _contained(data: bytes, record: str, path: str) -> bytes:
    """What an archive has of an instant, as a container: 1.0.2 leaves the container out when it upgrades a table."""
    if not data or data.startswith(avro.MAGIC):
        return data
    schema = avro.load_schema(record, _BARE_RELEASE)
    return avro.write_container(schema, avro.read_datum(schema, data, path))


def _file_ids(data: bytes, record: str, path: str) -> set[str]:
    commit = decode_commit_avro(_contained(data, record, path), path)
    written = {stat.file_id for stats in commit.stats.values() for stat in stats}
    return written.union(*(commit.replaced or {}).values())
