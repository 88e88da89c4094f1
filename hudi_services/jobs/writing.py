"""Writes: reads and checks what is given, and creates a table where there is none."""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from ..derived_indexes.expression_index.time_functions import Zone
from ..engine import Engine, Frame, LocalEngine
from ..errors import ConfigError, NothingToDo, TableNotFound, UnsupportedTable
from ..ingest.creation import check_definition, definition
from ..ingest.fixed_types import compared_fields, fixed_types
from ..ingest.key_settings import config_of_keys
from ..ingest.write_execution import WriteRun
from ..ingest.write_rows import KeepTask, LocalRows
from ..ingest.write_settings import bulk_sort, known_keys, several_writers
from ..ingest.write_sources import FrameSource, LocalSource, RowSource
from ..inputs.input_files import InputFiles, find_files, input_rows
from ..inputs.input_types import InputTypes
from ..keygen.key_maker import KeyMaker
from ..keygen.named_partitions import matching_partitions
from ..merging.rules import DeleteMarker, MergeRule, merge_rule, rule_of_write
from ..new_tables.creation import create_table, has_table_files
from ..options import Options, creation_keys, effects, file_keys, writing_keys
from ..rows.memory import TaskMemory
from ..runs.opening import open_rewritable
from ..runs.report import Report
from ..runs.request import WriteOperation, WriteRequest
from ..runs.run import Run
from ..runs.running import Running, check_engine, show_repeated
from ..schema.table_schema import TableSchema
from ..snapshot import refresh
from ..storage import Storage
from ..stores import open_storage
from ..table.meta_folder import MetaFolder
from ..table.support import Operation, check_support
from ..table_config import TableConfig
from ..timeline.active import Timeline
from ..units import counted
from ..writing.assignment import DuplicatePolicy
from ..writing.kept_rows import KeptRows, writer_schema
from ..writing.row_keys import check_made_keys
from ..writing.row_store import RowStore
from ..writing.sorted_rows import check_sort
from ..writing.stored_key_forms import key_maker
from ..writing.write_index import bucket_index, index_type
from ..writing.writer_schema import FixedTypes, WriterSchema
from .inline_services import InlineServices

_CHECK_PATH_OR_CREATE = (
    "check the path of the table; where there is none yet, give the columns of its record key, and it is created: "
    f"--record-key, or {creation_keys.RECORD_KEY.key}"
)

_WITHOUT_RULE = (
    "write with Apache Hudi, or add new rows with --operation bulk_insert, which looks for no rows of their keys"
)

SourceOf: TypeAlias = Callable[[InputTypes], RowSource]
"""Gives the rows of a write, when it is known what the table says of their columns."""


def write_files(request: WriteRequest) -> Report:
    """Write the rows of files in one commit. Where there is no table, and options say what it is, it is made first."""
    urls, file_format = request.input, request.input_format
    report, storage = Report.start(request), open_storage(request.base_path)
    is_new = request.options.is_set(creation_keys.RECORD_KEY) and not has_table_files(storage)
    carry_out = _write_new if is_new else _write
    if not request.on_spark:
        return carry_out(
            request, lambda types: LocalSource(partial(input_rows, urls, file_format, types)), storage, report
        )
    check_engine(request, None)
    found = find_files(urls, file_format)
    with Running("hudi_services write", request, report, None, list) as running:

        def source_of(types: InputTypes) -> RowSource:
            with report.phase("read types"):
                files = InputFiles.of(found, types)
            return FrameSource(running.frame_of(files))

        return carry_out(request, source_of, storage, report)


def write(request: WriteRequest, rows: Callable[[], pa.RecordBatchReader], storage: Storage | None = None) -> Report:
    """Write the rows in one commit, in this process; `storage` replaces the storage of `request.base_path`.

    `rows` gives the rows, from the first one on whenever it is called.
    """
    return _write(request, lambda _: LocalSource(rows), storage, Report.start(request))


