"""The partition `record_index`: each key's location against the file groups that have the key."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from ..codecs.java_hash import file_group_indexes
from ..errors import CorruptFile
from ..files.names import OWN_FOLDER
from ..metadata.bucket_entries import BucketEntries
from ..metadata.buckets import Buckets
from ..metadata.index_keys import record_keys, write_located
from ..metadata.index_log import IndexLogTask, MovedKeys, write_index_log
from ..metadata.keys import RECORD_INDEX
from ..metadata.record_index import Location, millis_of
from ..metadata.records import LocationRecord
from ..metadata.table import MetadataTable
from ..model import BaseFile, FileSlice
from ..storage import Storage
from .footers import Described
from .key_sets import Comparison, Entries, Mismatch, Part, compare, compare_keys
from .model import Difference, Doubt, Finding, Kind, Unsure

_Place = tuple[str, str]
"""A file group: data partition and file id."""
_RUNS = {name: f"{OWN_FOLDER}/validate/{name}.arrow" for name in ("new", "gone")}
_NOWHERE = Location("", "", 0)
_ZONE = "LOCAL"
"""Of the milliseconds in the index, as Hudi has them: see `millis_of`."""


class RecordIndexCheck:
    """Compares all keys, or those of `only`; `progress` gets files and buckets done, and all of them."""

    def __init__(
        self, metadata: MetadataTable, progress: Callable[[int, int], None], only: frozenset[str] | None = None
    ) -> None:
        self._metadata = metadata
        self._progress = progress
        self._only = only
        self._files: list[BaseFile] = []
        self._groups: Sequence[FileSlice] = ()
        self._places: dict[_Place, int] = {}
        self._lock = threading.Lock()
        self.checked = 0
        self.is_whole = True
        """All differences were told."""

    def at(self, files: Sequence[Described]) -> Iterator[Difference]:
        """Only remembers the files that readers see: a key may be anywhere."""
        self._files += [one.file for one in files if one.is_live and one.row_groups]
        return iter(())

    def at_end(self) -> Iterator[Finding]:
        """All differences."""
        self._groups = self._metadata.file_groups(RECORD_INDEX)
        buckets = Buckets(tuple(group.file_id for group in self._groups))
        files: list[Part] = [partial(self._of_file, file, buckets) for file in self._files]
        groups: list[Part] = [partial(self._of_bucket, bucket) for bucket in range(len(self._groups))]
        try:
            found = self._compare(files, groups)
        except _Broken as broken:
            # Whatever the index says of its keys may be right.
            yield Unsure(RECORD_INDEX, broken.file.partition, broken.file.name, Doubt.BROKEN_FILE)
            return
        self.checked, self.is_whole = found.entries, found.is_whole
        by_place = {(file.partition, file.file_id): file for file in self._files}
        places = list(self._places)
        for one in found.mismatches:
            yield _difference(one, places, by_place)

    def _compare(self, files: Sequence[Part], groups: Sequence[Part]) -> Comparison:
        if self._only is None:
            return compare(files, groups, self._progress)
        return compare_keys(files, groups, pa.array([key.encode() for key in self._only], pa.binary()))

    def _of_file(self, file: BaseFile, buckets: Buckets) -> Iterator[Entries]:
        of_partition = np.asarray(buckets.of(file.partition), np.int32)
        place = self._number((file.partition, file.file_id))
        try:
            for keys in record_keys(self._metadata.storage, file):
                where = of_partition[file_group_indexes(keys, len(of_partition))]
                yield Entries(_binary(keys), where, np.full(len(keys), place, np.int32))
        except CorruptFile as error:
            raise _Broken(file) from error

    def _of_bucket(self, bucket: int) -> Iterator[Entries]:
        entries = BucketEntries(self._metadata.open_group(self._groups[bucket]))
        numbers = np.zeros(0, np.int32)
        for some in entries.read():
            new = [self._number((one.partition, one.file_id)) for one in entries.locations[len(numbers) :]]
            numbers = np.append(numbers, np.array(new, np.int32))
            yield Entries(some.keys, np.full(len(some.keys), bucket, np.int32), numbers[some.places])

    def _number(self, place: _Place) -> int:
        with self._lock:
            return self._places.setdefault(place, len(self._places))


def mended_keys(metadata: MetadataTable, differences: Sequence[Difference]) -> MovedKeys | None:
    """What to write into the record index; None when nothing is wrong there."""
    keys = [(one.bucket or 0, one.key, one.wanted()) for one in differences if one.index == RECORD_INDEX]
    if not keys:
        return None
    new = [(bucket, key, record.location) for bucket, key, record in keys if isinstance(record, LocationRecord)]
    gone = [(bucket, key, _NOWHERE) for bucket, key, record in keys if record is None]
    buckets = Buckets(tuple(group.file_id for group in metadata.file_groups(RECORD_INDEX)))
    runs = [write_located(metadata.storage, _RUNS[name], some) for name, some in (("new", new), ("gone", gone))]
    return MovedKeys(buckets, (runs[0],), _write, (runs[1],))


def forget_runs(storage: Storage) -> None:
    """Delete what `mended_keys` wrote."""
    for path in _RUNS.values():
        storage.delete(path)


def _write(tasks: Sequence[IndexLogTask]) -> list[int]:
    return [write_index_log(task, "") for task in tasks]


def _difference(one: Mismatch, places: Sequence[_Place], files: Mapping[_Place, BaseFile]) -> Difference:
    if one.should is None:
        assert one.found is not None, "a key that is nowhere and should be nowhere"
        partition, file_id = places[one.found]
        return Difference(
            RECORD_INDEX, Kind.DEAD_KEY, one.key, partition, None, None, f"it says {file_id}", lambda: None, one.bucket
        )
    file = files[places[one.should]]
    location = Location(file.partition, file.file_id, millis_of(file.instant, _ZONE))
    record = LocationRecord(one.key, location)
    kind, detail = Kind.KEY_MISSING, "the file has it"
    if one.found is not None:
        kind, detail = Kind.WRONG_LOCATION, f"it says {'/'.join(filter(None, places[one.found]))}"
    return Difference(RECORD_INDEX, kind, one.key, file.partition, file.name, None, detail, lambda: record, one.bucket)


def _binary(keys: pa.ChunkedArray) -> pa.Array:
    return keys.combine_chunks().cast(pa.binary())


class _Broken(Exception):
    """A base file whose keys cannot be read."""

    def __init__(self, file: BaseFile) -> None:
        super().__init__(file.name)
        self.file = file
