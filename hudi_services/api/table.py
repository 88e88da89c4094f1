"""The Python API: a table, and a method for each service."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from ..clock import SystemClock
from ..errors import ConfigError, NotFound
from ..jobs import index_lookup, writing
from ..jobs.services import SERVICES, job_of
from ..options import Options, file_keys, index_keys
from ..runs.report import Report
from ..runs.request import (
    AdviseRequest,
    ArchiveRequest,
    CleanRequest,
    ClusteringRequest,
    CompactionRequest,
    DoctorRequest,
    IndexDropRequest,
    IndexRequest,
    LookupRequest,
    Mode,
    RecoverRequest,
    Request,
    RescaleRequest,
    RollbackRequest,
    TableReportRequest,
    UndoRequest,
    ValidateRequest,
    WriteOperation,
    WriteRequest,
)
from ..snapshot import Snapshot, open_config, open_snapshot
from ..stores.options import Value
from .arguments import (
    EngineName,
    OptionValues,
    engine_layer,
    key_array,
    layer_of,
    metrics_layer,
    options_over,
    storage_at,
)
from .arrow import files_table, seen_slices, slices_table, timeline_table
from .call import Progress, call
from .result import Result
from .rows import data_frame, record_batches

T = TypeVar("T")

_LOOKS = 3
"""Attempts to read a table that is changed meanwhile."""
_log = logging.getLogger("hudi_services")
# A library says nothing on stderr of its own accord.
_log.addHandler(logging.NullHandler())


def open(
    url: "str | os.PathLike[str]",
    *,
    storage_options: Mapping[str, Value] | None = None,
    options: OptionValues | None = None,
    conf_file: str | None = None,
    engine: EngineName | None = None,
    metrics: str | None = None,
    retries: int = 0,
    progress: Progress | None = None,
) -> "Table":
    """The table at a path or URL.

    `storage_options` are obstore's (aws_endpoint, aws_region, allow_http, ...), for stores only. `options` are Hudi's
    keys, as defaults for all methods; below them come `conf_file`, or without one Hudi's own conf files of this
    machine, and then the table's properties. `engine` says what runs the tasks of clusterings, compactions and index
    builds: "spark", which is the default, or "local": processes of this machine, without Java (`hudi.services.engine`).
    `metrics` says where the metrics of each run go (`hudi.services.metrics`, docs/metrics.md).
    Plans, clusterings, cleans, archivals and index builds are tried `retries` times more when the store, the lock or
    Spark fails. `progress` is called with a phase, how many of its pieces are done, and how many there are.

    Raises TableNotFound, UnsupportedTable, and ConfigError for arguments that are wrong.
    """
    return Table(
        os.fspath(url),
        storage_options=storage_options,
        options=options,
        conf_file=conf_file,
        engine=engine,
        metrics=metrics,
        retries=retries,
        progress=progress,
    )


class Table:
    """A table; made by `open`. It keeps only the properties of the table, so that threads may share it.

    The methods that run a service return a `Result`, also when there was nothing to do. When a run fails or is only
    partly done, they raise an error of the `HudiServicesError` family; its `result` shows how far the run came.
    `options` of a method are Hudi's keys, and override those of `open`.
    """

    def __init__(
        self,
        url: str,
        *,
        storage_options: Mapping[str, Value] | None,
        options: OptionValues | None,
        conf_file: str | None,
        engine: EngineName | None,
        metrics: str | None,
        retries: int,
        progress: Progress | None,
    ) -> None:
        self._storage = storage_at(url, storage_options)
        self._default_layer = layer_of("options of open()", options)
        self._conf_file = conf_file
        self._engine_layer = engine_layer("engine of open()", engine)
        self._metrics_layer = metrics_layer("metrics of open()", metrics)
        self._retries = retries
        self._progress = progress
        self._config = open_config(self._storage, SystemClock())

    def __repr__(self) -> str:
        return f"<Table {self.name} at {self.url}>"

    @property
    def url(self) -> str:
        """The location of the table: an absolute path, or a URL."""
        return self._storage.root

    @property
    def name(self) -> str:
        """The name of the table, in its properties."""
        return self._config.name

    @property
    def version(self) -> int:
        """The table version, in Hudi's numbers."""
        return self._config.version.number

    @property
    def config(self) -> dict[str, str]:
        """The properties of the table (`hoodie.properties`), as they were when it was opened."""
        return dict(self._config.raw)

    def schema(self) -> dict[str, Any] | None:
        """The table's Avro schema as JSON values, without Hudi's columns; None when there is none.

        It is the schema of the newest commit that has one, else that of the table's creation.
        """

        def read(table: Snapshot) -> dict[str, Any] | None:
            return None if table.schema is None else dict(table.schema.avro)

        return self._read(read)

    def timeline(self) -> pa.Table:
        """The active timeline: instant, action, state (requested, inflight or completed), completion_time."""
        return self._read(lambda table: timeline_table(table.timeline.instants))

    def slices(self, partition: str | None = None) -> pa.Table:
        """The file slices that readers see, of all partitions or one.

        Columns: partition, file_id, base_instant, base_file (path relative to the table), base_size, log_files (paths,
        oldest first), log_size, size (of all files of the slice).
        """
        return self._read(lambda table: slices_table(seen_slices(table, partition)))

    def files(self, partition: str | None = None) -> pa.Table:
        """The files that readers read, of all partitions or one.

        Columns: partition, file_id, base_instant (of the file slice), path (relative to the table), kind (base or log),
        instant (in the file's name), size.
        """
        return self._read(lambda table: files_table(seen_slices(table, partition)))

    def plan_clustering(
        self, *, dry_run: bool = False, instant: str | None = None, options: OptionValues | None = None
    ) -> Result:
        """Write a clustering plan, as `schedule`; with `dry_run` only report what would be in it, and why."""
        return self._run(ClusteringRequest, options, mode=Mode.SCHEDULE, instant=instant, dry_run=dry_run)

    def execute_clustering(
        self,
        instant: str | None = None,
        *,
        dry_run: bool = False,
        all_or_nothing: bool = False,
        time_limit: str | None = None,
        engine: EngineName | None = None,
        options: OptionValues | None = None,
    ) -> Result:
        """Execute the plan of `instant`, or else the earliest pending one; `dry_run` only checks and estimates it.

        Groups that other writers have changed are left out, and those that would not be finished `time_limit` (as
        "30m") after the start; with `all_or_nothing` nothing is committed then.
        """
        more = {"instant": instant, "dry_run": dry_run, "all_or_nothing": all_or_nothing}
        options = _limited(options, time_limit)
        return self._run(ClusteringRequest, options, engine, mode=Mode.EXECUTE, **more)

    def cluster(
        self,
        *,
        retry_last_failed: bool = False,
        publish_late: bool = True,
        all_or_nothing: bool = False,
        time_limit: str | None = None,
        engine: EngineName | None = None,
        options: OptionValues | None = None,
    ) -> Result:
        """Plan a clustering and execute it; with `retry_last_failed` execute the last unfinished plan, if any.

        `publish_late`: writers go on meanwhile; when false, the plan is written first, so that they keep out of its
        files, as with `--publish first`. `all_or_nothing` and `time_limit` as for `execute_clustering`.
        """
        options = _limited(options, time_limit)
        more = {
            "retry_last_failed": retry_last_failed,
            "publish_late": publish_late,
            "all_or_nothing": all_or_nothing,
        }
        return self._run(ClusteringRequest, options, engine, mode=Mode.SCHEDULE_AND_EXECUTE, **more)

    def plan_compaction(
        self, *, dry_run: bool = False, instant: str | None = None, options: OptionValues | None = None
    ) -> Result:
        """Write a compaction plan, as `schedule --service compaction`; with `dry_run` only report what it would be."""
        return self._run(CompactionRequest, options, mode=Mode.SCHEDULE, instant=instant, dry_run=dry_run)

    def execute_compaction(
        self,
        instant: str | None = None,
        *,
        dry_run: bool = False,
        time_limit: str | None = None,
        engine: EngineName | None = None,
        options: OptionValues | None = None,
    ) -> Result:
        """Execute the compaction plan of `instant`, or else the earliest pending one; `dry_run` only checks it.

        File groups that would not be finished `time_limit` (as "30m") after the start do not begin: then nothing is
        committed, and the next execution takes over what is finished.
        """
        more = {"instant": instant, "dry_run": dry_run}
        options = _limited(options, time_limit)
        return self._run(CompactionRequest, options, engine, mode=Mode.EXECUTE, **more)

    def compact(
        self,
        *,
        time_limit: str | None = None,
        engine: EngineName | None = None,
        options: OptionValues | None = None,
    ) -> Result:
        """Plan a compaction and execute it; `time_limit` as for `execute_compaction`."""
        options = _limited(options, time_limit)
        return self._run(CompactionRequest, options, engine, mode=Mode.SCHEDULE_AND_EXECUTE)

    def clean(self, *, dry_run: bool = False, options: OptionValues | None = None) -> Result:
        """Finish cleans that were begun, and delete the files that no reader needs; with `dry_run` only list them."""
        return self._run(CleanRequest, options, dry_run=dry_run)

    def archive(self, *, dry_run: bool = False, options: OptionValues | None = None) -> Result:
        """Move old instants from the timeline to the archive; with `dry_run` only say which, and why others stay."""
        return self._run(ArchiveRequest, options, dry_run=dry_run)

    def validate(
        self,
        *,
        repair: bool = False,
        strict: bool = False,
        drop_missing_partitions: bool = False,
        store: bool = False,
        options: OptionValues | None = None,
    ) -> Result:
        """Compare the metadata table with the files; with `repair` write the wrong records again.

        With `store`, try instead what the store promises: whether one of several processes wins that create or replace
        the same file, and whether reads and listings show what was written. Raises CheckFailed when there are harmful
        differences, or with `strict` any, or a promise that is not kept; its `result` lists them.
        """
        more = {"strict": strict, "drop_missing_partitions": drop_missing_partitions, "store": store}
        return self._run(ValidateRequest, options, repair=repair, **more)

    def doctor(
        self, *, longest_query_minutes: int | None = None, deep: bool = False, options: OptionValues | None = None
    ) -> Result:
        """Whether the table is all right, and what to do about it; changes nothing.

        The lists `findings` and `measures` of the result are those of docs/report.md; its `exit_code` is 5 with a
        critical finding, 8 with a warning, else 0. `longest_query_minutes`: how long the longest reader takes. With
        `deep` the whole metadata table is compared with the files.
        """
        return self._run(DoctorRequest, options, longest_query_minutes=longest_query_minutes, deep=deep)

    def report(
        self,
        html: str,
        *,
        longest_query_minutes: int | None = None,
        options: OptionValues | None = None,
    ) -> Result:
        """Write a page about the table to the file `html`, with what `doctor` finds; changes nothing of the table.

        Needs the package vl-convert-python, as `pip install 'hudi-services[report]'` brings it.
        """
        more = {"html": html, "longest_query_minutes": longest_query_minutes}
        return self._run(TableReportRequest, options, **more)

    def recover(
        self, *, apply: bool = False, instant: str | None = None, options: OptionValues | None = None
    ) -> Result:
        """Decide what to do about every pending instant, or one, and with `apply` do it."""
        return self._run(RecoverRequest, options, instant=instant, apply=apply)

    def rollback(
        self, instant: str, *, completed: bool = False, dry_run: bool = False, options: OptionValues | None = None
    ) -> Result:
        """Roll back a failed write; with `completed` also the newest completed write."""
        return self._run(RollbackRequest, options, instant=instant, completed=completed, dry_run=dry_run)

    def undo(self, instant: str, *, dry_run: bool = False, options: OptionValues | None = None) -> Result:
        """Undo a completed clustering."""
        return self._run(UndoRequest, options, instant=instant, dry_run=dry_run)

    def build_index(
        self,
        index: str = "record",
        *,
        partitioned: bool = False,
        resume: bool = False,
        dry_run: bool = False,
        engine: EngineName | None = None,
        options: OptionValues | None = None,
    ) -> Result:
        """Build an index, as `index-bootstrap`: `record`, `secondary:COLUMN` or `secondary:NAME:COLUMN`;
        `files,column_stats` for a table without a metadata table; `partition_stats`, `bloom_filters` or
        `expression:NAME:FUNCTION(COLUMN)`.

        `partitioned`: a record index of each partition, and not one of the whole table. `resume` continues a build that
        was killed; `dry_run` only counts the files, keys and file groups of a build.
        """
        given = {"index": index, "partitioned": partitioned, "resume": resume, "dry_run": dry_run}
        return self._run(IndexRequest, options, engine, **given)

    def drop_index(self, index: str, *, dry_run: bool = False, options: OptionValues | None = None) -> Result:
        """Drop an index, as `index-drop`: `record`, `secondary:NAME`, or the name of a metadata partition."""
        return self._run(IndexDropRequest, options, index=index, dry_run=dry_run)

    def rescale_index(
        self,
        file_groups: int | None = None,
        *,
        partition: str | None = None,
        resume: bool = False,
        dry_run: bool = False,
        engine: EngineName | None = None,
        options: OptionValues | None = None,
    ) -> Result:
        """Give the record index another number of file groups, as `index-rescale`; None: by the number of keys.

        `partition` rescales only what a partitioned index has of one partition. `resume` continues a rescale that was
        killed; `dry_run` only counts what would be read.
        """
        given = dict(options or {})
        if file_groups is not None:
            given |= {option.key: str(file_groups) for option in index_keys.GROUP_COUNTS}
        return self._run(RescaleRequest, given, engine, partition=partition, resume=resume, dry_run=dry_run)

    def insert(self, rows: Any, *, options: OptionValues | None = None) -> Result:
        """Insert rows in one commit: small files are filled up first, then new file groups are written.

        `rows`: an Arrow table or reader, or a table of pandas, polars or DuckDB. Rows with the key of a row that is
        there are written all the same, as Hudi does. Runs in this process; rows that do not fit into memory are kept
        on the local disk.
        """
        return self._write(WriteOperation.INSERT, rows, options)

    def upsert(self, rows: Any, *, options: OptionValues | None = None) -> Result:
        """Update the rows whose record keys are there, and insert the others, in one commit.

        `rows` as for `insert`. Of several rows of one key, in `rows` or in the table, the table's merge mode decides:
        by its ordering fields, or the newest. `hoodie.index.type` says how keys are found: SIMPLE, BLOOM and their
        GLOBAL_ forms, or RECORD_INDEX.
        """
        return self._write(WriteOperation.UPSERT, rows, options)

    def delete(self, rows: Any, *, options: OptionValues | None = None) -> Result:
        """Delete the rows with these record keys in one commit.

        `rows` as for `insert`; of its columns, those of the record key and the partition path are used. Keys that the
        table does not have are ignored.
        """
        return self._write(WriteOperation.DELETE, rows, options)

    def insert_overwrite(self, rows: Any, *, options: OptionValues | None = None) -> Result:
        """Replace all rows of the partitions that `rows` have by `rows`, in one commit; otherwise as `bulk_insert`."""
        return self._write(WriteOperation.INSERT_OVERWRITE, rows, options)

    def insert_overwrite_table(self, rows: Any, *, options: OptionValues | None = None) -> Result:
        """Replace all rows of the table by `rows`, in one commit; otherwise as `bulk_insert`."""
        return self._write(WriteOperation.INSERT_OVERWRITE_TABLE, rows, options)

    def delete_partitions(self, partitions: Sequence[str], *, options: OptionValues | None = None) -> Result:
        """Delete all rows of partitions in one commit.

        `partitions` are partition paths, in which `*` stands for any text. Their files stay until a clean deletes them.
        """
        if isinstance(partitions, str) or not partitions or not all(isinstance(one, str) for one in partitions):
            raise ConfigError(
                f"delete_partitions() takes a list of partition paths, and got {partitions!r:.100}",
                hint="for one partition give a list of one path",
            )
        more = {"operation": WriteOperation.DELETE_PARTITION, "partitions": tuple(partitions)}
        return self._run(WriteRequest, options, **more)

    def bulk_insert(self, rows: Any, *, options: OptionValues | None = None) -> Result:
        """Insert rows in one commit into new file groups; otherwise as `insert`."""
        return self._write(WriteOperation.BULK_INSERT, rows, options)

    def advise(
        self,
        predicates: "Sequence[str | tuple[float, str]]" = (),
        *,
        event_log: str = "",
        executions: int = 100,
        least_percent: int = 10,
        options: OptionValues | None = None,
    ) -> Result:
        """Advise for or against a clustering, from the predicates of queries, as `advise`.

        `predicates`: WHERE clauses, each by itself or with its weight before it; or the path or URL of an `event_log`
        of Spark in their place. A clustering is advised when it saves at least `least_percent` of the bytes that the
        predicates read, and its cost after `executions` runs of them.
        """
        weighed = tuple((1.0, one) if isinstance(one, str) else (float(one[0]), one[1]) for one in predicates)
        more = {"event_log": event_log, "executions": executions, "least_percent": least_percent}
        return self._run(AdviseRequest, options, predicates=weighed, **more)

    def look_up(
        self,
        keys: "Sequence[str] | pa.Array | pa.ChunkedArray",
        *,
        partition: str = "",
        options: OptionValues | None = None,
    ) -> pa.Table:
        """The locations of the records of the keys, from the record index: key, partition, file_id, instant.

        A row for each key that is in the index, in the order of `keys`. `partition` is the partition of all keys, when
        the index is partitioned. Raises ConfigError for a table without a record index.
        """
        found: list[pa.Table] = []

        def job(request: LookupRequest) -> Report:
            report = Report.start(request)
            found.append(index_lookup.find_locations(request, self._storage, report))
            return report.completed(None)

        array = key_array(keys)
        request = LookupRequest(base_path=self.url, options=self._options(options), keys=array, partition=partition)
        for warning in call(request, job, self._progress).warnings:
            _log.warning("%s", warning)
        return found[-1]

    def _write(self, operation: WriteOperation, rows: Any, options: OptionValues | None) -> Result:
        request = WriteRequest(base_path=self.url, options=self._options(options), operation=operation)
        frame = data_frame(rows)
        if frame is not None:
            return call(request, partial(writing.write_frame, frame=frame, storage=self._storage), self._progress)
        batches = record_batches(rows)
        # Not tried again after an error of the storage: a reader gives its rows once.
        return call(request, partial(writing.write, rows=batches, storage=self._storage), self._progress)

    def _options(self, own: OptionValues | None, engine: EngineName | None = None) -> Options:
        of_call = [engine_layer("engine of the call", engine), layer_of("options of the call", own)]
        of_open = [self._engine_layer, self._metrics_layer, self._default_layer]
        return options_over([*of_call, *of_open], self._conf_file)

    def _read(self, body: Callable[[Snapshot], T]) -> T:
        for _ in range(_LOOKS - 1):
            # A clean or an archiver may run between the listing and the reads; a second attempt sees its result.
            with suppress(NotFound):
                return body(open_snapshot(self._storage, SystemClock()))
        return body(open_snapshot(self._storage, SystemClock()))

    def _run(
        self,
        kind: type[Request],
        options: OptionValues | None,
        engine: EngineName | None = None,
        /,
        **more: Any,
    ) -> Result:
        """Run a service; `more` are the fields of its request."""
        request = kind(base_path=self.url, options=self._options(options, engine), **more)
        retries = self._retries if SERVICES[request.service].is_retried else 0
        return call(request, partial(job_of(request), storage=self._storage), self._progress, retries)


def _limited(options: OptionValues | None, time_limit: str | None) -> OptionValues | None:
    return options if time_limit is None else {**(options or {}), file_keys.TIME_LIMIT.key: time_limit}
