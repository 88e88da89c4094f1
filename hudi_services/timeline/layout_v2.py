"""Timeline layout 2 (table versions 8, 9): `.hoodie/timeline/<ts>_<completion time>.<action>`, commit metadata as Avro.

A clustering is `clustering` until it is completed, then `replacecommit`; a completed `.clustering` file is ignored.
A completed file without completion time is left from layout 1: its content is JSON, and its modification time counts.
Source: ActiveTimelineV2, InstantFileNameGeneratorV2, InstantGeneratorV2, CommitMetadataSerDeV2 of Apache Hudi.
"""

from collections.abc import Callable, Collection

from ..clock import instant_of_millis
from ..codecs.avro import MAGIC
from ..codecs.commit_metadata import decode_commit_avro, decode_commit_json, encode_commit_avro
from ..model import CommitMetadata
from ..storage import Storage
from .archive_writer import ArchiveForm, ArchiveWriter
from .archived import last_archived, read_archive
from .archived_instants import ArchivedInstants
from .instant import Action, Instant, State, split_name, suffix, suffixes

_SUFFIXES = suffixes(frozenset(Action))


class LayoutV2:
    number = 2
    clustering_action = Action.CLUSTERING
    completion_times = True
    archives_cleans_with_commits = True

    def file_name(self, ts: str, action: Action, state: State, completion_time: str | None = None) -> str:
        if state is not State.COMPLETED:
            return ts + suffix(action, state)
        assert completion_time is not None, "layout 2 names completed files after their completion time"
        return f"{ts}_{completion_time}{suffix(action, state)}"

    def parse(self, name: str, mtime_millis: int, zone: str) -> Instant | None:
        found = split_name(name, _SUFFIXES)
        if found is None:
            return None
        ts, completion, (action, state) = found
        if state is State.COMPLETED:
            return Instant(ts, action, state, completion or instant_of_millis(mtime_millis, zone), name)
        return Instant(ts, action, state, None, name) if completion is None else None

    def encode_commit(self, metadata: CommitMetadata, release: str) -> bytes:
        return encode_commit_avro(metadata, release)

    def decode_commit(self, data: bytes, path: str) -> CommitMetadata:
        # An upgrade leaves old files as JSON. Only the content distinguishes them, inflight files included.
        if data.startswith(MAGIC[:1]):
            return decode_commit_avro(data, path)
        return decode_commit_json(data, path)

    def read_archive(self, storage: Storage, folder: str, file_ids: Collection[str] = ()) -> ArchivedInstants:
        return read_archive(storage, folder, file_ids)

    def last_archived(self, storage: Storage, folder: str, is_wanted: Callable[[bytes], bool]) -> str:
        return last_archived(storage, folder, is_wanted)

    def archive_writer(self, storage: Storage, folder: str, form: ArchiveForm) -> ArchiveWriter:
        # Only here: pyarrow is slow to load, and most commands write no archive.
        from .lsm_archive_writer import LsmArchiveWriter

        return LsmArchiveWriter(storage, folder, form)
