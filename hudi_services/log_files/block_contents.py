"""The contents of new log blocks: Avro records, and keys that are deleted; for the layout see `log_blocks`.

Source: HoodieAvroDataBlock, HoodieDeleteBlock.getContentBytes of Apache Hudi 0.15.0 to 1.2.0.
"""

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .avro_encoding import Encoded, fixed, joined, texts, varints
from .log_blocks import DELETE_CONTENT_VERSION

_DATA_CONTENT_VERSION = 3
DEFAULT_ORDERING = b"\x04\x00"
"""Union branch 2 (IntWrapper) with value 0: the ordering value of a delete that beats every older record."""
_TEXT = b"\x02"
"""Branch 1 of the union of null and string."""


def framed(records: Encoded) -> bytes:
    """Avro records, each after its length, as `avro_block_content` takes them."""
    lengths = pc.binary_length(records).to_numpy().astype(">i4")
    return _bytes(joined([fixed(lengths), records]))


def avro_block_content(count: int, records: Sequence[bytes]) -> bytes:
    """Content of an Avro data block of so many records, which are `framed`."""
    return b"".join((struct.pack(">ii", _DATA_CONTENT_VERSION, count), *records))


def delete_block_content(
    keys: Sequence[str] | pa.Array, partition: str = "", ordering: Encoded | bytes = DEFAULT_ORDERING
) -> bytes:
    """Content of a delete block for record keys of one partition, by default with the default ordering value.

    `ordering` are the encoded ordering values (a union of null and wrappers). Without keys this is what Hudi writes to
    make an empty file group of the metadata table exist.
    """
    array = b"\0"
    if len(keys):
        path = _TEXT + _bytes(texts(pa.array([partition])))
        known = keys if isinstance(keys, pa.Array) else pa.array(keys, pa.string())
        records = _bytes(joined([_TEXT, texts(known), path, ordering]))
        array = _bytes(varints(np.array([len(keys)]))) + records + b"\0"
    return struct.pack(">ii", DELETE_CONTENT_VERSION, len(array)) + array


def _bytes(values: Encoded) -> bytes:
    """The bytes of all values, one after the other."""
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(values) + 1, 8 * values.offset)
    return bytes(memoryview(data)[bounds[0] : bounds[-1]]) if bounds[-1] > bounds[0] else b""
