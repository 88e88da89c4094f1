"""Plans and the metadata of rollbacks, cleans and compactions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs import avro
from hudi_services.codecs.clean_plan import decode_clean_metadata, decode_cleaner_plan
from hudi_services.codecs.clustering_plan import (
    ClusteringGroup,
    ClusteringPlan,
    SliceInfo,
    decode_requested_replace,
    encode_clustering_plan,
)
from hudi_services.codecs.compaction_plan import (
    CompactionOperation,
    CompactionPlan,
    decode_compaction_plan,
    encode_compaction_plan,
)
from hudi_services.codecs.rollback_plan import (
    PartitionRollback,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_services.errors import CorruptFile
from hudi_services.paths import is_name, is_partition

RELEASES = st.sampled_from(["0.15.0", "1.0.2", "1.2.0"])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
PARAMS = st.dictionaries(TEXT, TEXT, max_size=2)
PARTITIONS = TEXT.filter(is_partition)
NAMES = TEXT.filter(is_name)
PATHS = st.builds("{}/{}".format, TEXT, NAMES)
MANY_PATHS = st.lists(PATHS, max_size=3).map(tuple)
SIZES = st.dictionaries(PATHS, st.integers(0, 2**62), max_size=2)
SLICES = st.builds(SliceInfo, PARTITIONS, NAMES, st.just("") | PATHS, MANY_PATHS, TEXT)
GROUPS = st.builds(
    ClusteringGroup,
    st.lists(SLICES, max_size=3).map(tuple),
    st.integers(0, 2**31 - 1),
    st.dictionaries(TEXT, st.floats(allow_nan=False), max_size=2),
    st.none() | PARAMS,
)
PLANS = st.builds(
    ClusteringPlan,
    st.lists(GROUPS, max_size=2).map(tuple),
    TEXT,
    PARAMS,
    st.none() | TEXTS,
    PARAMS,
    st.booleans(),
)


@given(PLANS, st.sampled_from(["1.0.2", "1.2.0"]))
def test_clustering_plan_round_trip(plan: ClusteringPlan, release: str) -> None:
    requested = decode_requested_replace(encode_clustering_plan(plan, release), "f")
    assert requested.plan == plan
    assert requested.is_clustering


def test_clustering_plan_of_0_15_has_no_missing_partitions() -> None:
    plan = ClusteringPlan((), "S", {"a": "b"}, missing_partitions=("p",))
    data = encode_clustering_plan(plan, "0.15.0")
    assert b"missingSchedulePartitions" not in data
    requested = decode_requested_replace(data, "f")
    assert requested.plan == ClusteringPlan((), "S", {"a": "b"})


def test_other_replace_commits_are_no_clusterings() -> None:
    schema = avro.load_schema("HoodieRequestedReplaceMetadata", "1.2.0")
    for record in ({}, {"operationType": "DELETE_PARTITION"}, {"operationType": "CLUSTER"}):
        assert not decode_requested_replace(avro.write_container(schema, record), "f").is_clustering
    assert not decode_requested_replace(b"", "f").is_clustering


@pytest.mark.thorough
@given(
    st.builds(
        RollbackPlan,
        TEXT,
        TEXT,
        st.lists(
            st.builds(PartitionRollback, PARTITIONS, MANY_PATHS, NAMES | st.just(""), NAMES | st.just(""), SIZES),
            max_size=3,
        ).map(tuple),
    ),
    RELEASES,
)
def test_rollback_plan_round_trip(plan: RollbackPlan, release: str) -> None:
    assert decode_rollback_plan(encode_rollback_plan(plan, release), "f") == plan


@given(
    st.builds(
        RollbackMetadata,
        TEXT,
        TEXT,
        TEXT,
        st.dictionaries(TEXT, st.builds(RollbackPartition, TEXTS, TEXTS, SIZES, SIZES), max_size=3),
        st.integers(0, 2**62),
    ),
    RELEASES,
)
def test_rollback_metadata_round_trip(metadata: RollbackMetadata, release: str) -> None:
    data = encode_rollback_metadata(metadata, release)
    assert decode_rollback_metadata(data, "f") == metadata
    tree = avro.read_container(data, "f")
    assert tree["totalFilesDeleted"] == sum(len(p.deleted) for p in metadata.partitions.values())
    assert tree["commitsRollback"] == [metadata.target_ts]


def _clean_plan(**more: Any) -> bytes:
    return avro.write_container(
        avro.load_schema("HoodieCleanerPlan", "1.2.0"), {"policy": "KEEP_LATEST_COMMITS"} | more
    )


def test_cleaner_plan() -> None:
    retain = {"timestamp": "20261121060105276", "action": "commit", "state": "COMPLETED"}
    paths = {"p0": [{"filePath": "file:/b/p0/F1.parquet", "isBootstrapBaseFile": False}]}
    data = _clean_plan(
        earliestInstantToRetain=retain,
        lastCompletedCommitTimestamp="20261121060105277",
        version=2,
        filePathsToBeDeletedPerPartition=paths,
        partitionsToBeDeleted=["p1"],
        extraMetadata={"savepointed_timestamps": "1"},
    )
    plan = decode_cleaner_plan(data, "f")
    assert plan.earliest_to_retain == "20261121060105276"
    assert plan.last_completed == "20261121060105277"
    assert plan.files == {"p0": ("file:/b/p0/F1.parquet",)}
    assert plan.partitions_to_delete == ("p1",)
    assert plan.extra == {"savepointed_timestamps": "1"}


def test_cleaner_plan_of_version_1_without_retained_instant() -> None:
    plan = decode_cleaner_plan(_clean_plan(filesToBeDeletedPerPartition={"p0": ["F1.parquet"]}), "f")
    assert plan.earliest_to_retain == ""
    assert plan.files == {"p0": ("F1.parquet",)}


def test_clean_metadata() -> None:
    done = {
        "partitionPath": "p0",
        "policy": "KEEP_LATEST_COMMITS",
        "deletePathPatterns": ["F1.parquet"],
        "successDeleteFiles": ["F1.parquet"],
        "failedDeleteFiles": [],
        "isPartitionDeleted": True,
    }
    record = {
        "startCleanTime": "3",
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 1,
        "earliestCommitToRetain": "1",
        "lastCompletedCommitTimestamp": "2",
        "partitionMetadata": {"p0": done},
        "version": 2,
    }
    clean = decode_clean_metadata(avro.write_container(avro.load_schema("HoodieCleanMetadata", "0.15.0"), record), "f")
    assert (clean.ts, clean.earliest_to_retain, clean.last_completed) == ("3", "1", "2")
    assert clean.deleted == {"p0": ("F1.parquet",)}
    assert clean.deleted_partitions == ("p0",)


def test_compaction_plan() -> None:
    operation = {"baseInstantTime": "1", "deltaFilePaths": ["l"], "fileId": "F1", "partitionPath": "p0"}
    schema = avro.load_schema("HoodieCompactionPlan", "1.2.0")
    data = avro.write_container(schema, {"operations": [operation], "version": 2})
    assert decode_compaction_plan(data, "f").operations == (CompactionOperation("p0", "F1", "1", log_files=("l",)),)
    assert decode_compaction_plan(b"", "f").operations == ()


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.2.0"])
def test_compaction_plan_round_trip(release: str) -> None:
    with_base = CompactionOperation("p0", "F1", "1", "F1_0-0-0_1.hfile", (".F1_1.log.1_0-0-0", ".F1_1.log.2_0-0-0"))
    plan = CompactionPlan((with_base, CompactionOperation("p0", "F2", "1")), {"a": "b"})
    assert decode_compaction_plan(encode_compaction_plan(plan, release), "f") == plan
    metered = replace(plan, operations=(replace(with_base, base_bytes=3 << 20, log_bytes=1 << 20),))
    (tree,) = avro.read_container(encode_compaction_plan(metered, release), "f")["operations"]
    assert tree["metrics"] == {
        "TOTAL_LOG_FILES": 2.0,
        "TOTAL_LOG_FILES_SIZE": float(1 << 20),
        "TOTAL_IO_READ_MB": 4.0,
        "TOTAL_IO_WRITE_MB": 3.0,
        "TOTAL_IO_MB": 7.0,
    }


@pytest.mark.parametrize(
    "decode",
    [
        decode_requested_replace,
        decode_rollback_plan,
        decode_rollback_metadata,
        decode_cleaner_plan,
        decode_clean_metadata,
        decode_compaction_plan,
    ],
)
def test_garbage_and_foreign_records_name_the_file(decode: Callable[[bytes, str], Any]) -> None:
    foreign = avro.parse_schema(
        '{"type":"record","name":"R","fields":[{"name":"clusteringPlan","type":"int"},{"name":"operations","type":"int"}]}',
        "f",
    )
    record = {"clusteringPlan": 1, "operations": 1}
    for data in (b"x", b"Obj\x01", avro.write_container(foreign, record)):
        with pytest.raises(CorruptFile, match=r"/t/1\.x"):
            decode(data, "/t/1.x")


@pytest.mark.parametrize(
    "decode", [decode_rollback_plan, decode_rollback_metadata, decode_cleaner_plan, decode_clean_metadata]
)
def test_plans_that_may_not_be_empty(decode: Callable[[bytes, str], Any]) -> None:
    with pytest.raises(CorruptFile, match=r"/t/1\.x"):
        decode(b"", "/t/1.x")
