"""Hudi's bloom filter over record keys, as stored in the footer of a base file.

    filter        base64 of: inner filter (SIMPLE), or header | int32 keys per row | int32 keys in the current row |
                  int32 rows | inner filter per row (DYNAMIC_V0)
    header        int32 -1 (version) | int32 hashes k | int8 hash type (1 = murmur) | int32 bits m
    inner filter  header | ceil(m / 8) bytes, bit i at byte i/8, mask 1 << (i % 8)

All integers are big-endian. A key sets the bits |iv rem m| of k rounds iv = murmur(key, iv) from iv = 0.
A dynamic filter starts a row when the current row is full, until the rows hold `max_entries`; then they take keys in
turn.

Sources: BloomFilterFactory, BloomFilterUtils, InternalBloomFilter, InternalDynamicBloomFilter, MurmurHash.
"""

import base64
import binascii
import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ConfigError, CorruptFile
from ..options import file_keys, value_of
from .key_hashes import Keys

SIMPLE, DYNAMIC = "SIMPLE", "DYNAMIC_V0"

_VERSION = -1
_MURMUR = 1
_MOST_BITS = (1 << 31) - 1
"""The header has an int32."""
# A false-positive rate of 1e-300 takes 1,000; a filter says "maybe" after this many rounds for each key.
_MOST_HASHES = 2000
_HEADER = struct.Struct(">iibi")
_ROWS = struct.Struct(">iii")
# Keys are added together: few calls for many keys, and full batches of those that have one length.
_MOST_WAITING = 1 << 16
_MOST_WAITING_BYTES = 8 << 20
# Above this false-positive rate a row only costs time: it is filled with ones, which says "maybe" to every key.
_USELESS = 0.97

_Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """The kind of filter, and the keys that it is made for."""

    entries: int = value_of(file_keys.BLOOM_ENTRIES)
    false_positive_rate: float = value_of(file_keys.BLOOM_FPP)
    max_entries: int = value_of(file_keys.BLOOM_MAX_ENTRIES)
    filter_type: str = value_of(file_keys.BLOOM_TYPE)

    def new_filter(self, expected_keys: int) -> "BloomFilter":
        """An empty filter, see `BloomFilter.for_config`."""
        return BloomFilter.for_config(
            self.entries, self.false_positive_rate, self.max_entries, self.filter_type, expected_keys=expected_keys
        )


