"""All entries of one file group of a key index, in key order: a range of keys at a time, from all its layers together.

The newest layer that has a key, or has deleted it, decides. Memory holds a few blocks of each file that has keys in the
current range.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...base_files.key_sort import SortedBinary, sort_keys
from ...codecs.avro import AvroSchema
from ..file_groups.reader import Layer
from ..records.codec import decode_record
from ..records.model import SecondaryRecord
from .locations import Location, decode_locations, encode_location

GONE = -1
Places = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]
Decode = Callable[[pa.Array, AvroSchema, str], Places]
"""Takes binary values, their schema, and the path of their file; gives a number for each, GONE for a deleted value."""


@dataclass(frozen=True, slots=True)
class NumberedKeys:
    """Ascending binary keys, and the number that stands for the value of each."""

    keys: pa.Array
    places: Places


@dataclass
class LocationNumbers:
    """Decodes values of the record index to positions in `locations`, which grows."""

    locations: list[Location] = field(default_factory=list)
    _numbers: dict[Location, int] = field(default_factory=dict)
    _values: pa.Array = field(default_factory=lambda: pa.array([], pa.binary()))
    _hashes: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))

    def __call__(self, values: pa.Array, schema: AvroSchema, path: str) -> Places:
        indices, found = decode_locations(values, schema, path)
        return spread([self._number(location) for location in found], indices)

    def values(self, schema: AvroSchema) -> pa.Array:
        """The encoded value of each location, always in one schema."""
        if new := self.locations[len(self._values) :]:
            own = pa.array([encode_location(one, schema) for one in new], pa.binary())
            self._values = pa.concat_arrays([self._values, own])
        return self._values

    def hashes(self) -> Hashes:
        """A hash of each location."""
        if new := self.locations[len(self._hashes) :]:
            self._hashes = np.concatenate([self._hashes, location_hashes(new)])
        return self._hashes

    def _number(self, location: Location) -> int:
        number = self._numbers.setdefault(location, len(self.locations))
        if number == len(self.locations):
            self.locations.append(location)
        return number


def location_hashes(locations: Sequence[Location]) -> Hashes:
    """A hash of each location."""
    texts = (f"{one.partition}\n{one.file_id}\n{one.instant_millis}" for one in locations)
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.array([int.from_bytes(one, "big") for one in digests], np.uint64)


def decode_secondary(values: pa.Array, schema: AvroSchema, path: str) -> Places:
    """The numbers of values of a secondary index: 0, or GONE for a deleted value."""
    encoded = values.dictionary_encode()
    records = (decode_record("", value, schema, path) for value in encoded.dictionary.to_pylist())
    numbers = [GONE if isinstance(one, SecondaryRecord) and one.deleted else 0 for one in records]
    return spread(numbers, encoded.indices)


def spread(numbers: Sequence[int], indices: pa.Array) -> Places:
    """The number at each index: from the numbers of distinct values, a number for every value."""
    places: Places = np.array(numbers, np.int32)[indices.to_numpy()]
    return places


class Layered(Protocol):
    """A file group, or several without a key in common."""

    def newest_first(self, first: int = 0) -> Iterator[Layer]:
        """The layers from the newest on, without the `first` ones."""


@dataclass
class ShardEntries:
    """The entries of `group`, with values as `decode` gives them: those of all its layers, or without the `first` ones.

    `keeps_deleted`: whether keys whose newest entry is a deletion are there, with the place GONE.
    """

    group: Layered
    decode: Decode
    first: int = 0
    keeps_deleted: bool = False

    def read(self) -> Iterator[NumberedKeys]:
        """All entries, in ascending order of the keys. Raises CorruptFile and StorageError."""
        streams = [_Stream(layer, self.decode) for layer in self.group.newest_first(self.first)][::-1]
        while streams := [one for one in streams if not one.is_done]:
            end = _end_of_the_next(streams)
            if end is not None:
                yield _merged([part for one in streams for part in one.take(end)], self.keeps_deleted)


class _Stream:
    """The remaining entries of a layer: it is opened when its keys are due, and at most one piece of it is held."""

    def __init__(self, layer: Layer, decode: Decode) -> None:
        deleted, reader, schema, path = layer
        self._pieces: Iterator[NumberedKeys] = iter(())
        self._piece: NumberedKeys | None = None
        self._at = 0
        self.low: bytes | None
        """The next key, or an earlier one; None when nothing is left."""
        if reader is not None and schema is not None:
            pieces = ((keys, values) for keys, values in reader.scan_columns() if len(keys))
            self._pieces = (NumberedKeys(keys, decode(values, schema, path)) for keys, values in pieces)
            self.low = reader.first_row
        else:
            gone = sorted(key.encode() for key in deleted)
            self.low = gone[0] if gone else None
            if gone:
                self._pieces = iter([NumberedKeys(pa.array(gone, pa.binary()), np.full(len(gone), GONE, np.int32))])

    @property
    def is_done(self) -> bool:
        return self.low is None

    @property
    def end(self) -> bytes | None:
        """The last key of the piece that is held."""
        if self._piece is None:
            self._next_piece()
        return None if self._piece is None else SortedBinary(self._piece.keys)[-1]

    def take(self, end: bytes) -> Iterator[NumberedKeys]:
        """The entries up to and with the key `end`; repeated keys stay repeated."""
        while self.low is not None and self.low <= end:
            if self._piece is None:
                self._next_piece()
                continue
            keys = self._piece.keys
            stop = bisect_right(SortedBinary(keys), end, self._at)
            if stop > self._at:
                yield NumberedKeys(keys[self._at : stop], self._piece.places[self._at : stop])
            self._at = stop
            if stop == len(keys):
                self._next_piece()
            else:
                self.low = SortedBinary(keys)[stop]

    def _next_piece(self) -> None:
        self._piece, self._at = next(self._pieces, None), 0
        self.low = None if self._piece is None else SortedBinary(self._piece.keys)[0]


def _end_of_the_next(streams: Sequence[_Stream]) -> bytes | None:
    """The last key up to which all streams can give entries from the pieces that they hold; None for no entries."""
    end: bytes | None = None
    for low, one in sorted(((one.low or b"", one) for one in streams), key=itemgetter(0)):
        if end is not None and low > end:
            break
        own = one.end
        end = own if end is None or own is None else min(end, own)
    return end


def _merged(parts: Sequence[NumberedKeys], keeps_deleted: bool) -> NumberedKeys:
    """The merge of `parts`, the oldest first, without deleted entries unless they are kept."""
    keys = pa.concat_arrays([part.keys for part in parts])
    places = np.concatenate([part.places for part in parts])
    if len(parts) > 1:
        # Stable: of equal keys the newest is the last.
        order = sort_keys(keys)
        keys, places = keys.take(order), places[order.to_numpy()]
    there = np.ones(len(places), bool) if keeps_deleted else places != GONE
    if len(keys) > 1:
        there &= np.append(pc.not_equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False), True)
    return NumberedKeys(keys, places) if there.all() else NumberedKeys(keys.filter(pa.array(there)), places[there])
