"""The hashes of record keys for Hudi's bloom filters: 32-bit murmur, whose seed is the hash of the round before.

numpy hashes batches of keys, the words of all keys of a batch at a time. Keys of a batch may differ in length: a word
that a key does not have is 0 and multiplies by 1, which changes nothing.

Source: MurmurHash of Apache Hudi (org.apache.hudi.common.util.hash).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..codecs.binary_layout import from_offsets, offsets_and_bytes, padded
from ..computed_once import cached_property
from .row_selection import by_number

Words = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_Flags = npt.NDArray[np.bool_]

_M = np.array(0x5BD1E995, np.uint32)
# A call of numpy costs as much as the work on a thousand words.
_BATCH = 1 << 15
_BATCH_BYTES = 4 << 20
_SHORT = 16
_WORD = 4


class Keys:
    """The bytes of n keys that are neither null nor empty."""

    def __init__(self, lengths: Numbers, data: _Bytes) -> None:
        """`data`: the keys, one after the other."""
        self.lengths = lengths
        self.data = data

    @classmethod
    def of(cls, keys: pa.Array) -> tuple["Keys", _Flags]:
        """Copies of the keys of a string array (also dictionary encoded), and which of its rows they are."""
        if pa.types.is_dictionary(keys.type):
            keys = keys.cast(keys.type.value_type)
        are_real = np.diff(offsets_and_bytes(keys)[0]) > 0
        if keys.null_count:
            are_real &= keys.is_valid().to_numpy(zero_copy_only=False)
        if not are_real.all():
            keys = keys.filter(pa.array(are_real))
        offsets, data = offsets_and_bytes(keys)
        return cls(np.diff(offsets), data[offsets[0] : offsets[-1]].copy()), are_real

    @classmethod
    def joined(cls, parts: Sequence["Keys"]) -> "Keys":
        return cls(np.concatenate([one.lengths for one in parts]), np.concatenate([one.data for one in parts]))

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def _offsets(self) -> Numbers:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)])

    def batches(self, start: int, end: int) -> "Iterator[KeyBatch]":
        """The keys from `start` to `end`, those of similar length together."""
        lengths = self.lengths[start:end]
        if not len(lengths):
            return
        offsets = self._offsets[start : end + 1]
        if (lengths == lengths[0]).all():
            length = int(lengths[0])
            count = max(1, min(_BATCH, _BATCH_BYTES // length))
            for at in range(start, end, count):
                numbers = np.arange(at, min(at + count, end))
                some = self.data[self._offsets[at] :][: len(numbers) * length].reshape(-1, length)
                yield KeyBatch(numbers, _filled(some, _width(length)), self.lengths[numbers])
            return
        order = by_number(lengths)
        ordered = lengths[order]
        matrix = padded(from_offsets(offsets, self.data)) if offsets[-1] - offsets[0] < 1 << 31 else None
        at = 0
        while at < len(order):
            # One long key would make all others of its batch as long.
            most = max(2 * int(ordered[at]), _SHORT)
            to = min(at + max(1, min(_BATCH, _BATCH_BYTES // most)), int(np.searchsorted(ordered, most, "right")))
            here, of_batch = order[at:to], ordered[at:to]
            width = _width(int(of_batch[-1]))
            if matrix is not None:
                some = matrix.take(here, axis=0)[:, :width]
            else:
                places = np.arange(width)
                some = self.data.take(offsets[here, None] + places, mode="clip")
                some[places >= of_batch[:, None]] = 0
            yield KeyBatch(here + start, some, of_batch)
            at = to


class KeyBatch:
    """Keys that are hashed together, the longest last; `numbers` says which of all they are."""

    def __init__(self, numbers: Numbers, padded_keys: _Bytes, lengths: Numbers) -> None:
        """`padded_keys`: (keys, words of the longest * 4), with zeros after each key."""
        self.numbers = numbers
        self._words = np.ascontiguousarray(padded_keys).view("<u4").T.copy()
        least, most = int(lengths[0]), int(lengths[-1])
        self._in_all = least // _WORD
        """The number of words that all keys have."""
        self._lengths: Words
        self._factors: list[Words] = []
        self._tail: Words | None = None
        self._tail_factor = _M
        if least == most:
            self._lengths = np.array(least, np.uint32)
            if most % _WORD:
                self._tail = _signed(self._words[-1], most % _WORD)
        else:
            self._lengths = lengths.astype(np.uint32)
            words, left = np.divmod(self._lengths, np.uint32(_WORD))
            self._factors = [_factor(words > i) for i in range(self._in_all, most // _WORD)]
            self._tail, self._tail_factor = _tails(self._words, words, left), _factor(left > 0)
        self._words = self._words[: most // _WORD]
        # Words are mixed once: that does not depend on the seed.
        self._words *= _M
        self._words ^= self._words >> np.uint32(24)
        self._words *= _M

    def rounds(self, hashes: int, bits: int) -> Iterator[Words]:
        """For each round, a bit of a filter of `bits` bits for each key."""
        divisor = np.array(bits, np.uint32)
        seed, rest, value = (np.zeros(len(self.numbers), np.uint32) for _ in range(3))
        in_all, in_some = self._words[: self._in_all], self._words[self._in_all :]
        for _ in range(hashes):
            seed ^= self._lengths
            for word in in_all:
                seed *= _M
                seed ^= word
            for word, factor in zip(in_some, self._factors, strict=True):
                seed *= factor
                seed ^= word
            if self._tail is not None:
                seed ^= self._tail
                seed *= self._tail_factor
            seed ^= np.right_shift(seed, 13, out=rest)
            seed *= _M
            seed ^= np.right_shift(seed, 15, out=rest)
            np.abs(seed.view(np.int32), out=value.view(np.int32))
            # numpy divides by one number with vector instructions, and takes the remainder without them.
            np.floor_divide(value, divisor, out=rest)
            rest *= divisor
            yield value - rest


def _width(length: int) -> int:
    return -(-length // _WORD) * _WORD


def _filled(keys: _Bytes, width: int) -> _Bytes:
    """Keys of one length, each with zeros up to `width` bytes."""
    if keys.shape[1] == width:
        return keys
    found = np.zeros((len(keys), width), np.uint8)
    found[:, : keys.shape[1]] = keys
    return found


def _factor(has_it: _Flags) -> Words:
    found: Words = np.where(has_it, _M, np.uint32(1))
    return found


def _tails(words: Words, whole: Words, left: Words) -> Words:
    """The bytes after the `whole` words of each key, `left` in number, which are put to zero in `words`."""
    found = np.zeros(words.shape[1], np.uint32)
    for count in range(1, _WORD):
        those = np.flatnonzero(left == count)
        places = whole[those], those
        found[those] = _signed(words[places], count)
        words[places] = 0
    return found


def _signed(words: Words, count: int) -> Words:
    """The first `count` bytes of words, big-endian and each sign-extended, as Java's bytes are."""
    found = np.zeros(len(words), np.uint32)
    for place in range(count):
        signed = (words >> np.uint32(8 * place)).astype(np.uint8).view(np.int8).astype(np.int32).view(np.uint32)
        found ^= signed << np.uint32(8 * (count - 1 - place))
    return found
