import json
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.codecs.cursor import Cursor
from hudi_services.codecs.varint import encode_varint
from hudi_services.errors import CheckFailed, CorruptFile, UnsupportedTable
from hudi_services.hfile import hfile_format, hfile_writer
from hudi_services.hfile.hfile_entries import decode_entries
from hudi_services.hfile.hfile_format import BLOCK_HEADER_SIZE, TRAILER_SIZE
from hudi_services.hfile.hfile_ranges import StoredRanges
from hudi_services.hfile.hfile_reader import HFileReader
from hudi_services.hfile.hfile_writer import HFileStream, write_hfile
from hudi_services.stores import open_storage

FIXTURES = Path(__file__).parent.parent / "fixtures" / "hfile"
GOLDEN = sorted(FIXTURES.glob("*.hfile"))
SCHEMA = '"bytes"'
ENTRIES = st.dictionaries(st.binary(max_size=300), st.binary(max_size=100), min_size=1).map(lambda d: sorted(d.items()))
# Values that do not compress, over many blocks.
MANY = [(b"key-%05d" % i, zlib.crc32(b"%d" % i).to_bytes(4, "big") * 20) for i in range(5000)]


def encoded_entry(row: bytes, value: bytes, suffix: bytes = hfile_format.KEY_SUFFIX) -> bytes:
    key = len(row).to_bytes(2, "big") + row + suffix
    return len(key).to_bytes(4, "big") + len(value).to_bytes(4, "big") + key + value + b"\0"


# Values with and without something that looks like an entry; keys with Hudi's suffix, that of a cell, and none.
LENGTHS = (0, 1, 255, 256, 70_000)
SUFFIXES = st.sampled_from([hfile_format.KEY_SUFFIX] * 6 + [b"\x02cf" + hfile_format.KEY_SUFFIX[1:], b""])
NESTED = st.binary(max_size=30) | st.tuples(st.binary(max_size=5), st.binary(max_size=5)).map(
    lambda e: encoded_entry(*e)
)


def column_pairs(reader: HFileReader) -> list[tuple[bytes, bytes]]:
    found = []
    for rows, values in reader.scan_columns():
        rows.validate(full=True)
        values.validate(full=True)
        assert rows.type == values.type == pa.binary()
        found += list(zip(rows.to_pylist(), values.to_pylist(), strict=True))
    return found


@given(ENTRIES)
def test_round_trip(entries: list[tuple[bytes, bytes]]) -> None:
    reader = HFileReader(write_hfile(entries, SCHEMA), "f")
    assert list(reader.scan()) == entries
    assert column_pairs(reader) == entries
    assert reader.entry_count == len(entries)
    assert reader.file_info[b"schema"] == SCHEMA.encode()
    for row, value in entries:
        assert reader.get(row) == value


@pytest.mark.thorough
@settings(max_examples=200)
@given(st.lists(st.tuples(st.binary(max_size=20), st.sampled_from(LENGTHS), SUFFIXES, NESTED), min_size=1))
def test_entries_inside_values_and_keys_of_others(parts: list[tuple[bytes, int, bytes, bytes]]) -> None:
    """What looks like an entry is none inside a value; keys that Hudi does not write are read all the same."""
    entries = [(row, value + bytes(length), suffix) for row, length, suffix, value in parts]
    payload = b"".join(encoded_entry(*entry) for entry in entries)
    rows, values = decode_entries([Cursor(payload, "f")])
    assert list(zip(rows.to_pylist(), values.to_pylist(), strict=True)) == [(row, value) for row, value, _ in entries]


@pytest.mark.thorough
@settings(max_examples=200)
@given(ENTRIES, st.lists(st.integers(0, 30)), st.sampled_from([1, 200, 1 << 20]), st.booleans())
def test_batches_do_not_show(entries: list[tuple[bytes, bytes]], cuts: list[int], piece: int, wide: bool) -> None:
    rows, values = (pa.array([pair[part] for pair in entries], pa.binary()) for part in (0, 1))
    written: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hfile_writer, "_PIECE", piece)
        patch.setattr(hfile_writer, "_BLOCK_SIZE", 500)
        expected = write_hfile(entries, SCHEMA)
        stream, start = HFileStream(written.append, SCHEMA), 0
        for end in [*sorted(cuts), len(entries)]:
            some_rows, some_values = rows[start:end], values[start:end]
            start = max(start, min(end, len(entries)))
            stream.add(
                some_rows.cast(pa.large_binary()) if wide else some_rows,
                some_values.dictionary_encode() if wide else some_values,
            )
        assert stream.close() == len(expected)
    assert b"".join(written) == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_keys_of_text_and_values_of_a_dictionary(kind: pa.DataType) -> None:
    keys = [f"schlüssel-{i:06d}" for i in range(100_000)]
    values = [b"one", b"another"]
    written: list[bytes] = []
    stream = HFileStream(written.append, SCHEMA)
    indices = pa.array([i % 2 for i in range(len(keys))], pa.int32())
    stream.add(pa.array(keys, kind), pa.DictionaryArray.from_arrays(indices, pa.array(values)))
    stream.close()
    assert max(map(len, written)) < 70_000
    expected = [(key.encode(), values[i % 2]) for i, key in enumerate(keys)]
    assert column_pairs(HFileReader(b"".join(written), "f")) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("file", GOLDEN, ids=lambda f: f.name)
