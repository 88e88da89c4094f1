"""The data blocks of new log files: Avro records, or a whole parquet file.

Source: HoodieAvroDataBlock, HoodieParquetDataBlock of Apache Hudi.
"""

from typing import Protocol

import pyarrow as pa

from ..base_files.file_writer import BaseFileWriter
from ..base_files.memory_file import MemoryFile
from ..base_files.record_keys import AVRO_SCHEMA, WRITER_MODEL
from ..log_files.avro_encoding import AvroEncoder
from ..log_files.block_contents import avro_block_content, framed
from ..log_files.log_blocks import BlockType
from ..parquet.file_schema import FileSchema
from ..rows.settings import FileSettings


class DataBlock(Protocol):
    """One block, to which records are added; they have all columns of the schema."""

    type: BlockType

    @property
    def size(self) -> int:
        """Bytes of the records so far."""

    def add(self, records: pa.Table) -> None: ...

    def content(self) -> bytes: ...


class AvroBlock:
    """A block of Avro records; `avro` is their schema as JSON."""

    type = BlockType.AVRO_DATA

    def __init__(self, avro: str) -> None:
        self._encoder = AvroEncoder(avro)
        self._records: list[bytes] = []
        self._count = self.size = 0

    def add(self, records: pa.Table) -> None:
        data = framed(self._encoder.encode(records))
        self._records.append(data)
        self._count += records.num_rows
        self.size += len(data)

    def content(self) -> bytes:
        return avro_block_content(self._count, self._records)


class ParquetBlock:
    """A block that is a parquet file with the schema `target`; `avro` is the same schema as JSON."""

    type = BlockType.PARQUET_DATA

    def __init__(self, target: FileSchema, avro: str, settings: FileSettings, file_id: str, path: str) -> None:
        """`file_id` is that of the file group, which the rows have in place of a file name; `path` is for messages."""
        self._file = MemoryFile(path)
        self._avro = avro
        self._target = target
        self._settings = settings
        self._file_id = file_id
        self._records: list[pa.Table] = []
        self.size = 0

    def add(self, records: pa.Table) -> None:
        self._records.append(records)
        self.size += records.nbytes

    def content(self) -> bytes:
        settings = self._settings
        writer = BaseFileWriter(
            self._file,
            "",
            self._target,
            file_name=self._file_id,
            codec=settings.codec,
            row_group_bytes=settings.row_group_bytes,
            page_bytes=settings.page_bytes,
        )
        with writer:
            for records in self._records:
                writer.write(records)
            size = writer.close({AVRO_SCHEMA: self._avro, WRITER_MODEL: "avro"}).size
        return self._file.read_range("", 0, size)
