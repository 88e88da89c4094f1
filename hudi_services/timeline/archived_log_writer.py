"""Writes the archive of timeline layout 1: a new log file for each call, with an entry for each state of each instant.

The entries of commits are those of Hudi 0.15.0: the statistics that the JSON of a commit and the entry both have, and
an empty commit for an empty file. Hudi appends to its newest file where the store can append; here every file is new,
as Hudi's are elsewhere. Source: HoodieTimelineArchiver, MetadataConversionUtils of Hudi 0.15.0.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..clock import instant_of_millis
from ..codecs import avro
from ..codecs.commit_metadata import UNKNOWN_OPERATION
from ..codecs.json_text import parse_json
from ..errors import AlreadyExists, CorruptFile
from ..limits import LARGEST_LOG
from ..log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ..log_files.log_writer import encode_block
from ..storage import FileInfo, Storage
from .archive_writer import ArchiveForm, StoredInstant, StoredState
from .archived_log import archived_actions
from .instant import Action, State

_FILE = re.compile(r"\.commits_\.archive\.([0-9]+)_.*")
_CONTENT_VERSION = 3
_ROLLING_STAT = "ROLLING_STAT"
"""A key that Hudi sets to "" in each archived commit."""
_COMPACT = "COMPACT"


@dataclass(frozen=True, slots=True)
class LogArchiveWriter:
    """The writer of the archive in `folder`."""

    storage: Storage
    folder: str
    form: ArchiveForm

    def add(self, instants: Sequence[StoredInstant], check_held: Callable[[], None]) -> list[str]:
        files = [file for file in self.storage.list_dir(self.folder)[0] if _FILE.fullmatch(file.name)]
        number = max(map(_number, files), default=0)
        known = self._known([file for file in files if _number(file) == number])
        states = [one for instant in instants for one in instant.states if _key(one) not in known]
        if not states:
            return []
        plans = {one.instant.ts: one.content(State.REQUESTED) for one in instants}
        data = b"".join(self._blocks(states, plans))
        check_held()
        while True:
            number += 1
            name = f".commits_.archive.{number}_1-0-1"
            try:
                self.storage.create(f"{self.folder}/{name}", data)
            except AlreadyExists:
                # A writer without a lock archives at this moment: its file stays, and so does ours.
                continue
            return [name]

    def compact(self, check_held: Callable[[], None]) -> list[str]:
        return []

    def _known(self, newest: Sequence[FileInfo]) -> set[tuple[str, str, str]]:
        """The entries of the newest files: an archival that was killed after its write has added them.

        A file with a torn block counts as empty: an entry twice is better than none.
        """
        known: set[tuple[str, str, str]] = set()
        for file in newest:
            data, path = self.storage.read(file.path, LARGEST_LOG), self.storage.full_path(file.path)
            with suppress(CorruptFile):
                known.update([(one.ts, one.action, one.state) for one in archived_actions(data, path)])
        return known

    def _blocks(self, states: Sequence[StoredState], plans: Mapping[str, bytes]) -> Iterator[bytes]:
        schema = avro.load_schema("HoodieArchivedMetaEntry", self.form.release)
        header = {HeaderKey.SCHEMA: schema.text}
        for start in range(0, len(states), self.form.entries):
            records = [
                self._encoded(schema, one, plans[one.instant.ts]) for one in states[start : start + self.form.entries]
            ]
            content = struct.pack(">ii", _CONTENT_VERSION, len(records))
            content += b"".join(struct.pack(">i", len(record)) + record for record in records)
            yield encode_block(LogBlock(BlockType.AVRO_DATA, header, content))

    def _encoded(self, schema: avro.AvroSchema, state: StoredState, plan: bytes) -> bytes:
        source = state.instant.file_name
        try:
            return avro.write_datum(schema, self._entry(state, plan, source))
        except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
            raise CorruptFile(f"{source} cannot be archived: {error}") from error

    def _entry(self, state: StoredState, plan: bytes, source: str) -> dict[str, Any]:
        instant = state.instant
        entry: dict[str, Any] = {
            "commitTime": instant.ts,
            "actionType": instant.action.value,
            "actionState": instant.state.name,
            "stateTransitionTime": instant_of_millis(state.mtime_millis, self.form.zone),
        }
        return entry | _body(instant.action, instant.state, state.data, plan, source)


def _number(file: FileInfo) -> int:
    match = _FILE.fullmatch(file.name)
    return int(match[1]) if match else 0


def _key(state: StoredState) -> tuple[str, str, str]:
    return state.instant.ts, state.instant.action.value, state.instant.state.name


def _body(action: Action, state: State, data: bytes, plan: bytes, source: str) -> dict[str, Any]:
    """The one body of an entry, by field; {} where Hudi's entries have none."""
    completed = state is State.COMPLETED
    if action in (Action.COMMIT, Action.DELTA_COMMIT):
        return {"hoodieCommitMetadata": _commit(data, source)}
    if action is Action.REPLACE_COMMIT:
        if state is State.REQUESTED:
            return _container("hoodieRequestedReplaceMetadata", data, source)
        if completed:
            return {"hoodieReplaceCommitMetadata": _commit(data, source)}
        return {"HoodieInflightReplaceMetadata": _commit(data, source)} if data else {}
    if action in (Action.COMPACTION, Action.LOG_COMPACTION):
        return _container("hoodieCompactionPlan", plan, source)
    if action is Action.CLEAN:
        # Some releases leave the inflight file empty, others copy the plan.
        return (
            _container("hoodieCleanMetadata", data, source)
            if completed
            else _container("hoodieCleanerPlan", data or plan, source)
        )
    return _container("hoodieRollbackMetadata", data, source) if completed else {}


def _container(field: str, data: bytes, source: str) -> dict[str, Any]:
    return {field: avro.read_container(data, source)} if data else {}


def _commit(data: bytes, source: str) -> dict[str, Any]:
    try:
        tree = parse_json(data) if data else {}
    except ValueError as error:
        raise CorruptFile(f"{source} is no commit metadata: {error}") from error
    extra = {key: value for key, value in (tree.get("extraMetadata") or {}).items() if value is not None}
    return {
        "partitionToWriteStats": {},
        **tree,
        "operationType": _COMPACT if tree.get("compacted") else tree.get("operationType") or UNKNOWN_OPERATION,
        "extraMetadata": extra | {_ROLLING_STAT: ""},
        "version": None,
    }
