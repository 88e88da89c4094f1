"""The Avro schema of the metadata table's records, as Hudi's releases write it.

In HFiles and log blocks it is HoodieMetadataRecord with the five meta columns, always null there, in front.
"""

import functools
import json

from ...codecs.avro import AvroSchema, load_schema, parse_schema
from ...schema.table_schema import ROW_META_COLUMNS
from ...versions import RELEASES


@functools.lru_cache(maxsize=8)
def stored_schema(release: str) -> AvroSchema:
    """The schema of HFiles and log blocks that a writer of this Hudi release uses."""
    record = json.loads(load_schema("HoodieMetadataRecord", release).text)
    meta = [{"name": name, "type": ["null", "string"], "default": None} for name in ROW_META_COLUMNS]
    record["fields"] = meta + record["fields"]
    return parse_schema(json.dumps(record, separators=(",", ":"), ensure_ascii=False), "HoodieMetadataRecord.avsc")


def writer_schema(release: str, newest: AvroSchema | None) -> AvroSchema:
    """The schema for a new block: the schema of `release`, or of a later release if the `newest` block has that schema.

    Some readers (hudi-rs) take the schema of one block for all blocks.
    """
    later = (stored_schema(r) for r in RELEASES[RELEASES.index(release) + 1 :])
    return next((schema for schema in later if newest and schema.says_the_same(newest)), stored_schema(release))
