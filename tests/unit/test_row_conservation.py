"""A rewrite that loses, doubles or changes something commits nothing: exit 5, no new file, the plan still there."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_services.base_files import base_file_slice, file_writer, page_copy
from hudi_services.base_files.file_reader import BaseFileReader
from hudi_services.base_files.file_writer import BaseFileWriter
from hudi_services.base_files.new_file import NewFile
from hudi_services.base_files.page_copy import Fingerprint, RowGroupCopier
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed
from hudi_services.jobs import clustering
from hudi_services.parquet.compression import ParquetCodec
from hudi_services.parquet.pages import Page, compressed
from hudi_services.rewriting import copy_plan
from hudi_services.rows.file_output import Output, Writer
from hudi_services.rows.sorting import RowSorter
from hudi_services.runs.request import Mode
from hudi_services.timeline.instant import Action

from .tables import RELEASES, listed_view, open_local, request, rows, unpack

Fault = Callable[[pa.Table], pa.Table]


def replaced(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), table.schema.field(name), column)


def a_lost_row(table: pa.Table) -> pa.Table:
    return table.slice(1)


def a_double_row(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(1), table.slice(5, 1)])


def a_changed_value(table: pa.Table) -> pa.Table:
    first = pa.array([i == 0 for i in range(table.num_rows)])
    return replaced(table, "ts", pc.if_else(first, pc.add(table["ts"], 1), table["ts"]))


def a_null_instead_of_a_value(table: pa.Table) -> pa.Table:
    first = pa.array([i == 0 for i in range(table.num_rows)])
    return replaced(table, "_hoodie_commit_seqno", pc.if_else(first, None, table["_hoodie_commit_seqno"]))


def two_values_swapped_between_rows(table: pa.Table) -> pa.Table:
    order = pa.array([1, 0, *range(2, table.num_rows)])
    return replaced(table, "ts", table["ts"].take(order))


FAULTS = [a_lost_row, a_double_row, a_changed_value, a_null_instead_of_a_value, two_values_swapped_between_rows]


SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "key"}
COPIED = {"hoodie.parquet.block.size": "8192"}
ONE_SCHEMA = ["0.15.0", "1.0.2"]
"""The tables of 1.2.0 have inserts and bulk inserts, whose columns differ in nullability: these are decoded."""


def refused(path: Path, options: dict[str, str]) -> None:
    """Execute fails its check; the table is as if nothing had been tried."""
    ts = clustering.schedule(request(path, Mode.SCHEDULE, options)).instant
    assert ts
    before = rows(open_local(path), open_local(path).view)
    with pytest.raises(CheckFailed) as caught:
        clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())
    assert caught.value.exit_code == 5
    table = open_local(path)
    assert not list(path.rglob(f"*{ts}.parquet"))
    assert not table.storage.list_tree(f".hoodie/.temp/{ts}")
    assert [instant.ts for instant in table.timeline.pending_clusterings()] == [ts]
    assert len(table.timeline.completed({Action.ROLLBACK})) == 1
    for view in (table.view, listed_view(table)):
        assert rows(table, view).equals(before)


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_rows(release: str, fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = RowSorter.sorted
    monkeypatch.setattr(RowSorter, "sorted", lambda *arguments: fault(original(*arguments)))
    path = unpack(release, tmp_path)
    refused(path, SORTED)
    monkeypatch.undo()
    clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())


Append = Callable[[RowGroupCopier, BaseFileReader, int], Fingerprint]


def a_lost_row_group(append: Append) -> Append:
    def spoilt(copier: RowGroupCopier, reader: BaseFileReader, index: int) -> Fingerprint:
        groups = list(copier._groups)
        fingerprint = append(copier, reader, index)
        copier._groups = groups or copier._groups
        return fingerprint

    return spoilt


def a_double_row_group(append: Append) -> Append:
    def spoilt(copier: RowGroupCopier, reader: BaseFileReader, index: int) -> Fingerprint:
        append(copier, reader, index)
        return append(copier, reader, index)

    return spoilt


def a_row_group_of_another_file(append: Append) -> Append:
    first: list[tuple[BaseFileReader, int]] = []

    def spoilt(copier: RowGroupCopier, reader: BaseFileReader, index: int) -> Fingerprint:
        first.append((reader, index))
        fingerprint = append(copier, reader, index)
        copier._groups.pop()
        append(copier, *first[0])
        return fingerprint

    return spoilt


@pytest.mark.thorough
@pytest.mark.parametrize("release", ONE_SCHEMA)
@pytest.mark.parametrize("fault", [a_lost_row_group, a_double_row_group, a_row_group_of_another_file])
def test_a_fault_in_the_copy(
    release: str, fault: Callable[[Append], Append], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack(release, tmp_path)
    monkeypatch.setattr(RowGroupCopier, "append", fault(RowGroupCopier.append))
    refused(path, COPIED)
    monkeypatch.undo()
    report = clustering.execute(request(path, Mode.EXECUTE, COPIED), engine=LocalEngine())
    assert report.decoded == {}


@pytest.mark.parametrize("release", ONE_SCHEMA)
def test_a_changed_byte_in_a_page(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(page: Page, codec: ParquetCodec) -> Page:
        turned = bytes([*page.body[:-1], page.body[-1] ^ 1])
        return compressed(dataclasses.replace(page, body=turned), codec)

    monkeypatch.setattr(page_copy, "compressed", spoilt)
    refused(unpack(release, tmp_path), COPIED)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("options", [SORTED, {}], ids=["sorted", "decoded"])
def test_another_file_name_in_the_rows(
    release: str, options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constant = file_writer._constant
    monkeypatch.setattr(file_writer, "_constant", lambda value, rows: constant(f"{value}x", rows))
    refused(unpack(release, tmp_path), options)


@pytest.mark.parametrize("options", [SORTED, COPIED], ids=["decoded", "copied"])
def test_a_row_group_that_nobody_read(options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What went in is counted by the footers, not by what was read."""
    read, cut = base_file_slice._Stored.rows, copy_plan._cut
    monkeypatch.setattr(base_file_slice._Stored, "rows", lambda *of: itertools.islice(read(*of), 1, None))
    monkeypatch.setattr(copy_plan, "_cut", lambda sources, weights, count: cut(sources[1:], weights[1:], count))
    refused(unpack("1.0.2", tmp_path), options)


