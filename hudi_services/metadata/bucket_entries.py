"""All entries of one file group of a key index, in order: its base file piece by piece, with its log files on top.

The newest layer that has a key, or has deleted it, decides. Memory holds the keys of the log files and a few blocks.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.avro import AvroSchema
from ..files.key_sort import SortedRows, sort_keys
from .file_group import FileGroupReader, Layer
from .record_codec import decode_record
from .record_index import Location, decode_locations
from .records import SecondaryRecord

GONE = -1
Places = npt.NDArray[np.int32]
Decode = Callable[[pa.Array, AvroSchema, str], Places]
"""Of binary values, in this schema and of the file with this path: a number for each, GONE for one that is deleted."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Ascending binary keys, and the number that stands for the value of each."""

    keys: pa.Array
    places: Places


@dataclass
class LocationNumbers:
    """Decodes values of the record index: to positions in `locations`, which grows."""

    locations: list[Location] = field(default_factory=list)
    _numbers: dict[Location, int] = field(default_factory=dict)

    def __call__(self, values: pa.Array, schema: AvroSchema, path: str) -> Places:
        indices, found = decode_locations(values, schema, path)
        numbers = [self._number(location) for location in found]
        return np.asarray(numbers, np.int32)[indices.to_numpy()] if numbers else np.zeros(0, np.int32)

    def _number(self, location: Location) -> int:
        number = self._numbers.setdefault(location, len(self.locations))
        if number == len(self.locations):
            self.locations.append(location)
        return number


def decode_secondary(values: pa.Array, schema: AvroSchema, path: str) -> Places:
    """Values of a secondary index: 0, or GONE."""
    encoded = values.dictionary_encode()
    records = (decode_record("", value, schema, path) for value in encoded.dictionary.to_pylist())
    numbers = [GONE if isinstance(one, SecondaryRecord) and one.deleted else 0 for one in records]
    return np.asarray(numbers, np.int32)[encoded.indices.to_numpy()] if numbers else np.zeros(0, np.int32)


@dataclass
class BucketEntries:
    """The entries that `group` has, their values as `decode` has them."""

    group: FileGroupReader
    decode: Decode

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
                    own = Entries(keys, self.decode(values, schema, path))
                    yield _without_gone(_merged(own, logs.keys[at:end], logs.places[at:end]))
                    at = end
        yield _without_gone(Entries(logs.keys[at:], logs.places[at:]))

    def _logs(self, layers: Sequence[Layer]) -> Entries:
        """What the layers, oldest first, mean together, deletions included."""
        keys: list[pa.Array] = [pa.array([], pa.binary())]
        places: list[Places] = [np.zeros(0, np.int32)]
        for deleted, reader, schema, path in layers:
            gone = pa.array(sorted(key.encode() for key in deleted), pa.binary())
            keys.append(gone)
            places.append(np.full(len(gone), GONE, np.int32))
            if reader is not None and schema is not None:
                for some, values in reader.scan_columns():
                    keys.append(some)
                    places.append(self.decode(values, schema, path))
        all_keys, all_places = pa.concat_arrays(keys), np.concatenate(places)
        # Stable: of equal keys the newest is the last.
        order = sort_keys(all_keys)
        all_keys, all_places = all_keys.take(order), all_places[order.to_numpy()]
        if len(all_keys) < 2:
            return Entries(all_keys, all_places)
        last = np.append(pc.not_equal(all_keys[:-1], all_keys[1:]).to_numpy(zero_copy_only=False), True)
        return Entries(all_keys.filter(pa.array(last)), all_places[last])


def _merged(base: Entries, keys: pa.Array, places: Places) -> Entries:
    """`base` with these later entries."""
    if not len(keys):
        return base
    kept = pc.invert(pc.is_in(base.keys, keys))
    all_keys = pa.concat_arrays([base.keys.filter(kept), keys])
    order = sort_keys(all_keys)
    all_places = np.concatenate([base.places[kept.to_numpy(zero_copy_only=False)], places])
    return Entries(all_keys.take(order), all_places[order.to_numpy()])


def _without_gone(entries: Entries) -> Entries:
    there = entries.places != GONE
    return entries if there.all() else Entries(entries.keys.filter(pa.array(there)), entries.places[there])
