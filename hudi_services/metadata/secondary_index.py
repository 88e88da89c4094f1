"""Secondary indexes: partitions `secondary_index_<name>`, whose keys join a value of a column with a record key.

    <value>$<record key>     `\\`, `$` and NUL are written with a `\\` before them; a null value is a single NUL

A record says only whether it is deleted. The file group of a key is chosen by the hash of `<value>$` (version V2 of an
index) or of the whole key (V1, table version 8).
Source: SecondaryIndexKeyUtils, SecondaryIndexRecordGenerationUtils, HoodieTableMetadataUtil (
getSecondaryKeyToFileGroupMappingFunction) of Apache Hudi 1.0.2 and 1.2.0.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CorruptFile
from .records.keys import SECONDARY_INDEX_PREFIX
from .statistics.indexed_columns import read_definitions
from .table import MetadataTable

NULL_VALUE = "\0"
_ESCAPED = ("\\", "$", "\0")
# Up to the first `$` that has no backslash before it.
_VALUE = r"(?s)^(?P<value>(?:[^\\$]|\\.)*\$)"
_VALUE_OF_KEY = re.compile(_VALUE)
_V1 = "V1"


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """One secondary index: its column, and whether the value alone chooses the file group of a key."""

    column: str
    by_value: bool


def secondary_index(metadata: MetadataTable, partition: str) -> SecondaryIndex:
    """The index of a metadata partition, by its definition. Raises CorruptFile when no definition names its column."""
    definition = read_definitions(metadata).get(partition) or {}
    fields = definition.get("sourceFields")
    if not isinstance(fields, list) or len(fields) != 1:
        path = metadata.storage.full_path(metadata.table_config.index_defs_path)
        raise CorruptFile(f"{path} does not name the column of {partition}")
    version = definition.get("version")
    by_value = metadata.config.version.typed_column_stats if version is None else version != _V1
    return SecondaryIndex(str(fields[0]), by_value)


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """The keys of rows with these string, integer or null values, as strings."""
    texts = pc.coalesce(_escape(values.cast(pa.string())), NULL_VALUE)
    return pc.binary_join_element_wise(texts, _escape(record_keys), "$")


def placing_parts(keys: pa.Array, index: SecondaryIndex) -> pa.Array:
    """The part of each string key of the index that is hashed."""
    return pc.struct_field(pc.extract_regex(keys, _VALUE), 0) if index.by_value else keys


def placing_part(metadata: MetadataTable, partition: str) -> Callable[[str], str]:
    """A function that gives the part of a key that is hashed, in any metadata partition."""
    if not partition.startswith(SECONDARY_INDEX_PREFIX) or not secondary_index(metadata, partition).by_value:
        return str

    def value(key: str) -> str:
        found = _VALUE_OF_KEY.match(key)
        return found["value"] if found else key

    return value


def _escape(texts: pa.Array) -> pa.Array:
    for special in _ESCAPED:
        texts = pc.replace_substring(texts, special, "\\" + special)
    return texts
