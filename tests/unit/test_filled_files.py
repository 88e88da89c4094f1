"""A small file that takes inserts is an update without changes: its row groups stay, and few of them are small."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_services
from hudi_services.base_files import page_copy
from hudi_services.base_files.base_file_slice import BaseFileSlice
from hudi_services.base_files.base_file_slices import BaseFileSlices
from hudi_services.base_files.bloom import parse
from hudi_services.base_files.file_writer import FILE_NAME_COLUMN
from hudi_services.base_files.page_copy import Fingerprint, RowGroupCopier
from hudi_services.base_files.record_keys import BLOOM_FILTER, MAX_KEY, MIN_KEY
from hudi_services.commit import newest_files
from hudi_services.errors import CheckFailed
from hudi_services.file_names import base_slice
from hudi_services.merging.rules import MergeRule
from hudi_services.model import FileSlice, WriteStat
from hudi_services.rows.memory import TaskMemory
from hudi_services.rows.settings import FileSettings
from hudi_services.stores import open_storage
from hudi_services.versions import VERSIONS
from hudi_services.writing.inserted_files import InsertTask, write_inserts
from hudi_services.writing.updated_files import UpdateTask, write_updates
from hudi_services.writing.write_form import WriteForm
from hudi_services.writing.writer_schema import WriterSchema

from ..tiers import DEEP
from .rides import FILTERS, create
from .tables import RELEASES, both_views, open_local, unpack
from .test_row_conservation import a_double_row_group, a_lost_row_group, a_row_group_of_another_file

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

BLOCK = 1 << 16
COPIES = {**FILTERS, "hoodie.parquet.block.size": BLOCK}
"""Row groups of 64 KiB: those below 4 KiB are small."""
SMALL = BLOCK // 16


def rows(first: int, end: int, ts: int = 0, more: str = "") -> pa.Table:
    numbers = np.arange(first, end)
    texts = [f"{n * 7919 % 10007} {more}" for n in numbers]
    return pa.table(
        {
            "id": [f"k{n:05d}" for n in numbers],
            "day": ["d"] * len(numbers),
            "ts": pa.array(np.full(len(numbers), ts, np.int64)),
            "text": pa.array(texts, pa.string()),
        }
    )


def newest(path: Path, partition: str = "d") -> BaseFileSlice:
    """The one base file of a partition."""
    table = open_local(path)
    (one,) = table.view.latest_slices(partition)
    assert one.base_file is not None
    return BaseFileSlice.open(table.storage, one.base_file.path)


def pages(reader: BaseFileSlice) -> list[int]:
    """A fingerprint of each row group, without the column of the name of the file."""
    found = []
    for number in range(len(reader.row_groups)):
        fingerprint = Fingerprint()
        for index, leaf in enumerate(reader.schema.leaves):
            for page in page_copy._checked_pages(reader, number, index) if leaf.dotted != FILE_NAME_COLUMN else ():
                fingerprint.add(leaf, page)
        found.append(int(fingerprint))
    return found


def bytes_of(reader: BaseFileSlice) -> list[int]:
    return [group.uncompressed_bytes for group in reader.row_groups]


def read(path: Path) -> pa.Table:
    found, listed = both_views(path)
    assert found.equals(listed)
    return found


def ids(path: Path) -> list[str]:
    """The keys in the newest file."""
    found: list[str] = pq.read_table(path / newest(path).path, partitioning=None).column("id").to_pylist()
    return sorted(found)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_row_groups_stay(version: int, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path, table_version=version, table_type=kind)
    table.insert(rows(0, 900), options=COPIES)
    before = newest(path)
    result = table.insert(rows(900, 1300), options=COPIES)
    after = newest(path)
    assert pages(after)[: len(before.row_groups)] == pages(before)
    assert [group.num_rows for group in after.row_groups] == [*(g.num_rows for g in before.row_groups), 400]
    assert ids(path) == [f"k{n:05d}" for n in range(1300)]
    (written,) = result.report["tables"]["written"]
    assert (written["filled_files"], written["inserts"], written["updates"]) == (1, 400, 0)
    stat = the_stat(path)
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (1300, 400, 0, 0)
    assert stat.file_size == stat.total_write_bytes == after.size == written["max_bytes"]
    assert stat.prev_commit == before.path.rpartition("_")[2].removesuffix(".parquet")
    # The meta columns of the old rows stay; the new ones have numbers of their own.
    assert len(set(read(path).column("_hoodie_commit_seqno").to_pylist())) == 1300
    assert table.validate(strict=True).ok


def the_stat(path: Path) -> WriteStat:
    table = open_local(path)
    ((stat,),) = table.timeline.read_commit(list(table.timeline.completed_writes())[-1]).stats.values()
    return stat


@pytest.mark.thorough
def test_keys_of_copied_row_groups_are_in_the_footer(tmp_path: Path) -> None:
    """So an upsert by its bloom filter finds old rows, and a file without a key is passed over."""
    path = tmp_path / "rides"
    table = create(path)
    for first in range(0, 2000, 500):
        table.insert(rows(first, first + 500), options=COPIES)
    reader = newest(path)
    assert len(reader.row_groups) == 4
    footer = pq.read_metadata(path / reader.path).metadata
    entries = {name: footer[name.encode()].decode() for name in (BLOOM_FILTER, MIN_KEY, MAX_KEY)}
    bloom = parse(entries[BLOOM_FILTER], "it")
    assert all(bloom.might_contain(f"k{n:05d}") for n in range(2000))
    assert not all(bloom.might_contain(f"other-{n}") for n in range(200))
    assert (entries[MIN_KEY], entries[MAX_KEY]) == ("k00000", "k01999")
    done = table.upsert(rows(100, 110, ts=1), options={**COPIES, "hoodie.index.type": "BLOOM"})
    (written,) = done.report["tables"]["written"]
    assert (written["updates"], written["inserts"]) == (10, 0)
    assert len(ids(path)) == 2000


SCHEMA = WriterSchema.deduce(rows(0, 1).schema, None, table_name="rides", has_meta=True, local_timestamps=True)


class File:
    """A base file by itself, to which the tasks of writes add rows."""

    def __init__(self, folder: Path) -> None:
        self._storage = open_storage(str(folder))
        self._writes = 0
        self._slice: FileSlice | None = None
        self.rows = 0

    @property
    def reader(self) -> BaseFileSlice:
        assert self._slice is not None
        return BaseFileSlices(self._storage).open(self._slice)

    def add(self, count: int, changed: int = 0) -> None:
        """Add so many rows, and change the last ones."""
        self._writes += 1
        instant, token = f"{20260101000000000 + self._writes}", "0-0-0"
        new = self._keyed(rows(self.rows, self.rows + count))
        settings = FileSettings(row_group_bytes=BLOCK)
        form = WriteForm(self._storage, instant, SCHEMA, (), settings, frozenset(), TaskMemory())
        if self._slice is None:
            (made,) = write_inserts(InsertTask(form, "d", 0, count), [new], token).files
        else:
            changes = self._keyed(rows(self.rows - changed, self.rows, ts=self._writes))
            task = UpdateTask(
                form,
                number=0,
                updated=self._slice,
                changes=changed,
                change_bytes=changes.nbytes,
                inserts=count,
                insert_bytes=new.nbytes,
                rule=MergeRule(),
            )
            done = write_updates(task, lambda: iter([changes]), lambda: iter([new]), token)
            assert (done.logs.inserts, done.logs.updates) == (count, changed)
            (made,) = done.files
        self.rows += count
        self._slice = base_slice("d", made.name, made.size)

    def _keyed(self, new: pa.Table) -> pa.Table:
        return new.add_column(0, "_hoodie_record_key", new.column("id"))


@pytest.mark.thorough
@pytest.mark.sweep
@settings(max_examples=20 if DEEP else 7)
@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 40)), min_size=2, max_size=8))
def test_few_row_groups_are_small(tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[int, int]]) -> None:
    """Whatever the writes: all but the last one, which the next write takes with its rows."""
    file, kept = File(tmp_path_factory.mktemp("file")), list[int]()
    for count, changed in parts:
        changed = min(changed, file.rows)
        file.add(count, changed)
        reader = file.reader
        assert reader.num_rows == file.rows
        sizes, found = bytes_of(reader), pages(reader)
        assert all(size >= SMALL for size in sizes[:-1])
        if not changed:
            # What was not small stays as it was.
            assert found[: len(kept)] == kept
        kept = [one for one, size in zip(found, sizes, strict=True) if size >= SMALL]
    keys = [key for some in file.reader.record_keys() for key in some.to_pylist()]
    assert keys == [f"k{n:05d}" for n in range(file.rows)]


@pytest.mark.thorough
def test_many_small_writes(tmp_path: Path) -> None:
    """Readers suffer from hundreds of tiny row groups."""
    file = File(tmp_path)
    for _ in range(25):
        file.add(80)
    sizes = bytes_of(file.reader)
    assert 5 <= len(sizes) <= sum(sizes) // SMALL + 1


@pytest.mark.thorough
@pytest.mark.usefixtures("any_size")
def test_small_row_groups_of_others_are_merged(tmp_path: Path) -> None:
    """As they were written by somebody who filled a file a hundred times."""
    path = tmp_path / "rides"
    table = create(path, options={**FILTERS, "hoodie.metadata.enable": "false"})
    table.insert(rows(0, 1000), options=FILTERS)
    cut(path / newest(path).path, 10)
    assert len(newest(path).row_groups) == 100
    table.insert(rows(1000, 1010), options=FILTERS)
    assert len(newest(path).row_groups) == 1
    assert len(ids(path)) == 1010


def cut(file: Path, count: int) -> None:
    """Write a base file anew, in row groups of so many rows."""
    found = pq.ParquetFile(file)
    kept = {k: v for k, v in found.metadata.metadata.items() if k != b"ARROW:schema"}
    table = found.read().replace_schema_metadata(kept)
    pq.write_table(table, file, row_group_size=count, store_schema=False, version="2.6", write_page_checksum=True)


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spoilt file is not the one that its commit knows the size of."""
    monkeypatch.setattr(newest_files, "_refuse", lambda table, problem: None)


