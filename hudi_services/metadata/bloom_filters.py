"""The partition bloom_filters: the bloom filter of every base file, as it stands in the file's footer.

A writer that looks keys up here (hoodie.bloom.index.use.metadata) fails on a file that has no record, so that every new
base file must get one. A file without a filter has none in Hudi either.
Source: HoodieTableMetadataUtil.convertMetadataToBloomFilterRecords of Apache Hudi.
"""

from collections.abc import Iterable

from ..files.bloom import SIMPLE
from ..files.parquet_footer import Footer, read_footers
from ..files.record_keys import BLOOM_FILTER, BLOOM_FILTER_TYPE
from ..storage import Storage
from .records.keys import bloom_filter_key
from .records.model import BloomRecord
from .statistics.column_stats import NewFile


def bloom_records(storage: Storage, files: Iterable[NewFile], instant: str) -> list[BloomRecord]:
    """The records of new base files, read back from their footers. Raises CorruptFile and StorageError."""

    def record(file: NewFile, footer: Footer) -> BloomRecord | None:
        return bloom_record(file.partition, file.name, footer, instant)

    return [found for found in read_footers(storage, files, record) if found is not None]


def bloom_record(partition: str, name: str, footer: Footer, instant: str) -> BloomRecord | None:
    """The record of one base file, None when it has no filter. Raises CorruptFile."""
    bits = footer.key_values.get(BLOOM_FILTER)
    if bits is None:
        return None
    type_code = footer.key_values.get(BLOOM_FILTER_TYPE, SIMPLE)
    return BloomRecord(bloom_filter_key(partition, name), type_code, instant, bits.encode())
