"""Writes the archive of timeline layout 2: a parquet file of level 0 for each call, and merges of ten of one level.

    <first ts>_<last ts>_0.parquet    one row an action, with the bytes of its files
    manifest_<N + 1>                  the names of all files that count
    _version_                         N + 1: from here on the new file counts; a conditional write
    (merges)                          the same, with a file of the next level in the place of those that it merges
    (old files)                       manifests but the newest ones, then the parquet files that these do not name

A kill leaves files that no manifest names, or a manifest that `_version_` does not name yet: the next archival writes
them anew. Source: LSMTimelineWriter, MetadataConversionUtils.createLSMTimelineInstant of Apache Hudi.
"""

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from ..codecs import avro
from ..errors import ConflictError, CorruptFile
from ..limits import MIB
from ..storage import Storage, check_replaces
from .archive_writer import ArchiveForm, StoredInstant
from .instant import Action, State
from .lsm_archive import VERSION_FILE, LsmArchive, LsmFile, manifest_name, parse_lsm_file

_ROW_VERSION = 1
_LARGE_BYTES = 64 * MIB
"""Files of this size are never merged further: a merge is done in memory, and Hudi's limit is 1000 MB."""
_TOP_LEVEL = 9
_WITH_PLAN = {Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION}
_REPLACING = {Action.REPLACE_COMMIT, Action.CLUSTERING}

_FORM = {
    "compression": "gzip",
    "use_dictionary": False,
    "write_statistics": ["instantTime"],
    "store_schema": False,
    "write_page_checksum": True,
}
_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("instantTime", "completionTime", "action")),
        *(pa.field(name, pa.binary()) for name in ("metadata", "plan")),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