def write_frame(request: WriteRequest, frame: Frame, storage: Storage | None = None) -> Report:
    """Write the rows of a data frame in one commit, by tasks of its engine."""
    report = Report.start(request)
    try:
        return _write(request, lambda _: FrameSource(frame), storage, report)
    finally:
        show_repeated(report, frame.engine)


def delete_partitions(request: WriteRequest, storage: Storage | None = None) -> Report:
    """Delete all rows of the partitions that the options name, in one commit, by replacing their file groups."""
    report, engine = Report.start(request), LocalEngine()
    patterns = request.partitions or request.options[writing_keys.PARTITIONS_TO_DELETE]
    if not patterns:
        raise ConfigError(
            "no partition to delete is named",
            hint=f"name partition paths with --partitions, or with {writing_keys.PARTITIONS_TO_DELETE.key}",
        )
    run = open_rewritable(request, storage, report, engine)
    _check_options(run)
    table = run.table
    known, memory = table.schema, _memory(run.options, engine)
    if known is None:
        raise NothingToDo("the table has no rows to delete")
    columns = known.without_meta().for_files((), table.config.dropped_columns)
    schema = WriterSchema(columns, table.config.populate_meta_fields)
    with RowStore(memory.limit // 4) as store:
        deleted = partial(matching_partitions, patterns=patterns)
        rows = LocalRows(KeptRows(schema, store), None, memory, request.progress)
        return _carry_out(WriteRun(run, rows, known, engine, deleted), run, request, engine)


def _write(request: WriteRequest, source_of: SourceOf, storage: Storage | None, report: Report) -> Report:
    try:
        run = open_rewritable(request, storage, report)
    except TableNotFound as error:
        raise TableNotFound(error.message, hint=_CHECK_PATH_OR_CREATE) from error
    table, options = run.table, run.options
    config, known = table.config, table.schema
    _check_options(run)
    if known is None and request.operation is WriteOperation.DELETE:
        raise NothingToDo("the table has no rows to delete")
    rule = _rule(run.request, config)
    columns = known and known.without_meta().for_files((), config.dropped_columns)
    of_keys = config_of_keys(options, config)
    source = source_of(InputTypes.of(of_keys, columns, keys_only=request.operation is WriteOperation.DELETE))
    with ExitStack() as stack:
        with report.phase("keep rows"):
            maker = partial(key_maker, table, of_keys)
            compared = compared_fields(config, options[creation_keys.PAYLOAD_CLASS])
            fixed = partial(fixed_types, table, index_type(options), compared)
            schema = _schema(run.request, source.schema, config, columns, fixed, compared)
            task = _keep_task(run.request, source, config, schema, maker, compares=rule is not None)
            rows = stack.enter_context(source.kept(task, rule, run.request, config.name))
        return _carry_out(WriteRun(run, rows, known, source.engine), run, request, source.engine)


def _write_new(request: WriteRequest, source_of: SourceOf, storage: Storage, report: Report) -> Report:
    """Create the table, once it is known that it can take the rows, and write them."""
    new = definition(request.options, storage.root)
    config = TableConfig(new.properties(), new.version)
    check_support(Operation.WRITE, _New(storage, config, MetaFolder(), Timeline.open(storage, config)))
    report.warn(several_writers(request.options))
    report.warn(effects.warnings(request.options, request.phase, ()))
    rule = _rule(request, config)
    if request.operation is WriteOperation.DELETE:
        raise NothingToDo(f"there is no table at {storage.root} to delete rows of")
    of_keys = config_of_keys(request.options, config)
    source = source_of(InputTypes.of(of_keys, None, keys_only=False))
    with ExitStack() as stack:
        with report.phase("keep rows"):
            maker = partial(_new_key_maker, of_keys)
            schema = _schema(request, source.schema, config, None, dict, ())
            task = _keep_task(request, source, config, schema, maker, compares=rule is not None)
            rows = stack.enter_context(source.kept(task, rule, request, config.name))
        if request.dry_run:
            count = f", with {counted(rows.kept.count, 'row')}" if rows.kept.count else ""
            return report.looked(f"dry run: the table at {storage.root} would be created{count}")
        create_table(storage, new)
        run = open_rewritable(request, storage, report)
        return _carry_out(WriteRun(run, rows, None, source.engine), run, request, source.engine)


def _check_options(run: Run[WriteRequest]) -> None:
    """Refuse options that do not fit the table, and warn of those that endanger the write. Raises ConfigError."""
    check_definition(run.options, run.table.config)
    run.report.warn(several_writers(run.options))


def _new_key_maker(config: TableConfig, schema: WriterSchema, zone: Zone) -> KeyMaker:
    return KeyMaker.of(config, schema.arrow, zone=zone)


def _schema(
    request: WriteRequest,
    rows: pa.Schema,
    config: TableConfig,
    columns: TableSchema | None,
    fixed: FixedTypes,
    compared: Collection[str],
) -> WriterSchema:
    """The schema of a write of `rows`. `columns`: the table's schema; `fixed`: of `fixed_types`; `compared`: of
    `compared_fields`. Raises ConfigError."""
    schema = writer_schema(
        rows,
        config,
        columns,
        nulls_for_missing=request.options[writing_keys.NULLS_FOR_MISSING],
        fixed=fixed,
        compared=compared,
        keys_only=request.operation is WriteOperation.DELETE,
    )
    check_sort(schema.without(config.dropped_columns), bulk_sort(request.options, request.operation))
    return schema


def _carry_out(write: WriteRun, run: Run[WriteRequest], given: WriteRequest, engine: Engine) -> Report:
    """Look, or write and run the table services that follow; the request of the run is `given` over the table's own."""
    write.refuse_groups()
    if given.dry_run:
        return write.look()
    report = write.commit()
    if report.exit_code:
        return report
    return InlineServices(given, run.options, write.after or refresh(run.table), engine).run(report)


@dataclass(frozen=True, slots=True)
class _New:
    """A table that is not there yet."""

    storage: Storage
    config: TableConfig
    meta: MetaFolder
    timeline: Timeline


def _memory(options: Options, engine: Engine) -> TaskMemory:
    return TaskMemory(options[file_keys.MEMORY_PER_TASK] or engine.task_memory)


def _rule(request: WriteRequest, config: TableConfig) -> MergeRule | None:
    """The merge rule of an operation to which keys matter. Raises UnsupportedTable when the table has none for us."""
    known = known_keys(request.options, request.operation)
    if known is None:
        return None
    if not config.populate_meta_fields and known is not DuplicatePolicy.WRITE:
        check_made_keys(config, index_type(request.options))
    try:
        rule = rule_of_write(config, request.options[creation_keys.PAYLOAD_CLASS])
    except UnsupportedTable as error:
        raise UnsupportedTable(error.message, hint=_WITHOUT_RULE) from None
    # A delete has no values that could be preferred to those of a row.
    return MergeRule() if request.operation is WriteOperation.DELETE else rule


def _marker(config: TableConfig) -> DeleteMarker | None:
    """What marks rows that delete their keys, besides Hudi's own column."""
    try:
        return merge_rule(config).marker
    except UnsupportedTable:
        return None


def _keep_task(
    request: WriteRequest,
    source: RowSource,
    config: TableConfig,
    schema: WriterSchema,
    maker: Callable[[WriterSchema, Zone], KeyMaker],
    *,
    compares: bool,
) -> KeepTask:
    """How the rows are kept. `compares`: as in `KeepTask`. Raises ConfigError."""
    options, operation = request.options, request.operation
    keys_only, omits = operation is WriteOperation.DELETE, operation.omits_deletes
    buckets = bucket_index(options, config)
    dropped = config.dropped_columns
    return KeepTask(
        schema=schema.without(dropped),
        given=schema if dropped else None,
        maker=maker(schema, Zone.of_session(options)),
        memory=_memory(options, source.engine),
        compares=compares,
        keys_only=keys_only,
        numbered=compares and not keys_only and (source.is_divided or index_type(options).is_global),
        omits_deletes=omits,
        marker=_marker(config) if omits else None,
        # Where keys are compared, rows are divided among buckets when they are assigned.
        buckets=None if compares else buckets,
    )
