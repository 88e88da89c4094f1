"""The hashes of record keys on the ring of consistent hashing: of the values of the hash fields, one after the other.

Of a table of version 6, a key of one field with a colon in its value has no value for Hudi, and is hashed as "".
Source: ConsistentBucketIdentifier.getHashValue, BucketIdentifier.getHashKeys, HashID.getXXHash32 of Apache Hudi.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.xx_hash_32 import Hashes, xx_hash_32
from ..errors import ConfigError, UnsupportedTable
from ..options.writing_keys import BUCKET_FIELDS
from ..table_config import TableConfig
from .key_fields import EMPTY, NULL, are_named, parts_of, values_of

_NULL_TEXT = "null"
"""What Java joins a null as."""


@dataclass(frozen=True, slots=True)
class KeyHashes:
    """Hashes record keys; `fields` are those of the record key, `hashed` those whose values count.

    `splits_keys`: as in tables of version 6.
    """

    fields: tuple[str, ...]
    hashed: frozenset[str]
    splits_keys: bool

    @classmethod
    def of_table(cls, config: TableConfig, hashed: Sequence[str]) -> "KeyHashes":
        """By the fields `hashed`, () for the whole record key. Raises as `hash_fields`."""
        fields, names = hash_fields(config, hashed)
        return cls(fields, names, config.version.bucket_hash_splits_keys)

    def of(self, keys: pa.Array | pa.ChunkedArray) -> Hashes:
        """The hash of each key. Raises UnsupportedTable for keys in which Hudi does not find the fields."""
        texts = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        texts = texts.cast(pa.string())
        named = are_named(texts, splits=self.splits_keys)
        hashes = np.zeros(len(texts), np.uint32)
        hashes[~named] = xx_hash_32(texts.filter(pa.array(~named)))
        if named.any():
            of_fields = self._of_parts if self.splits_keys else self._of_values
            hashes[named] = xx_hash_32(of_fields(texts.filter(pa.array(named))))
        return hashes

    def _of_values(self, keys: pa.Array) -> pa.Array:
        values, has_any = values_of(keys, self.fields, self.hashed)
        joined = pc.binary_join_element_wise(*map(_joined, values), "")
        return pc.if_else(pa.array(has_any), joined, keys)

    def _of_parts(self, keys: pa.Array) -> pa.Array:
        parts = parts_of(keys, self.hashed)
        texts = pc.if_else(pa.array(parts.is_field), _joined(parts.texts), parts.texts)
        counts = np.bincount(parts.rows, minlength=len(keys))
        lists = pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(counts)), pa.int32()), texts)
        return pc.binary_join(lists, "")


def _joined(values: pa.Array) -> pa.Array:
    """The values of fields as Java joins them."""
    return pc.if_else(pc.equal(values, NULL), _NULL_TEXT, pc.if_else(pc.equal(values, EMPTY), "", values))


def hash_fields(config: TableConfig, hashed: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The fields of the record key, and those of them that decide the bucket of a key: `hashed`, or all.

    Raises ConfigError for a field that is none of the record key, UnsupportedTable for a table without meta fields.
    """
    fields = tuple(config.record_key_fields)
    unknown = next((name for name in hashed if name not in fields), None)
    if unknown is not None:
        raise ConfigError(
            f"{BUCKET_FIELDS.key} names {unknown}, which is no field of the record key ({','.join(fields)})",
            hint="name some of its fields, or leave the option out",
        )
    if not config.populate_meta_fields:
        raise UnsupportedTable(
            f"the table {config.name} has no meta fields (hoodie.populate.meta.fields=false), and rows are not "
            "written to buckets of such tables",
            hint="write with Apache Hudi",
        )
    return fields, frozenset(hashed or fields)
