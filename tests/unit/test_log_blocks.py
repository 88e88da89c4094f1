import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs.varint import encode_varint
from hudi_services.errors import CorruptFile
from hudi_services.hfile.hfile_reader import HFileReader
from hudi_services.log_files import delete_records
from hudi_services.log_files.block_contents import delete_block_content
from hudi_services.log_files.delete_records import delete_block_keys
from hudi_services.log_files.log_blocks import BlockType, HeaderKey, LogBlock
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.log_files.log_writer import encode_block

FIXTURES = Path(__file__).parent.parent / "fixtures" / "log"
GOLDEN = sorted(FIXTURES.glob("*.log"))
BLOCKS = st.builds(
    LogBlock,
    st.sampled_from([t for t in BlockType if t is not BlockType.CORRUPT]),
    st.dictionaries(st.sampled_from(HeaderKey), st.text(max_size=20)),
    st.binary(max_size=100),
)
DATA = encode_block(LogBlock(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b"data"))
COMMAND = encode_block(
    LogBlock(
        BlockType.COMMAND,
        {HeaderKey.INSTANT_TIME: "2", HeaderKey.TARGET_INSTANT_TIME: "1", HeaderKey.COMMAND_BLOCK_TYPE: "0"},
        b"",
    )
)


@given(st.lists(BLOCKS, max_size=4))
def test_round_trip(blocks: list[LogBlock]) -> None:
    assert read_log_blocks(b"".join(map(encode_block, blocks)), "f") == blocks


@pytest.mark.parametrize("file", GOLDEN, ids=lambda f: f.name)
def test_golden_files(file: Path) -> None:
    data = file.read_bytes()
    (block,) = read_log_blocks(data, file.name)
    written = encode_block(block)
    if file.name.startswith("1.2.0"):
        assert written == data
    # Java's header order is arbitrary in older releases.
    assert len(written) == len(data)
    assert read_log_blocks(written, "f") == [block]


def test_what_golden_files_hold() -> None:
    blocks = {f.name: read_log_blocks(f.read_bytes(), f.name)[0] for f in GOLDEN}
    assert {name: block.type.name for name, block in blocks.items()} == {
        "0.15.0-files.log": "HFILE_DATA",
        "1.0.2-record_index.log": "DELETE",
        "1.2.0-column_stats.log": "HFILE_DATA",
        "1.2.0-empty.log": "DELETE",
    }
    files = HFileReader(blocks["0.15.0-files.log"].content, "f")
    assert [row for row, _ in files.scan()] == [b"__all_partitions__", b"p0", b"p1", b"p2"]
    assert blocks["0.15.0-files.log"].instant == "20261121084831112"
    assert HFileReader(blocks["1.2.0-column_stats.log"].content, "f").entry_count == 24


def test_delete_blocks_equal_those_of_hudi() -> None:
    (empty,) = read_log_blocks((FIXTURES / "1.2.0-empty.log").read_bytes(), "f")
    assert delete_block_keys(empty) == []
    assert empty.content == delete_block_content([])
    (some,) = read_log_blocks((FIXTURES / "1.0.2-record_index.log").read_bytes(), "f")
    keys = delete_block_keys(some)
    assert keys == ["k-00000010", "k-00000012", "k-00000014", "k-00000016"]
    assert some.content == delete_block_content(keys, "record_index")


@given(st.lists(st.text()), st.text(max_size=5))
def test_delete_keys_round_trip(keys: list[str], partition: str) -> None:
    block = LogBlock(BlockType.DELETE, {}, delete_block_content(keys, partition))
    assert delete_block_keys(block) == keys


ORDERING_VALUES = {
    "null": b"\x00",
    "boolean": b"\x02\x01",
    "long": b"\x06\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    "double": b"\x0a12345678",
    "string": b"\x0e\x06abc",
    "decimal": b"\x12\x04\x01\x02",
    "timestamp": b"\x16\x02",
    "array of int 7 and a date": b"\x18\x02\x04\x04\x0e\x18\x02\x00",
    "null array": b"\x18\x00",
}


@pytest.mark.parametrize("value", ORDERING_VALUES.values(), ids=ORDERING_VALUES)
def test_ordering_values_are_skipped(value: bytes) -> None:
    record = b"\x02\x02k\x00" + value
    array = b"\x01\x06" + record + b"\x04" + record * 2 + b"\x00"  # one block with a byte size, one without
    content = (3).to_bytes(4, "big") + len(array).to_bytes(4, "big") + array
    assert delete_block_keys(LogBlock(BlockType.DELETE, {}, content)) == ["k"] * 3


