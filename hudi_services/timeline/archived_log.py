"""The archive of timeline layout 1: log files of Avro blocks, one record for each state of each instant.

    archived/.commits_.archive.<n>_<write token>       blocks of type AVRO_DATA, the schema in their header

    content    int32 version (3) | int32 count | count times: int32 length, Avro binary of HoodieArchivedMetaEntry

Only some fields of an entry are read: commitTime, actionType, actionState (absent in very old entries, which were
completed), the target of a rollback, and the file groups that a write touched.
Source: HoodieArchivedTimeline, HoodieAvroDataBlock of Hudi 0.15.0.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..codecs.avro import AvroSchema, parse_schema, read_datum
from ..codecs.cursor import Cursor
from ..codecs.rollback_plan import RollbackMetadata
from ..errors import CorruptFile
from ..file_cache import shared_cache
from ..limits import LARGEST_LOG
from ..log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ..log_files.log_reader import read_log_blocks
from ..storage import Storage
from .archived_instants import ArchivedAction, ArchivedInstants

_FILE = re.compile(r"\.commits_\.archive\.([0-9]+).*")
_CONTENT_VERSIONS = range(1, 4)
"""Versions that store the number of records (HoodieAvroDataBlockVersion)."""
_NEWEST_FILES = 3
_NAMESPACE = "org.apache.hudi.avro.model"


def read_archive(storage: Storage, folder: str, file_ids: Collection[str] = ()) -> ArchivedInstants:
    """The instants that the archive in `folder` records, and which of `file_ids` its completed writes touched.

    Raises CorruptFile, naming the file and the offset, and StorageError. A torn block is an error here, too: its
    entries are unknown. An archive whose file numbers, from 1 on, have a gap is not whole: files are missing, or Hudi
    merged them.
    """
    files = sorted((file for file in storage.list_dir(folder)[0] if _FILE.fullmatch(file.name)), key=lambda f: f.name)
    entries = (
        entry
        for file in files
        for entry in archived_actions(
            shared_cache().read(storage, file, LARGEST_LOG), storage.full_path(file.path), frozenset(file_ids)
        )
    )
    numbers = {int(match[1]) for file in files if (match := _FILE.fullmatch(file.name))}
    return ArchivedInstants.of(entries, whole=numbers == set(range(1, len(numbers) + 1)))


def last_archived(storage: Storage, folder: str, is_wanted: Callable[[bytes], bool]) -> str:
    """The name of the newest archive file whose content is wanted, of the newest ones; "" for none.

    An entry has its commit as it was, so that texts in it are bytes of the file. Raises StorageError.
    """
    files = [file for file in storage.list_dir(folder)[0] if _FILE.fullmatch(file.name)]
    newest = sorted(files, key=lambda file: file.mtime_millis, reverse=True)[:_NEWEST_FILES]
    return next((file.name for file in newest if is_wanted(shared_cache().read(storage, file, LARGEST_LOG))), "")


def archived_actions(data: bytes, path: str, file_ids: frozenset[str] = frozenset()) -> Iterator[ArchivedAction]:
    """The entries of one archive file, in file order, each with the `file_ids` that it touches. Raises CorruptFile."""
    for block in read_log_blocks(data, path):
        if block.type is BlockType.CORRUPT:
            raise CorruptFile(f"{path} has a torn block at offset {block.offset}")
        if block.type is BlockType.AVRO_DATA:
            yield from _entries(block, file_ids)


def _entries(block: LogBlock, file_ids: frozenset[str]) -> Iterator[ArchivedAction]:
    text = block.header.get(HeaderKey.SCHEMA)
    cursor = Cursor(block.content, block.path, base=block.offset)
    if text is None:
        cursor.fail("the block has no schema")
    schema = parse_schema(text, block.path)
    version = cursor.int32("content version")
    if version not in _CONTENT_VERSIONS:
        cursor.fail(f"content version {version} is not known")
    for _ in range(cursor.int32("record count")):
        length = cursor.int32("record length")
        offset = cursor.base + cursor.pos
        data = cursor.take(length, "record")
        tree = read_datum(schema, data, block.path, offset=offset, readers_schema=_wanted())
        yield _entry(tree, file_ids, f"{block.path} at offset {offset}")
    if cursor.remaining:
        cursor.fail(f"{cursor.remaining} bytes after the last record")


def _entry(tree: Mapping[str, Any], file_ids: frozenset[str], source: str) -> ArchivedAction:
    try:
        rollback = tree["hoodieRollbackMetadata"]
        commits = (tree["hoodieCommitMetadata"], tree["hoodieReplaceCommitMetadata"])
        return ArchivedAction(
            ts=_text(tree["commitTime"]),
            action=_text(tree["actionType"]),
            state=_text(tree["actionState"] or "COMPLETED"),
            rolled_back=None if rollback is None else _rollback(rollback),
            file_ids=file_ids.intersection(one for commit in commits if commit for one in _file_ids(commit)),
        )
    except (KeyError, IndexError, TypeError) as e:
        raise CorruptFile(f"{source} is no entry of an archive: {e}") from e


def _rollback(tree: Mapping[str, Any]) -> RollbackMetadata:
    # Entries of releases before instantsRollback name no action.
    targets = tree["instantsRollback"] or [{"commitTime": tree["commitsRollback"][0], "action": ""}]
    return RollbackMetadata("", targets[0]["commitTime"], targets[0]["action"], {})


def _file_ids(commit: Mapping[str, Any]) -> Iterator[str]:
    for stats in (commit["partitionToWriteStats"] or {}).values():
        yield from (stat["fileId"] for stat in stats)
    for replaced in (commit.get("partitionToReplaceFileIds") or {}).values():
        yield from replaced


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("an instant, an action or a state")
    return value


@lru_cache(maxsize=1)
def _wanted() -> AvroSchema:
    """The few fields to read; Avro's schema resolution skips all others."""

    def optional(name: str, kind: object) -> dict[str, object]:
        return {"name": name, "type": ["null", kind], "default": None}

    def listed(name: str, items: object) -> dict[str, object]:
        return {"name": name, "type": {"type": "array", "items": items}, "default": []}

    def record(name: str, *fields: object) -> dict[str, object]:
        return {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": list(fields)}

    def keyed(name: str, values: object) -> dict[str, object]:
        return optional(name, {"type": "map", "values": {"type": "array", "items": values}})

    instant = record(
        "HoodieInstantInfo", {"name": "commitTime", "type": "string"}, {"name": "action", "type": "string"}
    )
    stats = keyed("partitionToWriteStats", record("HoodieWriteStat", optional("fileId", "string")))
    more_stats = keyed("partitionToWriteStats", "HoodieWriteStat")
    replaced = keyed("partitionToReplaceFileIds", "string")
    rollback = record(
        "HoodieRollbackMetadata", listed("commitsRollback", "string"), listed("instantsRollback", instant)
    )
    entry = record(
        "HoodieArchivedMetaEntry",
        *(optional(name, "string") for name in ("commitTime", "actionType", "actionState")),
        optional("hoodieRollbackMetadata", rollback),
        optional("hoodieCommitMetadata", record("HoodieCommitMetadata", stats)),
        optional("hoodieReplaceCommitMetadata", record("HoodieReplaceCommitMetadata", more_stats, replaced)),
    )
    return parse_schema(json.dumps(entry), "the schema of archive entries")
