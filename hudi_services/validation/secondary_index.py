"""The check of the partitions `secondary_index_*`: each pair of value and record key against the rows of the files."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.avro import AvroSchema
from ..codecs.java_hash import file_group_indexes
from ..derived_indexes.secondary_index import NULL_VALUE, SecondaryPairs, UnknownTexts, secondary_index
from ..file_records.doubts import Doubt
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.shard_entries import Places, decode_secondary
from ..metadata.record_index.shards import Shards
from ..metadata.records.model import SecondaryRecord
from ..model import FileSlice
from .key_index import KeyIndexCheck, Progress, Unjudged
from .key_sets import Mismatch, PlacedKeys
from .model import Difference, DifferenceKind, Severity

_THERE = 0
"""The only place that a pair can have."""


class SecondaryIndexCheck(KeyIndexCheck):
    """Checks values of the types whose texts are known (`SecondaryIndex.check`)."""

    def __init__(
        self, metadata: MetadataTable, index: str, progress: Progress, only: frozenset[str] | None = None
    ) -> None:
        super().__init__(metadata, index, progress, only)
        self._definition = secondary_index(metadata, index)

    def of_slice(self, file_slice: FileSlice, shards: Shards) -> Iterator[PlacedKeys]:
        try:
            for some in SecondaryPairs(self._source, self._definition).open(file_slice).record_keys():
                keys = some.combine_chunks()
                where = file_group_indexes(self._definition.hashed_part(keys), len(shards.file_ids))
                yield PlacedKeys(keys.cast(pa.binary()), where, np.full(len(keys), _THERE, np.int32))
        except UnknownTexts as error:
            raise Unjudged(file_slice, Doubt.UNKNOWN_TYPE) from error

    def decode(self, values: pa.Array, schema: AvroSchema, path: str) -> Places:
        return decode_secondary(values, schema, path)

    def judged(self, entries: PlacedKeys) -> PlacedKeys:
        if self._definition.by_value:
            return entries
        # Hudi 1.0 writes no entries for null values; later releases do, also into indexes of 1.0.
        is_null = pc.starts_with(entries.keys, f"{NULL_VALUE}$")
        return entries.filter(~is_null.to_numpy(zero_copy_only=False))

    def differences(self, mismatches: Sequence[Mismatch]) -> Iterator[Difference]:
        return map(self._difference, mismatches)

    def _difference(self, mismatch: Mismatch) -> Difference:
        # Harmless for queries: they read the rows of the keys that they find, and compare the values again.
        kind, detail, record, severity = DifferenceKind.DEAD_KEY, "no row has it", None, Severity.HARMLESS
        if mismatch.should is not None:
            kind, detail, record = DifferenceKind.KEY_MISSING, "a row has it", SecondaryRecord(mismatch.key)
            severity = Severity.HARMFUL
        place = (self._index, kind, mismatch.key, None, None, self._definition.column)
        return Difference(*place, detail, lambda: record, mismatch.shard, severity=severity)
