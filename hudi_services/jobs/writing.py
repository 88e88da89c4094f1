"""Writes to copy-on-write tables: reads and checks what is given, and creates a table where there is none."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from ..codecs.table_schema import parse_table_schema, without_meta
from ..engine import Engine, Frame, LocalEngine
from ..errors import ConfigError, NothingToDo, UnsupportedTable
from ..merging.rules import DeleteMarker, MergeRule, merge_rule
from ..metadata.expression_index.times import Zone
from ..object_storage import ObjectStorage
from ..options import creation_keys, keys, writing_keys
from ..rows.memory import TaskMemory
from ..snapshot import Snapshot, current_schema
from ..storage import Storage
from ..table.support import Operation, check_support
from ..table_config import TableConfig
from ..timeline.active import Timeline
from ..writing.creation import create_table, has_table_files
from ..writing.distinct_rows import DistinctRows
from ..writing.input_files import input_rows
from ..writing.kept_rows import KeptRows, writer_schema
from ..writing.keys import KeyMaker
from ..writing.known_keys import key_maker
from ..writing.named_partitions import matching_partitions
from ..writing.row_store import RowStore
from ..writing.schema import WriterSchema
from ..writing.sorted_rows import check_sort
from .creation import check_definition, definition
from .frame_rows import BulkRows, FrameRows, KeepTask
from .inline_services import InlineServices
from .opening import open_rewritable
from .report import Report
from .request import WriteOperation, WriteRequest
from .settings import bucket_index, bulk_shuffles, bulk_sort, index_type, known_keys, session_zone
from .write_execution import WriteRun
from .write_rows import LocalRows, WriteRows

Rows: TypeAlias = "Callable[[], pa.RecordBatchReader]"
"""Gives the rows, from the first one on whenever it is called."""


def write_files(wanted: WriteRequest, urls: Sequence[str], file_format: str = "") -> Report:
    """Write the rows of files in one commit. Where there is no table, and options say what it is, it is made first.

    `urls` and `file_format` as for `input_rows`.
    """
    rows = partial(input_rows, urls, file_format)
    storage = ObjectStorage(wanted.base_path)
    if wanted.options.is_set(creation_keys.RECORD_KEY) and not has_table_files(storage):
        return _write_new(wanted, rows, storage)
    return write(wanted, rows, storage)


def delete_partitions(wanted: WriteRequest, storage: Storage | None = None) -> Report:
    """Delete all rows of the partitions that the options name, in one commit, by replacing their file groups."""
    report, engine, given = Report.start(wanted), LocalEngine(), wanted
    patterns = wanted.partitions or wanted.options[writing_keys.PARTITIONS_TO_DELETE]
    if not patterns:
        raise ConfigError(
            "no partition to delete is named",
            hint=f"name partition paths with --partitions, or with {writing_keys.PARTITIONS_TO_DELETE.key}",
        )
    table, wanted, expressions = open_rewritable(wanted, storage, report)
    check_definition(wanted.options, table.config)
    known, memory = current_schema(table), _memory(wanted, engine)
    if known is None:
        raise NothingToDo("the table has no rows to delete")
    schema = WriterSchema(without_meta(parse_table_schema(known, wanted.base_path)), table.config.populate_meta_fields)
    with RowStore(memory.limit // 4) as store:
        deleted, none = matching_partitions(table, patterns), KeptRows(schema, store)
        rows = LocalRows(none, None, memory, wanted.progress)
        run = WriteRun(wanted, table, rows, known, expressions, report, engine, deleted)
        return _carry_out(run, given, wanted, table, engine)


def write(wanted: WriteRequest, rows: Rows, storage: Storage | None = None) -> Report:
    """Write the rows in one commit, in this process; `storage` replaces the storage of `wanted.base_path`."""
    report, engine, given = Report.start(wanted), LocalEngine(), wanted
    table, wanted, expressions = open_rewritable(wanted, storage, report)
    check_definition(wanted.options, table.config)
    known, memory = current_schema(table), _memory(wanted, engine)
    if known is None and wanted.operation is WriteOperation.DELETE:
        raise NothingToDo("the table has no rows to delete")
    rule = _rule(wanted, table.config)
    with RowStore(memory.limit // 4) as store:
        with report.phase("keep rows"):
            kept = _keep(wanted, rows, table.config, known, store, partial(key_maker, table))
            distinct = _distinct(kept, rule, memory, table.config)
        here = LocalRows(kept, distinct, memory, wanted.progress)
        run = WriteRun(wanted, table, here, known, expressions, report, engine)
        return _carry_out(run, given, wanted, table, engine)


def write_frame(wanted: WriteRequest, frame: Frame, storage: Storage | None = None) -> Report:
    """Write the rows of a data frame in one commit, by tasks of its engine."""
    report, engine, given = Report.start(wanted), frame.engine, wanted
    table, wanted, expressions = open_rewritable(wanted, storage, report)
    check_definition(wanted.options, table.config)
    buckets = bucket_index(wanted.options, table.config)
    known, rule = current_schema(table), _rule(wanted, table.config)
    if known is None and wanted.operation is WriteOperation.DELETE:
        raise NothingToDo("the table has no rows to delete")
    schema, omits = _schema(wanted, frame.schema, table.config, known), wanted.operation.omits_deletes
    task = KeepTask(
        schema=schema,
        maker=key_maker(table, schema.arrow, session_zone(wanted.options)),
        memory=_memory(wanted, engine),
        keys_only=wanted.operation is WriteOperation.DELETE,
        omits_deletes=omits,
        marker=_marker(table.config) if omits else None,
        buckets=buckets if rule is None else None,
    )
    with ExitStack() as stack:
        with report.phase("keep rows"):
            rows: WriteRows
            is_bulk = rule is None and wanted.operation is WriteOperation.BULK_INSERT
            if is_bulk and buckets is None and not bulk_shuffles(wanted.options):
                rows, is_empty = BulkRows(frame, task, wanted.options, wanted.progress), frame.is_empty()
            else:
                rows = FrameRows(frame, task, rule, table.config.name, wanted.progress)
                stack.callback(rows.release)
                is_empty = not rows.kept.count
        if is_empty:
            raise NothingToDo("there are no rows to write")
        run = WriteRun(wanted, table, rows, known, expressions, report, engine)
        return _carry_out(run, given, wanted, table, LocalEngine())


def _schema(wanted: WriteRequest, rows: "pa.Schema", config: TableConfig, known: str | None) -> WriterSchema:
    """The schema of a write of `rows`. `known` is the table's schema. Raises ConfigError."""
    schema = writer_schema(
        rows,
        config,
        None if known is None else without_meta(parse_table_schema(known, wanted.base_path)),
        nulls_for_missing=wanted.options[writing_keys.NULLS_FOR_MISSING],
        keys_only=wanted.operation is WriteOperation.DELETE,
    )
    check_sort(schema, bulk_sort(wanted.options, wanted.operation))
    return schema


