"""How each list of a report is told on a screen: its columns, and which of its rows come first."""

from ..runs.report_rows import (
    ArchivedRow,
    ArchiveFileRow,
    CheckedPartitionRow,
    ClusteringGainRow,
    ClusteringGroupRow,
    ClusteringSliceRow,
    CompactionGroupRow,
    CompactionSliceRow,
    DeletedRow,
    FleetServiceRow,
    FleetTableRow,
    HealthFindingRow,
    LayoutRow,
    LocationRow,
    PartitionRow,
    PendingCleanRow,
    PendingInstantRow,
    PredicateRow,
    QuarantineRow,
    RepeatedTaskRow,
    Row,
    SkippingRow,
    TimelineRow,
    VisibleAgainRow,
    columns,
)
from .largest import COUNT, Excerpt
from .sheet import ScreenColumn


def _number(field: str, head: str) -> ScreenColumn:
    return ScreenColumn(field, head, is_number=True)


def _path(field: str, head: str, least: int = 22) -> ScreenColumn:
    return ScreenColumn(field, head, least=least, is_path=True)


def _text(field: str, head: str, least: int = 0) -> ScreenColumn:
    return ScreenColumn(field, head, least=least)


_PARTITION = _path("partition", "partition")
_FILES, _SIZE = _number("files", "files"), _number("bytes", "size")
_LOGS = (_number("log_files", "log files"), _number("log_bytes", "size of logs"))
_EXAMPLE = _path("file_id", "for example", 14)
_OF_PARTITIONS = Excerpt(
    columns=(_PARTITION, _FILES, _SIZE), label="partition", largest="bytes", adds=("files", "bytes")
)
_LISTS: dict[type[Row], Excerpt] = {
    ClusteringGroupRow: Excerpt(
        columns=(
            _number("group", "group"),
            _PARTITION,
            _FILES,
            _SIZE,
            _number("new_files", "new files"),
            _number("new_bytes", "new size"),
            _number("rows", "rows"),
            _number("memory_bytes", "memory"),
            _text("decoded", "decoded", 14),
        ),
        label="partition",
        fewer=("group", "memory_bytes", "rows", "decoded", "new_bytes", "new_files"),
        largest="bytes",
        adds=("files", "bytes", "new_files", "new_bytes", "rows"),
    ),
    CompactionGroupRow: Excerpt(
        columns=(_PARTITION, _path("file_id", "file group"), _SIZE, *_LOGS),
        label="partition",
        fewer=("bytes", "file_id"),
        largest="log_bytes",
        adds=("bytes", "log_files", "log_bytes"),
    ),
    ClusteringSliceRow: Excerpt(
        columns=(_text("reason", "reason", 16), _PARTITION, _number(COUNT, "slices"), _SIZE, _EXAMPLE),
        label="partition",
        fewer=("file_id", "bytes"),
        largest=COUNT,
        by=("reason", "partition"),
        adds=("bytes",),
        most=10,
    ),
    CompactionSliceRow: Excerpt(
        columns=(_text("reason", "reason", 16), _PARTITION, _number(COUNT, "slices"), _SIZE, *_LOGS, _EXAMPLE),
        label="partition",
        fewer=("file_id", "log_bytes", "log_files", "bytes"),
        largest=COUNT,
        by=("reason", "partition"),
        adds=("bytes", "log_files", "log_bytes"),
        most=10,
    ),
    DeletedRow: Excerpt(
        columns=(_PARTITION, _text("rule", "why", 16), _FILES, _SIZE, _text("whole_partition", "whole partition")),
        label="partition",
        fewer=("whole_partition", "rule"),
        largest="bytes",
        adds=("files", "bytes"),
    ),
    PartitionRow: _OF_PARTITIONS,
    VisibleAgainRow: _OF_PARTITIONS,
    PendingCleanRow: Excerpt(
        columns=(_text("instant", "instant"), _text("state", "state"), _FILES, _text("policy", "policy", 12)),
        label="instant",
        fewer=("policy", "state"),
        adds=("files",),
    ),
    QuarantineRow: Excerpt(
        columns=(_path("quarantine", "quarantine"), _FILES, _SIZE),
        label="quarantine",
        largest="bytes",
        adds=("files", "bytes"),
    ),
    PendingInstantRow: Excerpt(
        columns=(
            _text("instant", "instant"),
            _text("action", "action", 8),
            _text("state", "state"),
            _text("last_sign", "last sign"),
            _number("files", "files"),
            _text("decision", "decision"),
            _text("done", "done", 20),
        ),
        label="instant",
        fewer=("files", "last_sign", "state", "action"),
        adds=("files",),
        notes=(
            ("why", "{}"),
            ("heartbeat", "; heartbeat: {}"),
            ("markers", "; markers: {}"),
            ("blocks", "; blocks: {}"),
        ),
    ),
    HealthFindingRow: Excerpt(
        columns=(_text("level", "level"), _text("check", "check"), _path("subject", "subject", 17)),
        label="check",
        fewer=("subject",),
        notes=(("finding", "{}"), ("command", "; next: {}")),
    ),
    FleetTableRow: Excerpt(
        columns=(
            _path("base_path", "table"),
            _text("state", "state"),
            _number("critical", "critical"),
            _number("warnings", "warnings"),
            _text("due", "due", 14),
            _number("gain_bytes", "gain"),
            _number("cost_bytes", "cost"),
        ),
        label="base_path",
        fewer=("cost_bytes", "gain_bytes", "warnings", "due"),
        adds=("critical", "warnings", "gain_bytes", "cost_bytes"),
        notes=(("why", "{}"), ("next", "; next: {}")),
    ),
    FleetServiceRow: Excerpt(
        columns=(
            _path("base_path", "table"),
            _text("service", "service"),
            _text("state", "state"),
            _number("gain_bytes", "gain"),
            _number("cost_bytes", "cost"),
            _number("read_bytes", "read"),
            _text("why", "why", 20),
        ),
        label="base_path",
        fewer=("why", "cost_bytes", "read_bytes"),
        adds=("gain_bytes", "cost_bytes", "read_bytes"),
    ),
    ClusteringGainRow: Excerpt(
        columns=(
            _text("instant", "clustering"),
            _text("columns", "sorted by", 10),
            _number("old_files", "old files"),
            _number("new_files", "new"),
            _number("old_bytes", "old size"),
            _number("new_bytes", "new"),
            _number("opened_before", "a lookup opened"),
            _number("opened_after", "opens"),
        ),
        label="instant",
        fewer=("new_bytes", "old_bytes"),
        notes=(("why", "{}"),),
    ),
    LayoutRow: Excerpt(
        columns=(
            _text("layout", "layout"),
            _text("columns", "sorted by", 14),
            _number("target_bytes", "target"),
            _number("new_files", "files"),
            _number("files_read", "files read"),
            _number("read_bytes", "read"),
            _number("saved_percent", "saved %"),
            _number("pays_after", "pays after runs"),
        ),
        label="layout",
        fewer=("pays_after", "target_bytes"),
        is_fact=True,
    ),
    # Both ends of a predicate are seen: many differ only in their last values.
    PredicateRow: Excerpt(
        columns=(
            _path("predicate", "predicate", 34),
            _number("weight", "weight"),
            _number("unknown", "unknown"),
            _number("files_before", "files"),
            _number("files_after", "then"),
            _number("before_bytes", "read"),
            _number("after_bytes", "then"),
        ),
        label="predicate",
        fewer=("unknown", "weight"),
        adds=("unknown", "before_bytes", "after_bytes"),
        is_fact=True,
    ),
    SkippingRow: Excerpt(
        columns=(
            _text("column", "a filter on", 12),
            _number("read_before", "read"),
            _number("files_before", "of old files"),
            _number("read_after", "reads"),
            _number("files_after", "of new files"),
        ),
        label="column",
        is_fact=True,
    ),
    TimelineRow: Excerpt(
        columns=(
            _text("timeline", "timeline"),
            _number("commits", "commits"),
            _number("max_commits", "at most"),
            _number("min_commits", "left"),
            _number("archived_instants", "archived"),
            _text("held_at", "held at"),
            _text("held_by", "held by", 20),
        ),
        label="timeline",
        fewer=("held_by", "held_at", "min_commits", "max_commits"),
    ),
    ArchivedRow: Excerpt(
        columns=(
            _text("timeline", "timeline", 8),
            _text("action", "action", 8),
            _number("instants", "instants"),
            _text("first", "first"),
            _text("last", "last"),
        ),
        label="timeline",
        fewer=("last", "first"),
        adds=("instants",),
    ),
    ArchiveFileRow: Excerpt(
        columns=(_text("timeline", "timeline", 8), _path("file", "new file of the archive")), label="file", most=3
    ),
    CheckedPartitionRow: Excerpt(
        columns=(
            _path("metadata_partition", "metadata partition"),
            _number("records", "records"),
            _number("differences", "differences"),
            _number("harmless", "harmless"),
        ),
        label="metadata_partition",
        fewer=("harmless",),
        largest="differences",
        adds=("records", "differences", "harmless"),
    ),
    RepeatedTaskRow: Excerpt(
        columns=(
            _path("job", "job"),
            _number("task", "task"),
            _number("attempts", "attempts"),
            _text("why", "why", 20),
        ),
        label="job",
        fewer=("why",),
        adds=("attempts",),
    ),
    LocationRow: Excerpt(
        columns=(
            _path("key", "key"),
            _PARTITION,
            _path("file_id", "file id", 20),
            _text("instant", "instant"),
        ),
        label="key",
        fewer=("instant",),
        most=20,
    ),
}


def excerpt_of(kind: type[Row]) -> Excerpt:
    """How lists of `kind` are told; lists that do not grow with the table have all their columns, in order."""
    if kind in _LISTS:
        return _LISTS[kind]
    found = columns(kind)
    fields = [
        ScreenColumn(name, name.removesuffix("_bytes").replace("_", " "), is_number=True)
        if of in (int, float)
        else ScreenColumn(name, name.replace("_", " "), least=12)
        for name, of in found.items()
    ]
    adds = tuple(name for name, of in found.items() if of is int)
    label = next((name for name, of in found.items() if of is str), next(iter(found)))
    return Excerpt(columns=tuple(fields), label=label, fewer=tuple(reversed([*found][1:])), adds=adds, is_fact=True)
