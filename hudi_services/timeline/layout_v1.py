"""Timeline layout 1 (table version 6): `.hoodie/<ts>.<action>`, commit metadata as JSON.

A clustering is a `replacecommit` in every state. Completion times are not recorded; the modification time stands in.
Source: ActiveTimelineV1, InstantFileNameGeneratorV1, CommitMetadataSerDeV1 of Apache Hudi.
"""

from collections.abc import Callable, Collection

from ..clock import instant_of_millis
from ..codecs.commit_metadata import decode_commit_json, encode_commit_json
from ..model import CommitMetadata
from ..storage import Storage
from .archive_writer import ArchiveForm, ArchiveWriter
from .archived_instants import ArchivedInstants
from .archived_log import last_archived, read_archive
from .archived_log_writer import LogArchiveWriter
from .instant import Action, Instant, State, split_name, suffix, suffixes

_SUFFIXES = suffixes(frozenset(Action) - {Action.CLUSTERING})


class LayoutV1:
    number = 1
    clustering_action = Action.REPLACE_COMMIT
    completion_times = False
    archives_cleans_with_commits = False

    def file_name(self, ts: str, action: Action, state: State, completion_time: str | None = None) -> str:
        return ts + suffix(Action.REPLACE_COMMIT if action is Action.CLUSTERING else action, state)

    def parse(self, name: str, mtime_millis: int, zone: str) -> Instant | None:
        found = split_name(name, _SUFFIXES)
        if found is None or found[1] is not None:
            return None
        ts, _, (action, state) = found
        completion = instant_of_millis(mtime_millis, zone) if state is State.COMPLETED else None
        return Instant(ts, action, state, completion, name)

    def encode_commit(self, metadata: CommitMetadata, release: str) -> bytes:
        return encode_commit_json(metadata)

    def decode_commit(self, data: bytes, path: str) -> CommitMetadata:
        return decode_commit_json(data, path)

    def read_archive(self, storage: Storage, folder: str, file_ids: Collection[str] = ()) -> ArchivedInstants:
        return read_archive(storage, folder, file_ids)

    def last_archived(self, storage: Storage, folder: str, is_wanted: Callable[[bytes], bool]) -> str:
        return last_archived(storage, folder, is_wanted)

    def archive_writer(self, storage: Storage, folder: str, form: ArchiveForm) -> ArchiveWriter:
        return LogArchiveWriter(storage, folder, form)
