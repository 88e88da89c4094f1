"""Table versions as data: the differences between 6, 8 and 9 are recorded here and nowhere else.

Source: HoodieTableVersion, TimelineLayoutVersion, HoodieIndexVersion of Apache Hudi 0.15.0, 1.0.2 and 1.2.0.
"""

from dataclasses import dataclass

from .errors import UnsupportedTable


@dataclass(frozen=True, slots=True)
class TableVersion:
    """Facts of one table version; behaviour lives behind `timeline.layout`."""

    number: int
    timeline_layout: int
    """1: `.hoodie/<ts>.<action>`; 2: `.hoodie/timeline/<ts>_<completion>.<action>`."""
    release: str
    """The Hudi release whose Avro schemas a writer of this version uses."""
    log_files_carry_delta_instant: bool
    """True: a log file is named after its own delta commit; False: after its slice's base instant."""
    typed_column_stats: bool
    """True: column stats carry a valueType (stats index version V2)."""
    removed_savepoint_rescans_table: bool
    """True: a clean after the removal of a savepoint reads all partitions; False: the partitions of its commit."""
    all_columns_are_indexed: bool
    """True: without a list of columns, every top-level column has column stats; False: the first 32 columns."""
    has_secondary_indexes: bool
    """Whether the release that owns the version knows secondary indexes."""
    indexes_partitions: bool
    """Whether the release that owns the version knows record indexes of each partition."""
    record_index_is_defined: bool
    """True: the record index has an entry among the index definitions."""
    mdt_rollback_is_delta_commit: bool
    """True: a rollback adds a metadata-table delta commit; False: it deletes the failed one (a rollback action)."""
    local_timestamps: bool
    """Whether the release that owns the version reads timestamps without a time zone."""
    all_commits_tell_record_size: bool
    """True: writers look at all commits and replacecommits for the average record size; False: at a few commits."""
    names_single_complex_key: bool
    """True: the complex key generator makes `id:5` of a single key field; False: `5` (HUDI-7001)."""
    dates_in_delete_entries: bool
    """Whether a delete block can have a date as the ordering value of a key."""
    bulk_insert_is_commit: bool
    """True: a bulk insert into a merge-on-read table is a commit; False: it is a delta commit."""
    bucket_hash_splits_keys: bool
    """True: a bucket index hashes each part between the commas of a key with a colon; False: the values of its fields.
    """
    copy_on_write_names_payload: bool
    """False: where a copy-on-write table stores no payload class, each write names the one that merges its rows."""
    global_index_converts: bool
    """Whether writers that move rows by a global index read files in which a column has an older type."""
    record_index_converts: bool
    """Whether writers that keep a record index read log files in which a column has another type."""
    bootstrap_unescapes: bool
    """Whether readers of bootstrapped tables decode the partition values in the paths of source files."""
    history_keeps_floats: bool
    """Whether readers of a table with a schema history widen floats of log blocks to doubles of the same value."""


VERSIONS = {
    6: TableVersion(
        number=6,
        timeline_layout=1,
        release="0.15.0",
        log_files_carry_delta_instant=False,
        typed_column_stats=False,
        removed_savepoint_rescans_table=False,
        all_columns_are_indexed=True,
        has_secondary_indexes=False,
        indexes_partitions=False,
        record_index_is_defined=False,
        mdt_rollback_is_delta_commit=True,
        local_timestamps=False,
        all_commits_tell_record_size=True,
        names_single_complex_key=False,
        dates_in_delete_entries=True,
        bulk_insert_is_commit=False,
        bucket_hash_splits_keys=True,
        copy_on_write_names_payload=False,
        global_index_converts=False,
        record_index_converts=False,
        bootstrap_unescapes=False,
        history_keeps_floats=False,
    ),
    8: TableVersion(
        number=8,
        timeline_layout=2,
        release="1.0.2",
        log_files_carry_delta_instant=True,
        typed_column_stats=False,
        removed_savepoint_rescans_table=True,
        all_columns_are_indexed=False,
        has_secondary_indexes=True,
        indexes_partitions=False,
        record_index_is_defined=False,
        mdt_rollback_is_delta_commit=False,
        local_timestamps=False,
        all_commits_tell_record_size=False,
        names_single_complex_key=False,
        dates_in_delete_entries=False,
        bulk_insert_is_commit=False,
        bucket_hash_splits_keys=False,
        copy_on_write_names_payload=True,
        global_index_converts=True,
        record_index_converts=False,
        bootstrap_unescapes=True,
        history_keeps_floats=True,
    ),
    9: TableVersion(
        number=9,
        timeline_layout=2,
        release="1.2.0",
        log_files_carry_delta_instant=True,
        typed_column_stats=True,
        removed_savepoint_rescans_table=True,
        all_columns_are_indexed=False,
        has_secondary_indexes=True,
        indexes_partitions=True,
        record_index_is_defined=True,
        mdt_rollback_is_delta_commit=False,
        local_timestamps=True,
        all_commits_tell_record_size=False,
        names_single_complex_key=True,
        dates_in_delete_entries=False,
        bulk_insert_is_commit=True,
        bucket_hash_splits_keys=False,
        copy_on_write_names_payload=True,
        global_index_converts=True,
        record_index_converts=True,
        bootstrap_unescapes=True,
        history_keeps_floats=False,
    ),
}
RELEASES = tuple(version.release for version in VERSIONS.values())


def table_version(number: int, source: str) -> TableVersion:
    """The facts for `number`, which was read from the file `source`.

    Raises UnsupportedTable for any other version.
    """
    version = VERSIONS.get(number)
    if version is None:
        known = ", ".join(map(str, sorted(VERSIONS)))
        raise UnsupportedTable(
            f"{source} says hoodie.table.version={number}, and this tool handles versions {known}",
            hint="let a Hudi writer of 0.14 or newer upgrade the table"
            if number < min(VERSIONS)
            else "use a newer hudi_services",
        )
    return version
