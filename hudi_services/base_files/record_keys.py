"""The entries for record keys in the footer of a Hudi base file.

The range holds every key by code point and as Java compares strings: Hudi's index by bloom filters skips a file whose
range, for Java, does not hold a key, and then inserts the key once more. A bound need not be a key.
Sources: HoodieBloomFilterWriteSupport, HoodieAvroWriteSupport, BloomIndexFileInfo.
"""

import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.text_order import java_order, lower_bound, upper_bound
from .bloom import SIMPLE, BloomFilter

BLOOM_FILTER = "org.apache.hudi.bloomfilter"
BLOOM_FILTER_TYPE = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
AVRO_SCHEMA = "parquet.avro.schema"
WRITER_MODEL = "writer.model.name"


class RecordKeys:
    """Collects the record keys of one base file; without a `bloom` only their range."""

    def __init__(self, bloom: BloomFilter | None) -> None:
        self._bloom = bloom
        self._min: str | None = None
        self._max: str | None = None

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add the `_hoodie_record_key` values of some rows; a dictionary-encoded column counts as its values."""
        if pa.types.is_dictionary(keys.type):
            keys = keys.cast(keys.type.value_type)
        if self._bloom is not None:
            self._bloom.add(keys)
        extremes = pc.min_max(keys)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if low is not None and not self._widen(low, upper_bound(high)):
            self._widen(low, _greatest_for_java(keys))

    def add_range(self, low: str, high: str) -> bool:
        """Add rows whose least and greatest keys by code point are these; False when `add` must see them instead."""
        if self._bloom is not None and self._bloom.needs_keys:
            return False
        return self._widen(low, upper_bound(high))

    def _widen(self, low: str, upper: str | None) -> bool:
        """Widen the range to the keys from `low` to the bound `upper`; False when there is no upper bound."""
        if upper is None:
            return False
        low = lower_bound(low)
        self._min = low if self._min is None else min(self._min, low)
        # As long as every bound holds for both orders, they agree on which is greater; else the readers' order counts.
        self._max = upper if self._max is None else max(self._max, upper, key=java_order)
        return True

    def footer(self) -> dict[str, str]:
        """Key/value metadata for the file."""
        entries: dict[str, str] = {}
        if self._bloom is not None:
            entries[BLOOM_FILTER] = self._bloom.serialize()
            if self._bloom.type_code != SIMPLE:
                entries[BLOOM_FILTER_TYPE] = self._bloom.type_code
        if self._min is not None and self._max is not None:
            entries |= {MIN_KEY: self._min, MAX_KEY: self._max}
        return entries


def _greatest_for_java(keys: pa.Array | pa.ChunkedArray) -> str:
    """The greatest key for Java, of keys whose greatest by code point begins with a character from U+FFFF on."""
    late: list[str] = keys.filter(pc.greater_equal(keys, "\ue000")).drop_null().to_pylist()
    return max(late, key=java_order)
