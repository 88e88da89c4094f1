"""The check of the partition `record_index`: each key's location against the file groups that have the key."""

import threading
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from ..codecs.avro import AvroSchema
from ..codecs.java_hash import file_group_indexes
from ..file_names import OWN_FOLDER
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.key_reading import write_located
from ..metadata.record_index.locations import Location, decode_locations, millis_of
from ..metadata.record_index.log_writing import IndexDelta, write_index_logs
from ..metadata.record_index.shard_entries import Places, spread
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..metadata.records.model import LocationRecord
from ..model import FileSlice
from ..storage import Storage
from .key_index import KeyIndexCheck, Progress
from .key_sets import Mismatch, PlacedKeys
from .model import Difference, DifferenceKind

_Place = tuple[str, str]
"""A file group: data partition and file id."""
_RUNS = {name: f"{OWN_FOLDER}/validate/{name}.arrow" for name in ("new", "gone")}
_NOWHERE = Location("", "", 0)


class RecordIndexCheck(KeyIndexCheck):
    """Checks the location of each key; places are file groups."""

    def __init__(
        self, metadata: MetadataTable, index: str, progress: Progress, only: frozenset[str] | None = None
    ) -> None:
        super().__init__(metadata, index, progress, only)
        self._places: dict[_Place, int] = {}
        self._lock = threading.Lock()

    def of_slice(self, file_slice: FileSlice, shards: Shards) -> Iterator[PlacedKeys]:
        of_partition = np.asarray(shards.of(file_slice.partition), np.int32)
        place = self._number((file_slice.partition, file_slice.file_id))
        for keys in self._source.open(file_slice).record_keys():
            where = of_partition[file_group_indexes(keys, len(of_partition))]
            yield PlacedKeys(keys.combine_chunks().cast(pa.binary()), where, np.full(len(keys), place, np.int32))

    def decode(self, values: pa.Array, schema: AvroSchema, path: str) -> Places:
        indices, found = decode_locations(values, schema, path)
        return spread([self._number((one.partition, one.file_id)) for one in found], indices)

    def differences(self, mismatches: Sequence[Mismatch]) -> Iterator[Difference]:
        slices = {(one.partition, one.file_id): one for one in self._slices}
        places = list(self._places)
        return (_difference(one, places, slices) for one in mismatches)

    def _number(self, place: _Place) -> int:
        with self._lock:
            return self._places.setdefault(place, len(self._places))


def repaired_keys(metadata: MetadataTable, differences: Sequence[Difference]) -> IndexDelta | None:
    """The keys to write into the record index; None when the record index has no difference."""
    own = [one for one in differences if one.index == RECORD_INDEX and one.kind is not DifferenceKind.DAMAGED_LOG]
    keys = [(one.shard or 0, one.key, one.expected()) for one in own]
    if not keys:
        return None
    new = [(shard, key, record.location) for shard, key, record in keys if isinstance(record, LocationRecord)]
    gone = [(shard, key, _NOWHERE) for shard, key, record in keys if record is None]
    shards = Shards.of_groups(metadata.file_groups(RECORD_INDEX))
    runs = [write_located(metadata.storage, _RUNS[name], some) for name, some in (("new", new), ("gone", gone))]
    return IndexDelta(shards, (runs[0],), write_index_logs, (runs[1],))


def forget_runs(storage: Storage) -> None:
    """Delete the runs that `repaired_keys` wrote."""
    for path in _RUNS.values():
        storage.delete(path)


def _difference(mismatch: Mismatch, places: Sequence[_Place], slices: Mapping[_Place, FileSlice]) -> Difference:
    if mismatch.should is None:
        assert mismatch.stored is not None, "a key that is nowhere and should be nowhere"
        partition, file_id = places[mismatch.stored]
        return Difference(
            RECORD_INDEX,
            DifferenceKind.DEAD_KEY,
            mismatch.key,
            partition,
            None,
            None,
            f"it says {file_id}",
            lambda: None,
            mismatch.shard,
        )
    holder = slices[places[mismatch.should]]
    location = Location(holder.partition, holder.file_id, millis_of(holder.base_instant))
    record = LocationRecord(mismatch.key, location)
    kind, detail = DifferenceKind.KEY_MISSING, "the file has it"
    if mismatch.stored is not None:
        kind, detail = DifferenceKind.WRONG_LOCATION, f"it says {'/'.join(filter(None, places[mismatch.stored]))}"
    name = holder.files[0].name
    return Difference(
        RECORD_INDEX, kind, mismatch.key, holder.partition, name, None, detail, lambda: record, mismatch.shard
    )
