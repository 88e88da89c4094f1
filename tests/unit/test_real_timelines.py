"""Timelines that Apache Hudi wrote (tests/fixtures/timelines.zip): read whole, and written back as Hudi wrote them."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from hudi_services.codecs import avro
from hudi_services.codecs.clean_plan import decode_clean_metadata, decode_cleaner_plan
from hudi_services.codecs.clustering_plan import decode_requested_replace, encode_clustering_plan
from hudi_services.codecs.compaction_plan import decode_compaction_plan
from hudi_services.codecs.rollback_plan import (
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_services.errors import CorruptFile
from hudi_services.stores import open_storage
from hudi_services.table.facts import TimelineFacts
from hudi_services.table_config import TableConfig
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.archived import ArchivedTimes
from hudi_services.timeline.instant import Action, State

from .tables import without_docs

ARCHIVE = Path(__file__).parent.parent / "fixtures" / "timelines.zip"
RELEASES = ("0.15.0", "1.0.2", "1.2.0")
# What our value types leave out: timers, compaction counters, and the base file that an update replaced.
NOT_KEPT = {
    "runtimeStats",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalLogReadTimeMs",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "prevBaseFile",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timelines")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


def opened(tables: Path, release: str, name: str) -> tuple[TableConfig, Timeline]:
    storage = open_storage(str(tables / release / name))
    config = TableConfig.load(storage)
    return config, Timeline.open(storage, config)


def each_file(timeline: Timeline) -> list[tuple[str, Action, State, bytes]]:
    """The files with content, in every state."""
    found = []
    for name in sorted(timeline.sizes):
        instant = timeline.layout.parse(name, 0, timeline.zone)
        assert instant is not None
        if timeline.sizes[name]:
            found.append((name, instant.action, instant.state, timeline.read_details(name)))
    return found


def kept(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: kept(value) for key, value in tree.items() if key not in NOT_KEPT}
    return [kept(value) for value in tree] if isinstance(tree, list) else tree


ALL = pytest.mark.parametrize(("release", "name"), [(r, t) for r in RELEASES for t in ("cow", "mor", "rolled")])


@ALL
def test_configuration(tables: Path, release: str, name: str) -> None:
    config, _ = opened(tables, release, name)
    assert config.version.release == release
    assert config.name == name
    assert config.record_key_fields == ("id",)
    assert config.partition_fields == ("part",)
    assert config.ordering_fields == ("ts",)
    assert config.timeline_zone == "UTC"
    assert "files" in config.metadata_partitions


@ALL
def test_commit_metadata_is_written_as_hudi_wrote_it(tables: Path, release: str, name: str) -> None:
    _, timeline = opened(tables, release, name)
    seen = 0
    for path, action, state, data in each_file(timeline):
        if not action.writes_data or state is State.REQUESTED:
            continue
        metadata = timeline.layout.decode_commit(data, path)
        ours = timeline.layout.encode_commit(metadata, release)
        read: Callable[[bytes], Any] = json.loads if release == "0.15.0" else lambda d: avro.read_container(d, "f")
        assert kept(read(ours)) == kept(read(data))
        seen += 1
    assert seen >= 3


def schema_text(data: bytes) -> str:
    return str(fastavro.reader(io.BytesIO(data)).metadata["avro.schema"])


@ALL
def test_plans_are_written_as_hudi_wrote_them(tables: Path, release: str, name: str) -> None:
    _, timeline = opened(tables, release, name)
    for path, action, state, data in each_file(timeline):
        ours = None
        if action is timeline.layout.clustering_action and state is State.REQUESTED:
            plan = decode_requested_replace(data, path).plan
            ours = None if plan is None else encode_clustering_plan(plan, release)
        elif action is Action.ROLLBACK and state is State.REQUESTED:
            ours = encode_rollback_plan(decode_rollback_plan(data, path), release)
        elif action is Action.ROLLBACK:
            ours = encode_rollback_metadata(decode_rollback_metadata(data, path), release)
        if ours is not None:
            assert avro.read_container(ours, path) == avro.read_container(data, path)
            assert len(ours) - len(schema_text(ours)) <= len(data) - len(schema_text(data))


@ALL
def test_schemas_are_hudis_but_for_their_docs(tables: Path, release: str, name: str) -> None:
    _, timeline = opened(tables, release, name)
    for _, _, _, data in each_file(timeline):
        if data.startswith(avro.MAGIC):
            tree = json.loads(schema_text(data))
            if tree["name"] != "HoodieSavepointMetadata":
                text = json.dumps(without_docs(tree), separators=(",", ":"), ensure_ascii=False)
                assert avro.load_schema(tree["name"], release).text == text


@pytest.mark.parametrize("release", RELEASES)
def test_clusterings_of_a_real_table(tables: Path, release: str) -> None:
    _, timeline = opened(tables, release, "cow")
    (pending,) = timeline.pending()
    assert timeline.pending_clusterings() == (pending,)
    assert timeline.last_clustering() == pending
    groups = timeline.read_plan(pending).groups
    assert groups and all(s.data_file.endswith(".parquet") and s.file_id for g in groups for s in g.slices)
    done = [i for i in timeline.completed({Action.REPLACE_COMMIT}) if timeline.is_clustering(i)]
    others = [i for i in timeline.completed({Action.REPLACE_COMMIT}) if not timeline.is_clustering(i)]
    assert [timeline.read_commit(i).operation for i in done] == ["CLUSTER"]
    assert [timeline.read_commit(i).operation for i in others] == ["INSERT_OVERWRITE"]
    replaced = timeline.read_commit(done[0]).replaced or {}
    planned = {(s.partition, s.file_id) for g in timeline.read_plan(done[0]).groups for s in g.slices}
    assert planned == {(partition, file_id) for partition, ids in replaced.items() for file_id in ids}


@pytest.mark.parametrize("release", RELEASES)
def test_other_actions_of_real_tables(tables: Path, release: str) -> None:
    _, timeline = opened(tables, release, "cow")
    (clean,) = timeline.completed({Action.CLEAN})
    plan, done = timeline.read_cleaner_plan(clean), timeline.read_clean(clean)
    assert done.ts == clean.ts
    assert done.earliest_to_retain == plan.earliest_to_retain != ""
    assert {p: {f.rpartition("/")[2] for f in files} for p, files in plan.files.items()} == {
        p: set(names) for p, names in done.deleted.items()
    }
    (savepoint,) = timeline.completed({Action.SAVEPOINT})
    assert plan.extra == {"savepointed_timestamps": savepoint.ts}
    _, timeline = opened(tables, release, "rolled")
    (rollback,) = timeline.completed({Action.ROLLBACK})
    target = timeline.read_rollback_plan(rollback)
    assert timeline.read_rollback(rollback).target_ts == target.ts
    assert timeline.find(target.ts) is None
    _, timeline = opened(tables, release, "mor")
    compacted = [i for i in timeline.completed({Action.COMMIT}) if timeline.read_commit(i).operation == "COMPACT"]
    assert compacted and all(timeline.read_compaction_plan(i).operations for i in compacted)


@pytest.mark.parametrize("release", RELEASES[1:])
def test_archived_times_of_a_real_table(tables: Path, release: str) -> None:
    config, timeline = opened(tables, release, "mor")
    times = ArchivedTimes(timeline.storage, config.history_path)
    first = timeline.first_ts()
    assert first is not None and times.completion_time(first) is None
    files = list((tables / release / "mor" / config.history_path).glob("*.parquet"))
    rows = [row for path in files for row in pq.read_table(path).to_pylist()]
    assert rows
    for row in rows:
        assert times.completion_time(row["instantTime"]) == row["completionTime"]
        assert TimelineFacts(timeline).is_committed(row["instantTime"])


@pytest.mark.parametrize("release", RELEASES)
def test_truncated_files_fail_typed_and_named(tables: Path, release: str) -> None:
    _, timeline = opened(tables, release, "cow")
    decoders = {
        Action.CLEAN: (decode_cleaner_plan, decode_cleaner_plan, decode_clean_metadata),
        Action.COMPACTION: (decode_compaction_plan,) * 3,
        Action.CLUSTERING: (decode_requested_replace,) * 3,
        Action.REPLACE_COMMIT: (decode_requested_replace, timeline.layout.decode_commit, timeline.layout.decode_commit),
        Action.COMMIT: (timeline.layout.decode_commit,) * 3,
    }
    for path, action, state, data in each_file(timeline):
        for length in {1, 4, 100, len(data) // 2, len(data) - 20, len(data) - 1} if action in decoders else ():
            with pytest.raises(CorruptFile, match=path):
                decoders[action][state](data[:length], path)
