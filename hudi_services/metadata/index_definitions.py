"""The index definitions: `.hoodie/.index_defs/index.json` says of each index what it is of, and in which version.

    {"indexDefinitions": {<metadata partition>: {"indexType", "sourceFields", "indexOptions", "version", ...}}}

Source: HoodieIndexMetadata, HoodieIndexDefinition of Apache Hudi.
"""

import json
from collections.abc import Mapping
from typing import Any

from ..codecs.json_text import parse_json
from ..errors import CorruptFile
from ..storage import Storage
from .metadata_table import MetadataTable


def read_definitions(metadata: MetadataTable) -> Mapping[str, Mapping[str, Any]]:
    """The index definitions by name; {} when there are none. Raises CorruptFile."""
    content = metadata.index_definitions
    if content is None:
        return {}
    try:
        tree = parse_json(content)
        return {str(name): _definition(one) for name, one in (tree.get("indexDefinitions") or {}).items()}
    except (ValueError, TypeError, AttributeError) as e:
        path = metadata.storage.full_path(metadata.table_config.index_defs_path)
        raise CorruptFile(f"{path} holds no index definitions: {e}") from e


def write_definitions(storage: Storage, path: str, definitions: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the file of index definitions, given by name."""
    storage.put(path, json.dumps({"indexDefinitions": definitions}, indent=2).encode())


def _definition(tree: Any) -> dict[str, Any]:
    """One index definition. Raises TypeError or ValueError when a field that is read has another type than in Hudi."""
    one = dict(tree)
    fields, options = one.get("sourceFields") or [], one.get("indexOptions") or {}
    if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
        raise ValueError(f"sourceFields is {fields!r:.100}")
    if not isinstance(options, dict):
        raise ValueError(f"indexOptions is {options!r:.100}")
    return one
