"""All keys that some runs have of one shard, in order, however many there are: a range of keys at a time.

To read a range, all runs are read once and the keys within the range are kept. That costs a tenth of what writing the
entries costs, needs no disk, and holds about as many keys as were asked for (the ranges come from a sample).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...base_files.key_runs import KeyRun
from ...base_files.key_sort import sort_keys
from ...codecs.avro import AvroSchema
from ...concurrency import at_once
from ...packing import pack
from ...storage import Storage
from .key_reading import run_locations
from .locations import Location, encode_location

_KEYS_AT_ONCE = 1 << 20
_BYTES_AT_ONCE = 8 << 20
_SAMPLES_PER_RANGE = 64
_NO_VALUES = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], pa.binary()))


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Keys in ascending order, each once, and the value of each in the index."""

    keys: pa.Array
    values: pa.DictionaryArray


class ShardKeys:
    """The keys of a shard in `runs`, opened once. All were written at `millis`; None: at the times in the runs.

    `encode` gives the value of the keys at a location: by default that of the record index.
    """

    def __init__(
        self,
        storage: Storage,
        runs: Sequence[str],
        shard: int,
        schema: AvroSchema,
        millis: int | None = None,
        encode: Callable[[Location, AvroSchema], bytes] = encode_location,
    ) -> None:
        self._shard = shard
        self._runs = at_once(lambda path: KeyRun.open(storage, path), runs)
        self._locations = [_at(run_locations(run), millis) for run in self._runs]
        self._values = [
            pa.array([encode(one, schema) for one in locations], pa.binary()) for locations in self._locations
        ]
        self.rows = sum(run.rows(shard) for run in self._runs)
        """The number of keys; a key that occurs twice counts twice."""

    def splits(self, limit: int = _KEYS_AT_ONCE) -> list[str]:
        """Ascending keys that divide the shard's keys into ranges of about `limit` keys."""
        count = -(-self.rows // limit)
        if count < 2:
            return []
        step = max(1, limit // _SAMPLES_PER_RANGE)
        sample = pa.concat_arrays([keys[::step] for keys, _ in self._batches()])
        ordered = sample.take(sort_keys(sample))
        return [ordered[len(ordered) * i // count].as_py() for i in range(1, count)]

    def read(self, low: str | None, high: str | None) -> SortedKeys:
        """The keys from `low` up to but without `high`; None is no bound."""
        keys: list[pa.Array] = [pa.array([], pa.string())]
        values: list[pa.Array] = [_NO_VALUES]
        for some, located in self._batches():
            if low is not None or high is not None:
                wanted = _within(some, low, high)
                some, located = some.filter(wanted), located.filter(wanted)
            keys.append(some)
            values.append(located)
        return _sorted(pa.concat_arrays(keys), pa.chunked_array(values).unify_dictionaries().combine_chunks())

    def read_all(self, splits: Sequence[str]) -> Iterator[SortedKeys]:
        """All keys, range by range."""
        for low, high in pairwise([None, *splits, None]):
            yield self.read(low, high)

    def elsewhere(self, keys: pa.Array, gone: Collection[Location]) -> SortedKeys:
        """The keys, of `keys`, that have a location that is not in `gone`."""
        found: list[pa.Array] = [pa.array([], pa.string())]
        values: list[pa.Array] = [_NO_VALUES]
        for run, locations, encoded in zip(self._runs, self._locations, self._values, strict=True):
            stays = pa.array([one not in gone for one in locations], pa.bool_())
            for batch in run.read(self._shard):
                wanted = pc.and_(pc.is_in(batch.column(0), keys), stays.take(batch.column(1)))
                found.append(batch.column(0).filter(wanted))
                values.append(pa.DictionaryArray.from_arrays(batch.column(1).filter(wanted), encoded))
        return _sorted(pa.concat_arrays(found), pa.chunked_array(values).unify_dictionaries().combine_chunks())

    def _batches(self) -> Iterator[tuple[pa.Array, pa.DictionaryArray]]:
        # Some small runs are read at once, or a large one.
        for some in pack(range(len(self._runs)), lambda number: self._runs[number].bytes(self._shard), _BYTES_AT_ONCE):
            read = at_once(lambda number: self._runs[number].read(self._shard), some)
            for number, batches in zip(some, read, strict=True):
                for batch in batches:
                    yield batch.column(0), pa.DictionaryArray.from_arrays(batch.column(1), self._values[number])


def _at(locations: Sequence[Location], millis: int | None) -> Sequence[Location]:
    return locations if millis is None else [replace(one, instant_millis=millis) for one in locations]


def _within(keys: pa.Array, low: str | None, high: str | None) -> pa.Array:
    wanted = pa.array(np.ones(len(keys), bool))
    if low is not None:
        wanted = pc.greater_equal(keys, low)
    return wanted if high is None else pc.and_(wanted, pc.less(keys, high))


def _sorted(keys: pa.Array, values: pa.DictionaryArray) -> SortedKeys:
    order = sort_keys(keys)
    keys, values = keys.take(order), values.take(order)
    if len(keys) < 2:
        return SortedKeys(keys, values)
    # A key that occurs twice (plain inserts may do that) has one entry: the last, as in Hudi.
    last = pa.array(np.append(pc.not_equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False), True))
    return SortedKeys(keys.filter(last), values.filter(last))
