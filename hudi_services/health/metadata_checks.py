"""Checks of the metadata table: whether it knows what the table has, and whether readers that skip by it miss rows."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ..base_files.slices import SliceFacts, describe
from ..file_names import parse_data_file
from ..indexing.advice import rescale_advice
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import COLUMN_STATS, RECORD_INDEX, column_stats_prefix
from ..metadata.records.model import StatsRecord
from ..metadata_updates.narrow_ranges import narrow_ranges
from ..model import BaseFile, FileSlice
from ..paths import bare_name
from ..schema.column_type import Kind
from ..snapshot import live_names
from ..table.partitions import StorageLister
from ..timeline.compaction_trigger import MetadataTrigger
from ..timeline.instant import Action, Instant
from ..units import counted
from .examination import Examination
from .model import HealthFinding, Level

_ZEROS = {Kind.FLOAT: bytes(4), Kind.DOUBLE: bytes(8)}
"""0.0 in an encoded record, by the type of the column. Records of columns that are widened since are passed over."""
_HALF = len(column_stats_prefix("", "")) // 2
"""The part of the column in the prefix of a key; the other one is that of the partition."""
_FOOTERS = 64
"""So many footers are read, at most, to confirm ranges that no file has."""


def metadata_behind(seen: Examination) -> Iterator[HealthFinding]:
    """Commits that the metadata table does not know: readers do not see their files."""
    metadata = seen.table.metadata
    seen.measures["has_metadata_table"] = int(metadata is not None)
    if metadata is None:
        return
    own = {one.ts for one in metadata.timeline.completed()}
    # No delta commit of its own has a commit that is older than the metadata table, or that a repair has added.
    lost = _lost_files(seen, [one for one in seen.writes if one.ts not in own])
    if lost:
        files = sum(map(len, lost.values()))
        first = min(lost)
        yield HealthFinding(
            Level.CRITICAL,
            first,
            f"the metadata table does not have {counted(files, 'file')} of {counted(len(lost), 'commit')}, the first "
            f"{first}: readers do not see the rows",
            {"commits": len(lost), "files": files},
            "validate --apply",
        )


def _lost_files(seen: Examination, commits: Sequence[Instant]) -> Mapping[str, Sequence[str]]:
    """The files that commits have written, that are stored and needed, and that the metadata table does not list; by
    commit."""
    table, written = seen.table, dict[str, dict[str, str]]()
    for instant, commit in table.timeline.read_commits(commits):
        for partition, stats in commit.stats.items():
            written.setdefault(partition, {}).update((bare_name(one.path), instant.ts) for one in stats if one.path)
    lost: dict[str, list[str]] = defaultdict(list)
    gone = table.ledger.cleaned | table.ledger.going if written else frozenset()
    stored = StorageLister(table.storage)
    for partition, view in table.view.each(sorted(written)):
        known = view.sizes(partition)
        unlisted = {name for name in written[partition] if name not in known and (partition, name) not in gone}
        for name in sorted(unlisted & stored.files(partition).keys()) if unlisted else ():
            file = parse_data_file(partition, name, 0)
            if file is not None and view.replaced_at(partition, file.file_id) is None:
                lost[written[partition][name]].append(name)
    return lost


def metadata_compaction_lags(seen: Examination) -> Iterator[HealthFinding]:
    """Log files of the metadata table that no compaction merges: each look at the table reads them."""
    metadata = seen.table.metadata
    if metadata is None:
        return
    last = max((one.ts for one in metadata.timeline.completed({Action.COMMIT})), default="")
    deltas = sum(one.ts > last for one in metadata.timeline.completed({Action.DELTA_COMMIT}))
    waits = seen.options.of(MetadataTrigger).commits
    seen.measures["metadata_delta_commits_since_compaction"] = deltas
    if deltas > seen.limits.times_late * waits:
        holder = next((one for one in seen.table.timeline.pending() if one.action.writes_data), None)
        why = f"; the pending {holder.action.value} {holder.ts} holds it back" if holder is not None else ""
        yield HealthFinding(
            Level.WARNING,
            holder.ts if holder is not None else "",
            f"the metadata table has {counted(deltas, 'delta commit')} since its last compaction, which is due after "
            f"{waits}{why}",
            {"delta_commits": deltas, "waits_for": waits},
            seen.way_out(holder.ts) if holder is not None else "",
        )


def drift(seen: Examination) -> Iterator[HealthFinding]:
    """Base files that the metadata table lists and storage does not have, and the other way round, in a sample."""
    table = seen.table
    if table.metadata is None:
        return
    stored = StorageLister(table.storage)
    stored.load(list(seen.sample))
    seen.measures["sampled_partitions"] = len(seen.sample)
    lost: list[str] = []
    unknown: list[str] = []
    for partition, view in table.view.each(list(seen.sample)):
        known, there = view.sizes(partition), stored.files(partition)
        live = [one.base_file for one in view.latest_slices(partition) if one.base_file is not None]
        lost += [file.path for file in live if there.get(file.name) != file.size]
        unknown += [
            file.path
            for name, size in there.items()
            if name not in known and (file := parse_data_file(partition, name, size)) and _is_committed(seen, file)
        ]
    if lost:
        yield HealthFinding(
            Level.CRITICAL,
            lost[0],
            f"storage does not have {counted(len(lost), 'base file')} that the metadata table lists, or not with the "
            f"listed size, the first {lost[0]}: queries fail or lose rows",
            {"files": len(lost), "sampled_partitions": len(seen.sample)},
            "validate",
        )
    if unknown:
        yield HealthFinding(
            Level.CRITICAL,
            unknown[0],
            f"storage has {counted(len(unknown), 'base file')} of commits that the metadata table does not list, the "
            f"first {unknown[0]}: readers do not see the rows",
            {"files": len(unknown), "sampled_partitions": len(seen.sample)},
            "validate --apply",
        )


def _is_committed(seen: Examination, file: object) -> bool:
    """Whether a commit names the file, and no clean has it among the deleted ones."""
    if not isinstance(file, BaseFile) or file.instant not in seen.table.ledger.writes:
        return False
    names = seen.table.ledger.names_of(file.instant)
    gone = seen.table.ledger.cleaned | seen.table.ledger.going
    is_replaced = seen.table.view.replaced_at(file.partition, file.file_id) is not None
    return names is not None and file.name in names and (file.partition, file.name) not in gone and not is_replaced


def hidden_rows(seen: Examination) -> Iterator[HealthFinding]:
    """Ranges of float columns that leave values out: readers that skip by them lose rows, and say nothing."""
    table, metadata = seen.table, seen.table.metadata
    all_columns = table.schema.columns if table.schema is not None else ()
    columns = {one.name: _ZEROS[one.type.kind] for one in all_columns if one.type.kind in _ZEROS}
    if metadata is None or COLUMN_STATS not in metadata.partitions or not columns:
        return
    suspects = _zero_ranges(seen, metadata, columns)
    for column, files in sorted(suspects.items()):
        chosen = sorted(files, key=lambda one: -files[one].value_count)[:_FOOTERS]
        confirmed = [one for one, is_wrong in zip(chosen, _are_wrong(seen, chosen, column), strict=True) if is_wrong]
        if not confirmed:
            continue
        rows = sum(files[one].value_count - files[one].null_count for one in confirmed)
        more = len(files) - len(chosen)
        tail = f" ({counted(more, 'more file')} with this range not opened)" if more else ""
        yield HealthFinding(
            Level.CRITICAL,
            column,
            f"filters on {column} may miss up to {counted(rows, 'row')} in {counted(len(confirmed), 'file')}, without "
            f"an error: the metadata table has the range 0.0 to 0.0, as Hudi writes it where a column has a NaN{tail}",
            {"files": len(confirmed), "rows": rows, "files_not_opened": more},
            "validate --apply",
        )


def _zero_ranges(
    seen: Examination, metadata: MetadataTable, columns: Mapping[str, bytes]
) -> dict[str, dict[FileSlice, StatsRecord]]:
    """The live slices whose base file has the range 0.0 to 0.0 by the metadata table, by column.

    One scan for each column, of which only such records are kept; the partitions that they are of are then listed.
    """
    reader = metadata.reader(COLUMN_STATS)
    of_part = {column_stats_prefix("", partition)[_HALF:]: partition for partition in seen.files.partitions}
    suspects: dict[str, list[StatsRecord]] = defaultdict(list)
    for column, zero in columns.items():
        prefix = column_stats_prefix(column, "")[:_HALF]
        for record in reader.scan(prefix, worth=partial(_has, zero)):
            if isinstance(record, StatsRecord) and _is_zero(record):
                partition = of_part.get(record.key[_HALF : 2 * _HALF])
                if partition is not None:
                    suspects[partition].append(record)
    found: dict[str, dict[FileSlice, StatsRecord]] = defaultdict(dict)
    for partition, view in seen.table.view.each(sorted(suspects)):
        live = {one.base_name: one for one in view.latest_slices(partition) if one.base_file is not None}
        for record in suspects[partition]:
            if record.file_name in live:
                found[record.column][live[record.file_name]] = record
    return found


def _has(part: bytes, value: bytes) -> bool:
    return part in value


def _is_zero(record: StatsRecord) -> bool:
    is_zero = record.minimum == 0 and record.maximum == 0
    return not record.deleted and is_zero and record.value_count > record.null_count


def _are_wrong(seen: Examination, slices: list[FileSlice], column: str) -> list[bool]:
    """Whether the footer of each slice's base file does not say that all values of the column are zero."""

    def is_wrong(_: FileSlice, facts: SliceFacts) -> bool:
        stats = next((one for one in facts.columns if one.column == column), None)
        return stats is not None and not (stats.has_range and stats.min == 0 and stats.max == 0)

    bases = [FileSlice.of_base(one.base_file) for one in slices if one.base_file is not None]
    return describe(seen.table.slices, bases, is_wrong)


