"""Row groups that are copied page by page hold what they held, in every codec and form of page."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.base_files.file_reader import open_base_file
from hudi_services.base_files.file_writer import FILE_NAME_COLUMN
from hudi_services.base_files.new_file import NewFile
from hudi_services.base_files.page_copy import RowGroupCopier, row_group_fingerprint
from hudi_services.codecs import thrift
from hudi_services.codecs.thrift import Struct
from hudi_services.errors import CheckFailed, CorruptFile, HudiServicesError
from hudi_services.parquet.compression import codec_called
from hudi_services.parquet.footer import ColumnChunk, parse_footer
from hudi_services.parquet.page_header import ChunkPlace
from hudi_services.parquet.pages import Page, _texts, compressed, constant_pages, plain, read_pages
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from .parquet_samples import REAL_FILES, real_bytes, real_file, write_pyarrow

CODECS = ["none", "snappy", "gzip", "zstd"]


def sample(rows: int, seed: int = 0) -> pa.Table:
    pick = random.Random(seed)
    columns = {
        FILE_NAME_COLUMN: (["old.parquet"] * rows, pa.string()),
        "id": (range(rows), pa.int64()),
        "text": ([pick.choice([None, "", "ü" * pick.randrange(40), "same"]) for _ in range(rows)], pa.string()),
        "real": ([pick.choice([None, 0.5, pick.random()]) for _ in range(rows)], pa.float64()),
        "flag": ([pick.choice([None, True, False]) for _ in range(rows)], pa.bool_()),
        "list": ([pick.choice([None, [], [1, None, 2]]) for _ in range(rows)], pa.list_(pa.int32())),
        "map": ([pick.choice([None, [], [("a", 1)]]) for _ in range(rows)], pa.map_(pa.string(), pa.int32())),
        "nulls": ([None] * rows, pa.string()),
    }
    return pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})


def copy(storage: Storage, paths: list[str], codec: str | None, name: str | None = "new.parquet") -> NewFile:
    """All row groups of `paths` into one file; the fingerprints of both sides agree."""
    readers = [open_base_file(storage, path) for path in paths]
    copier = RowGroupCopier(
        storage, "new.parquet", readers[0].schema, file_name=name, codec=codec, created_by=readers[0].created_by
    )
    before = [int(copier.append(r, i)) for r in readers for i in range(len(r.row_groups))]
    written = copier.close({"k": "v"})
    new = open_base_file(storage, "new.parquet")
    recoded = codec is not None
    after = [row_group_fingerprint(new, i, file_name=name, recoded=recoded) for i in range(len(new.row_groups))]
    assert before == after
    assert new.schema == readers[0].schema
    assert new.key_values == {"k": "v"}
    assert written.size == new.size == (Path(storage.root) / "new.parquet").stat().st_size
    assert written.columns == new.column_stats()
    return written


@pytest.mark.thorough
@settings(max_examples=40)
@given(
    rows=st.integers(1, 400),
    seed=st.integers(0, 1000),
    old=st.sampled_from(CODECS),
    new=st.sampled_from([None, *CODECS]),
    version=st.sampled_from(["1.0", "2.0"]),
    dictionary=st.booleans(),
    page_index=st.booleans(),
    row_group=st.integers(1, 400),
)
def test_rows_and_facts_stay(
    rows: int,
    seed: int,
    old: str,
    new: str | None,
    version: str,
    dictionary: bool,
    page_index: bool,
    row_group: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("copy")
    tables = [sample(rows, seed), sample(7, seed + 1)]
    writing = {"use_dictionary": dictionary, "write_page_index": page_index, "data_page_size": 200}
    writing |= {"compression": codec_called(old).writer_options["compression"], "row_group_size": row_group}
    for i, table in enumerate(tables):
        pq.write_table(table, folder / f"{i}.parquet", data_page_version=version, store_schema=False, **writing)
    copy(open_storage(str(folder)), ["0.parquet", "1.parquet"], new)

    read = pq.read_table(folder / "new.parquet")
    assert read.column(FILE_NAME_COLUMN).to_pylist() == ["new.parquet"] * (rows + 7)
    rest = [table.drop_columns(FILE_NAME_COLUMN) for table in tables]
    assert read.drop_columns(FILE_NAME_COLUMN).to_pylist() == pa.concat_tables(rest).to_pylist()
    facts, old_facts = pq.read_metadata(folder / "new.parquet"), pq.read_metadata(folder / "0.parquet")
    for i in range(facts.num_columns):
        chunk, was = facts.row_group(0).column(i), old_facts.row_group(0).column(i)
        assert chunk.compression == (new or old).upper().replace("NONE", "UNCOMPRESSED")
        assert chunk.has_offset_index == (page_index or was.path_in_schema == FILE_NAME_COLUMN)
        if was.path_in_schema != FILE_NAME_COLUMN:
            assert (chunk.num_values, set(chunk.encodings)) == (was.num_values, set(was.encodings))
            assert str(chunk.statistics).splitlines()[1:] == str(was.statistics).splitlines()[1:]


@pytest.mark.parametrize("name", REAL_FILES)
@pytest.mark.parametrize("codec", [None, "zstd"])
def test_files_of_hudi(name: str, codec: str | None, tmp_path: Path) -> None:
    storage, path = real_file(tmp_path, name)
    copy(storage, [path], codec)
    old, new = open_base_file(storage, path), open_base_file(storage, "new.parquet")
    columns = [c for c in old.schema.columns if c != FILE_NAME_COLUMN]
    for i in range(len(old.row_groups)):
        assert new.read_row_group(i, columns).equals(old.read_row_group(i, columns))
        # Every fact that stays, the encodings among them.
        for was, now in zip(old.row_groups[i].columns, new.row_groups[i].columns, strict=True):
            if was.path != (FILE_NAME_COLUMN,):
                assert _facts(was) == _facts(now)


def _facts(chunk: ColumnChunk) -> tuple[object, ...]:
    return (chunk.min, chunk.max, chunk.null_count, chunk.num_values, chunk.only_dictionary)


def test_the_old_file_name_stays_without_meta_fields(tmp_path: Path) -> None:
    storage, path = write_pyarrow(tmp_path, sample(5), store_schema=False)
    copy(storage, [path], "zstd", None)
    assert pq.read_table(tmp_path / "new.parquet") == pq.read_table(tmp_path / path)


@given(st.binary(max_size=200), st.integers(1, 1 << 28), st.booleans(), st.sampled_from(CODECS))
def test_constant_pages_pass_through_any_codec(value: bytes, rows: int, nullable: bool, codec: str) -> None:
    for page in constant_pages(value, rows, nullable=nullable):
        small = compressed(page, codec_called(codec))
        assert plain(small, codec_called(codec), "f") == page
        (again,) = read_pages(small.encoded_header() + small.body, ChunkPlace("f", "c", 0, 0))
        assert again == small


@pytest.mark.thorough
@settings(max_examples=150)
@given(at=st.integers(0, 10**6), junk=st.binary(min_size=1, max_size=4), v2=st.booleans())
def test_damaged_pages_are_told(at: int, junk: bytes, v2: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Either the fault is told in our words, or it hit what no checksum covers; damaged page indexes are left out."""
    folder = tmp_path_factory.mktemp("fuzz")
    if v2:
        options = {"data_page_version": "2.0", "write_page_index": True, "compression": "snappy"}
        write_pyarrow(folder, sample(40), "sound.parquet", store_schema=False, **options)
    else:
        (folder / "sound.parquet").write_bytes(real_bytes(REAL_FILES[0]))
    data = bytearray((folder / "sound.parquet").read_bytes())
    storage = open_storage(str(folder))
    chunks = open_base_file(storage, "sound.parquet").row_groups[0].columns
    end = max(sum(place) for c in chunks for place in (c.column_index, c.offset_index, (c.end, 0)) if place)
    start = 4 + at % (end - 4)
    data[start : start + len(junk)] = junk[: end - start]
    (folder / "broken.parquet").write_bytes(data)
    for codec in (None, "zstd"):
        try:
            copy(storage, ["broken.parquet"], codec)
        except HudiServicesError as error:
            assert isinstance(error, CorruptFile)
            assert "broken.parquet" in error.message


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_checksums_of_pages_are_looked_at_and_kept(codec: str | None, tmp_path: Path) -> None:
    rows = sample(300)
    storage, path = write_pyarrow(tmp_path, rows, store_schema=False, compression="none", write_page_checksum=True)
    copy(storage, [path], codec)
    new = pq.read_table(tmp_path / "new.parquet", page_checksum_verification=True)
    assert new["id"].to_pylist() == rows["id"].to_pylist()

    data = bytearray((tmp_path / path).read_bytes())
    chunk = open_base_file(storage, path).row_groups[0].columns[1]
    data[chunk.end - 3] ^= 1
    (tmp_path / path).write_bytes(data)
    with pytest.raises(CorruptFile, match=r"in\.parquet: the page at byte \d+ does not have the checksum"):
        copy(storage, [path], codec)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("lie", [-20, -1, 1, 20])
