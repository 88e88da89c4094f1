"""Commit metadata as JSON (version 6) and Avro (8, 9)."""

import contextlib
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs import avro
from hudi_services.codecs.commit_metadata import (
    decode_commit_avro,
    decode_commit_json,
    encode_commit_avro,
    encode_commit_json,
)
from hudi_services.errors import CorruptFile
from hudi_services.model import CommitMetadata, WriteStat

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAME = st.text(st.characters(categories=["Ll", "Nd"]), min_size=1, max_size=12)
COUNT = st.integers(0, 2**62)


@st.composite
def write_stats(draw: st.DrawFn, partition: str) -> WriteStat:
    log = draw(st.booleans())
    return WriteStat(
        partition=partition,
        file_id=draw(NAME),
        path=draw(NAME),
        prev_commit=draw(NAME),
        num_writes=draw(COUNT),
        num_deletes=draw(COUNT),
        num_update_writes=draw(COUNT),
        num_inserts=draw(COUNT),
        total_write_bytes=draw(COUNT),
        file_size=draw(COUNT),
        create_millis=draw(COUNT),
        log_version=draw(st.integers(1, 1000)) if log else None,
        base_file=draw(TEXT) if log else None,
        log_files=tuple(draw(st.lists(NAME, max_size=2))) if log else None,
    )


@st.composite
def commits(draw: st.DrawFn) -> CommitMetadata:
    partitions = draw(st.lists(TEXT, max_size=3, unique=True))
    return CommitMetadata(
        operation=draw(st.sampled_from(["CLUSTER", "UPSERT", "COMPACT"])),
        stats={p: tuple(draw(st.lists(write_stats(p), max_size=2))) for p in partitions},
        extra=draw(st.dictionaries(TEXT, TEXT, max_size=2)),
        replaced=draw(st.none() | st.dictionaries(TEXT, st.lists(NAME).map(tuple), max_size=2)),
        compacted=draw(st.booleans()),
    )


CLUSTERING = CommitMetadata(
    operation="CLUSTER",
    stats={
        "p0": (
            WriteStat("p0", "F9", "p0/F9_0-1-2_1.parquet", num_writes=11, num_inserts=11, file_size=5, create_millis=7),
        )
    },
    extra={"schema": "{}"},
    replaced={"p0": ("F1", "F2")},
)

# Of a base file, as Hudi 0.15.0 writes them.
STAT_KEYS = {
    "fileId",
    "path",
    "cdcStats",
    "prevCommit",
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "numInserts",
    "totalWriteBytes",
    "totalWriteErrors",
    "tempPath",
    "partitionPath",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
    "minEventTime",
    "maxEventTime",
    "runtimeStats",
}


@pytest.mark.thorough
@given(commits())
def test_json_round_trip(metadata: CommitMetadata) -> None:
    assert decode_commit_json(encode_commit_json(metadata), "f") == metadata


@given(commits(), st.sampled_from(["1.0.2", "1.2.0"]))
def test_avro_round_trip(metadata: CommitMetadata, release: str) -> None:
    assert decode_commit_avro(encode_commit_avro(metadata, release), "f") == metadata


def test_json_keys_of_a_clustering() -> None:
    tree = json.loads(encode_commit_json(CLUSTERING))
    assert set(tree) == {
        "partitionToWriteStats",
        "compacted",
        "extraMetadata",
        "operationType",
        "partitionToReplaceFileIds",
    }
    (stat,) = tree["partitionToWriteStats"]["p0"]
    assert set(stat) == STAT_KEYS
    assert stat["prevCommit"] == "null"
    assert stat["runtimeStats"] == {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 7}


def test_avro_form_of_a_clustering() -> None:
    tree = avro.read_container(encode_commit_avro(CLUSTERING, "1.2.0"), "f")
    assert tree["version"] is None
    assert tree["compacted"] is False
    assert tree["partitionToReplaceFileIds"] == {"p0": ["F1", "F2"]}
    (stat,) = tree["partitionToWriteStats"]["p0"]
    assert stat["totalWriteErrors"] == stat["numUpdates"] == stat["totalLogReadTimeMs"] == 0
    assert stat["logVersion"] is stat["logFiles"] is stat["prevBaseFile"] is None


def test_a_plain_commit_has_no_replaced_files() -> None:
    plain = CommitMetadata(operation="INSERT", stats={})
    assert "partitionToReplaceFileIds" not in json.loads(encode_commit_json(plain))
    assert "partitionToReplaceFileIds" not in avro.read_container(encode_commit_avro(plain, "1.0.2"), "f")


@pytest.mark.parametrize("decode", [decode_commit_json, decode_commit_avro])
def test_an_empty_file_is_the_default(decode: Callable[[bytes, str], CommitMetadata]) -> None:
    assert decode(b"", "f") == CommitMetadata(operation="UNKNOWN", stats={})


def test_a_forecast_without_paths() -> None:
    data = b'{"partitionToWriteStats":{"p0":[{"fileId":"","path":null,"prevCommit":"null","numInserts":3}]}}'
    metadata = decode_commit_json(data, "f")
    assert metadata.operation == "UNKNOWN"
    assert metadata.stats["p0"] == (WriteStat("p0", "", "", num_inserts=3),)


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"3",
        b"\xff\xfe",
        b'{"partitionToWriteStats":{"p":3}}',
        b'{"partitionToWriteStats":{"p":[3]}}',
        b'{"partitionToWriteStats":{"p":[{"numWrites":"x"}]}}',
        b'{"partitionToWriteStats":{"p":[{"numWrites":1e999}]}}',
        b'{"partitionToReplaceFileIds":{"p":"F1"}}',
        b'{"partitionToReplaceFileIds":[]}',
        b'{"extraMetadata":[1]}',
        b"[" * 100_000,
    ],
)
def test_garbage_names_the_file(data: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"/t/1\.commit"):
        decode_commit_json(data, "/t/1.commit")


def test_changed_bytes_read_or_fail_typed() -> None:
    rng = random.Random(2)
    forms = [
        (encode_commit_json(CLUSTERING), decode_commit_json),
        (encode_commit_avro(CLUSTERING, "1.2.0"), decode_commit_avro),
    ]
    for good, decode in forms:
        for _ in range(400):
            bad = bytearray(good)
            bad[rng.randrange(len(bad))] = rng.randrange(256)
            with contextlib.suppress(CorruptFile):
                assert isinstance(decode(bytes(bad[: rng.randrange(1, len(bad) + 1)]), "f"), CommitMetadata)
