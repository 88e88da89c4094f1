"""Advice on the number of file groups of a record index: whether it is far from the one that Hudi would choose now.

Hudi chooses the number once, when it builds the index, by the keys of that moment. Then a file group grows with the
table, and every look-up reads larger files; or a table that has shrunk has thousands of small ones.
"""

from collections.abc import Iterator, Sequence

from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..model import FileSlice
from ..options import Options, index_keys
from ..own_commands import own_command
from .shard_count import GroupSizing, PartitionSizing, file_group_count

_FAR = 4
"""As many times too many, or too few, is far."""


def rescale_advice(metadata: MetadataTable | None, options: Options) -> Iterator[str]:
    """A sentence when the record index has far more or fewer file groups than by the options; keys are estimated."""
    if metadata is None or RECORD_INDEX not in metadata.table_config.metadata_partitions:
        return
    groups = metadata.file_groups(RECORD_INDEX)
    shards = Shards.of_groups(groups)
    sizing = options.of(PartitionSizing if shards.is_partitioned else GroupSizing)
    each = _bytes_per_entry(metadata, groups)
    sets = {one: [groups[number] for number in some] for one, some in shards.by_partition.items()}
    keys = {one: round(sum(map(_base_size, some)) / each) for one, some in sets.items()} if each else {}
    right = {one: file_group_count(count, sizing) for one, count in keys.items()}
    far = [one for one in right if not 1 / _FAR < right[one] / len(sets[one]) < _FAR]
    if not far:
        return
    worst = max(far, key=keys.__getitem__)
    where = "" if worst is None else f" of the partition {worst!r}"
    others = f", and {len(far) - 1} other partitions are like that" if len(far) > 1 else ""
    yield (
        f"the record index{where} has {len(sets[worst])} file groups for about {keys[worst]:,} keys, where "
        f"{right[worst]} are right by {index_keys.RECORD_INDEX_GROUP_BYTES.key}{others}: "
        f"{own_command('index-rescale', metadata.storage.root)}"
    )


def _bytes_per_entry(metadata: MetadataTable, groups: Sequence[FileSlice]) -> float:
    """Of the largest base file; 0 when there is none."""
    largest = max(groups, key=_base_size)
    if largest.base_file is None:
        return 0.0
    entries, _, _ = metadata.open_group(largest).counts
    return _base_size(largest) / max(1, entries)


def _base_size(group: FileSlice) -> int:
    return group.base_file.size if group.base_file is not None else 0
