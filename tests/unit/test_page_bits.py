"""A flipped bit inside a page is always found: it reaches no reader of values, no copy and no commit."""

import io
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services import small_files
from hudi_services.base_files.file_reader import BaseFileReader, open_base_file
from hudi_services.base_files.file_writer import FILE_NAME_COLUMN, BaseFileWriter
from hudi_services.base_files.page_copy import RowGroupCopier
from hudi_services.codecs import thrift
from hudi_services.engine import LocalEngine
from hudi_services.errors import CorruptFile
from hudi_services.jobs import clustering
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.parquet.page_header import CRC
from hudi_services.parquet.pages import Page, read_pages
from hudi_services.runs.request import IndexRequest, Mode
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from ..tiers import DEEP
from .parquet_samples import REAL_FILES, real_bytes
from .tables import open_local, request, rows, unpack
from .test_validate import run as validation

pytestmark = pytest.mark.usefixtures("read_anew")


@pytest.fixture
def read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read is one of the file, as of a large file: a small one would be kept as it was before the bit flipped."""
    monkeypatch.setattr(small_files, "SMALL_FILE_BYTES", 0)
    monkeypatch.setattr(small_files.FileRanges, "_hold", lambda self, whole: None)


FLIPS = 60 if DEEP else 15
"""Of each file and each way; the first third of them in the headers of pages."""


def sample(count: int) -> pa.Table:
    pick = random.Random(count)
    columns = {
        FILE_NAME_COLUMN: (["old.parquet"] * count, pa.string()),
        "id": (range(count), pa.int64()),
        "text": ([pick.choice([None, "", "ü" * pick.randrange(9), "same"]) for _ in range(count)], pa.string()),
        "real": ([pick.choice([None, 0.5, pick.random()]) for _ in range(count)], pa.float64()),
        "fixed": ([pick.randbytes(3) if i % 3 else b"abc" for i in range(count)], pa.binary(3)),
        "list": ([pick.choice([None, [], [1, None, 2]]) for _ in range(count)], pa.list_(pa.int32())),
    }
    return pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})


def by_pyarrow(codec: str, *, v2: bool = False, dictionary: bool = True, checksums: bool = True) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        sample(300),
        sink,
        compression=codec,
        data_page_version="2.0" if v2 else "1.0",
        use_dictionary=dictionary,
        write_page_checksum=checksums,
        store_schema=False,
        row_group_size=200,
        data_page_size=300,
        # A chunk whose dictionary becomes too large has pages of two encodings.
        dictionary_pagesize_limit=400,
    )
    return sink.getvalue()


def decoded(folder: Path, codec: str = "zstd") -> bytes:
    """What we write of rows that were decoded."""
    (folder / "in.parquet").write_bytes(by_pyarrow("snappy"))
    storage = open_storage(str(folder))
    reader = open_base_file(storage, "in.parquet")
    options = {"file_name": "new", "page_bytes": 300, "codec": codec}
    with BaseFileWriter(storage, "out.parquet", reader.schema, **options) as writer:  # type: ignore[arg-type]
        for index in range(len(reader.row_groups)):
            writer.write(reader.read_row_group(index))
        writer.close({})
    return (folder / "out.parquet").read_bytes()


def copied(folder: Path, data: bytes, codec: str | None) -> bytes:
    """What we write of row groups that were copied."""
    (folder / "in.parquet").write_bytes(data)
    storage = open_storage(str(folder))
    copy(storage, open_base_file(storage, "in.parquet"), codec)
    return (folder / "out.parquet").read_bytes()


def copy(storage: Storage, reader: BaseFileReader, codec: str | None) -> None:
    (Path(storage.root) / "out.parquet").unlink(missing_ok=True)
    with RowGroupCopier(
        storage, "out.parquet", reader.schema, file_name="new", codec=codec, created_by=reader.created_by
    ) as copier:
        for index in range(len(reader.row_groups)):
            copier.append(reader, index)
        copier.close({})


KINDS: dict[str, Callable[[Path], bytes]] = {
    **{f"hudi-{name}": lambda _, name=name: real_bytes(name) for name in REAL_FILES},  # type: ignore[misc]
    "ours-decoded": decoded,
    "ours-decoded-gzip": lambda folder: decoded(folder, "gzip"),
    "ours-copied-gzip": lambda folder: copied(folder, real_bytes(REAL_FILES[0]), None),
    "ours-recoded": lambda folder: copied(folder, real_bytes(REAL_FILES[0]), "zstd"),
    "ours-checksums-added": lambda folder: copied(folder, by_pyarrow("zstd", checksums=False), None),
    "ours-checksums-added-v2": lambda folder: copied(folder, by_pyarrow("none", v2=True, checksums=False), None),
    "snappy": lambda _: by_pyarrow("snappy"),
    "snappy-v2": lambda _: by_pyarrow("snappy", v2=True),
    "plain-zstd": lambda _: by_pyarrow("zstd", dictionary=False),
    "uncompressed": lambda _: by_pyarrow("none"),
    "uncompressed-v2": lambda _: by_pyarrow("none", v2=True),
    "plain-uncompressed-v2": lambda _: by_pyarrow("none", v2=True, dictionary=False),
}


@pytest.fixture(params=list(KINDS))
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "file.parquet"
    path.write_bytes(KINDS[request.param](tmp_path))
    return path


def pages_of(path: Path) -> list[tuple[str, int, int, Page]]:
    """Each page with its column, its first byte and that of its body."""
    data, found = path.read_bytes(), []
    reader = open_base_file(open_storage(str(path.parent)), path.name)
    for number, group in enumerate(reader.row_groups):
        for leaf, chunk in enumerate(group.columns):
            at = chunk.start
            for page in read_pages(data[chunk.start : chunk.end], reader.place(number, leaf)):
                header, length = thrift.decode_struct(data[at : at + 1000], path.name)
                assert header.get(3) == len(page.body)
                found.append((reader.schema.leaves[leaf].dotted, at, at + length, page))
                at += length + len(page.body)
    return found


def flips(path: Path, count: int, *, headers: bool = False, only: str = "", without: str = "") -> Iterator[int]:
    """Turns one bit of a page after the other, tells its byte, and puts it back."""
    pick, sound = random.Random(path.parent.name), path.read_bytes()
    pages = [page for page in pages_of(path) if page[0] != without and only in ("", page[0])]
    for number in range(count):
        _, start, body, page = pick.choice(pages)
        in_header = headers or number < count // 3 or not page.body
        at = pick.randrange(start, body) if in_header else pick.randrange(body, body + len(page.body))
        damaged = bytearray(sound)
        damaged[at] ^= 1 << pick.randrange(8)
        path.write_bytes(damaged)
        yield at
    path.write_bytes(sound)


def read(reader: BaseFileReader, *, through: bool) -> pa.Table:
    """All of it; `through` small buffers, of what is too large to be held."""
    groups = range(len(reader.row_groups))
    if not through:
        return pa.concat_tables([reader.read_row_group(index) for index in groups])
    return pa.concat_tables([piece for index in groups for piece in reader.pieces(index, at_once=1)])


@pytest.mark.spread(3)
@pytest.mark.sweep
@pytest.mark.parametrize("through", [False, True], ids=["loaded", "buffered"])
def test_no_reader_gets_a_wrong_value(file: Path, through: bool) -> None:
    reader = open_base_file(open_storage(str(file.parent)), file.name)
    sound, told = read(reader, through=through), 0
    for at in flips(file, FLIPS):
        try:
            assert read(reader, through=through).equals(sound), f"byte {at}"
        except CorruptFile as error:
            assert "file.parquet" in error.message
            assert "good copy" in str(error.hint)
            told += 1
    # The others are of statistics, which nobody reads.
    assert told >= FLIPS * 2 // 3


@pytest.mark.spread(5)
@pytest.mark.sweep
@pytest.mark.parametrize("codec", [None, "zstd"], ids=["as-it-is", "recoded"])
def test_no_copy_differs(file: Path, codec: str | None) -> None:
    storage = open_storage(str(file.parent))
    reader = open_base_file(storage, file.name)
    out = file.parent / "out.parquet"
    copy(storage, reader, codec)
    sound = out.read_bytes()
    for at in flips(file, FLIPS):
        try:
            copy(storage, reader, codec)
        except CorruptFile as error:
            assert "file.parquet" in error.message
            assert not out.exists()
        else:
            assert out.read_bytes() == sound, f"byte {at}"


@pytest.mark.sweep
@pytest.mark.parametrize("v2", [False, True])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_headers_are_checked_without_checksums(codec: str, v2: bool, tmp_path: Path) -> None:
    file = tmp_path / "file.parquet"
    file.write_bytes(by_pyarrow(codec, v2=v2, checksums=False))
    storage = open_storage(str(tmp_path))
    reader = open_base_file(storage, file.name)
    values = read(reader, through=False)
    copy(storage, reader, None)
    sound = (tmp_path / "out.parquet").read_bytes()
    for at in flips(file, FLIPS, headers=True):
        with suppress(CorruptFile):
            assert read(reader, through=at % 2 == 0).equals(values), f"byte {at}"
        with suppress(CorruptFile):
            copy(storage, reader, None)
            assert (tmp_path / "out.parquet").read_bytes() == sound, f"byte {at}"


@pytest.mark.thorough
def test_every_page_that_we_write_has_its_checksum(file: Path) -> None:
    storage = open_storage(str(file.parent))
    reader = open_base_file(storage, file.name)
    for codec in (None, "zstd"):
        copy(storage, reader, codec)
        pages = pages_of(file.parent / "out.parquet")
        assert pages
        assert all(CRC in page.header.fields for _, _, _, page in pages)
        ours = pq.read_table(file.parent / "out.parquet", page_checksum_verification=True)
        assert ours.drop_columns([FILE_NAME_COLUMN]).equals(pq.read_table(file).drop_columns([FILE_NAME_COLUMN]))
    made = file.parent / "made.parquet"
    made.write_bytes(decoded(file.parent))
    assert all(CRC in page.header.fields for _, _, _, page in pages_of(made))


COPIED = {"hoodie.parquet.block.size": "8192"}
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "key"}


@pytest.mark.thorough
@pytest.mark.spread(2)
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
@pytest.mark.parametrize("options", [COPIED, SORTED], ids=["copied", "sorted"])
def test_no_flipped_bit_is_committed(release: str, options: dict[str, str], tmp_path: Path) -> None:
    """Neither of files that Hudi wrote, nor of those that a clustering wrote."""
    path = unpack(release, tmp_path)
    for _ in range(2):
        ts = clustering.schedule(request(path, Mode.SCHEDULE, options)).instant
        assert ts
        table = open_local(path)
        before = rows(table, table.view)
        (plan,) = table.timeline.pending_clusterings()
        for group in table.timeline.read_plan(plan).groups[:1]:
            file = Path(group.slices[0].data_file.removeprefix("file:"))
            for _ in flips(file, 3, without=FILE_NAME_COLUMN):
                with pytest.raises(CorruptFile) as caught:
                    clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())
                assert file.name in caught.value.message
                assert not list(path.rglob(f"*{ts}.parquet"))
        clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())
        table = open_local(path)
        assert rows(table, table.view).equals(before)
        assert all(
            CRC in page.header.fields for file in path.rglob(f"*{ts}.parquet") for _, _, _, page in pages_of(file)
        )


def test_no_index_is_built_of_a_flipped_bit(tmp_path: Path) -> None:
    path = unpack("1.0.2", tmp_path)
    view = open_local(path).view
    (one, *_) = view.latest_slices(view.partitions()[0])
    assert one.base_file is not None
    for _ in flips(path / one.base_file.path, 3, only="_hoodie_record_key"):
        with pytest.raises(CorruptFile, match="column _hoodie_record_key of row group 0"):
            index_bootstrap(
                IndexRequest(base_path=str(path), options=request(path, Mode.SCHEDULE).options), engine=LocalEngine()
            )


def test_validate_tells_a_flipped_bit(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path, "expressions")
    view = open_local(path).view
    (one, *_) = view.latest_slices(view.partitions()[0])
    assert one.base_file is not None
    for _ in flips(path / one.base_file.path, 3, only="name"):
        report = validation(path)
        assert isinstance(report.error, CorruptFile)
        assert "column name of row group 0" in report.error.message
