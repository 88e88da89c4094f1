"""Finds the file slices that have a row of given keys: the look-up of the indexes SIMPLE and BLOOM.

By an index whose keys are unique in partitions only base files are looked at, of slices with log files, too. SIMPLE
reads the keys of every file of the partitions; BLOOM only those whose footer does not rule all keys out, by the range
of its keys, and by its bloom filter where that costs less than to read its keys.
Source: HoodieSimpleIndex, HoodieBloomIndex of Apache Hudi.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.bloom import parse
from ..base_files.record_keys import BLOOM_FILTER, MAX_KEY, MIN_KEY
from ..base_files.slices import SliceSource
from ..concurrency import at_once, files_at_once
from ..merging.fold import Numbers
from ..model import FileSlice
from ..parquet.footer import Footer, using_footer
from ..storage import Storage

_HASH_COST = 20
"""To look a key up in a bloom filter costs about as much as to read so many keys."""
_JAVA_DIFFERS = "[\ue000-\U0010ffff]"
"""Texts with such characters have another order in Java."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A slice, and the positions, ascending, of the keys that it has."""

    slice: FileSlice
    positions: Numbers


def tag_keys(
    storage: Storage,
    source: SliceSource,
    slices: Sequence[FileSlice],
    keys: pa.Array,
    *,
    by_footer: bool,
    live: bool = False,
) -> list[Tagged]:
    """The slices that have any of `keys`, which differ from each other. Raises CorruptFile and StorageError.

    `by_footer`: files that do not have a key by their footers are not read. Keys that log files have deleted count,
    unless `live`, or where another slice has the key.
    """
    if not len(keys):
        return []
    if by_footer:
        # On an object store the footers are most of the time, and few files are left after them.
        possible = at_once(partial(_may_have, storage, keys), slices)
        slices = [one for one, may_have in zip(slices, possible, strict=True) if may_have]
    found = at_once(partial(_tagged, source, keys, live), slices, files_at_once(one.size for one in slices))
    tagged = [one for one in found if one.positions.size]
    return tagged if live else without_dead(source, keys, tagged)


def _may_have(storage: Storage, keys: pa.Array, file_slice: FileSlice) -> bool:
    base = file_slice.base_file
    return base is None or using_footer(storage, base.path, base.size, partial(may_hold, keys, base.path))


def _tagged(source: SliceSource, keys: pa.Array, live: bool, file_slice: FileSlice) -> Tagged:
    return Tagged(file_slice, _positions(source, keys, file_slice if live else with_deleted_keys(file_slice)))


def with_deleted_keys(file_slice: FileSlice) -> FileSlice:
    """The slice with the keys that its log files have deleted: its base file alone, if it has one.

    Log files add no keys to base files; a key that they delete must get its next row here, where it would come back.
    """
    return file_slice if file_slice.base_file is None else replace(file_slice, log_files=())


def _positions(source: SliceSource, keys: pa.Array, file_slice: FileSlice) -> Numbers:
    """Those of the keys that the slice has."""
    reader = source.open(file_slice)
    positions = positions_of(reader.record_keys(), keys)
    reader.release()
    return positions


def positions_of(stored: Iterable[pa.Array | pa.ChunkedArray], keys: pa.Array) -> Numbers:
    """Those of the keys that are among the found ones."""
    parts = [np.zeros(0, np.int64)]
    for some in stored:
        at = pc.index_in(some, value_set=keys)
        parts.append(np.asarray(at.drop_null().to_numpy()).astype(np.int64))
    return np.unique(np.concatenate(parts))


def without_dead(source: SliceSource, keys: pa.Array, tagged: Sequence[Tagged]) -> list[Tagged]:
    """Of a key in several slices, those where log files have not deleted it; the first one when there is no other."""
    counts = np.zeros(len(keys), np.int64)
    for one in tagged:
        counts[one.positions] += 1
    several = counts > 1
    unsure = [one for one in tagged if several[one.positions].any()]
    if not any(one.slice.log_files for one in unsure):
        return list(tagged)
    live = {id(one): _positions(source, keys, one.slice) if one.slice.log_files else one.positions for one in unsure}
    is_live, is_placed = np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.bool_)
    for positions in live.values():
        is_live[positions] = True
    kept = []
    for one in tagged:
        at = one.positions
        here = np.isin(at, live[id(one)]) if id(one) in live else np.ones(at.size, np.bool_)
        keeps = ~several[at] | here | (~is_live[at] & ~is_placed[at])
        is_placed[at[keeps]] = True
        if keeps.any():
            kept.append(Tagged(one.slice, at[keeps]))
    return kept


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The least and the greatest of some keys."""

    low: str
    high: str

    @classmethod
    def of(cls, keys: pa.Array | pa.ChunkedArray) -> "KeyRange | None":
        """The range of keys, which are not none; None when Java orders some of them in another way."""
        if any(_differs_in_java(chunk).any() for chunk in pa.chunked_array(keys).chunks):
            return None
        found = pc.min_max(keys)
        return cls(found["min"].as_py(), found["max"].as_py())

    def joined(self, other: "KeyRange") -> "KeyRange":
        """The range of both."""
        return KeyRange(min(self.low, other.low), max(self.high, other.high))

    def may_meet(self, footer: Footer) -> bool:
        """Whether a base file may have a key of the range, by its footer."""
        low, high = footer.key_values.get(MIN_KEY), footer.key_values.get(MAX_KEY)
        if low is None or high is None or _differs_in_java(pa.array([low, high])).any():
            return True
        return low <= self.high and self.low <= high


def may_hold(keys: pa.Array, path: str, footer: Footer) -> bool:
    """Whether a base file may have any of `keys`, by its footer. Raises CorruptFile for a broken bloom filter."""
    low, high = footer.key_values.get(MIN_KEY), footer.key_values.get(MAX_KEY)
    inside = keys
    if low is not None and high is not None and not _differs_in_java(pa.array([low, high])).any():
        in_range = pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high)).to_numpy(zero_copy_only=False)
        inside = keys.filter(pa.array(in_range | _differs_in_java(keys)))
    if not len(inside):
        return False
    bits = footer.key_values.get(BLOOM_FILTER)
    if bits is None or len(inside) * _HASH_COST > footer.num_rows:
        return True
    return bool(parse(bits, path).contains(inside).any())


def _differs_in_java(texts: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.asarray(pc.match_substring_regex(texts, _JAVA_DIFFERS).to_numpy(zero_copy_only=False))
