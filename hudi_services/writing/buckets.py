"""The simple bucket index: a key belongs to a bucket by its hash, and each bucket of a partition is one file group.

    bucket     (hash & 0x7fffffff) modulo the number of buckets; the hash is that of a Java list of texts
    texts      the values of the hash fields in a key as f:v,g:w, in the order of the key; of any other key, itself
    file id    begins with the eight digits of the bucket

How Hudi reads the values out of a key is told in `bucket_index.key_fields`.

Source: BucketIdentifier, HoodieSimpleBucketIndex of Apache Hudi.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..bucket_index.key_fields import EMPTY, NULL, are_named, parts_of, values_of
from ..bucket_index.ring_hashes import hash_fields
from ..codecs.java_hash import Words, hash_codes
from ..concurrency import at_once
from ..errors import UnsupportedTable
from ..file_names import bucket_digits
from ..model import FileSlice
from ..snapshot import Snapshot
from ..table.support import are_buckets
from ..table_config import TableConfig
from .row_store import Place
from .sizing import Bucket

_POSITIVE = np.uint32(0x7FFFFFFF)
_31 = np.uint32(31)
_AT_ONCE = 4
"""Files of which some keys are read at once."""
_ALL_HASHES = 1 << 31
"""So many buckets that each hash is one of its own."""
_FIELDS_TRIED = 5
"""Fields of a record key of which every choice is tried."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of each partition; `fields` are those of the record key, `hashed` those that decide the bucket.

    `splits_keys`: as Hudi hashes keys in tables of version 6.
    """

    count: int
    fields: tuple[str, ...]
    hashed: frozenset[str]
    splits_keys: bool

    @classmethod
    def of_table(cls, config: TableConfig, count: int, hashed: Sequence[str]) -> "Buckets":
        """The buckets of a table by the fields `hashed`; () for the whole record key.

        Raises ConfigError for a field that is none of the record key, UnsupportedTable for a table without meta fields.
        """
        fields, names = hash_fields(config, hashed)
        return cls(count, fields, names, config.version.bucket_hash_splits_keys)

    def of(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """The bucket of each key. Raises UnsupportedTable for keys in which Hudi does not find the fields."""
        texts = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        named = are_named(texts, splits=self.splits_keys)
        is_named = pa.array(named)
        hashes = np.zeros(len(texts), np.uint32)
        hashes[~named] = _31 + hash_codes(texts.filter(pc.invert(is_named)))
        if named.any():
            hash_named = self._hashes_of_parts if self.splits_keys else self._hashes_of_values
            hashes[named] = hash_named(texts.filter(is_named))
        return ((hashes & _POSITIVE) % np.uint32(self.count)).astype(np.int32)

    def group(self, file_slice: FileSlice) -> int | None:
        """The bucket that a file group is named after; None for a file group that is none of these buckets."""
        digits = bucket_digits(file_slice.file_id)
        number = int(digits) if digits.isdecimal() and digits.isascii() else self.count
        return number if number < self.count else None

    def groups(self, slices: Iterable[FileSlice]) -> dict[int, FileSlice]:
        """The slices of one partition by bucket."""
        return {number: one for one in slices if (number := self.group(one)) is not None}

    def inserts(self, counts: Mapping[Place, int], slices: Iterable[FileSlice]) -> Iterator[tuple[Place, list[Bucket]]]:
        """For the inserts of each bucket its file group, one of `slices` or a new one."""
        groups = {(one.partition, self.group(one)): one for one in slices}
        for place, count in counts.items():
            yield place, [Bucket(groups.get((place.partition, place.bucket)), count)]

    def _hashes_of_values(self, keys: pa.Array) -> Words:
        """The hashes of keys with a comma and a colon, of version 8 and later."""
        values, has_any = values_of(keys, self.fields, self.hashed)
        hashes = np.ones(len(keys), np.uint32)
        for value in values:
            hashes = hashes * _31 + _hashes_of_fields(value)
        # A key of one field need not begin with its name.
        hashes[~has_any] = _31 + hash_codes(keys.filter(pa.array(~has_any)))
        return hashes

    def _hashes_of_parts(self, keys: pa.Array) -> Words:
        """The hashes of keys with a colon, of version 6: of the parts between commas, without those of other fields."""
        parts = parts_of(keys, self.hashed)
        hashes = hash_codes(parts.texts)
        hashes[parts.is_field] = _hashes_of_fields(parts.texts.filter(pa.array(parts.is_field)))
        return _hashes_of_lists(hashes, np.bincount(parts.rows, minlength=len(keys)))


def _hashes_of_fields(values: pa.Array) -> Words:
    """The hashes of the values of fields as keys show them; null and "" have the hash 0."""
    hashes = hash_codes(values)
    none = pc.is_in(values, pa.array([NULL, EMPTY])).to_numpy(zero_copy_only=False)
    hashes[none] = 0
    return hashes


def _hashes_of_lists(hashes: Words, lengths: npt.NDArray[np.int64]) -> Words:
    """The hashes of lists, by those of their elements: 31^n, and of each element 31 to the number of those after it."""
    powers = np.full(int(lengths.max(initial=0)) + 1, 31, np.uint32)
    powers[0] = 1
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    ends = np.cumsum(lengths)
    after = np.repeat(ends, lengths) - np.arange(len(hashes)) - 1
    sums = np.zeros(len(hashes) + 1, np.uint32)
    np.cumsum(hashes * powers[after], dtype=np.uint32, out=sums[1:])
    return np.asarray(powers[lengths] + sums[ends] - sums[ends - lengths], np.uint32)


def check_groups(table: Snapshot, partitions: Sequence[str], buckets: Buckets | None) -> None:
    """Raise UnsupportedTable when the table has buckets other than those of a write to some partitions, or None.

    Of each partition one file is looked at, some of its keys; a table may have rows only in other partitions.
    """
    table.view.load(partitions)
    found = [slices for partition in partitions if (slices := table.view.latest_slices(partition))]
    if not found:
        others = (view.latest_slices(one) for one, view in table.view.each(table.view.partitions()))
        found = list(islice(filter(None, others), 1))
    if buckets is not None:
        for slices in found:
            _check_names(table, buckets, slices)
        at_once(partial(_check_keys, table, buckets), found, _AT_ONCE)
        return
    for slices in found:
        if are_buckets(slices) and _have_keys_of_buckets(table, slices):
            raise UnsupportedTable(
                f"{table.storage.root} has file groups named after buckets ({bucket_digits(slices[0].file_id)}…), and "
                "hoodie.index.type is not BUCKET",
                hint="set hoodie.index.type=BUCKET, and hoodie.bucket.index.num.buckets as the other writers do",
            )


def _check_names(table: Snapshot, buckets: Buckets, slices: Sequence[FileSlice]) -> None:
    ours = {one.file_id for one in buckets.groups(slices).values()}
    for one in slices:
        if one.file_id not in ours:
            raise UnsupportedTable(
                f"{table.storage.root}: the file group {one.file_id} of the partition {one.partition!r} is none of "
                f"{buckets.count} buckets, or is a second one of a bucket",
                hint="set hoodie.index.type and hoodie.bucket.index.num.buckets as the other writers do; "
                "insert_overwrite_table may change them",
            )


def _have_keys_of_buckets(table: Snapshot, slices: Sequence[FileSlice]) -> bool:
    """Whether file groups that are named after buckets may be such: a random uuid, too, can begin as a bucket does.

    They may, when of some fields of the record key, and some number of buckets, all keys have the bucket of the name.
    """
    config = table.config
    if len(slices) > 1 or not config.populate_meta_fields or len(config.record_key_fields) > _FIELDS_TRIED:
        return True
    keys = _some_keys(table, slices[0])
    if keys is None:
        return True
    number = int(bucket_digits(slices[0].file_id))
    fields = config.record_key_fields
    for hashed in chain.from_iterable(combinations(fields, count) for count in range(1, len(fields) + 1)):
        with suppress(UnsupportedTable):  # of fields that Hudi does not find in such a key
            hashes = Buckets.of_table(config, _ALL_HASHES, hashed).of(keys)
            if int(np.gcd.reduce(hashes.astype(np.int64) - number)) not in range(1, number + 1):
                return True
    return False


def _some_keys(table: Snapshot, file_slice: FileSlice) -> pa.Array | None:
    """Some record keys of a file slice; None when it has none."""
    reader = table.slices.open(file_slice)
    keys = next((some for some in reader.record_keys() if len(some)), None)
    reader.release()
    return keys


def _check_keys(table: Snapshot, buckets: Buckets, slices: Sequence[FileSlice]) -> None:
    for one in slices:
        keys = _some_keys(table, one)
        if keys is None:
            continue
        wrong = np.flatnonzero(buckets.of(keys) != buckets.group(one))
        if wrong.size:
            raise UnsupportedTable(
                f"{table.storage.root}: the key {keys[int(wrong[0])].as_py()!r} is in the file group {one.file_id} of "
                f"the partition {one.partition!r}, and not where {buckets.count} buckets by "
                f"{','.join(name for name in buckets.fields if name in buckets.hashed)} have it",
                hint="set hoodie.bucket.index.num.buckets and hoodie.bucket.index.hash.field as the other writers do; "
                "insert_overwrite_table may change them",
            )
        return
