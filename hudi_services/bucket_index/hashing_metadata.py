"""The files of consistent hashing: the ring of each partition, by the instant that made it.

    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/
        00000000000000.hashing_meta    the ring that the first write of the partition made
        <instant>.hashing_meta         the ring after the clustering at <instant>, written before its data
        <instant>.commit               says that the ring counts: a writer of Hudi makes it when it sees the clustering

The file of a clustering that Hudi rolled back stays, and does not count; a rollback here deletes it. Writers of 0.15.0
put the marker into the data partition, where no one looks for it.
Source: ConsistentBucketIndexUtils, HoodieConsistentHashingMetadata of Apache Hudi.
"""

from collections.abc import Iterable
from contextlib import suppress

from ..errors import AlreadyExists, CorruptFile
from ..snapshot import Snapshot
from ..storage import Storage
from ..timeline.instant import Action
from .ring import FIRST_INSTANT, Ring
from .signs import FOLDER, RING_ENDING

_ROOT = f"{FOLDER}/consistent_hashing_metadata"
_RING, _MARKER = RING_ENDING, ".commit"


def load_ring(table: Snapshot, partition: str) -> Ring | None:
    """The ring that counts in a partition; None where no write has made one. Raises CorruptFile and StorageError."""
    files, _ = table.storage.list_dir(_folder(partition))
    names = {file.name for file in files}
    marked = {name.removesuffix(_MARKER) for name in names if name.endswith(_MARKER)}
    instants = sorted((name.removesuffix(_RING) for name in names if name.endswith(_RING)), reverse=True)
    # A ring that is younger than what is known of the table is that of a clustering which is not known either.
    last = max((one.ts for one in table.timeline.instants), default=FIRST_INSTANT)
    unsure: list[str] = []
    counts: Ring | None = None
    for instant in instants:
        if instant > last or _is_pending(table, instant):
            continue
        if instant == FIRST_INSTANT or instant in marked or _is_completed(table, instant):
            counts = _read(table.storage, partition, instant)
            break
        unsure.append(instant)
    for instant in unsure:
        ring = _read(table.storage, partition, instant)
        if _was_used(table, ring, counts):
            return ring
    return counts


def store_first(storage: Storage, ring: Ring) -> Ring:
    """Store the first ring of a partition, and return the one that counts: another writer may have been first."""
    with suppress(AlreadyExists):
        storage.create(_path(ring.partition, FIRST_INSTANT, _RING), ring.encoded())
        return ring
    return _read(storage, ring.partition, FIRST_INSTANT)


def store_next(storage: Storage, ring: Ring) -> None:
    """Store the ring of a clustering, before its data. One that an earlier attempt has stored is the same."""
    with suppress(AlreadyExists):
        storage.create(_path(ring.partition, ring.instant, _RING), ring.encoded())
        return
    if _read(storage, ring.partition, ring.instant).nodes != ring.nodes:
        path = storage.full_path(_path(ring.partition, ring.instant, _RING))
        raise CorruptFile(f"{path} has another ring than the plan of its clustering makes")


def mark(storage: Storage, partitions: Iterable[str], instant: str) -> None:
    """Say that the rings of a completed clustering count."""
    for partition in partitions:
        with suppress(AlreadyExists):
            storage.create(_path(partition, instant, _MARKER), b"")


def _is_completed(table: Snapshot, instant: str) -> bool:
    found = table.timeline.find(instant)
    return found is not None and found.is_completed and found.action in (Action.REPLACE_COMMIT, Action.COMMIT)


def _is_pending(table: Snapshot, instant: str) -> bool:
    found = table.timeline.find(instant)
    return found is not None and not found.is_completed


def _was_used(table: Snapshot, ring: Ring, older: Ring | None) -> bool:
    """Whether readers see a file group that only this ring has: its clustering is archived, and was not rolled back."""
    known = {node.prefix for node in older.nodes} if older is not None else set()
    new = {node.file_id for node in ring.nodes if node.prefix not in known}
    return any(one.file_id in new for one in table.view.latest_slices(ring.partition))


def _read(storage: Storage, partition: str, instant: str) -> Ring:
    path = _path(partition, instant, _RING)
    return Ring.decode(storage.read(path), storage.full_path(path), partition)


def _folder(partition: str) -> str:
    return f"{_ROOT}/{partition}" if partition else _ROOT


def _path(partition: str, instant: str, ending: str) -> str:
    return f"{_folder(partition)}/{instant}{ending}"
