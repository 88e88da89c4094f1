"""Small files that claim to hold very much are refused by name before the work; large honest files are not."""

import base64
import io
import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services import limits
from hudi_services.base_files import bloom
from hudi_services.codecs import avro, thrift
from hudi_services.codecs.commit_metadata import decode_commit_json
from hudi_services.codecs.json_text import parse_json
from hudi_services.codecs.varint import encode_varint
from hudi_services.errors import ConfigError, CorruptFile
from hudi_services.hfile import hfile_format
from hudi_services.hfile.hfile_reader import HFileReader
from hudi_services.indexing import checkpoints as work
from hudi_services.jobs import recover
from hudi_services.log_files.log_blocks import MAGIC
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.options import resolve
from hudi_services.parquet.footer import footer_length, parse_footer
from hudi_services.runs.config_files import read_properties
from hudi_services.runs.request import RecoverRequest
from hudi_services.schema.table_schema import TableSchema
from hudi_services.storage import Storage
from hudi_services.stores import open_storage
from hudi_services.timeline import archive_file
from hudi_services.timeline.archive_writer import ArchiveForm
from hudi_services.timeline.archived import ArchivedTimes, read_archive
from hudi_services.timeline.lsm_archive_writer import LsmArchiveWriter

from . import bombs
from .quick_storage import QuickStorage
from .tables import open_local, unpack

DEAD = "20260101000000000"


def aged(file: Path, data: bytes = b"") -> None:
    file.write_bytes(data)
    os.utime(file, (time.time() - 7 * 86_400,) * 2)


# Avro


@pytest.mark.thorough
@pytest.mark.parametrize(("data", "sentence"), bombs.AVRO.values(), ids=bombs.AVRO)
def test_avro(data: bytes, sentence: str) -> None:
    refused = bombs.refusal(lambda: avro.read_container(data, "the plan"))
    assert refused.startswith("CorruptFile: the plan ")
    assert sentence in refused


