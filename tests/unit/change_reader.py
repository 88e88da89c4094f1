"""Reads the changes of rows as Hudi's queries of change data do: what each write stat of a commit says of them.

Source: HoodieCDCExtractor.parseWriteStat of Apache Hudi.
"""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow.parquet as pq

from hudi_services.file_names import parse_base_file, parse_log_file
from hudi_services.log_files.log_blocks import BlockType, HeaderKey
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.model import FileSlice, LogFile, WriteStat
from hudi_services.paths import bare_name
from hudi_services.snapshot import Snapshot
from hudi_services.timeline.instant import Instant

Row = dict[str, Any]
UNTOLD: Row = {"not": "told"}
"""In place of a row that the change does not have."""


class Change(NamedTuple):
    op: str
    key: str
    before: Row | None
    after: Row | None


def changes_of(table: Snapshot, write: Instant) -> list[Change]:
    """The changes that a completed write made, by key; those of logs in the form of the table's mode."""
    commit = table.timeline.read_commit(write)
    found: list[Change] = []
    for partition, stats in commit.stats.items():
        for stat in stats:
            found += _of_stat(table, stat, write)
        for file_id in (commit.replaced or {}).get(partition, ()):
            found += _replaced(table, partition, file_id, write)
    for partition in {*(commit.replaced or {})} - {*commit.stats}:
        for file_id in (commit.replaced or {})[partition]:
            found += _replaced(table, partition, file_id, write)
    return sorted(found, key=lambda change: change.key)


def _of_stat(table: Snapshot, stat: WriteStat, write: Instant) -> Iterator[Change]:
    root = Path(table.storage.root)
    if stat.cdc_files:
        assert not stat.is_log
        before = [one.instant for one in _bases(table, stat.partition, stat.file_id)]
        assert stat.prev_commit in before, "the base file before is found by its instant"
        for path, size in stat.cdc_files:
            assert (root / path).stat().st_size == size
            yield from logged(root / path, write.ts)
    elif stat.is_log:
        yield from _of_log(table, stat)
    else:
        assert (stat.num_update_writes, stat.num_inserts) == (0, stat.num_writes), "Hudi: there should be a cdc log"
        for row in pq.read_table(root / stat.path, partitioning=None).to_pylist():
            yield Change("i", row["_hoodie_record_key"], None, _data(row))


def logged(path: Path, ts: str) -> Iterator[Change]:
    """The changes in a file of change data."""
    for block in read_log_blocks(path.read_bytes(), str(path)):
        assert block.type is BlockType.CDC_DATA and {*block.header} == {HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA}
        assert block.header[HeaderKey.INSTANT_TIME] == ts
        for row in avro_records(block.content, block.header[HeaderKey.SCHEMA]):
            assert row.get("ts_ms", ts) == ts
            before, after = row.get("before", UNTOLD), row.get("after", UNTOLD)
            key = row.get("record_key") or (before or after)["id"]
            yield Change(row["op"], key, before, after)


def avro_records(content: bytes, text: str) -> list[Row]:
    schema, count, at = fastavro.parse_schema(json.loads(text)), int.from_bytes(content[4:8]), 8
    rows = []
    for _ in range(count):
        length = int.from_bytes(content[at : at + 4])
        rows.append(fastavro.schemaless_reader(io.BytesIO(content[at + 4 : at + 4 + length]), schema))
        at += 4 + length
    assert content[:4] == b"\0\0\0\3" and at == len(content)
    return rows


def _of_log(table: Snapshot, stat: WriteStat) -> Iterator[Change]:
    """The slice that the stat names, before and after the log file."""
    names = [name for name in stat.log_files or () if name != bare_name(stat.path)]
    bases = {one.name: one for one in _bases(table, stat.partition, stat.file_id)}
    logs = tuple(_log(table, stat.partition, name) for name in names)
    base = bases[stat.base_file or ""]
    assert stat.prev_commit == base.instant
    slice_before = FileSlice(stat.partition, stat.file_id, base.instant, base, logs)
    slice_after = replace(slice_before, log_files=(*logs, _log(table, stat.partition, bare_name(stat.path))))
    before, after = _rows(table, slice_before), _rows(table, slice_after)
    for key in before.keys() - after.keys():
        yield Change("d", key, _data(before[key]), None)
    for key, row in after.items():
        if key not in before:
            yield Change("i", key, None, _data(row))
        elif before[key] != row:
            yield Change("u", key, _data(before[key]), _data(row))


def _replaced(table: Snapshot, partition: str, file_id: str, write: Instant) -> Iterator[Change]:
    for slices in table.view.all_slices(partition).values():
        for one in slices:
            if one.file_id == file_id and one is max(slices, key=lambda each: each.base_instant):
                logs = tuple(log for log in one.log_files if log.suffix != ".cdc")
                for key, row in _rows(table, replace(one, log_files=logs)).items():
                    yield Change("d", key, _data(row), None)


def _rows(table: Snapshot, file_slice: FileSlice) -> dict[str, Row]:
    found = [row for _, rows in table.slices.open(file_slice).tables() for row in rows.to_pylist()]
    return {row["_hoodie_record_key"]: row for row in found}


def _bases(table: Snapshot, partition: str, file_id: str) -> list[Any]:
    listed, _ = table.storage.list_dir(partition)
    files = (parse_base_file(partition, file.name, file.size) for file in listed)
    return [one for one in files if one is not None and one.file_id == file_id]


def _log(table: Snapshot, partition: str, name: str) -> LogFile:
    path = Path(table.storage.root) / partition / name
    found = parse_log_file(partition, name, path.stat().st_size)
    assert found is not None
    return found


def _data(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_hoodie_")}
