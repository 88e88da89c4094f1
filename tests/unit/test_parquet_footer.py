import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.base_files.base_file_slices import BaseFileSlices
from hudi_services.base_files.slices import describe
from hudi_services.codecs import thrift
from hudi_services.codecs.thrift import ListValue, Struct
from hudi_services.errors import CorruptFile, NotFound
from hudi_services.model import BaseFile, FileSlice
from hudi_services.parquet.footer import Physical, parse_footer, read_footer
from hudi_services.stores import open_storage

from .parquet_samples import REAL_FILES, real_bytes, real_file, write_pyarrow


def encoded_footer(data: bytes) -> bytes:
    length = struct.unpack("<I", data[-8:-4])[0]
    return data[-8 - length : -8]


@pytest.mark.parametrize("name", REAL_FILES)
def test_a_real_footer_is_written_back_byte_for_byte(name):
    data = real_bytes(name)
    assert parse_footer(data, "f").encode() == encoded_footer(data)


@pytest.mark.parametrize("name", REAL_FILES)
def test_facts_are_those_that_pyarrow_reads(tmp_path, name):
    storage, path = real_file(tmp_path, name)
    footer, ranges = read_footer(storage, path)
    expected = pq.read_metadata(tmp_path / path)
    assert ranges.size == (tmp_path / path).stat().st_size
    assert footer.num_rows == expected.num_rows
    assert footer.created_by == expected.created_by
    assert footer.key_values == {k.decode(): v.decode() for k, v in expected.metadata.items()}
    assert len(footer.row_groups) == expected.num_row_groups
    for number, group in enumerate(footer.row_groups):
        facts = expected.row_group(number)
        assert group.num_rows == facts.num_rows
        assert group.uncompressed_bytes == sum(
            facts.column(i).total_uncompressed_size for i in range(facts.num_columns)
        )
        for i, chunk in enumerate(group.columns):
            column = facts.column(i)
            assert ".".join(chunk.path) == column.path_in_schema
            assert chunk.physical.name == column.physical_type
            assert chunk.num_values == column.num_values
            assert chunk.compressed_bytes == column.total_compressed_size
            assert chunk.null_count == column.statistics.null_count
            assert chunk.only_dictionary == ("PLAIN" not in column.encodings)


def test_dictionary_fallback_is_seen_in_files_of_parquet_cpp(tmp_path):
    table = pa.table({"few": ["a", "b"] * 20000, "many": [f"value {i}" for i in range(40000)]})
    storage, path = write_pyarrow(tmp_path, table, dictionary_pagesize_limit=1000)
    footer, _ = read_footer(storage, path)
    few, many = footer.row_groups[0].columns
    assert few.only_dictionary and few.dictionary_bytes > 0
    assert not many.only_dictionary


def test_a_footer_longer_than_the_first_range_is_read(tmp_path):
    table = pa.table({"a": [1]}).replace_schema_metadata({"k": "v" * 900_000})
    storage, path = write_pyarrow(tmp_path, table)
    footer, _ = read_footer(storage, path)
    assert len(footer.key_values["k"]) == 900_000


def test_changes_reach_a_reader(tmp_path):
    storage, path = write_pyarrow(tmp_path, pa.table({"a": [1, 2]}))
    footer, _ = read_footer(storage, path)
    footer.set_key_values({"x": "ü"})
    footer.set_leaf(0, ["b"], Physical.INT64, keep_statistics=False)
    footer.set_statistics(0, 0, b"\1" + bytes(7), b"\2" + bytes(7))
    again = parse_footer(footer.as_file(), "f")
    assert again.key_values == {"x": "ü"}
    assert again.row_groups[0].columns[0].path == ("b",)
    assert again.row_groups[0].columns[0].min == b"\1" + bytes(7)
    assert pq.read_metadata(io.BytesIO(footer.as_file())).row_group(0).column(0).path_in_schema == "b"


BAD = {
    "empty": b"",
    "short": b"PAR1PAR1",
    "no magic": b"PAR1" + bytes(20),
    "encrypted": b"PAR1" + bytes(16) + struct.pack("<I", 4) + b"PARE",
    "length past the start": b"PAR1" + bytes(16) + struct.pack("<I", 10**6) + b"PAR1",
    "length of 4 GiB": b"PAR1" + bytes(16) + b"\xff\xff\xff\xffPAR1",
    "no fields": b"PAR1\0" + struct.pack("<I", 1) + b"PAR1",
    "orc": b"ORC" + bytes(30),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_what_is_no_parquet_file_is_named(tmp_path, data):
    (tmp_path / "bad.parquet").write_bytes(data)
    with pytest.raises(CorruptFile, match=r"bad\.parquet"):
        read_footer(open_storage(str(tmp_path)), "bad.parquet")


def test_a_truncated_file_is_corrupt_wherever_it_ends(tmp_path):
    data = real_bytes(REAL_FILES[1])
    for end in (len(data) - 1, len(data) - 5, len(data) // 2, 4, 3):
        (tmp_path / "cut.parquet").write_bytes(data[:end])
        with pytest.raises(CorruptFile, match=r"cut\.parquet"):
            read_footer(open_storage(str(tmp_path)), "cut.parquet")


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        read_footer(open_storage(str(tmp_path)), "none.parquet")


def test_footers_of_many_files_are_read_in_order(tmp_path):
    files = []
    for rows in range(40):
        name = f"{rows}.parquet"
        pq.write_table(pa.table({"a": range(rows)}), tmp_path / name)
        file = BaseFile("", name, str(rows), "0-0-0", "1", (tmp_path / name).stat().st_size)
        files.append(FileSlice.of_base(file))
    source = BaseFileSlices(open_storage(str(tmp_path)))
    found = describe(source, files, lambda one, facts: (one.files[0].name, facts.rows))
    assert found == [(f"{rows}.parquet", rows) for rows in range(40)]
    (tmp_path / "7.parquet").unlink()
    with pytest.raises(NotFound, match=r"/7\.parquet"):
        describe(source, files, lambda one, facts: facts.rows)


def small_footer() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1], "b": [["x"]]}), sink, store_schema=False)
    return encoded_footer(sink.getvalue())


@settings(max_examples=300)
@given(st.data())
def test_damaged_footers_parse_or_are_corrupt(data):
    footer = bytearray(small_footer())
    for _ in range(data.draw(st.integers(1, 4))):
        footer[data.draw(st.integers(0, len(footer) - 1))] = data.draw(st.integers(0, 255))
    tail = b"PAR1" + bytes(footer) + struct.pack("<I", len(footer)) + b"PAR1"
    try:
        parsed = parse_footer(tail, "d/f.parquet")
        assert parsed.row_groups is not None
        assert parsed.key_values is not None
        assert isinstance(parsed.created_by, str)
    except CorruptFile as e:
        assert "d/f.parquet" in e.message


@pytest.mark.parametrize(
    "encodings", [ListValue(thrift.I32, [64]), ListValue(thrift.I32, [-1]), ListValue(thrift.STRUCT, [Struct()])]
)
def test_encodings_that_nobody_knows_are_refused(encodings):
    footer = parse_footer(real_bytes(REAL_FILES[0]), "f")
    footer.tree.get(4).items[0].get(1).items[0].get(3).set(2, thrift.LIST, encodings)
    with pytest.raises(CorruptFile, match="f: unknown encoding"):
        parse_footer(footer.as_file(), "f")
