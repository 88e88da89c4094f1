"""The lists of a report as Arrow tables: the same columns and types in every run, empty lists included.

docs/report.md says what the columns mean.
"""

from collections.abc import Sequence

import pyarrow as pa

from ..runs.report import Report, Row

_COUNTS = (
    *(
        "archived_instants",
        "commits",
        "deletes",
        "differences",
        "file_groups",
        "files",
        "files_after",
        "files_before",
        "filled_files",
        "group",
        "harmless",
        "inserts",
        "instants",
        "log_files",
        "max_commits",
        "min_commits",
    ),
    *("markers", "new_files", "partitions", "records", "replaced_files", "rows", "spilled_groups"),
    *("updated_files", "updates"),
)
_OTHER_TYPES = {
    **dict.fromkeys(_COUNTS, pa.int64()),
    "pending_seconds": pa.float64(),
    "read_after": pa.float64(),
    "read_before": pa.float64(),
    "variation": pa.float64(),
    "whole_partition": pa.bool_(),
}
"""The types of columns that are neither sizes, whose names end in `bytes`, nor text."""

_OF_PARTITION = "partition files bytes"
_ROLLBACK = {"partitions": _OF_PARTITION, "visible_again": _OF_PARTITION, "rollbacks": "instant of action"}
_DIFFERENCE = "metadata_partition kind severity data_partition file column key detail cause"
COLUMNS: dict[str, dict[str, str]] = {
    "clustering": {
        "clustering_groups": "group partition files bytes new_files rows new_bytes new_file_bytes memory_bytes decoded",
        "file_slices": "partition file_id bytes reason group",
        "memory": "limit_bytes peak_bytes spilled_groups spilled_bytes",
        "new_files": "files p50_bytes p95_bytes max_bytes variation",
        "skipping": "column files_before read_before files_after read_after",
        "dropped_groups": "group partition files why",
        "publication": "way pending_seconds",
        "metadata_clean": "instant files",
        "metadata_compaction": "instant file_groups log_files",
    },
    "clean": {
        "retention": "policy earliest_to_retain held_back_by partitions",
        "deleted": "partition rule files bytes whole_partition",
        "kept": "rule files bytes",
        "pending": "instant state policy files",
    },
    "archive": {
        "timelines": "timeline commits max_commits min_commits archived_instants held_by held_at",
        "archived": "timeline action instants first last",
        "archive_files": "timeline file",
    },
    "recover": {
        "instants": "instant action state age last_sign heartbeat markers files decision why blocks done",
    },
    "rollback": _ROLLBACK,
    "undo": _ROLLBACK,
    "write": {
        "written": "partitions rows inserts updates deletes filled_files updated_files replaced_files new_files "
        "max_bytes",
        "appended": "log_files updates deletes bytes",
        "memory": "limit_bytes peak_bytes spilled_bytes",
        "metadata_clean": "instant files",
        "metadata_compaction": "instant file_groups log_files",
        "services": "service action instant state",
    },
    "validate": {
        "partitions": "metadata_partition records differences harmless",
        "differences": _DIFFERENCE,
        "unsure": "metadata_partition data_partition file reason",
        "repaired": "metadata_partition records",
    },
}
"""The columns of each list, by service and list."""


def arrow_tables(report: Report) -> dict[str, pa.Table]:
    """The lists of a run by name."""
    columns = COLUMNS.get(report.service, {})
    return {name: _table(columns.get(name, "").split(), rows) for name, rows in report.tables.items()}


def _table(columns: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    # Columns that a later version of a service adds come after the known columns.
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    return pa.table({name: pa.array([row.get(name) for row in rows], _type(name)) for name in names})


def _type(name: str) -> pa.DataType:
    if name.endswith("bytes"):
        return pa.int64()
    return _OTHER_TYPES.get(name, pa.string())
