"""The forms of the keys and partition paths that a table has, by a row that it has.

Releases and write paths of Hudi make different texts of some keys (see `keys`): a write must make those that are there.
"""

import pyarrow as pa

from ..metadata.expression_index.times import Zone
from ..snapshot import Snapshot
from .keys import KeyMaker
from .partition_paths import DEFAULT_PARTITION


def key_maker(table: Snapshot, schema: pa.Schema, zone: Zone) -> KeyMaker:
    """The keys for rows of `schema`; `zone` is that of the table's writers.

    Raises what `KeyMaker.of` raises, and CorruptFile and StorageError for a base file that cannot be read.
    """
    if not KeyMaker.depends_on_rows(table.config, schema):
        return KeyMaker.of(table.config, schema, None, zone=zone)
    sample, path = _some_row(table)
    return KeyMaker.of(table.config, schema, sample, sample_path=path, zone=zone)


def _some_row(table: Snapshot) -> tuple[str | None, str | None]:
    """The record key and the partition path of a row, if possible one whose partition value is not null."""
    found: tuple[str | None, str | None] = None, None
    for partition in table.view.partitions():
        if found[0] is not None and DEFAULT_PARTITION in partition:
            continue
        for one in table.view.latest_slices(partition):
            reader = table.slices.open(one)
            keys = next((some for some in reader.record_keys() if len(some)), None)
            reader.release()
            if keys is not None:
                found = keys[0].as_py(), partition
                break
        if found[0] is not None and DEFAULT_PARTITION not in partition:
            break
    return found