@pytest.mark.thorough
@pytest.mark.parametrize("codec", ["SNAPPY", "GZIP", "UNCOMPRESSED"])
def test_another_codec(codec: str, tmp_path: Path) -> None:
    """Pages are compressed anew, and stay what they were."""
    path = tmp_path / "rides"
    table = create(path)
    table.insert(rows(0, 900), options=COPIES)
    before = newest(path)
    table.insert(rows(900, 1000), options={**COPIES, "hoodie.parquet.compression.codec": codec})
    after = newest(path)
    assert {chunk.codec for group in after.row_groups for chunk in group.columns} != {
        chunk.codec for group in before.row_groups for chunk in group.columns
    }
    assert [g.num_rows for g in after.row_groups[: len(before.row_groups)]] == [g.num_rows for g in before.row_groups]
    assert len(ids(path)) == 1000
    assert table.validate(strict=True).ok


def test_types_that_grow_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path)
    small = rows(0, 900).append_column("n", pa.array(np.arange(900), pa.int32()))
    table.insert(small, options=COPIES)
    before = newest(path)
    table.insert(rows(900, 1000).append_column("n", pa.array(np.arange(900, 1000), pa.int64())), options=COPIES)
    found = read(path).sort_by("id")
    assert found.column("n").to_pylist() == list(range(1000)) and found.schema.field("n").type == pa.int64()
    # A new column, too.
    table.insert(
        rows(1000, 1010).append_column("n", pa.array([0] * 10)).append_column("m", pa.array([1] * 10)), options=COPIES
    )
    assert read(path).column("m").null_count == 1000
    assert pages(newest(path))[0] != pages(before)[0]
    assert table.validate(strict=True).ok


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_times_of_a_coarser_unit(operation: str, tmp_path: Path) -> None:
    """Spark writes milliseconds where hoodie.parquet.outputtimestamptype says so: no digit of a new row is lost."""
    path = tmp_path / "rides"
    table = create(path, options={**FILTERS, "hoodie.metadata.enable": "false"})

    def timed(first: int, end: int, digits: int) -> pa.Table:
        times = pa.array(np.arange(first, end) * 1000 + 1_600_000_000_000_000 + digits, pa.timestamp("us", "UTC"))
        inside = pa.StructArray.from_arrays([pa.ListArray.from_arrays(np.arange(len(times) + 1), times)], ["times"])
        return rows(first, end).append_column("at", times).append_column("more", inside)

    table.insert(timed(0, 100, 0), options=FILTERS)
    in_millis(path / newest(path).path)
    first = 95 if operation == "upsert" else 100
    assert getattr(table, operation)(timed(first, 110, 123), options=FILTERS).ok
    wanted = pa.concat_tables([timed(0, first, 0), timed(first, 110, 123)]).sort_by("id")
    found = pq.read_table(path / newest(path).path, partitioning=None).sort_by("id")
    for name in ("at", "more"):
        assert found.column(name).to_pylist() == wanted.column(name).to_pylist()


