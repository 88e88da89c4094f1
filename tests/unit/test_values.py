"""Enumerated options take what Hudi's own parsers take, in any release, or say that only Apache Hudi does that.

`scripts/list_hudi_values.py` asked the parsers of four releases.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_services.errors import ConfigError
from hudi_services.options import Option, resolve
from hudi_services.options.clustering_keys import LAYOUT_STRATEGY
from hudi_services.options.registry import OPTIONS
from hudi_services.options.writing_keys import INDEX_TYPE

from .repairs import LOCK

TAKEN: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "hudi_values.json").read_text("utf-8"))
OPTIONS: dict[str, Option[Any]] = {name: option for option in OPTIONS for name in option.names}
SAYS_SO = (
    "only Apache Hudi",
    "run its own command",
    "every Hudi reader",
    "is not supported; only",
    "is no form in which",
)
"""What a refusal says of a value that Hudi knows."""


@pytest.mark.parametrize("key", TAKEN)
def test_every_text_that_hudi_takes(key: str) -> None:
    option, taken = OPTIONS[key], 0
    for text in dict.fromkeys(text for texts in TAKEN[key].values() for text in texts):
        try:
            resolve([("test", {**LOCK, key: text})])
            taken += 1
        except ConfigError as error:
            assert any(said in error.message for said in SAYS_SO), error.message
    assert taken, option.key


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        (LAYOUT_STRATEGY.key, "z-order", "ZORDER"),
        (LAYOUT_STRATEGY.key, "Z-ORDER", "ZORDER"),
        ("hoodie.datasource.write.keygenerator.type", "simple_avro", "SIMPLE"),
        ("hoodie.table.keygenerator.class", "org.apache.hudi.keygen.NonpartitionedAvroKeyGenerator", "NON_PARTITION"),
        (INDEX_TYPE.key, "global_record_level_index", "GLOBAL_RECORD_LEVEL_INDEX"),
        ("hoodie.parquet.compression.codec", "ZSTD", "zstd"),
    ],
)
def test_other_spellings_mean_the_same(key: str, text: str, value: str) -> None:
    assert resolve([("test", {key: text})])[OPTIONS[key]] == value


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        (INDEX_TYPE.key, "hbase", "is an index that only Apache Hudi keeps"),
        ("hoodie.write.record.merge.mode", "custom", "merges rows by a class of users"),
        ("hoodie.datasource.write.operation", "cluster", "is a table service"),
        ("hoodie.datasource.write.operation", "bootstrap", "only Apache Hudi has"),
        ("hoodie.datasource.write.keygenerator.type", "AUTO_RECORD", "is a key generator that only Apache Hudi has"),
        (LAYOUT_STRATEGY.key, "zigzag", "is neither"),
        (INDEX_TYPE.key, "none", "is none of"),
    ],
)
def test_what_cannot_be_carried_out_is_said(key: str, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        resolve([("test", {key: text})])
