"""All entries of one bucket of the record index, in order: its base file piece by piece, with its log files on top.

The newest layer that has a key, or has deleted it, decides. Memory holds the keys of the log files and a few blocks.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.avro import AvroSchema
from ..files.key_sort import SortedRows, sort_keys
from .file_group import FileGroupReader, Layer
from .record_index import Location, decode_locations

_GONE = -1
_Places = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Entries:
    """Ascending binary keys, and for each the position of its location in `BucketEntries.locations`."""

    keys: pa.Array
    places: _Places


@dataclass
class BucketEntries:
    """The entries that `group` has; `locations` grows while they are read."""

    group: FileGroupReader
    locations: list[Location] = field(default_factory=list)
    _numbers: dict[Location, int] = field(default_factory=dict)

    def read(self) -> Iterator[Entries]:
        """Everything, in ascending order of the keys. Raises CorruptFile and StorageError."""
        layers = list(self.group.newest_first())
        base = layers.pop() if layers and layers[-1][1] is not None else None
        logs = self._logs(layers[::-1])
        known, at = SortedRows(logs.keys), 0
        if base is not None:
            _, reader, schema, path = base
            assert reader is not None and schema is not None, "a file has a schema"
            for keys, values in reader.scan_columns():
                if len(keys):
                    end = bisect_right(known, keys[-1].as_py(), at)
                    own = Entries(keys, self._places(values, schema, path))
                    yield _without_gone(_merged(own, logs.keys[at:end], logs.places[at:end]))
                    at = end
        yield _without_gone(Entries(logs.keys[at:], logs.places[at:]))

    def _logs(self, layers: Sequence[Layer]) -> Entries:
        """What the layers, oldest first, mean together, deletions included."""
        keys: list[pa.Array] = [pa.array([], pa.binary())]
        places: list[_Places] = [np.zeros(0, np.int32)]
        for deleted, reader, schema, path in layers:
            gone = pa.array(sorted(key.encode() for key in deleted), pa.binary())
            keys.append(gone)
            places.append(np.full(len(gone), _GONE, np.int32))
            if reader is not None and schema is not None:
                for some, values in reader.scan_columns():
                    keys.append(some)
                    places.append(self._places(values, schema, path))
        all_keys, all_places = pa.concat_arrays(keys), np.concatenate(places)
        # Stable: of equal keys the newest is the last.
        order = sort_keys(all_keys)
        all_keys, all_places = all_keys.take(order), all_places[order.to_numpy()]
        if len(all_keys) < 2:
            return Entries(all_keys, all_places)
        last = np.append(pc.not_equal(all_keys[:-1], all_keys[1:]).to_numpy(zero_copy_only=False), True)
        return Entries(all_keys.filter(pa.array(last)), all_places[last])

    def _places(self, values: pa.Array, schema: AvroSchema, path: str) -> _Places:
        indices, found = decode_locations(values, schema, path)
        numbers = [self._number(location) for location in found]
        return np.asarray(numbers, np.int32)[indices.to_numpy()] if numbers else np.zeros(0, np.int32)

    def _number(self, location: Location) -> int:
        number = self._numbers.setdefault(location, len(self.locations))
        if number == len(self.locations):
            self.locations.append(location)
        return number


def _merged(base: Entries, keys: pa.Array, places: _Places) -> Entries:
    """`base` with these later entries."""
    if not len(keys):
        return base
    kept = pc.invert(pc.is_in(base.keys, keys))
    all_keys = pa.concat_arrays([base.keys.filter(kept), keys])
    order = sort_keys(all_keys)
    all_places = np.concatenate([base.places[kept.to_numpy(zero_copy_only=False)], places])
    return Entries(all_keys.take(order), all_places[order.to_numpy()])


def _without_gone(entries: Entries) -> Entries:
    there = entries.places != _GONE
    return entries if there.all() else Entries(entries.keys.filter(pa.array(there)), entries.places[there])