def test_rollback_command() -> None:
    data, command = read_log_blocks(DATA + COMMAND, "f")
    assert (data.rolled_back_instant, command.rolled_back_instant) == (None, "1")


@pytest.mark.parametrize("cut", range(6, len(DATA)))
def test_a_torn_block_is_skipped(cut: int) -> None:
    torn = DATA[:cut]
    assert [b.type.name for b in read_log_blocks(DATA + torn + COMMAND, "f")] == ["AVRO_DATA", "CORRUPT", "COMMAND"]
    assert [b.type.name for b in read_log_blocks(DATA + torn, "f")] == ["AVRO_DATA", "CORRUPT"]


def test_torn_magic_at_the_end_is_the_end() -> None:
    assert len(read_log_blocks(DATA + b"#HUD", "f")) == 1
    assert read_log_blocks(b"", "f") == []


BAD = {
    "no block": b"hello world",
    "format version": DATA[:17] + b"\x02" + DATA[18:],
    "block type": DATA[:21] + b"\x09" + DATA[22:],
    "header key": DATA[:29] + b"\x63" + DATA[30:],
    "header length": DATA[:30] + b"\x7f" + DATA[31:],
    "header count": DATA[:22] + b"\xff" + DATA[23:],
    "text": DATA[:34] + b"\xff" + DATA[35:],
    "content length": DATA[:42] + b"\x03" + DATA[43:],
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_whole_blocks_that_break_the_format(data: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"some/file\.log is corrupt at offset \d+: "):
        read_log_blocks(data, "some/file.log")


def test_a_bad_delete_block_names_the_place_in_the_file() -> None:
    block = LogBlock(BlockType.DELETE, {}, b"\0\0\0\2", "some/file.log", 100)
    with pytest.raises(CorruptFile, match=r"some/file\.log is corrupt at offset 104: delete block version 2"):
        delete_block_keys(block)


@given(st.data())
def test_damaged_files_raise_nothing_else(data: st.DataObject) -> None:
    source = bytearray(DATA + COMMAND + (FIXTURES / "1.0.2-record_index.log").read_bytes())
    near = st.integers(0, 200) | st.integers(len(source) - 150, len(source) - 1)
    for at, byte in data.draw(st.lists(st.tuples(near, st.integers(0, 255)), max_size=4)):
        source[at] = byte
    try:
        for block in read_log_blocks(bytes(source), "f"):
            if block.type is BlockType.DELETE:
                delete_block_keys(block)
    except CorruptFile as error:
        assert "f is corrupt at offset" in error.message


@given(st.binary(max_size=100))
def test_random_delete_lists(array: bytes) -> None:
    content = (3).to_bytes(4, "big") + len(array).to_bytes(4, "big") + array
    with contextlib.suppress(CorruptFile):
        delete_block_keys(LogBlock(BlockType.DELETE, {}, content))


_LENGTHS = st.sampled_from([0, 1, 62, 63, 64, 200])
_TEXTS = st.none() | _LENGTHS.map(lambda length: b"k" * length)
_RECORDS = st.tuples(_TEXTS, _TEXTS, st.sampled_from([*ORDERING_VALUES.values(), b"\x04\x00", b"\x06\xfe\x01"]))


@given(st.lists(_RECORDS, max_size=5), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3))
def test_short_records_are_read_as_all_are(
    records: list[tuple[bytes | None, bytes | None, bytes]], damage: list[tuple[int, int]]
) -> None:
    """Most records take a shorter way, with the same result, and the same error for damaged bytes."""
    text = b"".join(_text(key) + _text(partition) + ordering for key, partition, ordering in records)
    array = bytearray(encode_varint(2 * len(records)) + text + b"\x00" if records else b"\x00")
    for at, byte in damage:
        if at < len(array):
            array[at] = byte
    content = (3).to_bytes(4, "big") + len(array).to_bytes(4, "big") + bytes(array)
    with pytest.MonkeyPatch.context() as patched:
        found = _read_all(content)
        patched.setattr(delete_records, "_short_record", lambda cursor: None)
        assert _read_all(content) == found


def _text(value: bytes | None) -> bytes:
    return b"\x00" if value is None else b"\x02" + encode_varint(2 * len(value)) + value


def _read_all(content: bytes) -> list[delete_records.DeleteRecord] | str:
    try:
        return list(delete_records.delete_records(LogBlock(BlockType.DELETE, {}, content, "f")))
    except CorruptFile as error:
        return error.message
