"""What the footer of a Hudi base file says about its record keys (storage.md section 2.2).

Sources: HoodieBloomFilterWriteSupport, HoodieAvroWriteSupport.
"""

import pyarrow as pa
import pyarrow.compute as pc

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
        if low is not None:
            self.add_range(low, high)

    @property
    def needs_range_only(self) -> bool:
        """Whether `add_range` does for rows what `add` does."""
        return self._bloom is None or not self._bloom.needs_keys

    def add_range(self, low: str, high: str) -> None:
        """Add rows whose least and greatest keys are these."""
        # Python compares code points, which is the byte order of UTF-8 that Arrow uses.
        self._min = low if self._min is None else min(self._min, low)
        self._max = high if self._max is None else max(self._max, high)

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
