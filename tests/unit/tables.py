"""Tables that real Apache Hudi wrote, unpacked for a test, and reading them: byte by byte, or with our own view."""

import hashlib
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_services.clock import SystemClock, parse_instant
from hudi_services.model import FileSlice
from hudi_services.options import resolve
from hudi_services.runs.request import ClusteringRequest, Mode
from hudi_services.snapshot import Snapshot, open_snapshot
from hudi_services.stores import open_storage
from hudi_services.table.partitions import StorageLister
from hudi_services.table.view import FileSystemView

from ..interop import layout
from ..tiers import RELEASES as RELEASES

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "tables"


def unpack(release: str, folder: Path, kind: str = "cow") -> Path:
    """`kind` may be expressions, a table with expression indexes, of 1.0.2 and 1.2.0."""
    with zipfile.ZipFile(FIXTURES / f"{kind}_{release}.zip") as archive:
        archive.extractall(folder)
    return folder / "table"


def as_written(path: Path, zone: str = "LOCAL") -> None:
    """Give the instant files of a table the times that its writers, in this zone, had them written at."""
    for file in layout.timeline(path).iterdir():
        moment = parse_instant(file.name[:17], zone) if file.is_file() else None
        if moment is not None:
            os.utime(file, (moment.timestamp(), moment.timestamp()))


def open_local(path: Path) -> Snapshot:
    return open_snapshot(open_storage(str(path)), SystemClock())


def digest(path: Path) -> dict[str, str]:
    """A hash of each file below `path`: equal before and after, no byte was written."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def listed_view(table: Snapshot) -> FileSystemView:
    """The view of a reader that does not use the metadata table."""
    return FileSystemView(
        StorageLister(table.storage),
        table.ledger.facts,
        table.ledger.replaced,
        table.log_naming,
        table.ledger.compacting,
    )


def rows(table: Snapshot, view: FileSystemView) -> pa.Table:
    """All rows that the view shows, by key, without the column that names the file."""
    return _rows(table, base_files(view))


def rows_at(url: str) -> pa.Table:
    """The rows of a table in any store, as `rows`."""
    table = open_snapshot(open_storage(url), SystemClock())
    files = [one.base_file.path for one in table.view.live_slices() if one.base_file]
    read = [pq.read_table(io.BytesIO(table.storage.read(path))).drop_columns("_hoodie_file_name") for path in files]
    return pa.concat_tables(read).sort_by("_hoodie_record_key").combine_chunks()


def both_views(path: Path) -> tuple[pa.Table, pa.Table]:
    """The rows with the metadata table, and those without. As a rule both are of the same files, and read once."""
    table = open_local(path)
    assert table.metadata is not None
    known, listed = base_files(table.view), base_files(listed_view(table))
    found = _rows(table, known)
    return found, found if listed == known else _rows(table, listed)


def base_files(view: FileSystemView) -> list[str]:
    """Paths of the base files that readers see."""
    slices = (one for partition in view.partitions() for one in view.latest_slices(partition))
    return [one.base_file.path for one in slices if one.base_file is not None]


def merged_rows(path: Path) -> pa.Table:
    """The rows of a table whose slices may have log files; with and without the metadata table they are the same.

    Log files of writes that were not completed may be in the slices of one view alone (version 6).
    """
    return merged_rows_of(open_local(path))


def merged_rows_of(table: Snapshot) -> pa.Table:
    """As `merged_rows`, of a table in any store."""
    views = [table.view, listed_view(table)]
    found, listed = ([one for of in view.partitions() for one in view.latest_slices(of)] for view in views)
    rows = _merged(table, found)
    assert listed == found or _merged(table, listed).equals(rows)
    return rows


def _merged(table: Snapshot, slices: list[FileSlice]) -> pa.Table:
    parts = []
    for one in slices:
        reader = table.slices.open(one)
        names = [name for name in reader.schema.columns if name != "_hoodie_file_name"]
        parts += [rows for _, rows in reader.tables(names)]
    return pa.concat_tables(parts, promote_options="permissive").combine_chunks().sort_by("_hoodie_record_key")


def _rows(table: Snapshot, files: list[str]) -> pa.Table:
    tables = [
        pq.read_table(Path(table.storage.root) / file, partitioning=None).drop_columns(["_hoodie_file_name"])
        for file in files
    ]
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks().sort_by("_hoodie_record_key")


def request(
    path: Path | str, mode: Mode, options: dict[str, str] | None = None, **changes: object
) -> ClusteringRequest:
    fields: dict[str, object] = {
        "base_path": str(path),
        "mode": mode,
        "options": resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0", **(options or {})})]),
        "table_name": None,
        "instant": None,
        "spark_master": None,
        "spark_memory": None,
        "retry_last_failed": False,
        "max_processing_millis": 0,
    }
    return ClusteringRequest(**{**fields, **changes})  # type: ignore[arg-type]


def published(way: str, path: Path, options: dict[str, str] | None = None) -> ClusteringRequest:
    """A request to plan and execute; `way`: the plan is published first, or late: staged or reserved."""
    is_late = way != "first"
    late = {"hudi.services.publish.late": way} if is_late else {}
    return request(path, Mode.SCHEDULE_AND_EXECUTE, {**(options or {}), **late}, publish_late=is_late)


def without_docs(tree: Any) -> Any:
    """An Avro schema without the docs of its source."""
    if isinstance(tree, dict):
        return {key: without_docs(value) for key, value in tree.items() if key != "doc"}
    return [without_docs(one) for one in tree] if isinstance(tree, list) else tree
