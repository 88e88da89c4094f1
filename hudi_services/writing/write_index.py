"""The index of a write: how it finds the file slices that have its record keys.

    index                         keys are unique in    looked up in
    SIMPLE, BLOOM                 a partition           base files of the partitions of the rows
    GLOBAL_SIMPLE, GLOBAL_BLOOM   the table             all base files
    RECORD_INDEX                  the table             the record index of the metadata table
    RECORD_LEVEL_INDEX            a partition           the record index of each partition
    BUCKET                        a partition           nowhere: the hash of a key names its file group

Source: HoodieIndex.IndexType, SparkHoodieIndexFactory, SparkMetadataTableRecordIndex of Apache Hudi.
"""

import enum
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..errors import CheckFailed, ConfigError
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.lookup import look_up
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..options import Options, writing_keys
from ..snapshot import Snapshot
from ..table_config import TableConfig
from .buckets import Buckets
from .keys_of_files import StoredKeys, scope_of
from .ring_index import RingIndex
from .tagging import Tagged, tag_keys


class IndexType(enum.Enum):
    """The names are Hudi's."""

    SIMPLE = "SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    RECORD_INDEX = "RECORD_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"
    BUCKET = "BUCKET"

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, and not only in its partition."""
        return self in (IndexType.GLOBAL_SIMPLE, IndexType.GLOBAL_BLOOM, IndexType.RECORD_INDEX)


@dataclass(frozen=True, slots=True)
class Index:
    """`moves_rows`: a row whose partition path has changed moves there; otherwise it stays where its key is.

    `buckets` are those of a bucket index.
    """

    kind: IndexType
    moves_rows: bool = False
    buckets: Buckets | None = None
    ring: RingIndex | None = None
    """That of consistent hashing."""

    @property
    def asks_metadata(self) -> bool:
        """Whether keys are looked up in the record index."""
        return self.kind in (IndexType.RECORD_INDEX, IndexType.RECORD_LEVEL_INDEX)

    @property
    def by_footer(self) -> bool:
        """Whether files that do not have a key by their footers are not read."""
        return self.kind in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM)

    def is_live(self, *, exact: bool) -> bool:
        """Whether keys that log files have deleted are not there."""
        return exact or self.kind.is_global

    def reads_files(self, *, exact: bool) -> bool:
        """Whether keys are looked up in base files."""
        return not self.asks_metadata and self.ring is None and (self.buckets is None or exact)

    def find(
        self, table: Snapshot, partition: str, keys: pa.Array, stored: StoredKeys | None = None, *, exact: bool = False
    ) -> list[Tagged]:
        """The slices that have any of `keys`, which differ from each other, in one partition or, if global, in all.

        By a bucket index, the slices that may have them, unless `exact`; by consistent hashing also those that are to
        get them, some without files. With `stored`, no files are read.

        Raises UnsupportedTable for keys whose bucket cannot be told, CorruptFile, StorageError, and CheckFailed when
        the record index names a file group that is not there.
        """
        if self.asks_metadata:
            assert table.metadata is not None, "the table has a record index"
            return _by_record_index(table, table.metadata, partition, keys)
        if self.ring is not None:
            return self.ring.find(table, partition, keys)
        if stored is not None:
            return stored.tag(scope_of(partition, is_global=self.kind.is_global), keys)
        slices = table.view.latest_slices_of(table.view.partitions() if self.kind.is_global else [partition])
        if self.buckets is not None and not exact:
            of_keys = self.buckets.of(keys)
            found = self.buckets.groups(slices)
            return [Tagged(found[one], np.flatnonzero(of_keys == one)) for one in np.unique(of_keys) if one in found]
        live = self.is_live(exact=exact)
        return tag_keys(table.storage, table.slices, slices, keys, by_footer=self.by_footer, live=live)


def _by_record_index(table: Snapshot, metadata: MetadataTable, partition: str, keys: pa.Array) -> list[Tagged]:
    if not Shards.of_groups(metadata.file_groups(RECORD_INDEX)).has(partition):
        return []
    found = look_up(metadata, keys, partition=partition)
    groups = [(one.partition, one.file_id) for one in found.locations]
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    of_location = np.array([numbers[group] for group in groups], np.int64)
    known = np.flatnonzero(found.positions >= 0)
    of_key = of_location[found.positions[known]]
    live = table.view.latest_slices_of(sorted({partition for partition, _ in groups}))
    slices = {(one.partition, one.file_id): one for one in live}
    result = []
    for group, number in numbers.items():
        positions = known[of_key == number]
        if positions.size and group not in slices:
            raise CheckFailed(
                f"{table.storage.root}: the record index has the key {keys[int(positions[0])].as_py()!r} in the file "
                f"group {group[1]} of partition {group[0]!r}, which is not there",
                hint="run validate, and build the record index again; until then write with another hoodie.index.type",
            )
        if positions.size:
            result.append(Tagged(slices[group], positions))
    return result


def index_type(options: Options) -> IndexType:
    """The index that is asked for."""
    return IndexType(options[writing_keys.INDEX_TYPE].replace("GLOBAL_RECORD_LEVEL_INDEX", "RECORD_INDEX"))


def is_consistent(options: Options) -> bool:
    """Whether the index is a bucket index with consistent hashing."""
    engine = options[writing_keys.BUCKET_ENGINE]
    return index_type(options) is IndexType.BUCKET and engine == "CONSISTENT_HASHING"


def ring_index(options: Options, config: TableConfig) -> RingIndex | None:
    """The index of a write with consistent hashing; None by any other index. Raises as `RingIndex.of_table`."""
    if not is_consistent(options):
        return None
    hashed = options[writing_keys.BUCKET_FIELDS]
    return RingIndex.of_table(config, options[writing_keys.BUCKETS], hashed)


def bucket_index(options: Options, config: TableConfig) -> Buckets | None:
    """The buckets of a write by a bucket index; None by any other index. Raises as `Buckets.of_table`."""
    if index_type(options) is not IndexType.BUCKET or is_consistent(options):
        return None
    hashed = options[writing_keys.BUCKET_FIELDS]
    return Buckets.of_table(config, options[writing_keys.BUCKETS], hashed)


_WITHOUT_INDEX = {
    IndexType.RECORD_INDEX: IndexType.GLOBAL_SIMPLE,
    IndexType.RECORD_LEVEL_INDEX: IndexType.SIMPLE,
}
"""The index that takes the place of a record index where the table has none, as in Hudi."""


def write_index(options: Options, config: TableConfig, shards: Shards | None) -> Index:
    """The index of an upsert or delete of a table with these shards of its record index, if any.

    Raises ConfigError for a record index of the other kind, and as `bucket_index`.
    """
    kind = index_type(options)
    if shards is None:
        kind = _WITHOUT_INDEX.get(kind, kind)
    elif kind in _WITHOUT_INDEX and (kind is IndexType.RECORD_LEVEL_INDEX) is not shards.is_partitioned:
        which, other = "the whole table", IndexType.RECORD_INDEX
        if shards.is_partitioned:
            which, other = "each partition", IndexType.RECORD_LEVEL_INDEX
        raise ConfigError(
            f"{writing_keys.INDEX_TYPE.key}={kind.value}, and the table {config.name} has a record index of {which}",
            hint=f"set {writing_keys.INDEX_TYPE.key}={other.value}",
        )
    moves = {
        IndexType.GLOBAL_SIMPLE: writing_keys.SIMPLE_MOVES_ROWS,
        IndexType.GLOBAL_BLOOM: writing_keys.BLOOM_MOVES_ROWS,
        IndexType.RECORD_INDEX: writing_keys.RECORD_INDEX_MOVES_ROWS,
    }
    moves_rows = kind in moves and options[moves[kind]]
    return Index(kind, moves_rows, bucket_index(options, config), ring_index(options, config))
