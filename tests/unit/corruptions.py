"""Metadata tables with something wrong in them: written by our own delta commits, each wrong in a way that is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hudi_services.commit.times import Times
from hudi_services.log_files.block_contents import delete_block_content
from hudi_services.log_files.log_blocks import BlockType, HeaderKey, LogBlock
from hudi_services.log_files.log_writer import encode_block
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.record_index.locations import Location
from hudi_services.metadata.records.keys import (
    ALL_PARTITIONS_KEY,
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    bloom_filter_key,
    column_stats_key,
    partition_stats_key,
)
from hudi_services.metadata.records.model import (
    BloomRecord,
    FileEntry,
    FilesRecord,
    LocationRecord,
    Record,
    RecordType,
    SecondaryRecord,
    StatsRecord,
)
from hudi_services.metadata_updates.delta_commit import write_delta_commit
from hudi_services.snapshot import Snapshot
from hudi_services.table.log_naming import BySlice
from hudi_services.table_config import METADATA_TABLE_FOLDER, TableConfig
from hudi_services.validation.model import DifferenceKind

from .metadata_tables import files_by_partition
from .tables import open_local

GONE = FileEntry(0, deleted=True)
DEAD = "99999999-0000-0000-0000-000000000000-0_0-0-0_20260101000000000.parquet"
"""The name of a file that nobody has."""

Finding = tuple[str, str, str | None, str | None, str | None]
"""Metadata partition, kind, data partition, file, column: what a difference is told by."""


@dataclass
class Damage:
    """Records and deleted keys to write, and the differences that a look must then find."""

    records: dict[str, list[Record]] = field(default_factory=dict)
    deletes: dict[str, list[str]] = field(default_factory=dict)
    found: set[Finding] = field(default_factory=set)
    harmless: set[Finding] = field(default_factory=set)
    """Of these, those that harm nobody."""
    keys: set[tuple[str, str | None, str | None, str]] = field(default_factory=set)
    """Of an index of keys: kind, data partition, file, key."""

    def record(self, index: str, *records: Record) -> None:
        self.records.setdefault(index, []).extend(records)

    def delete(self, index: str, key: str) -> None:
        self.deletes.setdefault(index, []).append(key)

    def expect(
        self,
        index: str,
        kind: DifferenceKind,
        partition: str | None,
        file: str | None = None,
        column: str | None = None,
        *,
        harmless: bool = False,
    ) -> None:
        finding = (index, kind.value, partition, file, column)
        self.found.add(finding)
        if harmless:
            self.harmless.add(finding)


def do_damage(path: Path, damage: Damage) -> None:
    write_own(path, damage.records, damage.deletes)


def write_own(
    path: Path, records: Mapping[str, Sequence[Record]], deletes: Mapping[str, Sequence[str]] | None = None
) -> str:
    """A delta commit that the metadata table has alone, as a repair is; its instant."""
    table = open_local(path)
    metadata = metadata_of(table)
    times = Times(table, 0)
    ts = times.next() + ("010" if isinstance(metadata.log_naming, BySlice) else "")
    write_delta_commit(metadata, ts, records, times.next, deletes=deletes)
    return ts


def metadata_of(table: Snapshot) -> MetadataTable:
    assert table.metadata is not None
    return table.metadata


def wrong_listing(path: Path) -> Damage:
    """Ten wrongs of the listing, and a partition too few."""
    metadata = metadata_of(open_local(path))
    listing = files_by_partition(metadata)
    p, q = sorted(listing)[:2]
    (a, b, c, *_), (d, e, f, *_) = (sorted(listing[partition]) for partition in (p, q))
    damage = Damage()

    def entries(partition: str, *series: FileEntry, name: str) -> None:
        damage.record(FILES, *(FilesRecord(partition, RecordType.FILES, {name: entry}) for entry in series))

    for partition, name in ((p, a), (q, d)):
        # Once for the log files, once for a base file.
        entries(partition, GONE, GONE, name=name)
        damage.expect(FILES, DifferenceKind.FILE_MISSING, partition, name)
    for partition, name in ((p, DEAD), (q, DEAD), (q, DEAD.replace("-0_", "-1_"))):
        entries(partition, FileEntry(4711), name=name)
        damage.expect(FILES, DifferenceKind.STALE_FILE, partition, name)
    for partition, name in ((p, b), (q, e)):
        entries(partition, FileEntry(listing[partition][name] + 1), name=name)
        damage.expect(FILES, DifferenceKind.WRONG_SIZE, partition, name)
    for partition, name in ((p, c), (q, f)):
        # Merging takes the greater size: a base file's cannot be made less.
        ((_, stored),) = metadata.reader(FILES).stored([partition])
        less = 1 if isinstance(stored.base, FilesRecord) and name in stored.base.entries else -1
        entries(partition, GONE, FileEntry(listing[partition][name] + less), name=name)
        damage.expect(FILES, DifferenceKind.WRONG_SIZE, partition, name)
    for everything in ({q: GONE, "day=gone": FileEntry(0)}, {q: GONE}):
        damage.record(FILES, FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, everything))
    damage.expect(FILES, DifferenceKind.PARTITION_MISSING, q)
    damage.expect(FILES, DifferenceKind.STALE_PARTITION, "day=gone")
    return damage


def wrong_column_stats(path: Path) -> Damage:
    """Ten wrong records of files."""
    metadata = metadata_of(open_local(path))
    listing = files_by_partition(metadata)
    p, q = sorted(listing)[:2]
    partition_of = {name: partition for partition, names in listing.items() for name in names}
    stored = [one for one in metadata.reader(COLUMN_STATS).scan() if isinstance(one, StatsRecord)]
    ids = sorted((one for one in stored if one.column == "_hoodie_record_key"), key=lambda one: one.file_name)
    others = sorted((one for one in stored if one.column == "ts"), key=lambda one: one.file_name)
    damage = Damage()

    def wrong(
        record: StatsRecord, *kinds: DifferenceKind, harmless: tuple[DifferenceKind, ...] = (), **changes: object
    ) -> None:
        # So that it stands as it is: above other log files, and on versions 8 and 9 above a base file, too.
        gone = replace(record, minimum=None, maximum=None, deleted=True)
        damage.record(COLUMN_STATS, gone, replace(record, tight=True, **changes))  # type: ignore[arg-type]
        for kind in kinds:
            place = (partition_of[record.file_name], record.file_name, record.column)
            damage.expect(COLUMN_STATS, kind, *place, harmless=kind in harmless)

    # A range that is too wide skips less, and sizes are nobody's business.
    wrong(ids[0], DifferenceKind.WRONG_MINIMUM, harmless=(DifferenceKind.WRONG_MINIMUM,), minimum="")
    wrong(ids[1], DifferenceKind.WRONG_MINIMUM, minimum=ids[1].minimum + "x")
    wrong(ids[2], DifferenceKind.WRONG_MAXIMUM, harmless=(DifferenceKind.WRONG_MAXIMUM,), maximum="zz")
    wrong(ids[3], DifferenceKind.WRONG_MAXIMUM, maximum=ids[3].minimum)
    wrong(ids[4], DifferenceKind.WRONG_COUNTS, value_count=0)
    counts = (DifferenceKind.WRONG_COUNTS,)
    wrong(ids[5], DifferenceKind.WRONG_COUNTS, harmless=counts, null_count=ids[5].null_count + 1)
    wrong(ids[6], DifferenceKind.WRONG_COUNTS, harmless=counts, total_size=1, total_uncompressed_size=1)
    kinds = (DifferenceKind.WRONG_MINIMUM, DifferenceKind.WRONG_MAXIMUM, DifferenceKind.WRONG_COUNTS)
    wrong(ids[7], *kinds, harmless=counts, minimum=None, maximum=None, value_count=1)
    for record in (ids[8], others[0]):
        damage.delete(COLUMN_STATS, record.key)
        name = record.file_name
        damage.expect(COLUMN_STATS, DifferenceKind.STATISTICS_MISSING, partition_of[name], name, record.column)
    for partition in (p, q):
        key = column_stats_key("ts", partition, DEAD)
        damage.record(COLUMN_STATS, replace(others[1], key=key, file_name=DEAD))
    # A key is a hash: it does not say which partition.
    damage.expect(COLUMN_STATS, DifferenceKind.STALE_STATISTICS, None, DEAD, "ts", harmless=True)
    return damage


def wrong_ranges(path: Path) -> Damage:
    """Ten wrong ranges of partitions, among them five that are harmless."""
    metadata = metadata_of(open_local(path))
    p, q = sorted(files_by_partition(metadata))[:2]
    stored = [one for one in metadata.reader(PARTITION_STATS).scan() if isinstance(one, StatsRecord)]
    by_key = {record.key: record for record in stored}
    damage = Damage()

    def wrong(partition: str, column: str, *kinds: DifferenceKind, **changes: object) -> None:
        record = by_key[partition_stats_key(column, partition)]
        damage.record(PARTITION_STATS, replace(record, tight=True, **changes))  # type: ignore[arg-type]
        for kind in kinds:
            damage.expect(PARTITION_STATS, kind, partition, None, column)

    def bounds(partition: str, column: str) -> tuple[object, object]:
        record = by_key[partition_stats_key(column, partition)]
        return record.minimum, record.maximum

    wrong(p, "ts", DifferenceKind.NARROW_RANGE, minimum=bounds(p, "ts")[1])
    wrong(q, "ts", DifferenceKind.NARROW_RANGE, maximum=bounds(q, "ts")[0])
    wrong(p, "_hoodie_record_key", DifferenceKind.NARROW_RANGE, minimum=None, maximum=None)
    wrong(q, "_hoodie_record_key", minimum="", maximum="zzz")
    wrong(p, "amount", DifferenceKind.WRONG_COUNTS, null_count=0)
    wrong(q, "amount", DifferenceKind.WRONG_COUNTS, null_count=by_key[partition_stats_key("amount", q)].value_count)
    wrong(p, "_hoodie_commit_time", value_count=1_000_000, total_size=1)
    wrong(
        q, "_hoodie_commit_time", DifferenceKind.NARROW_RANGE, DifferenceKind.WRONG_COUNTS, minimum="9", value_count=0
    )
    for partition in (p, q):
        damage.delete(PARTITION_STATS, partition_stats_key("at", partition))
        damage.expect(PARTITION_STATS, DifferenceKind.STATISTICS_MISSING, partition, None, "at")
    dead = replace(stored[0], key=partition_stats_key("ts", "day=gone"), file_name="day=gone")
    damage.record(PARTITION_STATS, dead)
    return damage


def wrong_blooms(path: Path) -> Damage:
    """Ten wrong bloom filters."""
    metadata = metadata_of(open_local(path))
    listing = files_by_partition(metadata)
    p, q = sorted(listing)[:2]
    stored = {one.key: one for one in metadata.reader(BLOOM_FILTERS).scan() if isinstance(one, BloomRecord)}
    files = [(partition, name) for partition in sorted(listing) for name in sorted(listing[partition])]
    damage = Damage()

    def wrong(number: int, **changes: object) -> None:
        record = stored[bloom_filter_key(*files[number])]
        damage.record(BLOOM_FILTERS, replace(record, **changes))  # type: ignore[arg-type]
        damage.expect(BLOOM_FILTERS, DifferenceKind.WRONG_BLOOM, *files[number])

    first = stored[bloom_filter_key(*files[0])]
    for number in range(4):
        own = stored[bloom_filter_key(*files[number])].bits
        # Slices of one file group may have the same.
        wrong(number, bits=next(other.bits for other in stored.values() if other.bits != own))
    wrong(4, type_code="SIMPLE" if first.type_code != "SIMPLE" else "DYNAMIC_V0")
    for number in (5, 6, 7):
        damage.delete(BLOOM_FILTERS, bloom_filter_key(*files[number]))
        damage.expect(BLOOM_FILTERS, DifferenceKind.BLOOM_MISSING, *files[number])
    for partition in (p, q):
        damage.record(BLOOM_FILTERS, replace(first, key=bloom_filter_key(partition, DEAD)))
    # A record does not say which file it is of.
    damage.expect(BLOOM_FILTERS, DifferenceKind.STALE_BLOOM, None, harmless=True)
    return damage


def wrong_keys(path: Path) -> Damage:
    """Ten wrong entries of a global record index."""
    table = open_local(path)
    slices = [one for partition in table.view.partitions() for one in table.view.latest_slices(partition)]
    files = {(one.partition, one.file_id): one.base_file for one in slices}
    stored = {one.key: one for one in metadata_of(table).reader(RECORD_INDEX).scan() if isinstance(one, LocationRecord)}
    damage = Damage()
    keys = sorted(stored)
    others = list(files)

    def wrong(key: str, kind: DifferenceKind, location: Location | None) -> None:
        true = stored[key].location if key in stored else location
        assert true is not None
        base = files.get((true.partition, true.file_id))
        name = None if kind is DifferenceKind.DEAD_KEY or base is None else base.name
        damage.keys.add((kind.value, true.partition, name, key))
        if location is None:
            damage.delete(RECORD_INDEX, key)
        else:
            damage.record(RECORD_INDEX, LocationRecord(key, location))

    for key in (keys[0], keys[1], keys[-1]):
        wrong(key, DifferenceKind.KEY_MISSING, None)
    for key in keys[2:5]:
        at = stored[key].location
        other = next(one for one in others if one != (at.partition, at.file_id))
        wrong(key, DifferenceKind.WRONG_LOCATION, replace(at, partition=other[0], file_id=other[1]))
    wrong(keys[5], DifferenceKind.WRONG_LOCATION, replace(stored[keys[5]].location, file_id=DEAD[:38]))
    wrong(keys[6], DifferenceKind.WRONG_LOCATION, replace(stored[keys[6]].location, partition="day=gone"))
    wrong("nobody", DifferenceKind.DEAD_KEY, stored[keys[7]].location)
    wrong("ünobody", DifferenceKind.DEAD_KEY, replace(stored[keys[7]].location, file_id="gone"))
    return damage


def wrong_pairs(path: Path, index: str) -> Damage:
    """Ten wrong entries of a secondary index."""
    stored = [one for one in metadata_of(open_local(path)).reader(index).scan() if isinstance(one, SecondaryRecord)]
    keys = sorted(one.key for one in stored if not one.deleted)
    damage = Damage()
    for key in keys[:5]:
        damage.delete(index, key)
        damage.keys.add((DifferenceKind.KEY_MISSING.value, None, None, key))
    for key in (f"{keys[7]}x", "nobody$nothing", "$", "a\\$b$\\\\", "ü$ü"):
        damage.record(index, SecondaryRecord(key))
        damage.keys.add((DifferenceKind.DEAD_KEY.value, None, None, key))
    return damage


def add_index(path: Path, index: str, prefix: str) -> None:
    """Give the metadata table one more partition, ready and empty: two file groups, begun by empty delete blocks."""
    table = open_local(path)
    metadata = metadata_of(table)
    first = metadata.timeline.completed()[0].ts
    block = LogBlock(BlockType.DELETE, {HeaderKey.INSTANT_TIME: first}, delete_block_content([]))
    for number in range(2):
        name = f".{prefix}-{number:04d}-0_{first}.log.1_0-0-0"
        metadata.storage.create(f"{METADATA_TABLE_FOLDER}/{index}/{name}", encode_block(block))
    names = ",".join(sorted({*table.config.metadata_partitions, index}))
    TableConfig.load(table.storage).update(table.storage, {"hoodie.table.metadata.partitions": names})