def test_golden_files(file: Path) -> None:
    reader = HFileReader(file.read_bytes(), file.name)
    entries = list(reader.scan())
    assert entries == sorted(entries)
    assert column_pairs(reader) == entries
    for row, value in entries:
        assert reader.get(row) == value
        assert reader.get(row + b"\0") is None
    for prefix in {row[:length] for row, _ in entries for length in (0, 2, 7, 8, 12)}:
        assert list(reader.scan_prefix(prefix)) == [pair for pair in entries if pair[0].startswith(prefix)]
    assert list(reader.scan_prefix(b"\xff")) == []
    json.loads(reader.file_info[b"schema"])
    again = HFileReader(write_hfile(entries, reader.file_info[b"schema"].decode()), "f")
    assert list(again.scan()) == entries
    assert again.file_info[b"hfile.AVG_VALUE_LEN"] == reader.file_info[b"hfile.AVG_VALUE_LEN"]


def test_what_golden_files_hold() -> None:
    readers = {f.name: HFileReader(f.read_bytes(), f.name) for f in GOLDEN}
    assert {name: reader.entry_count for name, reader in readers.items()} == {
        "0.15.0-files.hfile": 4,
        "1.0.2-partition_stats.hfile": 48,
        "1.2.0-column_stats.hfile": 180,
        "hbase-levels-gz.hfile": 700,
        "hbase-levels-none.hfile": 200,
    }
    assert [row for row, _ in readers["0.15.0-files.hfile"].scan()] == [b"__all_partitions__", b"p0", b"p1", b"p2"]
    assert readers["hbase-levels-gz.hfile"].get(b"key-00999") == b"value 333"
    assert readers["hbase-levels-gz.hfile"].get(b"key-00998") is None


def test_blocks_are_read_when_needed(tmp_path: Path) -> None:
    (tmp_path / "f.hfile").write_bytes(write_hfile(MANY, SCHEMA))
    ranges = StoredRanges(open_storage(str(tmp_path)), "f.hfile", (tmp_path / "f.hfile").stat().st_size)
    reads: list[int] = []

    class Counted:
        size = ranges.size

        def read(self, start: int, length: int) -> bytes:
            reads.append(length)
            return ranges.read(start, length)

    reader = HFileReader(Counted(), "f.hfile")
    assert reader.get(MANY[777][0]) == MANY[777][1]
    assert reader.get(MANY[778][0]) == MANY[778][1]
    assert len(reads) == 3  # trailer, what follows the data, one block
    assert list(reader.scan_prefix(b"key-012")) == MANY[1200:1300]
    assert list(reader.scan()) == MANY


def test_the_same_input_gives_the_same_bytes() -> None:
    assert write_hfile(MANY[:200], SCHEMA) == write_hfile(MANY[:200], SCHEMA)


def test_java_loses_no_record_of_a_block() -> None:
    """The Java reader ends a block early by the size of its checksums, which must be less than the last entry."""
    entries = [(b"%05d" % i, b"") for i in range(9000)] + [(b"x%d" % i, bytes(200_000)) for i in range(2)]
    data = write_hfile(entries, SCHEMA)
    at, blocks = 0, 0
    while data[at : at + 8] == hfile_format.DATA_MAGIC:
        on_disk, uncompressed = (int.from_bytes(data[at + o : at + o + 4], "big") for o in (8, 12))
        stored = int.from_bytes(data[at + 29 : at + 33], "big") - BLOCK_HEADER_SIZE
        assert on_disk - stored < 21
        assert uncompressed <= 65536 or blocks >= 3
        at, blocks = at + BLOCK_HEADER_SIZE + on_disk, blocks + 1
    assert blocks == 6


def test_long_keys_of_the_hudi_1_1_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(b"%0300d" % i, bytes(40_000)) for i in range(5)]
    assert list(HFileReader(write_hfile(entries, SCHEMA), "f").scan()) == entries
    monkeypatch.setattr(hfile_writer, "encode_hadoop_vint", encode_varint)
    for length in (126, 130, 143, 270, 300, 16383):
        entries = [(b"%0*d" % (length, i), bytes(40_000)) for i in range(3)]
        assert list(HFileReader(write_hfile(entries, SCHEMA), "f").scan()) == entries