def narrow_partition_ranges(seen: Examination) -> Iterator[HealthFinding]:
    """Ranges of whole partitions that are narrower than their files: readers skip the partition. A sample."""
    metadata = seen.table.metadata
    if metadata is None:
        return
    found: Mapping[str, list[StatsRecord]] = narrow_ranges(metadata, live_names(seen.table, seen.sample))
    for index, records in sorted(found.items()):
        columns = sorted({one.column for one in records})
        yield HealthFinding(
            Level.CRITICAL,
            index,
            f"{index} leaves out values of files in {counted(len(records), 'range')} of partitions (columns "
            f"{', '.join(columns)}): filters on these columns may miss rows, without an error",
            {"ranges": len(records), "sampled_partitions": len(seen.sample)},
            "validate --apply",
        )


def record_index_balance(seen: Examination) -> Iterator[HealthFinding]:
    """A record index whose number of file groups is far from the one that Hudi would choose now."""
    metadata = seen.table.metadata
    building = seen.table.config.metadata_partitions_inflight
    if metadata is None or RECORD_INDEX not in metadata.partitions or RECORD_INDEX in building:
        return
    groups = metadata.file_groups(RECORD_INDEX)
    sizes = [one.size for one in groups]
    seen.measures |= {"record_index_file_groups": len(groups), "record_index_bytes": sum(sizes)}
    for sentence in rescale_advice(metadata, seen.options):
        yield HealthFinding(
            Level.WARNING,
            RECORD_INDEX,
            sentence.partition(": hudi-services")[0],
            {"file_groups": len(groups), "bytes": sum(sizes), "largest_bytes": max(sizes, default=0)},
            "index-rescale",
        )


def index_half_built(seen: Examination) -> Iterator[HealthFinding]:
    """Indexes that the table says are being built, and that nobody builds."""
    building = seen.table.config.metadata_partitions_inflight
    if building and not seen.table.timeline.pending({Action.INDEXING}):
        yield HealthFinding(
            Level.WARNING,
            building[0],
            f"the table says that its index {building[0]} is being built (hoodie.table.metadata.partitions.inflight), "
            "and no build is pending: writers keep it up to date in vain; let HoodieIndexer of Apache Hudi finish it, "
            "or drop the index there",
            {"indexes": len(building)},
        )


def metadata_missing(seen: Examination) -> Iterator[HealthFinding]:
    """A table without a metadata table: every read lists folders."""
    # The first write makes the metadata table.
    if seen.table.metadata is None and seen.writes:
        yield HealthFinding(
            Level.NOTE,
            "",
            f"the table has no metadata table: each read lists {counted(len(seen.files.partitions), 'folder')}, and no "
            "filter skips a file by its ranges before it is opened",
            {"partitions": len(seen.files.partitions)},
            "index-bootstrap --index files,column_stats",
        )
