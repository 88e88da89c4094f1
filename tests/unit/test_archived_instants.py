"""What the archive knows: archives that real Hudi wrote, in both layouts, whole and broken."""

import contextlib
import shutil
import struct
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs import avro
from hudi_services.codecs.rollback_plan import RollbackMetadata
from hudi_services.errors import CorruptFile
from hudi_services.log_files.log_blocks import BlockType, HeaderKey, LogBlock
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.log_files.log_writer import encode_block
from hudi_services.stores import open_storage
from hudi_services.timeline.archived_instants import ArchivedAction, ArchivedInstants
from hudi_services.timeline.archived_log import archived_actions

from .archives import unpack_archived
from .tables import RELEASES, open_local

ALL = pytest.mark.parametrize(("release", "name"), [(r, n) for r in RELEASES for n in ("plain", "listed")])
LSM = pytest.mark.parametrize("release", RELEASES[1:])


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_archived(tmp_path_factory.mktemp("archives"))


def archive_of(path: Path, *file_ids: str) -> ArchivedInstants:
    table = open_local(path)
    return table.timeline.layout.read_archive(table.storage, table.config.history_path, file_ids)


def log_of(tables: Path) -> Path:
    return next((tables / "0.15.0/plain/.hoodie/archived").glob(".commits_*"))


@ALL
def test_archives_of_real_tables(tables: Path, release: str, name: str) -> None:
    """Bulk insert, then rounds of a good commit and one that was rolled back."""
    archive = archive_of(tables / release / name)
    timeline = open_local(tables / release / name).timeline
    first = timeline.first_ts()
    assert first is not None and len(archive.completed) >= 6
    assert set(archive.completed.values()) == {"commit"} and max(archive.completed) < first
    assert archive.rolled_back and set(archive.rolled_back.values()) == {"commit"}
    assert not archive.rolled_back.keys() & archive.completed.keys()
    assert archive.unfinished == {} and archive.written == frozenset()
    assert all(archive.surrounds(ts) for ts in archive.rolled_back)
    assert not archive.surrounds(min(archive.completed)) and not archive.surrounds(first)


@ALL
def test_which_file_groups_completed_writes_knew(tables: Path, release: str, name: str) -> None:
    path = tables / release / name
    archive = archive_of(path)
    ids: dict[bool, set[str]] = {True: set(), False: set()}
    for file in path.glob("p?/*.parquet"):
        file_id, _, instant = file.stem.split("_")
        ids[instant in archive.completed].add(file_id)
    known = ids[True]
    assert known
    assert archive_of(path, *known, "new-0").written == known
    # What failed upserts rewrote are groups of completed commits, although a clean may have deleted their files.
    rolled_back = {
        f.stem.split("_")[0] for f in path.glob("p?/*.parquet") if f.stem.split("_")[2] in archive.rolled_back
    }
    assert archive_of(path, *rolled_back).written == rolled_back


def test_no_archive(tmp_path: Path) -> None:
    for release in ("0.15.0", "1.2.0"):
        layout = open_local(unpack_archived(tmp_path) / release / "plain").timeline.layout
        archive = layout.read_archive(open_storage(str(tmp_path)), "nowhere")
        assert archive == ArchivedInstants({}, {}, {}, frozenset())
        assert not archive.surrounds("20260101000000000")


def test_a_clustering_that_was_executed_again() -> None:
    rollback = RollbackMetadata("4", "2", "replacecommit", {})
    archive = ArchivedInstants.of(
        [
            ArchivedAction("1", "commit"),
            ArchivedAction("2", "replacecommit", "REQUESTED"),
            ArchivedAction("2", "replacecommit", "INFLIGHT"),
            ArchivedAction("4", "rollback", rolled_back=rollback),
            ArchivedAction("2", "replacecommit", file_ids=frozenset("f")),
            ArchivedAction("3", "commit", "INFLIGHT", file_ids=frozenset("g")),
            ArchivedAction("5", "clean"),
        ]
    )
    assert archive == ArchivedInstants(
        {"1": "commit", "2": "replacecommit"}, {"3": "commit"}, {"2": "replacecommit"}, frozenset("f")
    )


def test_very_old_entries_have_neither_state_nor_targets() -> None:
    """HoodieArchivedMetaEntry before actionState, and rollbacks before instantsRollback."""
    schema = (
        '{"type":"record","name":"HoodieArchivedMetaEntry","namespace":"org.apache.hudi.avro.model","fields":['
        '{"name":"commitTime","type":["null","string"]},{"name":"actionType","type":["null","string"]},'
        '{"name":"hoodieRollbackMetadata","type":["null",{"type":"record","name":"HoodieRollbackMetadata","fields":['
        '{"name":"startRollbackTime","type":"string"},{"name":"commitsRollback","type":{"type":"array","items":"string"}}]}]}]}'
    )
    parsed = avro.parse_schema(schema, "f")
    records = [
        {"commitTime": "1", "actionType": "commit", "hoodieRollbackMetadata": None},
        {
            "commitTime": "3",
            "actionType": "rollback",
            "hoodieRollbackMetadata": {"startRollbackTime": "3", "commitsRollback": ["2"]},
        },
    ]
    data = block(schema, [avro.write_datum(parsed, record) for record in records])
    archive = ArchivedInstants.of(archived_actions(data, "f"))
    assert (archive.completed, archive.rolled_back) == ({"1": "commit"}, {"2": ""})