def test_a_page_of_another_size_than_announced_is_refused(codec: str, lie: int) -> None:
    """pyarrow would cut it off, or fill it up with what memory happens to hold."""
    (_, page) = constant_pages(b"x", 1 << 20, nullable=True)
    body = b"0123456789" * 100
    header = Struct({**page.header.fields, 2: (thrift.I32, len(body)), 3: (thrift.I32, len(body))})
    stored = compressed(Page(page.kind, header, body, *page_facts(page)), codec_called(codec))
    assert plain(stored, codec_called(codec), "f").body == body
    stored.header.set(2, thrift.I32, len(body) + lie)
    with pytest.raises(CorruptFile, match=r"^f: "):
        plain(stored, codec_called(codec), "f")


def page_facts(page: Page) -> tuple[int, int, frozenset[int]]:
    return page.num_values, page.encoding, page.level_encodings


def test_uncompressed_pages_of_the_second_version_are_compressed(tmp_path: Path) -> None:
    storage, path = write_pyarrow(
        tmp_path,
        pa.table({"n": [7] * 50_000}),
        store_schema=False,
        compression="none",
        data_page_version="2.0",
        use_dictionary=False,
    )
    copy(storage, [path], "zstd", None)
    assert (tmp_path / "new.parquet").stat().st_size < (tmp_path / path).stat().st_size / 10
    assert pq.read_table(tmp_path / "new.parquet") == pq.read_table(tmp_path / path)