@pytest.mark.parametrize("entries", [[], [(b"b", b""), (b"a", b"")], [(b"a", b""), (b"a", b"")]])
def test_entries_must_be_sorted_and_unique(entries: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(CheckFailed):
        write_hfile(entries, SCHEMA)


@pytest.mark.parametrize("rows", [["b", "a"], ["c", "c"], ["c", "d", "d"], ["e", "g", "f", "h"], ["d", None]])
def test_batches_must_be_sorted_and_unique(rows: list[str | None]) -> None:
    stream = HFileStream(bytes, SCHEMA)
    stream.add(pa.array(["c"]), pa.array([b""]))
    with pytest.raises(CheckFailed):
        stream.add(pa.array(rows), pa.array([b"x"] * len(rows)))


@pytest.mark.parametrize("values", [pa.array([None], pa.binary()), pa.array([None], pa.binary()).dictionary_encode()])
def test_values_must_not_be_null(values: pa.Array) -> None:
    with pytest.raises(CheckFailed, match="null"):
        HFileStream(bytes, SCHEMA).add(pa.array(["a"]), values)


def test_a_row_that_does_not_fit() -> None:
    with pytest.raises(UnsupportedTable, match="32768 bytes"):
        write_hfile([(bytes(32768), b"")], SCHEMA)
    assert HFileReader(write_hfile([(bytes(32767), b"v")], SCHEMA), "f").get(bytes(32767)) == b"v"


@given(st.integers(0, 2**31 - 1))
def test_hadoop_vint(value: int) -> None:
    encoded = hfile_format.encode_hadoop_vint(value)
    assert Cursor(encoded, "f").hadoop_vint("n") == value
    assert 128 <= value <= 255 or encoded[0] != 0x8F


def read_all(data: bytes) -> None:
    reader = HFileReader(data, "some/f.hfile")
    assert isinstance(reader.file_info, dict)
    reader.get(b"key-00300")
    list(reader.scan_prefix(b"p"))
    entries = list(reader.scan())
    assert column_pairs(reader) == entries


def is_typed(data: bytes) -> bool:
    """False when the damage went unnoticed; anything but CorruptFile is raised on."""
    try:
        read_all(data)
    except CorruptFile as error:
        assert "some/f.hfile" in error.message
        assert "is corrupt at offset" in error.message
        return True
    return False


@pytest.mark.thorough
@settings(max_examples=300)
@given(st.sampled_from(GOLDEN), st.data())
def test_damaged_files_raise_nothing_else(file: Path, data: st.DataObject) -> None:
    damaged = bytearray(file.read_bytes())
    trailer = len(damaged) - TRAILER_SIZE
    places = st.integers(0, 300) | st.integers(0, trailer + 120) | st.integers(trailer, trailer + 100)
    for at, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        damaged[at] = byte
    is_typed(bytes(damaged))


@settings(max_examples=50)
@given(st.sampled_from(GOLDEN), st.integers(0, 20_000))
def test_truncated_files(file: Path, length: int) -> None:
    data = file.read_bytes()
    assert is_typed(data[: min(length, len(data) - 1)])


@given(st.binary(max_size=300))
def test_random_bytes(noise: bytes) -> None:
    assert is_typed(noise.rjust(5000, b"\0"))
    head = hfile_format.TRAILER_MAGIC + noise
    is_typed(bytes(500) + head.ljust(TRAILER_SIZE - 4, b"\0") + b"\0\0\0\3")


def test_a_gzip_bomb_is_refused_small() -> None:
    data = bytearray(write_hfile([(b"k", bytes(64 << 20))], SCHEMA))
    data[12:16] = (1000).to_bytes(4, "big")
    tracemalloc.start()
    try:
        with pytest.raises(CorruptFile, match="its header says 1000"):
            list(HFileReader(bytes(data), "f").scan())
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_a_wrong_entry_count_is_noticed() -> None:
    data = bytearray((FIXTURES / "1.2.0-column_stats.hfile").read_bytes())
    at = data.index(b"\x38\xb4\x01", len(data) - TRAILER_SIZE)
    data[at + 1] = 0xB3
    with pytest.raises(CorruptFile, match="180 entries, and the trailer says 179"):
        list(HFileReader(bytes(data), "f").scan())


@pytest.mark.parametrize(("field", "value", "problem"), [(96, 3, "codec 3"), (64, 9, "9 index levels")])
def test_unsupported_trailers(field: int, value: int, problem: str) -> None:
    data = bytearray(write_hfile([(b"k", b"v")], SCHEMA))
    at = data.index(bytes((field, 1)), len(data) - TRAILER_SIZE)
    data[at + 1] = value
    with pytest.raises(CorruptFile, match=problem):
        list(HFileReader(bytes(data), "f").scan())
