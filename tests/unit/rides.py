"""New tables of rides, for tests that write to them."""

from pathlib import Path
from typing import Any

import hudi_services

FILTERS = {"hoodie.index.bloom.num_entries": "1000", "hoodie.bloom.index.filter.dynamic.max.entries": "2000"}
"""Small bloom filters: the files of tests have few rows."""


def create(path: Path, **arguments: Any) -> hudi_services.Table:
    """A new table, by day and with an ordering field, unless `arguments` of `hudi_services.create` say otherwise."""
    known = {"name": "rides", "record_key": "id", "partition_by": "day", "ordering": "ts", "engine": "local"}
    known["options"] = FILTERS
    return hudi_services.create(path, **{**known, **arguments})
