"""Real Hudi writes continuously in a thread: every kind of write, with automatic clean, archival and compaction.
Meanwhile `validate` must raise no false alarm.

The rows have all types that the indexes cover, and nulls; no NaN, of which Hudi stores ranges that hide rows.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from hudi_services.jobs.validate import validate
from hudi_services.options import resolve
from hudi_services.runs.report import Report
from hudi_services.runs.request import ValidateRequest
from hudi_services.runs.retries import run_with_retries

from .peer import Peer

_COLUMNS = {
    "id": "concat('k-', lpad(cast(id as string), 6, '0'))",
    "ts": "id * 100 + {version}",
    "name": "concat('name-', cast((id + {version}) % 17 as string))",
    "amount": "case when id % 3 = 0 then null else cast(hash(id, {version}) % 1000 as double) / 8 end",
    "few": "case when id div 30 % 2 = 0 then null else cast(id as int) end",
    "flag": "id % 2 = 0",
    "day": "date_add(date'2020-01-01', cast((id + {version}) % 90 as int))",
    "price": "case when id % 5 = 0 then null else cast((id - {version}) / 7 as decimal(12, 3)) end",
    "at": "timestamp_micros(1700000000123456 + id * 1001 + {version})",
    "txt": "case id % 4 when 0 then null when 1 then '' else concat('é🚀 ', cast(id + {version} as string)) end",
    "raw": "cast(concat('b', cast(id as string)) as binary)",
    "nothing": "cast(null as decimal(10, 4))",
    "part": "{part}",
}
_PART = "concat('p', cast(id % 3 as string))"
_OPTIONS = {
    "hoodie.table.name": "live",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.index.type": "RECORD_INDEX",
}
_DROPPED = "hoodie.datasource.write.partitions.to.delete"
_WRITE = """
spark.range(first, end).selectExpr(*columns).write.format("hudi").options(**options).mode("append").save(path)
"""


class LiveWriter:
    """Writes to the new table `path` while the context lasts; `writes` counts."""

    def __init__(self, peer: Peer, path: Path, *, seed: int = 7, options: Mapping[str, str] | None = None) -> None:
        self._options = {**_OPTIONS, **(options or {})}
        self._peer = peer
        self._path = path
        self._random = random.Random(seed)
        self._planned = self._operations()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.writes = 0
        self.error: BaseException | None = None

    def __enter__(self) -> "LiveWriter":
        # The table has its metadata table from here on.
        self._write(*next(self._planned))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        if self.error is not None and error is None:
            raise self.error

    def _run(self) -> None:
        try:
            for operation in self._planned:
                if self._end.is_set():
                    return
                self._write(*operation)
        except BaseException as error:
            self.error = error

    def _operations(self) -> Iterator[tuple[str, int, int, str]]:
        """Operation, first id and end, partition: a table that grows and shrinks, of some hundred rows."""
        yield "insert", 0, 90, _PART
        high = 90
        while True:
            choice, first = self._random.random(), self._random.randrange(90)
            if choice < 0.55:
                yield "upsert", first, first + self._random.randrange(1, 40), _PART
            elif choice < 0.70:
                high += 30
                yield "insert", high - 30, high, _PART
            elif choice < 0.82:
                yield "delete", first, first + 5, _PART
            elif choice < 0.90:
                # A key stays in its partition, and is inserted once: beside a double an index can name one place only.
                high += 20
                yield "insert_overwrite", high - 20, high, f"'p{self._random.randrange(3)}'"
            elif choice < 0.97:
                yield "delete_partition", 0, 1, f"'p{self._random.randrange(3)}'"
            else:
                yield "insert_overwrite_table", 0, 90, _PART

    def _write(self, operation: str, first: int, end: int, part: str) -> None:
        self.writes += 1
        columns = [f"{text.format(version=self.writes, part=part)} as {name}" for name, text in _COLUMNS.items()]
        options = {**self._options, "hoodie.datasource.write.operation": operation}
        if operation == "delete_partition":
            options[_DROPPED] = part.strip("'")
        self._peer.eval(_WRITE, first=first, end=end, columns=columns, options=options, path=str(self._path))


def validate_once(path: Path) -> Report:
    """One run, as the command does it."""
    request = ValidateRequest(base_path=str(path), options=resolve([]))
    return run_with_retries(validate, request, 0, time.sleep)


def alarm(report: Report) -> str | None:
    """The problems that a run reports and should not report during the writes of a healthy writer; None for none."""
    if report.exit_code == 0:
        return None
    harmful = [row for row in report.tables.get("differences", []) if row["severity"] == "harmful"]
    kinds = Counter((row["metadata_partition"], row["kind"]) for row in harmful)
    return f"exit {report.exit_code}: {report.error} {dict(kinds)} {harmful[:2]}"