@pytest.mark.parametrize("options", [SORTED, COPIED], ids=["decoded", "copied"])
def test_a_note_that_is_not_in_the_footer(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for writer in (BaseFileWriter, RowGroupCopier):
        monkeypatch.setattr(
            writer, "close", lambda self, notes, close=writer.close: close(self, dict(list(notes.items())[1:]))
        )
    refused(unpack("1.0.2", tmp_path), options)


def rewritten(path: Path, fault: Fault) -> None:
    table = fault(pq.read_table(path, partitioning=None))
    pq.write_table(table, path)


def another_type(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("ts"), "ts", table["ts"].cast(pa.float64()))


def another_nullability(table: pa.Table) -> pa.Table:
    at = table.column_names.index("ts")
    return table.set_column(at, table.schema.field(at).with_nullable(not table.schema.field(at).nullable), table["ts"])


def another_order(table: pa.Table) -> pa.Table:
    return table.select(table.column_names[::-1])


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("options", [SORTED, COPIED], ids=["sorted", "copied"])
@pytest.mark.parametrize("fault", [another_type, another_nullability, another_order, a_lost_row])
def test_a_fault_in_the_file(
    release: str, fault: Fault, options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the storage holds counts, not what was handed to the writer."""
    path = unpack(release, tmp_path)
    close = Output.close

    def close_and_spoil(output: Output, writer: Writer) -> NewFile:
        new = close(output, writer)
        rewritten(path / new.path, fault)
        # As a writer would that writes so: its own size does not tell.
        size = (path / new.path).stat().st_size
        return dataclasses.replace(new, stat=dataclasses.replace(new.stat, file_size=size))

    monkeypatch.setattr(Output, "close", close_and_spoil)
    refused(path, options)
