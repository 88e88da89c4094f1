"""Reading the entries of a file group of the record index into runs, for file groups of another number.

A run has the entries grouped by their new shard, as `key_reading` writes them for a build. Beside the number of entries
it tells, for each new shard, the sum of their hashes: the file that is made of them is read back and compared.

What log files add to a file group later is read alone: the log blocks that count are known by their files and offsets,
and a later look goes on after those that an earlier one has read, as long as they are the first ones still.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...base_files.key_runs import write_key_run
from ...codecs.java_hash import file_group_indexes
from ...codecs.row_hash import mix, row_hashes
from ...errors import CheckFailed
from ...model import FileSlice
from ...own_commands import own_command
from ...storage import Storage
from ...table_config import METADATA_TABLE_FOLDER
from ..file_groups.blocks import BlockFilter
from ..file_groups.committed_files import CommittedFiles
from ..file_groups.group_files import GroupFiles
from ..file_groups.reader import FileGroupReader
from .key_reading import KeyRunRef, location_notes
from .locations import Location
from .shard_entries import GONE, Hashes, LocationNumbers, NumberedKeys, ShardEntries, location_hashes

_KEYS_AT_ONCE = 1 << 20
_NOWHERE = Location("", "", 0)
"""The location in runs of deleted keys."""


@dataclass(frozen=True, slots=True)
class GroupState:
    """A file group of the index at a moment: `slice` with its log files, and the rules by which blocks count then."""

    slice: FileSlice
    blocks: BlockFilter
    committed: CommittedFiles

    def open(self, storage: Storage) -> FileGroupReader:
        """Raises CorruptFile and StorageError."""
        return FileGroupReader(GroupFiles(storage, METADATA_TABLE_FOLDER), self.slice, self.blocks, self.committed)


@dataclass(frozen=True, slots=True)
class SeenBlocks:
    """The log blocks of a file group that were read: their number, and a digest of their files and offsets."""

    count: int
    digest: str

    @classmethod
    def of(cls, blocks: Sequence[str]) -> "SeenBlocks":
        return cls(len(blocks), hashlib.sha1("\n".join(blocks).encode()).hexdigest())

    def begin(self, blocks: Sequence[str]) -> bool:
        """Whether these are the first of `blocks`."""
        return SeenBlocks.of(blocks[: self.count]) == self


@dataclass(frozen=True, slots=True)
class EntryTask:
    """A file group of the index, number `position` of `count`, whose entries go to the shards `targets`.

    `after`: read only what log blocks after these have; None for all entries. Runs are named after `prefix`.
    """

    storage: Storage
    group: GroupState
    position: int
    count: int
    targets: Sequence[int]
    prefix: str
    after: SeenBlocks | None = None

    @property
    def bytes(self) -> int:
        return self.group.slice.size


@dataclass(frozen=True, slots=True)
class EntriesRead:
    """Runs of entries, and of deleted keys; `seen`: all log blocks that are read by now.

    `follows`: False when the blocks that were to be seen already are not the first ones any more; nothing is read then.
    `is_split`: whether the entries went straight into base files (`entry_split`), and no run has them.
    """

    runs: tuple[KeyRunRef, ...] = ()
    gone: tuple[KeyRunRef, ...] = ()
    seen: SeenBlocks = field(default_factory=lambda: SeenBlocks.of(()))
    follows: bool = True
    is_split: bool = False


def read_entries(task: EntryTask, token: str) -> EntriesRead:
    """Write the runs of a task, each of about a million entries.

    Raises CheckFailed for a key that another file group should have, CorruptFile and StorageError.
    """
    group = task.group.open(task.storage)
    if task.after is not None and not task.after.begin(group.log_blocks):
        return EntriesRead(follows=False)
    seen = 0 if task.after is None else task.after.count + group.has_base
    entries = ShardEntries(group, numbers := LocationNumbers(), seen, keeps_deleted=task.after is not None)
    runs: list[KeyRunRef] = []
    gone: list[KeyRunRef] = []
    for number, some in enumerate(in_pieces(entries.read(), _KEYS_AT_ONCE)):
        positions = _new_positions(task, some.keys)
        there = some.places != GONE
        for found, name, of_kind in ((runs, "", there), (gone, "gone-", ~there)):
            if of_kind.any():
                path = f"{task.prefix}-{name}{token}-{number}.arrow"
                part = (
                    some if of_kind.all() else NumberedKeys(some.keys.filter(pa.array(of_kind)), some.places[of_kind])
                )
                found.append(_write_run(task, path, part, positions[of_kind], numbers.locations))
    return EntriesRead(tuple(runs), tuple(gone), SeenBlocks.of(group.log_blocks))


def entry_hashes(keys: pa.Array, places: npt.NDArray[np.int32], locations: Hashes) -> Hashes:
    """A hash of each entry: of its binary key, and of its place among `locations`, which `location_hashes` gives."""
    parts = list(row_hashes(pa.table({"key": keys})))
    own = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    return mix(own + locations[places])


def in_pieces(parts: Iterator[NumberedKeys], rows: int) -> Iterator[NumberedKeys]:
    """The same entries in pieces of at least so many rows, but for the last."""
    held: list[NumberedKeys] = []
    for part in parts:
        held.append(part)
        if sum(len(one.keys) for one in held) >= rows:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(parts: Sequence[NumberedKeys]) -> NumberedKeys:
    return NumberedKeys(pa.concat_arrays([one.keys for one in parts]), np.concatenate([one.places for one in parts]))


def _new_positions(task: EntryTask, keys: pa.Array) -> npt.NDArray[np.int32]:
    """The new position of each key. Raises CheckFailed for a key that Hudi would look for in another file group now."""
    texts, count = keys.cast(pa.string()), len(task.targets)
    new = file_group_indexes(texts, count)
    # A number modulo its multiple, and then modulo the number itself.
    now = new % task.count if count % task.count == 0 else file_group_indexes(texts, task.count)
    wrong = np.flatnonzero(now != task.position)
    if len(wrong):
        refuse_misplaced(task, keys, int(wrong[0]))
    return new


def refuse_misplaced(task: EntryTask, keys: pa.Array, row: int) -> None:
    """Raise CheckFailed for the key of a row, where Hudi does not look for it: the new index would find it again."""
    raise CheckFailed(
        f"the file group {task.group.slice.file_id} of the record index has the key {keys[row].as_py()!r:.80}, which "
        "belongs to another one: the index is damaged",
        hint=f"find out what is wrong: {own_command('validate', task.storage.root)}",
    )


def _write_run(
    task: EntryTask,
    path: str,
    entries: NumberedKeys,
    positions: npt.NDArray[np.int32],
    locations: Sequence[Location],
) -> KeyRunRef:
    # Only the locations that occur: there are as many of all as the table has file groups.
    occurs = np.bincount(entries.places + 1, minlength=len(locations) + 1) > 0
    present = np.flatnonzero(occurs) - 1
    numbers = (np.cumsum(occurs) - 1).astype(np.int32)[entries.places + 1]
    own = [locations[place] if place != GONE else _NOWHERE for place in present.tolist()]
    shards = np.asarray(task.targets, np.int32)[positions]
    write_key_run(task.storage, path, shards, entries.keys.cast(pa.string()), numbers, location_notes(own))
    hashes = entry_hashes(entries.keys, numbers, location_hashes(own))
    counts = np.bincount(positions, minlength=len(task.targets))
    sums = np.zeros(len(task.targets), np.uint64)
    np.add.at(sums, positions, hashes)
    with_rows = np.flatnonzero(counts).tolist()
    return KeyRunRef(
        path,
        {task.targets[at]: int(counts[at]) for at in with_rows},
        {task.targets[at]: int(sums[at]) for at in with_rows},
    )
