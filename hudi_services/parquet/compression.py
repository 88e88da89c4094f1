"""The compression codecs of parquet: their names in Hudi's options, numbers in footers and names in pyarrow.

Source: apache/parquet-format, CompressionCodec in parquet.thrift.
"""

from dataclasses import dataclass

import pyarrow as pa

from ..codecs.gzip_stream import gzip
from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class ParquetCodec:
    """`number` as in ColumnMetaData; `level` None leaves it to the library."""

    name: str
    number: int
    level: int | None = None

    @property
    def writer_options(self) -> dict[str, object]:
        """The options for pyarrow's ParquetWriter."""
        return {"compression": self.name, "compression_level": self.level}

    @property
    def packs(self) -> bool:
        """Whether new pages are compressed here, after pyarrow has written them without compression."""
        return self.name == "gzip"

    def compress(self, body: bytes) -> bytes:
        """The body of a page in this codec."""
        if self.packs:
            return gzip(body)
        packed: bytes = pa.Codec(self.name, self.level).compress(body, asbytes=True) if self.number else body
        return packed


# The codecs that every reader of Hudi tables has.
_CODECS = (
    ParquetCodec("none", 0),
    ParquetCodec("snappy", 1),
    ParquetCodec("gzip", 2, 6),
    ParquetCodec("zstd", 6, 1),
)
_BY_NAME = {codec.name: codec for codec in _CODECS} | {"uncompressed": _CODECS[0]}
_BY_NUMBER = {codec.number: codec for codec in _CODECS}


def codec_called(name: str) -> ParquetCodec:
    """The codec that an option's value names. Raises ConfigError for a codec that cannot be written."""
    codec = _BY_NAME.get(name.lower())
    if codec is None:
        known = ", ".join(sorted(_BY_NAME))
        raise ConfigError(f"the parquet codec {name} cannot be written", hint=f"use one of {known}")
    return codec


def codec_numbered(number: int) -> ParquetCodec | None:
    """The codec with the number of a column chunk, None for any other number."""
    return _BY_NUMBER.get(number)