def in_millis(file: Path) -> None:
    """Write a base file anew, with milliseconds in its times."""
    found = pq.ParquetFile(file)
    kept = {k: v for k, v in found.metadata.metadata.items() if k != b"ARROW:schema"}
    table = found.read()
    millis = pa.timestamp("ms", "UTC")
    types = {"at": millis, "more": pa.struct([("times", pa.list_(millis))])}
    for name, kind in types.items():
        table = table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(kind))
    pq.write_table(table.replace_schema_metadata(kept), file, store_schema=False, version="2.6")


INDEXES: dict[str, Any] = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}


@pytest.mark.thorough
@pytest.mark.spread(4)
@pytest.mark.parametrize("index", ["BLOOM", "RECORD_INDEX"])
@pytest.mark.parametrize("version", VERSIONS)
def test_indexes_follow(version: int, index: str, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path, table_version=version, options={**FILTERS, **INDEXES})
    table.insert(rows(0, 900), options={**COPIES, **INDEXES})
    one = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}
    assert table.build_index(options=one).ok
    before = newest(path)
    for first in (900, 1300):
        assert table.insert(rows(first, first + 400), options=COPIES).ok
    assert pages(newest(path))[: len(before.row_groups)] == pages(before)
    done = table.upsert(rows(850, 1750, ts=1, more="x"), options={**COPIES, "hoodie.index.type": index})
    (written,) = done.report["tables"]["written"]
    assert (written["updates"], written["inserts"]) == (850, 50)
    assert len(ids(path)) == 1750
    assert table.validate(strict=True).ok