def test_honest_avro_is_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were large: cleans of small partitions and begun commits have the most dictionaries for their bytes."""
    monkeypatch.setattr(avro, "_UNCOUNTED", 0)
    monkeypatch.setattr(avro, "_LEAST_BUDGET", 0)
    clean = avro.load_schema("HoodieCleanMetadata", "1.2.0")
    partition = {"policy": "A", "deletePathPatterns": [], "successDeleteFiles": [], "failedDeleteFiles": []}
    tree = {
        "startCleanTime": "1",
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 1,
        "earliestCommitToRetain": "",
        "lastCompletedCommitTimestamp": "",
        "partitionMetadata": {
            f"{i}": {"partitionPath": f"{i}", **partition, "isPartitionDeleted": False} for i in range(5_000)
        },
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": None,
    }
    assert len(avro.read_container(avro.write_container(clean, tree), "f")["partitionMetadata"]) == 5_000
    commit = avro.load_schema("HoodieCommitMetadata", "1.2.0")
    stats = {"": [{"fileId": f"{i:036d}-0"} for i in range(5_000)]}
    tree = {"partitionToWriteStats": stats, "extraMetadata": {}, "operationType": "UPSERT", "version": None}
    assert len(avro.read_container(avro.write_container(commit, tree), "f")["partitionToWriteStats"][""]) == 5_000


def test_every_schema_of_hudi_is_within_the_limits() -> None:
    for file in (Path(avro.__file__).parents[1] / "schemas").rglob("*.avsc"):
        assert avro.parse_schema(json.dumps(json.loads(file.read_text())), file.name)


# JSON


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        "[" + "[]," * 700_000 + "[]]",
        "[1e999]",
        "[NaN]",
        '["\\ud800"]',
        "[" + "9" * 5_000 + "]",
        b'["\xed\xa0\x80"]',
    ],
    ids=["deep", "brackets", "infinite", "nan", "half a pair", "digits", "half a pair as bytes"],
)
def test_json(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # each has words of its own
        parse_json(text)
    with pytest.raises(CorruptFile, match="c is no commit metadata"):
        decode_commit_json(text.encode() if isinstance(text, str) else text, "c")


@pytest.mark.thorough
def test_a_large_and_honest_commit() -> None:
    schema = json.dumps(
        {"fields": [{"name": f"c{i}", "type": ["null", "int"], "default": None} for i in range(40_000)]}
    )
    tree = {"extraMetadata": {"schema": schema}, "operationType": "UPSERT", "partitionToWriteStats": {}}
    assert decode_commit_json(json.dumps(tree).encode(), "c").extra["schema"] == schema


def doubled(levels: int) -> object:
    found: object = "int"
    for level in range(levels):
        found = bombs.record(found, f"L{level - 1}" if level else "int", name=f"L{level}")
    return found


@pytest.mark.parametrize(
    "schema",
    [
        bombs.record(doubled(40)),
        bombs.flat_tower(3_000),
        '{"type":"record","name":"r","fields":[{"name":"a","type":' + "[" * 900 + '"int"' + "]" * 900 + "}]}",
    ],
    ids=["doubling", "deep by names", "deep"],
)
def test_the_schema_of_a_table(schema: object) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)

    def read() -> object:
        columns = TableSchema(text, "the table").columns
        return hash(columns), [str(column.type) for column in columns]

    assert bombs.refusal(read).startswith(("UnsupportedTable: the table's Avro", "CorruptFile: the table"))


# Parquet footers


def thrift_bombs() -> list[bytes]:
    """Structs of nothing, of a bool, of a number, and of five bools."""
    number, true = 1 << 4 | thrift.I32, 1 << 4 | thrift.TRUE
    return [b"\0", bytes([true, 0]), bytes([number, 0, 0]), bytes([true] * 5 + [0])]


def test_a_footer_of_empty_structs() -> None:
    thrift_bytes = bombs.footer_of_empty_structs(8 << 20)
    tail = thrift_bytes + struct.pack("<I", len(thrift_bytes)) + b"PAR1"
    refused = bombs.refusal(lambda: parse_footer(tail, "f"))
    assert "CorruptFile: f: 8388608 values in 6 bytes, more than any valid file has" in refused
    with pytest.raises(CorruptFile, match="f says its footer has 2000000000 bytes"):
        footer_length(struct.pack("<I", 2_000_000_000) + b"PAR1", 3_000_000_000, "f")


@pytest.mark.thorough
@pytest.mark.parametrize("item", thrift_bombs(), ids=repr)
def test_values_of_few_bytes(item: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what is not counted: as many as a footer of lists of them has, and after much that is no value."""
    monkeypatch.setattr(thrift, "UNCOUNTED", 300_000)
    count = 1_000_000 // len(item)
    rows = bytes([1 << 4 | thrift.LIST, 0xF0 | thrift.STRUCT, *encode_varint(count // 100)])
    row = bytes([1 << 4 | thrift.LIST, 0xF0 | thrift.STRUCT, *encode_varint(100)]) + item * 100 + b"\0"
    with pytest.raises(CorruptFile, match=r"f: 3\d{5} values in \d+ bytes, more than any valid file has"):
        thrift.decode_struct(rows + row * (count // 100) + b"\0", "f")


def test_more_values_than_any_footer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrift, "UNCOUNTED", 1_000)
    monkeypatch.setattr(thrift, "MOST_VALUES", 150_000)
    data = encode_varint(200_000) + b"\4long" * 200_000 + b"\0"
    with pytest.raises(CorruptFile, match="f: more than 150000 values"):
        thrift.decode_struct(
            bytes([1 << 4 | thrift.BINARY, 4]) + b"long" + bytes([1 << 4 | thrift.LIST, 0xF0 | thrift.BINARY]) + data,
            "f",
        )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"write_page_index": True},
        {"write_statistics": False, "use_dictionary": False, "store_schema": False},
        {"write_statistics": False, "version": "2.6"},
        {"column_encoding": "DELTA_BINARY_PACKED", "use_dictionary": False},
    ],
    ids=str,
)
@pytest.mark.spread(3)
@pytest.mark.parametrize("name", ["{:02x}", "column_of_a_name_as_usual_{}"])
def test_a_wide_footer_is_honest(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand columns in 14 row groups, as 200 in 20: in every form that has many values in few bytes."""
    monkeypatch.setattr(thrift, "UNCOUNTED", 2_000)
    monkeypatch.setattr(thrift, "_STEP", 100)
    kinds = [pa.int32(), pa.int64()] if "column_encoding" in options else [pa.int32(), pa.null(), pa.string()]
    names = [name.format(i) for i in range(200)]
    table = pa.table({one: pa.nulls(20, kinds[i % len(kinds)]) for i, one in enumerate(names)})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=1, **options)
    footer = parse_footer(sink.getvalue(), "f")
    chunks = sum(len(group.columns) for group in footer.row_groups)
    assert chunks == 4_000
    assert 140_000 * count_values(footer.tree) // chunks <= thrift.MOST_VALUES


def count_values(value: object) -> int:
    if isinstance(value, thrift.Struct):
        return 1 + sum(1 + count_values(one) for _, one in value.fields.values())
    return sum(1 + count_values(one) for one in value.items) if isinstance(value, thrift.ListValue) else 0


def test_a_bloom_filter_of_many_hashes() -> None:

    text = base64.b64encode(struct.pack(">iibi", -1, 2**31 - 1, 1, 8) + b"\xff").decode()
    with pytest.raises(CorruptFile, match="2147483647 hashes"):
        bloom.parse(text, "f")


# HFiles and log files


def hfile_bombs() -> dict[str, tuple[bytes, str]]:
    data, root, info = hfile_format.DATA_MAGIC, hfile_format.ROOT_INDEX_MAGIC, hfile_format.FILE_INFO_MAGIC
    packed = bombs.zeros(600, 31)
    bomb = bombs.block(data, packed, 600 << 20)
    entry = struct.pack(">ii", 2, 0) + bytes(3)
    dense = bombs.gzip_block(data, entry * (34 << 20 >> 3))
    empty = [bombs.gzip_block(data, b"")] * 60_000
    return {
        "data block": (bombs.hfile([bomb], bombs.index_of([len(bomb)]), 1), "629145600 bytes, more than any"),
        "root index": (bombs.hfile([], bombs.block(root, packed, 600 << 20), 1), "629145600 bytes, more than any"),
        "file info": (
            bombs.hfile([], bombs.index_of([]), 0, bombs.gzip_block(info, b"PBUF\x08" + bytes(8 << 20))),
            "more than any",
        ),
        "index of more blocks than bytes": (bombs.hfile([], bombs.index_of([33] * 1000), 1_000), "1000 blocks in"),
        "large block of small entries": (
            bombs.hfile([dense], bombs.index_of([len(dense)]), 1),
            "an entry begins after",
        ),
        "many empty blocks": (bombs.hfile(empty, bombs.index_of(list(map(len, empty))), 60_000), "0 entries"),
    }


@pytest.mark.parametrize("name", ["data block", "root index", "file info", "index of more blocks than bytes"])
def test_hfile(name: str) -> None:
    check_hfile(name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["large block of small entries", "many empty blocks"])
def test_hfile_of_many_small_things(name: str) -> None:
    check_hfile(name)


def check_hfile(name: str) -> None:
    data, sentence = HFILES[name]

    def read() -> object:
        reader = HFileReader(data, "the file")
        return len(reader.file_info) if name == "file info" else sum(len(rows) for rows, _ in reader.scan_columns())

    refused = bombs.refusal(read)
    assert refused.startswith("CorruptFile: ")
    assert "the file" in refused
    assert sentence in refused


HFILES = hfile_bombs()


def test_one_large_record_is_honest() -> None:
    """The files of a partition of very many; it follows small ones in its block."""
    small, large = (struct.pack(">iih", 13, size, 1) + b"k" + bytes(10) + bytes(size + 1) for size in (0, 40 << 20))
    packed = bombs.gzip_block(hfile_format.DATA_MAGIC, small * 1000 + large)
    reader = HFileReader(bombs.hfile([packed], bombs.index_of([len(packed)]), 1), "f")
    assert [len(rows) for rows, _ in reader._columns(reader._index)] == [1_001]


@pytest.mark.thorough
def test_a_log_file_of_torn_blocks() -> None:
    with pytest.raises(CorruptFile, match="f is corrupt at offset 1200000: more than 200000 blocks"):
        read_log_blocks(MAGIC * 300_000, "f")


# The archive


def archive(folder: Path, table: pa.Table, name: str = "1_9_0.parquet", **options: object) -> Storage:
    (folder / "history").mkdir()
    pq.write_table(table, folder / "history" / name, **options)
    files = [{"fileName": name, "fileLen": 1}] * 1_000
    (folder / "history/manifest_1").write_text(json.dumps({"files": files}))
    (folder / "history/_version_").write_text("1")
    return open_storage(str(folder))


def repeated(value: str | bytes, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0]).take(pa.array([0] * rows)).cast(pa.int32()), pa.array([value]))


def actions(rows: int, **columns: pa.Array) -> pa.Table:
    usual = {name: repeated(value, rows) for name, value in (("instantTime", "5"), ("completionTime", "6"))}
    return pa.table({**usual, "action": repeated("rollback", rows), **columns})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: actions(5_000_000), "says it has 5000000 rows"),
        (lambda: actions(100_000, instantTime=repeated("5" * 100_000, 100_000)), "longer than any"),
        (lambda: actions(100_000, metadata=repeated(bytes(100_000), 100_000)), "bytes after the Avro record"),
        (lambda: actions(3, metadata=pa.array([bytes(100 << 20)] * 3)), "that says it has"),
    ],
    ids=["rows", "long times", "long results", "pages"],
)
def test_archive(tmp_path: Path, made: Callable[[], pa.Table], sentence: str) -> None:
    storage = archive(
        tmp_path, made(), compression="zstd", use_dictionary=sentence != "that says it has", write_statistics=False
    )
    data = (tmp_path / "history/1_9_0.parquet").read_bytes()
    assert len(data) < 1 << 20
    quick = QuickStorage(storage.root)
    refused = bombs.refusal(lambda: read_archive(quick, "history", ["a"]))
    assert refused.startswith(f"CorruptFile: {tmp_path}/history/1_9_0.parquet")
    assert sentence in refused


def test_a_merge_of_archive_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_file, "_LEAST_RESULTS", 8 << 20)
    storage = archive(tmp_path, actions(100_000, metadata=repeated(bytes(100_000), 100_000)), "1_9_0.parquet")
    shutil.copy(tmp_path / "history/1_9_0.parquet", tmp_path / "history/2_9_0.parquet")
    files = [{"fileName": name, "fileLen": 1} for name in ("1_9_0.parquet", "2_9_0.parquet")]
    (tmp_path / "history/manifest_1").write_text(json.dumps({"files": files}))
    writer = LsmArchiveWriter(storage, "history", ArchiveForm("UTC", "1.2.0", merged=2))
    refused = bombs.refusal(lambda: writer.compact(lambda: None))
    assert refused.startswith(f"CorruptFile: {tmp_path}/history/1_9_0.parquet holds more than any valid archive")
    assert {file.name for file in (tmp_path / "history").iterdir()} == {
        *(entry["fileName"] for entry in files),
        "manifest_1",
        "_version_",
    }


def test_an_archive_that_is_named_often_is_read_once(tmp_path: Path) -> None:
    storage = archive(tmp_path, actions(1_000).drop(["action"]).append_column("action", repeated("commit", 1_000)))
    assert read_archive(storage, "history").completed == {"5": "commit"}
    assert ArchivedTimes(storage, "history").completion_time("5") == "6"


# Files that are large themselves


@pytest.mark.parametrize("name", [".hoodie/hoodie.properties", ".hoodie/.index_defs/index.json"])
def test_large_files_that_describe_the_table(tmp_path: Path, name: str) -> None:
    path = unpack("1.2.0", tmp_path, "expressions")
    with (path / name).open("r+b") as file:
        file.truncate(limits.SMALL_FILE + 1)
    with pytest.raises(CorruptFile, match=f"{name} has {limits.SMALL_FILE + 1} bytes, and a valid file"):
        table = open_local(path)
        from hudi_services.metadata.index_definitions import read_definitions

        assert table.metadata is not None
        read_definitions(table.metadata)


def test_a_file_is_not_read_when_it_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    os.truncate(tmp_path / "f", limits.LARGEST_FILE + 1)
    for limit in (limits.LARGEST_FILE, 10):
        with pytest.raises(CorruptFile, match=f"/f has {limits.LARGEST_FILE + 1} bytes"):
            open_storage(str(tmp_path)).read("f", limit)
    (tmp_path / "f").write_bytes(b"12345")
    assert open_storage(str(tmp_path)).read("f", 5) == b"12345"


# recover always gets through

PLANS = {name: bombs.AVRO[name][0] for name in ("array of a named empty fixed", "deflate", "deep by names")}
RECOVER = """
import sys, resource
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
from hudi_services.cli.app import main
sys.argv = ["hudi-services", "recover", "--apply", "--base-path", sys.argv[1]]
main()
"""


@pytest.mark.thorough
def test_recover_drops_plans_that_are_bombs(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    timeline = path / ".hoodie/timeline"
    times = itertools.count(int(DEAD))
    for plan, action in itertools.product(PLANS.values(), ("clean", "rollback", "clustering")):
        aged(timeline / f"{next(times)}.{action}.requested", plan)
    # Larger than any instant, and sparse.
    for action in ("clean", "clustering"):
        large = timeline / f"{next(times)}.{action}.requested"
        large.touch()
        os.truncate(large, limits.LARGEST_FILE + 1)
        os.utime(large, (time.time() - 7 * 86_400,) * 2)
    done = subprocess.run([sys.executable, "-c", RECOVER, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not open_local(path).timeline.pending()


@pytest.mark.thorough
def test_recover_takes_time_by_the_number_of_instants(tmp_path: Path) -> None:
    assert judged(tmp_path / "many", 800) < 4.5 * judged(tmp_path / "few", 200)


def judged(folder: Path, count: int) -> int:
    """How many calls it takes to look at so many dead writes."""
    path = unpack("1.2.0", folder)
    for i in range(count):
        for name in ("commit.requested", "inflight"):
            aged(path / f".hoodie/timeline/{int(DEAD) + i}.{name}")
    options = resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0"})])
    wanted = RecoverRequest(base_path=str(path), options=options, apply=False, instant=None)
    calls = 0

    def count_calls(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count_calls)
    try:
        report = recover.recover(wanted, QuickStorage(str(path)))
    finally:
        sys.setprofile(None)
    assert len(report.tables["instants"]) == count
    return calls


# Files of our own


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("shard-0.json", '{"shard": 0, "path": "p", "size": 1, "entries": 1, "repeated": 0}'),
        ("shard-0.json", '{"size": 1, "other": 2}'),
        ("shard-0.json", '{"shard": 0, "size": "1", "entries": 1, "repeated": 0, "path": "PATH"}'),
        ("shard-0.json", "[]"),
        ("shard-0.json", "[" * 5_000),
        ("keys-0.json", '{"runs": [{"path": "../x", "rows": {}, "hashes": {}}], "seen": [0, ""], "is_split": false}'),
        ("keys-0.json", '{"runs": [{"path": "PATH", "rows": {"0": 1e99}, "hashes": {}}], "seen": [0, ""]}'),
        ("keys-0.json", '{"runs": [], "seen": [1e999, ""], "is_split": false}'),
        ("keys-0.json", "[7]"),
        ("plan.json", '{"version": 3, "instant": "1", "file_ids": [], "tasks": [], "metadata": "", "index": "x"}'),
        (
            "plan.json",
            '{"version": 3, "instant": "PLANNED", "file_ids": ["../x"], "tasks": [], "index": "record_index"}',
        ),
        ("plan.json", '{"version": 3, "instant": "PLANNED", "file_ids": ["x"], "tasks": [[[0, "x", 1]]]}'),
        ("plan.json", '{"version": 1e999}'),
        ("closed.json", '{"known": [[0, "x", 1]], "runs": [], "logs": []}'),
        ("closed.json", '{"known": [], "runs": [], "logs": [[0, 1, 1e999]]}'),
        ("closed.json", "null"),
        ("plan.json", "null"),
    ],
)
def test_notes_of_a_build(tmp_path: Path, name: str, content: str) -> None:
    folder = tmp_path / work.WORK_FOLDER
    folder.mkdir(parents=True)
    kept = work.Checkpoints(open_storage(str(tmp_path)), work.WORK_FOLDER)
    (folder / name).write_text(content.replace("PATH", kept.shard_path(0)).replace("PLANNED", "0" * 17))
    loads = {"shar": kept.load_shards, "keys": kept.load_read, "plan": kept.load_plan, "clos": kept.load_closed}
    with pytest.raises(CorruptFile, match=name) as refused:
        loads[name[:4]]()
    assert ("--resume" in refused.value.hint) == (name != "closed.json")


# Properties of the command line


def test_includes_that_double(tmp_path: Path) -> None:
    for i in range(25):
        (tmp_path / f"{i}").write_text(f"include={i + 1}\ninclude={i + 1}\n")
    (tmp_path / "25").write_text("a=1\n")
    with pytest.raises(ConfigError, match=f"the properties file {tmp_path}/0 leads to more than 1000 includes"):
        read_properties(f"{tmp_path}/0")
    assert read_properties(f"{tmp_path}/18") == {"a": "1"}


def test_a_chain_of_includes(tmp_path: Path) -> None:
    for i in range(3000):
        (tmp_path / f"{i}").write_text(f"include={i + 1}\n")
    (tmp_path / "3000").write_text("a=1\n")
    with pytest.raises(ConfigError, match=f"{tmp_path}/0 leads to a chain of more than 50 includes"):
        read_properties(f"{tmp_path}/0")
    assert read_properties(f"{tmp_path}/2960") == {"a": "1"}