@dataclass(slots=True)
class LsmArchiveWriter:
    """The writer of the archive in `folder`. Raises ConfigError where the store cannot let one archival count."""

    storage: Storage
    folder: str
    form: ArchiveForm
    _written: LsmArchive | None = None
    """The archive as this writer has left it, under the lock that it still holds."""

    def __post_init__(self) -> None:
        check_replaces(self.storage, "the archive of a timeline")

    def add(self, instants: Sequence[StoredInstant], check_held: Callable[[], None]) -> list[str]:
        archive = self._archive()
        known = _recorded(archive, instants)
        rows = [_row(one) for one in instants if _key(one) not in known]
        if not rows:
            return []
        name = f"{rows[0]['instantTime']}_{rows[-1]['instantTime']}_0.parquet"
        data = self._encoded([pa.RecordBatch.from_pylist(rows, _SCHEMA)])
        self._publish(archive, name, data, archive.sizes, check_held)
        return [name]

    def compact(self, check_held: Callable[[], None]) -> list[str]:
        if self._written is not None and not self._needs_compaction(self._written):
            return []
        made: list[str] = []
        archive = self._archive()
        for level in range(_TOP_LEVEL):
            archive = self._archive() if made else archive
            candidates = _candidates(archive, level, self.form)
            if not candidates:
                break
            made.append(self._merge(archive, candidates, check_held))
        self._drop_old(LsmArchive(self.storage, self.folder) if made else archive, len(made), check_held)
        return made

    def _archive(self) -> LsmArchive:
        """The archive as it is. It is listed before its version is read: otherwise `_count` would not see a change in
        between."""
        archive = LsmArchive(self.storage, self.folder)
        _ = archive.listed
        return archive

    def _needs_compaction(self, archive: LsmArchive) -> bool:
        is_merged = any(_candidates(archive, level, self.form) for level in range(_TOP_LEVEL))
        return is_merged or len(archive.manifests) > self.form.manifests

    def _merge(self, archive: LsmArchive, files: Sequence[LsmFile], check_held: Callable[[], None]) -> str:
        first, last = min(one.first for one in files), max(one.last for one in files)
        name = f"{first}_{last}_{files[0].level + 1}.parquet"
        batches = (batch for one in files for batch in archive.open(one.name).batches())
        data = self._encoded(batch.select(_SCHEMA.names).cast(_SCHEMA) for batch in batches)
        merged = {one.name for one in files}
        left = {other: size for other, size in archive.sizes.items() if other not in merged}
        self._publish(archive, name, data, left, check_held)
        return name

    def _publish(
        self,
        archive: LsmArchive,
        name: str,
        data: bytes,
        others: Mapping[str, int],
        check_held: Callable[[], None],
    ) -> None:
        """Write a file, and the manifest that names it beside the `others`, and let that count."""
        if name in archive.sizes:
            path = self.storage.full_path(archive.path(name))
            raise CorruptFile(f"{path} counts, and lacks instants that its name says it has")
        check_held()
        # A file of this name that does not count is left from a killed archival, as is a later manifest.
        if name in archive.listed:
            self.storage.delete(archive.path(name))
        self.storage.create(archive.path(name), data)
        number = (archive.number or 0) + 1
        for one in archive.manifests:
            if one >= number:
                self.storage.delete(archive.path(manifest_name(one)))
        sizes = {**others, name: len(data)}
        entries = [{"fileName": one, "fileLen": size} for one, size in sizes.items()]
        manifest = json.dumps({"files": entries}, indent=2).encode()
        check_held()
        self.storage.create(archive.path(manifest_name(number)), manifest)
        self._count(archive, number)
        self._written = archive.grown(number, sizes, {name: len(data), manifest_name(number): len(manifest)})

    def _count(self, archive: LsmArchive, number: int) -> None:
        """Let the manifest `number` count, unless another process that had lost its lock has written since."""
        path, data, seen = archive.path(VERSION_FILE), str(number).encode(), archive.listed.get(VERSION_FILE)
        if seen is None:
            self.storage.create(path, data)
        elif not self.storage.replace(path, data, seen):
            raise ConflictError(
                f"{self.storage.full_path(path)} was changed meanwhile: another process archives",
                hint="nothing was deleted; run again, and set hoodie.write.lock.provider here and in the writers",
            )

    def _drop_old(self, archive: LsmArchive, made: int, check_held: Callable[[], None]) -> None:
        """Delete old manifests, and the parquet files that no other one names; `made` are new, beside those kept."""
        keep = self.form.manifests + made
        kept = archive.manifests[-keep:]
        if len(kept) == len(archive.manifests):
            return
        named = {name for number in kept for name in archive.manifest(number)}
        check_held()
        for number in archive.manifests[:-keep]:
            self.storage.delete(archive.path(manifest_name(number)))
        for name in archive.listed:
            if name.endswith(".parquet") and name not in named:
                self.storage.delete(archive.path(name))

    def _encoded(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        text = avro.load_schema("HoodieLSMTimelineInstant", self.form.release).text
        schema = _SCHEMA.with_metadata({"parquet.avro.schema": text, "writer.model.name": "avro"})
        out = io.BytesIO()
        with pq.ParquetWriter(out, schema, **_FORM) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return out.getvalue()


def _recorded(archive: LsmArchive, instants: Sequence[StoredInstant]) -> set[tuple[str | None, ...]]:
    """The requested times and actions that the archive has among those of `instants`, and perhaps others."""
    first, last = instants[0].instant.ts, instants[-1].instant.ts
    files = (parse_lsm_file(name) for name in archive.files)
    names = [one.name for one in files if one is not None and one.overlaps(first, last)]
    return {row for name in names for row in archive.open(name).texts("instantTime", "action")}


def _key(stored: StoredInstant) -> tuple[str | None, ...]:
    return stored.instant.ts, stored.instant.action.value


def _row(stored: StoredInstant) -> dict[str, object]:
    instant = stored.instant
    return {
        "instantTime": instant.ts,
        "completionTime": instant.completion_time,
        "action": instant.action.value,
        "metadata": stored.content(State.COMPLETED) or None,
        "plan": _plan(stored) or None,
        "version": _ROW_VERSION,
    }


def _plan(stored: StoredInstant) -> bytes:
    """What Hudi keeps of the lower states, by the action that was requested."""
    began_as = stored.states[0].instant.action
    if began_as in _REPLACING:
        return stored.content(State.INFLIGHT) or stored.content(State.REQUESTED)
    return stored.content(State.REQUESTED) if began_as in _WITH_PLAN else b""


def _candidates(archive: LsmArchive, level: int, form: ArchiveForm) -> list[LsmFile]:
    """The oldest files of a level that are merged, fewer where they get too large; [] where none is to be merged."""
    parsed = (parse_lsm_file(name, size) for name, size in archive.sizes.items())
    files = sorted((one for one in parsed if one and one.level == level), key=lambda one: one.name)
    return _first_group(files, form) if len(files) >= form.merged else []


def _first_group(files: Iterable[LsmFile], form: ArchiveForm) -> list[LsmFile]:
    group: list[LsmFile] = []
    total = 0
    for one in files:
        group.append(one)
        total += one.size
        if len(group) == form.merged:
            break
        if total > min(form.merged_bytes, _LARGE_BYTES):
            if len(group) > 1:
                break
            # This file is large enough by itself.
            group, total = [], 0
    return group if len(group) > 1 else []