def test_bounds_without_an_order_do_not_become_trusted(tmp_path: Path) -> None:
    storage, path = write_pyarrow(tmp_path, sample(50), store_schema=False, write_page_index=True)
    data = (tmp_path / path).read_bytes()
    footer = parse_footer(data, path)
    end = len(data) - 8 - len(footer.encode())
    footer.tree.drop(7)
    (tmp_path / path).write_bytes(data[:end] + footer.as_file()[4:])
    copy(storage, [path], "zstd")
    chunks = [pq.read_metadata(tmp_path / "new.parquet").row_group(0).column(i) for i in range(2)]
    assert [(c.path_in_schema, c.statistics.has_min_max, c.has_column_index, c.has_offset_index) for c in chunks] == [
        (FILE_NAME_COLUMN, True, True, True),
        ("id", False, False, True),
    ]


def test_every_column_of_a_file_with_page_indexes_has_them(tmp_path: Path) -> None:
    storage, path = write_pyarrow(tmp_path, sample(500), store_schema=False, write_page_index=True, data_page_size=100)
    copy(storage, [path], "zstd")
    facts = pq.read_metadata(tmp_path / "new.parquet").row_group(0)
    assert all(facts.column(i).has_offset_index and facts.column(i).has_column_index for i in range(facts.num_columns))
    # Rows are found by the places of their pages.
    found = pq.read_table(tmp_path / "new.parquet", filters=[("id", "==", 417)])
    assert found["id"].to_pylist() == [417]


def test_a_wrong_file_name_is_found(tmp_path: Path) -> None:
    storage, path = write_pyarrow(tmp_path, sample(5), store_schema=False)
    copy(storage, [path], "zstd", "right")
    with pytest.raises(CheckFailed, match="does not hold the name of the file"):
        row_group_fingerprint(open_base_file(storage, "new.parquet"), 0, file_name="wrong", recoded=True)


def test_a_footer_that_promises_other_rows_is_refused(tmp_path: Path) -> None:
    storage, path = write_pyarrow(tmp_path, sample(50), store_schema=False)
    reader = open_base_file(storage, path)
    group = reader.row_groups[0]
    reader.row_groups = (type(group)(49, group.columns),)
    copier = RowGroupCopier(
        storage, "new.parquet", reader.schema, file_name="new", codec="zstd", created_by=reader.created_by
    )
    with pytest.raises(CorruptFile, match="hold 50 values"):
        copier.append(reader, 0)
    copier.abort()
    assert not (tmp_path / "new.parquet").exists()


@given(
    st.lists(st.one_of(st.binary(max_size=6), st.text(max_size=12).map(str.encode), st.just(b"x" * 300)), max_size=12),
    st.lists(st.tuples(st.integers(0, 80), st.sampled_from([0, 1, 2, 65, 255])), max_size=2),
    st.integers(0, 3),
)
def test_byte_arrays_of_a_dictionary_are_counted(
    values: list[bytes], flips: list[tuple[int, int]], cut_off: int
) -> None:
    """Texts at once, others one after the other; both as the lengths say, in damaged pages, too."""
    body = bytearray(b"".join(len(value).to_bytes(4, "little") + value for value in values))
    for place, byte in flips:
        if place < len(body):
            body[place] = byte
    data = bytes(body[: len(body) - cut_off])
    position = count = 0
    while position + 4 <= len(data):
        position += 4 + int.from_bytes(data[position : position + 4], "little")
        count += 1
    assert _texts(data) == (count if position == len(data) else -1)
