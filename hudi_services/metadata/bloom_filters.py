"""The partition bloom_filters: the bloom filter of every base file, as the file's footer has it.

A writer that looks keys up here (hoodie.bloom.index.use.metadata) fails on a file without a record, so every new base
file must get a record. A file without a filter has no record in Hudi either.
Source: HoodieTableMetadataUtil.convertMetadataToBloomFilterRecords of Apache Hudi.
"""

from collections.abc import Iterable

from ..base_files.new_file import NewFile
from ..base_files.slices import BloomBits, SliceFacts, SliceSource, describe
from ..file_names import base_slice
from ..model import FileSlice
from .records.keys import bloom_filter_key
from .records.model import BloomRecord


def bloom_records(source: SliceSource, files: Iterable[NewFile], instant: str) -> list[BloomRecord]:
    """The records of the base files among `files`, read from their footers. Raises CorruptFile and StorageError."""

    def record(file_slice: FileSlice, facts: SliceFacts) -> BloomRecord | None:
        return bloom_record(file_slice, facts.bloom, instant)

    slices = [base_slice(file.partition, file.name, file.size) for file in files if not file.stat.is_log]
    return [found for found in describe(source, slices, record) if found is not None]


def bloom_record(file_slice: FileSlice, bloom: BloomBits | None, instant: str) -> BloomRecord | None:
    """The record of the base file of a slice, None when it has no filter."""
    if bloom is None or file_slice.base_file is None:
        return None
    return BloomRecord(
        bloom_filter_key(file_slice.partition, file_slice.base_file.name), bloom.type_code, instant, bloom.bits
    )
