"""Merging log files, against what the release that wrote a table read from it after each step."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.base_files.file_writer import FILE_NAME_COLUMN
from hudi_services.base_files.slices import SliceReader
from hudi_services.errors import CorruptFile, HudiServicesError, UnsupportedTable
from hudi_services.merging import log_records
from hudi_services.merging.counted_instants import counted_instants
from hudi_services.merging.merged_slice import MergedSlice
from hudi_services.merging.rules import merge_rule
from hudi_services.merging.slices import MergedSlices
from hudi_services.parquet.file_schema import FileSchema
from hudi_services.parquet.schema_evolution import SourceSchema, resolve_target
from hudi_services.rows.conservation import Checksum, checksum
from hudi_services.snapshot import Snapshot
from hudi_services.table.view import FileSystemView

from ..interop.history_maker import by_key
from . import histories
from .tables import RELEASES, listed_view, open_local

# Merge mode CUSTOM on version 8: its two reader releases, 1.0.2 and 1.2.0, answer differently.
CUSTOM = {"event_time_payload", "first_value", "partial_update", "non_defaults", "aws_dms", "postgres", "mysql"}
CASES = [(release, name) for release in RELEASES for name in histories.names(release)]


def merged_rows(table: Snapshot, memory: int, *, view: FileSystemView | None = None) -> list[dict[str, Any]]:
    """The rows of a snapshot query, by key; `view` is that of a reader that lists storage, unless it is given.

    The check of merged rows expects the same rows.
    """
    counts = counted_instants(table.timeline)
    source = MergedSlices(table.storage, merge_rule(table.config), counts, memory)
    found: list[dict[str, Any]] = []
    for one in (view or listed_view(table)).live_slices():
        reader = source.open(one)
        target = _in_table(table, reader) or reader.schema
        names = [name for name in target.columns if name != FILE_NAME_COLUMN]
        checked = reader.checked_tables(names, target)
        pieces = [rows for one in reader.segments for _, rows in checked.rows(one)]
        assert reader.num_rows == sum(piece.num_rows for piece in pieces)
        if checked.merges:
            assert Checksum(*checked.expected()) == sum((checksum(piece) for piece in pieces), start=Checksum())
        found += [row for piece in pieces for row in piece.to_pylist()]
    return sorted(found, key=by_key)


def _in_table(table: Snapshot, reader: SliceReader) -> FileSchema | None:
    """The columns of a slice with the types that the table has; None without a schema of the table."""
    if table.schema is None:
        return None
    return resolve_target([SourceSchema(reader.path, reader.schema)], table.schema.for_files(reader.schema.columns))


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the file names, and everything as JSON has it."""
    return [
        {name: value if isinstance(value, (int, float, type(None))) else str(value) for name, value in row.items()}
        for row in ({k: v for k, v in row.items() if k != "_hoodie_file_name"} for row in rows)
    ]


@pytest.mark.spread(36)
@pytest.mark.parametrize("memory", [1 << 30, 1], ids=["in memory", "on disk"])
@pytest.mark.parametrize(("release", "name"), CASES)
def test_a_history(release: str, name: str, memory: int, tmp_path: Path) -> None:
    answers_as_hudi(release, name, memory, tmp_path)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("release", "name"), [("0.15.0", "postgres"), ("1.2.0", "postgres"), ("1.0.2", "log_compaction_of_deletes")]
)
def test_what_releases_merge_differently(release: str, name: str, tmp_path: Path) -> None:
    answers_as_hudi(release, name, 1 << 30, tmp_path)


def answers_as_hudi(release: str, name: str, memory: int, tmp_path: Path) -> None:
    made = histories.MadeHistory(release, name, tmp_path)
    if release == "1.0.2" and name in CUSTOM:
        with pytest.raises(UnsupportedTable, match="a merge rule that is not supported"):
            merge_rule(open_local(made.path).config)
        return
    for reached in reversed(made.steps):
        if not made.rewind(reached):
            continue
        table = open_local(made.path)
        if name == "torn_tail":
            with pytest.raises(CorruptFile, match="has a torn block of the commit"):
                merged_rows(table, memory)
        elif reached.rows is None:
            answer_beyond_hudi(release, name, table, memory)
        else:
            assert comparable(merged_rows(table, memory)) == comparable(reached.rows), reached.step


def answer_beyond_hudi(release: str, name: str, table: Snapshot, memory: int) -> None:
    """Where the owner of version 8 fails on default orderings of deletes, the rows of 1.2.0; nulls are refused."""
    if name.startswith("null_in"):
        with pytest.raises(UnsupportedTable, match="a null in the ordering field ts"):
            merged_rows(table, memory)
    else:
        assert release == "1.0.2"
        try:
            merged_rows(table, memory)
        except HudiServicesError as e:
            pytest.fail(e.message)


@pytest.mark.spread(6)
@pytest.mark.parametrize(("release", "name"), CASES)
def test_blocks_that_are_read_together(
    release: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records are those of the blocks one by one, in their order."""
    if name == "torn_tail" or (release == "1.0.2" and name in CUSTOM):
        return
    table = open_local(histories.MadeHistory(release, name, tmp_path).path)
    source = MergedSlices(table.storage, merge_rule(table.config), counted_instants(table.timeline))
    for one in listed_view(table).live_slices():
        reader = source.open(one)
        if not isinstance(reader, MergedSlice):
            continue
        together = pa.concat_tables(reader._changes.records())
        with monkeypatch.context() as patched:
            patched.setattr(log_records, "block_runs", lambda blocks, _: ([block] for block in blocks))
            assert together.equals(pa.concat_tables(reader._changes.records()))


@pytest.mark.parametrize("memory", [4096, 1 << 20])
def test_a_released_slice_keeps_no_file(memory: int, tmp_path: Path) -> None:
    """What it has counted stays known, and its rows can be read again."""
    table = open_local(histories.MadeHistory("1.2.0", "default_order", tmp_path).path)
    counts, before = counted_instants(table.timeline), _open_files()
    source = MergedSlices(table.storage, merge_rule(table.config), counts, memory)
    readers = [source.open(one) for one in listed_view(table).live_slices() if one.log_files]
    # As a sorted group does, which reads a sample first: every reader is held until the task ends.
    first = [pa.concat_tables(rows for _, rows in reader.tables()) for reader in readers]
    known = [(reader.num_rows, reader.spilled_bytes, reader.log_counts) for reader in readers]
    assert (_open_files() > before) is (memory == 4096) is any(spilled for _, spilled, _ in known)
    for reader in readers:
        reader.release()
    assert _open_files() == before
    assert [(reader.num_rows, reader.spilled_bytes, reader.log_counts) for reader in readers] == known
    assert _open_files() == before
    assert [pa.concat_tables(rows for _, rows in reader.tables()) for reader in readers] == first


def _open_files() -> set[str]:
    """Open files of this process that have no name any more."""
    targets = set()
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            targets.add(os.readlink(one))
    return {target for target in targets if target.endswith("(deleted)")}