def _write_new(wanted: WriteRequest, rows: Rows, storage: Storage) -> Report:
    """Create the table, once it is known that it can take the rows, and write them."""
    report, engine, given = Report.start(wanted), LocalEngine(), wanted
    new = definition(wanted.options)
    config = TableConfig(new.properties(), new.version)
    check_support(Operation.WRITE, _New(storage, config, Timeline.open(storage, config)))
    memory, rule = _memory(wanted, engine), _rule(wanted, config)
    if wanted.operation is WriteOperation.DELETE:
        raise NothingToDo(f"there is no table at {storage.root} to delete rows of")
    with RowStore(memory.limit // 4) as store:
        with report.phase("keep rows"):
            kept = _keep(
                wanted, rows, config, None, store, lambda schema, zone: KeyMaker.of(config, schema, None, zone=zone)
            )
            distinct = _distinct(kept, rule, memory, config)
        if wanted.dry_run:
            return report.looked(f"dry run: the table at {storage.root} would be created, with {kept.count:,} rows")
        create_table(storage, new)
        table, wanted, expressions = open_rewritable(wanted, storage, report)
        here = LocalRows(kept, distinct, memory, wanted.progress)
        run = WriteRun(wanted, table, here, None, expressions, report, engine)
        return _carry_out(run, given, wanted, table, engine)


def _carry_out(run: WriteRun, given: WriteRequest, wanted: WriteRequest, table: Snapshot, engine: Engine) -> Report:
    """Look, or write and run the table services that follow; `wanted` is `given` over the options of the table."""
    run.refuse_groups()
    if wanted.dry_run:
        return run.look()
    report = run.commit()
    return (
        report if report.exit_code else InlineServices(given, wanted.options, table.storage, engine).run(table, report)
    )


@dataclass(frozen=True, slots=True)
class _New:
    """A table that is not there yet."""

    storage: Storage
    config: TableConfig
    timeline: Timeline


def _memory(wanted: WriteRequest, engine: Engine) -> TaskMemory:
    return TaskMemory(wanted.options[keys.MEMORY_PER_TASK] or engine.task_memory)


def _rule(wanted: WriteRequest, config: TableConfig) -> MergeRule | None:
    """The merge rule of an operation to which keys matter. Raises UnsupportedTable when the table has none for us."""
    if known_keys(wanted.options, wanted.operation) is None:
        return None
    if not config.populate_meta_fields:
        raise UnsupportedTable(
            f"the table {config.name} has no meta fields (hoodie.populate.meta.fields=false), and only inserts are "
            "written to such tables yet",
            hint="write with --operation insert or bulk_insert, or with Apache Hudi",
        )
    try:
        rule = merge_rule(config)
    except UnsupportedTable as error:
        raise UnsupportedTable(error.message, hint="write with Apache Hudi, or insert without looking up") from None
    # A delete has no values that could be preferred to those of a row.
    return MergeRule() if wanted.operation is WriteOperation.DELETE else rule


def _marker(config: TableConfig) -> DeleteMarker | None:
    """What marks rows that delete their keys, besides Hudi's own column."""
    try:
        return merge_rule(config).marker
    except UnsupportedTable:
        return None


def _distinct(kept: KeptRows, rule: MergeRule | None, memory: TaskMemory, config: TableConfig) -> DistinctRows | None:
    """The rows of an operation that looks up, checked before anything is written. Raises as `DistinctRows`."""
    if rule is None:
        return None
    rows = DistinctRows(kept, rule, memory, config.name)
    rows.check()
    return rows


def _keep(
    wanted: WriteRequest,
    rows: Rows,
    config: TableConfig,
    known: str | None,
    store: RowStore,
    maker: Callable[["pa.Schema", Zone], KeyMaker],
) -> KeptRows:
    """Read the rows. `known` is the table's schema. Raises ConfigError, and NothingToDo without rows."""
    reader, options = rows(), wanted.options
    schema = _schema(wanted, reader.schema, config, known)
    deletes = wanted.operation is WriteOperation.DELETE
    compares = not deletes and known_keys(options, wanted.operation) is not None
    across = compares and index_type(options).is_global
    omits = wanted.operation.omits_deletes
    marker = _marker(config) if omits else None
    buckets = bucket_index(options, config)
    # Where keys are compared, rows are divided among buckets when they are assigned.
    of_kept = None if known_keys(options, wanted.operation) is not None else buckets
    kept = KeptRows(
        schema, store, keys_only=deletes, numbered=across, buckets=of_kept, omits_deletes=omits, marker=marker
    )
    kept.add(reader, maker(schema.arrow, session_zone(options)))
    if not kept.count:
        raise NothingToDo("there are no rows to write")
    return kept