class BloomFilter:
    """A filter of one kind: `type_code` DYNAMIC_V0 or SIMPLE. Keys are UTF-8 strings; there are no false negatives."""

    def __init__(self, bits: int, hashes: int, row_keys: int = 0, max_keys: int = 0) -> None:
        self._bits = bits
        self._hashes = hashes
        self._row_keys = row_keys
        self._max_keys = max_keys
        self._useless = False
        self._rows: list[_Bits] = []
        self._in_row = 0
        self._next_row: int | None = None
        """The row that gets the next key, once all rows are full; None before."""
        self._whole = np.zeros(0, np.uint8)
        """All rows, one after the other, once they are full."""
        self._waiting: list[Keys] = []
        self._keys_waiting = self._bytes_waiting = 0

    @classmethod
    def for_config(
        cls, num_entries: int, fpp: float, max_entries: int, filter_type: str, *, expected_keys: int = 0
    ) -> "BloomFilter":
        """An empty filter as Hudi sizes it (`hoodie.index.bloom.num_entries`, `.fpp`, `.filter.dynamic.max.entries`).

        A filter whose false-positive rate would be over 97 % with `expected_keys` keys is all ones, without hashing.
        Raises ConfigError for an unknown type or numbers that make no filter.
        """
        if filter_type not in (SIMPLE, DYNAMIC):
            raise ConfigError(f"the bloom filter type {filter_type} is unknown", hint=f"use {DYNAMIC} or {SIMPLE}")
        if num_entries <= 0 or not 0 < fpp < 1:
            raise ConfigError(f"a bloom filter of {num_entries} keys with false-positive rate {fpp} cannot be made")
        bits = math.ceil(num_entries * (-math.log(fpp) / (math.log(2) * math.log(2))))
        if bits > _MOST_BITS:
            raise ConfigError(
                f"a bloom filter of {num_entries} keys with false-positive rate {fpp} takes {bits // 8:,} bytes, and "
                f"{_MOST_BITS // 8:,} is the most that Hudi reads",
                hint="set hoodie.index.bloom.num_entries to less, or hoodie.index.bloom.fpp to more",
            )
        hashes = math.ceil(math.log(2) * bits / num_entries)
        dynamic = filter_type == DYNAMIC
        made = cls(bits, hashes, num_entries if dynamic else 0, max_entries if dynamic else 0)
        made._useless = made._false_positives(expected_keys) > _USELESS
        made._rows = [made._new_row()]
        return made

    @property
    def needs_keys(self) -> bool:
        """Whether keys make a difference; False for a filter that says "maybe" to every key."""
        return not self._useless

    @property
    def type_code(self) -> str:
        return DYNAMIC if self._row_keys else SIMPLE

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add string keys (also dictionary encoded); nulls and empty strings are skipped."""
        for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
            some, _ = Keys.of(chunk)
            self._waiting.append(some)
            self._keys_waiting += len(some)
            self._bytes_waiting += len(some.data)
            if self._keys_waiting >= _MOST_WAITING or self._bytes_waiting >= _MOST_WAITING_BYTES:
                self._settle()

    def might_contain(self, key: str) -> bool:
        return bool(self.contains(pa.array([key]))[0])

    def contains(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """For each key, whether it may have been added; False says that it was not, also for nulls and empty keys."""
        result = np.zeros(len(keys), np.bool_)
        real, found = self._look_up(keys)
        result[real] = found
        return result

    def lacks(self, keys: pa.Array) -> int:
        """The number of keys of which the filter says that they were not added; nulls and empty keys are left out."""
        return int(np.count_nonzero(~self._look_up(keys)[1]))

    def _look_up(self, keys: pa.Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which keys are neither null nor empty, and whether each of these may have been added."""
        self._settle()
        real, are_real = Keys.of(keys)
        added = np.zeros(len(real), np.bool_)
        for batch in real.batches(0, len(real)):
            rounds = [*batch.rounds(self._hashes, self._bits)]
            for row in self._rows:
                added[batch.numbers] |= np.logical_and.reduce([row[indices] == 1 for indices in rounds])
        return are_real, added

    def serialized_bytes(self, keys: int) -> int:
        """The length in bytes of the text of such a filter with `keys` keys."""
        row = _HEADER.size + (self._bits + 7) // 8
        if not self._row_keys:
            return _text_bytes(row)
        rows = min(-(-keys // self._row_keys), -(-self._max_keys // self._row_keys))
        return _text_bytes(_HEADER.size + _ROWS.size + max(1, rows) * row)

    def serialize(self) -> str:
        """The text of the footer entry `org.apache.hudi.bloomfilter`."""
        self._settle()
        header = _HEADER.pack(_VERSION, self._hashes, _MURMUR, self._bits)
        parts = [header + np.packbits(row, bitorder="little").tobytes() for row in self._rows]
        if self._row_keys:
            parts.insert(0, header + _ROWS.pack(self._row_keys, self._in_row, len(self._rows)))
        return base64.b64encode(b"".join(parts)).decode("ascii")

    def _false_positives(self, keys: int) -> float:
        """The false-positive rate of one row of this filter after `keys` keys."""
        rows = 1
        if self._row_keys:
            most = max(1, math.ceil(self._max_keys / self._row_keys))
            rows = min(most, max(1, math.ceil(keys / self._row_keys)))
        fill = -math.expm1(-self._hashes * keys / rows / self._bits)
        return float(fill**self._hashes)

    def _new_row(self) -> _Bits:
        return np.ones(self._bits, np.uint8) if self._useless else np.zeros(self._bits, np.uint8)

    def _settle(self) -> None:
        """Add the keys that wait."""
        if self._waiting:
            waiting, self._waiting = Keys.joined(self._waiting), []
            self._keys_waiting = self._bytes_waiting = 0
            self._spread(waiting)

    def _spread(self, keys: Keys) -> None:
        """Add each key to the row whose turn it is."""
        at, count = 0, len(keys)
        while at < count:
            if self._next_row is not None:
                turns = np.arange(self._next_row, self._next_row + count - at) % len(self._rows)
                self._set(self._whole, keys, at, count, turns * self._bits)
                self._next_row = (self._next_row + count - at) % len(self._rows)
                self._in_row += count - at
                return
            taken = count - at
            if self._row_keys:
                taken = min(taken, self._room())
            row = self._rows[0] if self._next_row is not None else self._rows[-1]
            self._set(row, keys, at, at + taken)
            self._in_row += taken
            at += taken

    def _room(self) -> int:
        """The number of keys that the current row takes; if it is full, open a row, or start the turns of the rows."""
        if self._in_row < self._row_keys:
            return self._row_keys - self._in_row
        if len(self._rows) * self._row_keys < self._max_keys:
            self._rows.append(self._new_row())
            self._in_row = 0
            return self._row_keys
        self._whole = np.concatenate(self._rows)
        self._rows = [*self._whole.reshape(-1, self._bits)]
        # As in Java, the key that finds the last row full goes to the first row, and so does the next one.
        self._next_row = 0
        return 1

    def _set(self, table: _Bits, keys: Keys, start: int, end: int, places: npt.NDArray[np.int64] | None = None) -> None:
        """Set the bits of some keys in a row, or each in the row of the table that begins at its place."""
        if self._useless:
            return
        for batch in keys.batches(start, end):
            first = 0 if places is None else places[batch.numbers - start]
            for indices in batch.rounds(self._hashes, self._bits):
                # Indices of another type would be converted more slowly.
                table[np.add(indices, first, dtype=np.intp)] = 1


def _text_bytes(data: int) -> int:
    return -(-data // 3) * 4


def parse(text: str, source: str) -> BloomFilter:
    """The filter in a footer entry of the file `source`. Raises CorruptFile."""
    try:
        data = base64.b64decode(text, validate=True)
        version, hashes, hash_type, bits = _HEADER.unpack_from(data)
        if version != _VERSION or hash_type != _MURMUR or hashes <= 0 or bits <= 0:
            raise CorruptFile(f"{source}: the bloom filter has an unknown form (version {version}, hash {hash_type})")
        if hashes > _MOST_HASHES:
            raise CorruptFile(f"{source}: the bloom filter takes {hashes} hashes of each key")
        row_size = _HEADER.size + (bits + 7) // 8
        if len(data) == row_size:
            found, rows, at = BloomFilter(bits, hashes), 1, 0
        else:
            row_keys, in_row, rows = _ROWS.unpack_from(data, _HEADER.size)
            found, at = BloomFilter(bits, hashes, row_keys), _HEADER.size + _ROWS.size
            found._in_row = in_row
    except (binascii.Error, struct.error, ValueError) as e:
        raise CorruptFile(f"{source}: the bloom filter cannot be decoded") from e
    if rows < 1 or len(data) != at + rows * row_size or (at and row_keys < 1):
        raise CorruptFile(f"{source}: the bloom filter has {len(data)} bytes, which does not fit {rows} rows")
    for start in range(at, len(data), row_size):
        packed = np.frombuffer(data, np.uint8, row_size - _HEADER.size, start + _HEADER.size)
        found._rows.append(np.unpackbits(packed, count=bits, bitorder="little"))
    return found
