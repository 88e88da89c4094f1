"""The Avro schemas of change data: what was done to the rows of a base file, in blocks of type CDC_DATA.

    op          i, u, d: the row was inserted, updated, deleted
    record_key  of the row, where the mode has it
    ts_ms       the instant of the commit, as text; with both images alone
    before      the data columns of the row before it, null for an insert
    after       those of the row after it, null for a delete

Source: HoodieCDCUtils, HoodieCDCSupplementalLoggingMode of Apache Hudi 0.15.0 to 1.2.0.
"""

import enum
import json
from collections.abc import Mapping
from typing import Any


class ChangesMode(enum.Enum):
    """What a record of a change holds, by Hudi's name: its fields."""

    OP_KEY_ONLY = ("op", "record_key")
    DATA_BEFORE = ("op", "record_key", "before")
    DATA_BEFORE_AFTER = ("op", "ts_ms", "before", "after")


_KEYS_ONLY = {
    "type": "record",
    "name": "Record",
    "fields": [{"name": name, "type": ["string", "null"]} for name in ChangesMode.OP_KEY_ONLY.value],
}


def change_schema(mode: ChangesMode, record: Mapping[str, Any]) -> str:
    """The schema, as JSON, of the changes of rows whose data columns are the fields of an Avro record."""
    if mode is ChangesMode.OP_KEY_ONLY:
        return _text(_KEYS_ONLY)
    space, _, name = str(record["name"]).rpartition(".")
    types: dict[str, Any] = dict.fromkeys(mode.value, "string")
    types["before"] = {"type": "record", "name": name, "fields": record["fields"]}
    if "after" in types:
        types["after"] = name
    fields = [{"name": field, "type": ["null", one], "doc": "", "default": None} for field, one in types.items()]
    space = space or str(record.get("namespace", ""))
    named = {"type": "record", "name": "CDC", **({"namespace": space} if space else {})}
    return _text({**named, "fields": fields})


def _text(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"))
