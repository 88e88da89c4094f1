"""Lookup of keys in the record index: the location of the record of each key, or none.

Each shard is read once, its layers from the newest on: the first layer that has a key, or has deleted it, decides. In
an HFile either the blocks that may hold a wanted key are read (seek), or all blocks (scan), which takes more bytes and
fewer requests. Source: HoodieBackedTableMetadata.readRecordIndex of Apache Hudi; RFC-08 for scan or seek.
"""

import enum
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...base_files.key_sort import SortedBinary, sort_keys
from ...codecs.java_hash import file_group_indexes
from ...hfile.hfile_reader import HFileReader
from ...options import index_keys, value_of
from ..file_groups.reader import FileGroupReader
from ..metadata_table import MetadataTable
from ..records.keys import RECORD_INDEX
from .locations import Location, decode_locations
from .shards import Shards


class Access(enum.Enum):
    """How HFiles are read."""

    AUTO = "auto"
    SCAN = "scan"
    SEEK = "seek"


@dataclass(frozen=True, slots=True)
class AccessRule:
    """`access`, and for AUTO the share of an HFile's entries that must be wanted for it to be scanned."""

    access: Access = value_of(index_keys.LOOKUP_ACCESS, Access)
    scan_share: float = value_of(index_keys.LOOKUP_SCAN_SHARE)
    """As measured (docs/indexing.md): RFC-08 says 0.3, of blocks that are not compressed."""

    def seeks(self, reader: HFileReader, keys: int) -> bool:
        if self.access is not Access.AUTO:
            return self.access is Access.SEEK
        return keys < self.scan_share * reader.entry_count


@dataclass(slots=True)
class Locations:
    """The result of a lookup: for each key its position in `locations`, or -1 for a key that is not in the index."""

    positions: npt.NDArray[np.int64]
    locations: list[Location] = field(default_factory=list)
    seeks: int = 0
    """HFiles of which only the blocks with wanted keys were read; `scans`: HFiles of which all blocks were read."""
    scans: int = 0


def look_up(metadata: MetadataTable, keys: pa.Array, rule: AccessRule | None = None, partition: str = "") -> Locations:
    """Find string `keys`, which may repeat; with a partitioned index `partition` is the partition of all keys.

    Memory holds the keys, one shard's log files and a few blocks. Raises CheckFailed for null keys, UnsupportedTable
    for a partition that a partitioned index does not have, CorruptFile and StorageError.
    """
    found = Locations(np.full(len(keys), -1, np.int64))
    groups = metadata.file_groups(RECORD_INDEX)
    shards = np.asarray(Shards.of_groups(groups).of(partition), np.int32)
    placed = shards[file_group_indexes(keys, len(shards))]
    for shard in np.unique(placed).tolist():
        rows = np.flatnonzero(placed == shard)
        reader = metadata.open_group(groups[shard])
        _look_into(reader, keys.take(pa.array(rows)), rows, rule or AccessRule(), found)
    return found


def _look_into(
    group: FileGroupReader, keys: pa.Array, rows: npt.NDArray[np.int64], rule: AccessRule, known: Locations
) -> None:
    """Fill `known` for the keys of one shard, whose positions are `rows`."""
    order = sort_keys(keys)
    wanted, rows = keys.take(order).cast(pa.binary()), rows[order.to_numpy()]
    for deleted, reader, schema, path in group.newest_first():
        if not len(wanted):
            return
        decided = np.zeros(len(wanted), bool)
        if deleted:
            gone = pa.array(sorted(key.encode() for key in deleted), pa.binary())
            decided |= pc.is_in(wanted, gone).to_numpy(zero_copy_only=False)
        if reader is not None and schema is not None:
            seeks = rule.seeks(reader, len(wanted))
            known.seeks, known.scans = known.seeks + seeks, known.scans + (not seeks)
            values = _values(reader, wanted, seeks)
            there = values.is_valid().to_numpy(zero_copy_only=False)
            indices, locations = decode_locations(values.filter(pa.array(there)), schema, path)
            known.positions[rows[there]] = indices.to_numpy() + len(known.locations)
            known.locations += locations
            decided |= there
        wanted, rows = wanted.filter(pa.array(~decided)), rows[~decided]


def _values(reader: HFileReader, rows_at: pa.Array, seek: bool) -> pa.Array:
    """The value of each of the ascending `rows_at` rows, null where there is none."""
    sought = SortedBinary(rows_at)
    parts: list[pa.Array] = []
    at = 0
    for rows, values in reader.columns_with(sought) if seek else reader.scan_columns():
        if not len(rows):
            continue
        begin, end = sought.between(rows[0].as_py(), rows[-1].as_py(), at)
        parts += [pa.nulls(begin - at, pa.binary()), values.take(pc.index_in(rows_at[begin:end], value_set=rows))]
        at = end
    parts.append(pa.nulls(len(rows_at) - at, pa.binary()))
    return pa.concat_arrays(parts)