def block(schema: str, records: list[bytes]) -> bytes:
    content = struct.pack(">ii", 3, len(records)) + b"".join(struct.pack(">i", len(r)) + r for r in records)
    return encode_block(LogBlock(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema}, content))


def test_a_broken_log_archive_is_named_with_the_offset(tables: Path) -> None:
    data = log_of(tables).read_bytes()
    first = read_log_blocks(data, "f")[0]
    cases = {
        data[:-10]: r"the archive has a torn block at offset \d+",
        data[:100] + data[101:]: "the archive",
        b"x" + data: "the archive is corrupt at offset 0",
        encode_block(LogBlock(first.type, {}, first.content)): r"corrupt at offset \d+: the block has no schema",
        encode_block(LogBlock(first.type, first.header, b"\0\0\0\1")): r"corrupt at offset \d+: record count",
        encode_block(LogBlock(first.type, first.header, struct.pack(">ii", 9, 0))): "content version 9 is not known",
        encode_block(LogBlock(first.type, first.header, struct.pack(">iib", 3, 0, 0))): "1 bytes after the last record",
        encode_block(LogBlock(first.type, first.header, struct.pack(">iiib", 3, 1, 1, 99))): "the archive",
    }
    for broken, message in cases.items():
        with pytest.raises(CorruptFile, match=message):
            list(archived_actions(broken, "the archive"))


@given(st.data())
def test_fuzzed_log_archives(tables: Path, data: st.DataObject) -> None:
    """Any bytes give entries or a CorruptFile, never another error."""
    raw = bytearray(log_of(tables).read_bytes()[:20_000])
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptFile):
        list(archived_actions(bytes(raw), "f", frozenset({"x"})))


@given(st.data())
def test_fuzzed_contents_of_blocks(tables: Path, data: st.DataObject) -> None:
    """Bytes that the block's own lengths cannot tell as broken."""
    first = read_log_blocks(log_of(tables).read_bytes(), "f")[0]
    content = bytearray(first.content)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptFile):
        list(archived_actions(encode_block(LogBlock(first.type, first.header, bytes(content))), "f", frozenset({"x"})))


@LSM
def test_a_broken_lsm_archive_is_named(tables: Path, tmp_path: Path, release: str) -> None:
    path = unpack_archived(tmp_path) / release / "plain"
    history = path / ".hoodie/timeline/history"
    part = min(history.glob("*.parquet"))
    whole = part.read_bytes()
    for break_it in broken_files(whole):
        part.write_bytes(break_it)
        with pytest.raises(CorruptFile, match=part.name):
            archive_of(path, "x")
    part.write_bytes(whole)
    assert archive_of(path).completed
    (history / "_version_").write_text("x")
    with pytest.raises(CorruptFile, match="holds no manifest number"):
        archive_of(path)


def broken_files(whole: bytes) -> list[bytes]:
    return [b"", whole[:-1], whole[:100], whole[:200] + bytes(300) + whole[500:], b"PAR1" + bytes(100) + b"PAR1"]


@LSM
def test_only_files_of_the_manifest_count(tables: Path, tmp_path: Path, release: str) -> None:
    path = unpack_archived(tmp_path) / release / "plain"
    history = path / ".hoodie/timeline/history"
    both = archive_of(path).completed
    (history / "_version_").write_text("1")
    assert archive_of(path).completed.keys() < both.keys()
    (history / "_version_").unlink()
    assert archive_of(path).completed == both


@LSM
def test_a_flipped_bit_in_an_archived_page_is_told(tables: Path, release: str, tmp_path: Path) -> None:
    """Uncompressed: the codec of Hudi's default has a checksum of its own."""
    path = tmp_path / "table"
    shutil.copytree(tables / release / "plain", path)
    (file, *_) = sorted(path.rglob(".hoodie/timeline/history/*.parquet"))
    form = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(pq.read_table(file), file, write_page_checksum=True, **form)
    archive_of(path)
    data = bytearray(file.read_bytes())
    data[data.index(archived_times(file)[0].encode()) + 16] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptFile, match=file.name):
        archive_of(path)


def archived_times(file: Path) -> list[str]:
    found: list[str] = pq.read_table(file)["instantTime"].to_pylist()
    return found