def test_updates_and_inserts_of_one_file(tmp_path: Path) -> None:
    """Rows that are new are not looked for, and follow those that are changed."""
    path = tmp_path / "rides"
    table = create(path)
    table.insert(rows(0, 900), options=COPIES)
    table.insert(rows(900, 1300), options=COPIES)
    before = newest(path)
    done = table.upsert(rows(1290, 1400, ts=1, more="new"), options=COPIES)
    (written,) = done.report["tables"]["written"]
    assert (written["updates"], written["inserts"], written["updated_files"], written["filled_files"]) == (
        10,
        100,
        1,
        0,
    )
    after = newest(path)
    assert pages(after)[: len(before.row_groups) - 1] == pages(before)[:-1]
    found = {row["id"]: row for row in read(path).to_pylist()}
    assert len(found) == after.num_rows == 1400
    assert [key for key, row in found.items() if row["text"].endswith("new")] == [
        f"k{n:05d}" for n in range(1290, 1400)
    ]
    assert len({row["_hoodie_commit_seqno"] for row in found.values()}) == 1400
    stat = the_stat(path)
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes) == (1400, 100, 10)
    assert table.validate(strict=True).ok


@pytest.mark.parametrize("release", RELEASES)
def test_files_of_hudi(release: str, tmp_path: Path) -> None:
    path = unpack(release, tmp_path)
    table = hudi_services.open(path, engine="local")
    before = read(path)
    partition = open_local(path).view.partitions()[0]
    sample = before.filter(pa.compute.equal(before.column("_hoodie_partition_path"), partition)).slice(0, 40)
    new = sample.select([name for name in sample.column_names if not name.startswith("_hoodie_")])
    new = new.set_column(0, "key", pa.array([f"new-{n}" for n in range(new.num_rows)]))
    small = {"hoodie.parquet.block.size": 16384}
    groups = {
        one.file_id: len(BaseFileSlice.open(open_local(path).storage, one.base_file.path).row_groups)
        for one in open_local(path).view.latest_slices(partition)
        if one.base_file is not None
    }
    assert table.insert(new, options=small).ok
    (filled,) = [
        one for one in open_local(path).view.latest_slices(partition) if one.base_instant == last_instant(path)
    ]
    assert filled.base_file is not None
    reader = BaseFileSlice.open(open_local(path).storage, filled.base_file.path)
    assert len(reader.row_groups) == groups[filled.file_id] + 1
    assert read(path).num_rows == before.num_rows + new.num_rows
    assert table.validate().ok


def last_instant(path: Path) -> str:
    return list(open_local(path).timeline.completed_writes())[-1].ts


Append = Callable[..., Any]


@pytest.mark.thorough
@pytest.mark.parametrize("fault", [a_lost_row_group, a_double_row_group, a_row_group_of_another_file])
def test_a_fault_in_the_copy_is_found(
    fault: Callable[[Append], Append], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rides"
    table = create(path)
    table.insert(rows(0, 900), options=COPIES)
    before = read(path)
    monkeypatch.setattr(RowGroupCopier, "append", fault(RowGroupCopier.append))
    with pytest.raises(CheckFailed, match=r"does not hold the same rows|row groups, and"):
        table.insert(rows(900, 1300), options=COPIES)
    monkeypatch.undo()
    assert read(path).equals(before)
    assert not open_local(path).timeline.pending()
    assert table.insert(rows(900, 1300), options=COPIES).ok


def test_a_changed_byte_in_a_page_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rides"
    table = create(path)
    table.insert(rows(0, 900), options=COPIES)
    original = page_copy.with_crc

    def spoilt(page: Any) -> Any:
        return original(replace(page, body=bytes([*page.body[:-1], page.body[-1] ^ 1])))

    monkeypatch.setattr(page_copy, "with_crc", spoilt)
    with pytest.raises(hudi_services.HudiServicesError):
        table.insert(rows(900, 1300), options=COPIES)
    monkeypatch.undo()
    assert read(path).num_rows == 900
