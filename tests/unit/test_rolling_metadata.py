"""Extra metadata that commits take over from earlier ones, and the checkpoints of streams that archival keeps."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.options import commit_keys
from hudi_services.timeline.instant import Action, Instant, State

from .repairs import LOCK
from .rides import FILTERS, create
from .tables import both_views, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_SINK = "_hudi_streaming_sink_checkpoint"
_ROLLING = {
    **FILTERS,
    "hoodie.write.rolling.metadata.keys": f"{_SINK}, stream.offset",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def rows(first: int, end: int, day: str = "1", ts: int = 1) -> pa.Table:
    return pa.table(
        {"id": [str(n) for n in range(first, end)], "day": [day] * (end - first), "ts": [ts] * (end - first)}
    )


def extras(path: Path) -> list[dict[str, str]]:
    """The extra metadata of each completed write, without the schema."""
    timeline = open_local(path).timeline
    found = [timeline.read_commit(one).extra for one in timeline.completed_writes()]
    return [{key: value for key, value in one.items() if key != "schema"} for one in found]


def put(path: Path, instant: Instant, extra: Mapping[str, str]) -> None:
    """Give a completed write this extra metadata, as a stream does; its file keeps its time."""
    table = open_local(path)
    commit = table.timeline.read_commit(instant)
    commit = replace(commit, extra={**commit.extra, **extra})
    file = path / table.timeline.path(instant.file_name)
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_bytes(table.timeline.layout.encode_commit(commit, table.config.version.release))
    os.utime(file, ns=times)


def last(path: Path) -> Instant:
    return open_local(path).timeline.completed_writes()[-1]


_COMMITS: Mapping[str, Callable[[hudi_services.Table, Mapping[str, str]], hudi_services.Result]] = {
    "upsert": lambda table, options: table.upsert(rows(0, 2, ts=9), options=options),
    "insert": lambda table, options: table.insert(rows(70, 72), options=options),
    "bulk_insert": lambda table, options: table.bulk_insert(rows(80, 82), options=options),
    "delete": lambda table, options: table.delete(pa.table({"id": ["1"], "day": ["1"]}), options=options),
    "insert_overwrite": lambda table, options: table.insert_overwrite(rows(90, 92), options=options),
    "insert_overwrite_table": lambda table, options: table.insert_overwrite_table(rows(90, 92), options=options),
    "delete_partition": lambda table, options: table.delete_partitions(["2"], options=options),
    "cluster": lambda table, options: table.cluster(options=options),
    "cluster late, reserved": lambda table, options: table.cluster(
        options={**options, commit_keys.PUBLISH_LATE.key: "RESERVED"}
    ),
    "plan and execute": lambda table, options: (
        table.plan_clustering(options=options),
        table.execute_clustering(options=options),
    )[1],
    "compact": lambda table, options: table.compact(options=options),
}


@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("name", _COMMITS)
def test_every_commit_takes_over_the_newest_values(name: str, version: int, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    kind = "MERGE_ON_READ" if name == "compact" else "COPY_ON_WRITE"
    table = create(path, table_version=version, table_type=kind)
    for number in range(4):
        table.insert(rows(10 * number, 10 * number + 9, str(number % 2 + 1)), options=FILTERS)
    if name == "compact":
        table.upsert(rows(0, 5, ts=5), options=FILTERS)
    first, second, *_ = open_local(path).timeline.completed_writes()
    put(path, first, {_SINK: '{"a":"1"}', "stream.offset": "5", "other": "x"})
    put(path, second, {_SINK: '{"a":"2"}', "stream.offset": ""})
    before = len(extras(path))
    assert _COMMITS[name](table, _ROLLING).ok
    (new,) = extras(path)[before:]
    assert new == {_SINK: '{"a":"2"}', "stream.offset": "5"}
    assert table.validate(strict=True).ok


def test_how_many_commits_are_searched(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table = create(path)
    for first in (0, 10):
        table.insert(rows(first, first + 9), options=FILTERS)
    put(path, open_local(path).timeline.completed_writes()[0], {_SINK: '{"a":"2"}', "stream.offset": "5"})
    new = {_SINK: '{"a":"2"}', "stream.offset": "5"}
    table.upsert(rows(0, 1), options=_ROLLING)
    assert extras(path)[-1] == new
    few = {**_ROLLING, "hoodie.write.rolling.metadata.timeline.lookback.commits": "1"}
    table.upsert(rows(0, 1), options=few)
    assert extras(path)[-1] == new, "the commit before it has them"
    table.upsert(rows(0, 1), options=FILTERS)
    assert extras(path)[-1] == {}, "without the option nothing is taken over"
    table.upsert(rows(0, 1), options=few)
    assert extras(path)[-1] == {}, "the one commit that is searched has none"


@pytest.mark.parametrize("version", [6, 9])
def test_nothing_is_taken_over_beside_an_earlier_write(version: int, tmp_path: Path) -> None:
    """The stream's write is requested before ours, and completed after it: ours must not hide its checkpoint."""
    path = tmp_path / "rides"
    table = create(path, table_version=version)
    table.insert(rows(0, 5), options=_ROLLING)
    put(path, last(path), {_SINK: '{"a":"1"}'})
    timeline = open_local(path).timeline
    earlier = str(int(last(path).ts) + 1)
    names = [timeline.layout.file_name(earlier, Action.COMMIT, one) for one in (State.REQUESTED, State.INFLIGHT)]
    beat = path / ".hoodie/.heartbeat" / earlier
    beat.parent.mkdir(exist_ok=True)
    for file in (*(path / timeline.path(name) for name in names), beat):
        file.write_bytes(b"")
    assert table.insert(rows(10, 15, "2"), options={**_ROLLING, **LOCK}).ok
    assert extras(path)[-1] == {}
    for name in names:
        (path / timeline.path(name)).unlink()
    assert table.insert(rows(20, 25, "2"), options={**_ROLLING, **LOCK}).ok
    assert extras(path)[-1] == {_SINK: '{"a":"1"}'}


@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, 9])
def test_archival_keeps_the_last_checkpoint(version: int, tmp_path: Path) -> None:
    """`archive`, `clean` and a write with its services name it; the ways out that they name work."""
    path = tmp_path / "rides"
    options = {
        **FILTERS,
        "hoodie.keep.max.commits": "4",
        "hoodie.keep.min.commits": "2",
        "hoodie.clean.commits.retained": "1",
        "hoodie.time.generator.max_expected_clock_skew_ms": "0",
        "hoodie.metadata.compact.max.delta.commits": "2",
    }
    table = create(path, table_version=version, options=options)
    table.insert(rows(0, 5), options=options)
    put(path, last(path), {_SINK: '{"a":"1"}'})
    kept = last(path).ts
    quiet = {**options, "hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
    for number in range(1, 7):
        table.upsert(rows(0, 5, ts=number), options=quiet)
    for result in (
        table.clean(dry_run=True, options=options),
        table.archive(options=options),
        table.upsert(rows(0, 5, ts=8), options=options),
    ):
        (told,) = (one for one in result.warnings if kept in one)
        assert f"the last checkpoint of Spark's streaming query a ({_SINK}), and " in told
    assert open_local(path).timeline.completed_writes()[0].ts == kept
    (own, *_) = table.archive(options=options, dry_run=True).tables["timelines"].to_pylist()
    assert own["held_at"] == kept and own["held_by"].startswith("the last checkpoint of a stream")

    rolling = {**options, "hoodie.write.rolling.metadata.keys": _SINK}
    assert table.upsert(rows(0, 5, ts=9), options=rolling).ok
    writes = open_local(path).timeline.completed_writes()
    assert writes[0].ts > kept and len(writes) < 6
    assert extras(path)[-1] == {_SINK: '{"a":"1"}'}
    assert not [one for one in table.archive(options=rolling).warnings if "checkpoint" in one]

    for number in range(10, 16):
        table.upsert(rows(0, 5, ts=number), options=quiet)
    beyond = {**options, "hudi.services.archive.beyond.checkpoint": "true"}
    assert not table.archive(options=beyond).warnings
    assert _SINK not in str(extras(path))
    assert table.validate(strict=True).ok and both_views(path)[0].num_rows == 5


@pytest.mark.parametrize("version", [6, 9])
def test_an_undo_says_that_the_last_checkpoint_goes(version: int, tmp_path: Path) -> None:
    """A clustering took it over from a commit that is archived."""
    path = tmp_path / "rides"
    table = create(path, table_version=version)
    for number in range(3):
        table.insert(rows(10 * number, 10 * number + 9), options=_ROLLING)
    (kept, *_) = open_local(path).timeline.completed_writes()
    put(path, kept, {_SINK: '{"a":"1"}'})
    clustering = table.cluster(options=_ROLLING).instant
    assert clustering is not None and _SINK in extras(path)[-1]
    assert not table.undo(clustering, dry_run=True).warnings
    put(path, kept, {_SINK: ""})
    (told,) = table.undo(clustering).warnings
    assert told.startswith(f"no other commit on the timeline has a checkpoint of Spark's streaming query a ({_SINK})")


@pytest.mark.parametrize("version", [6, 8, 9])
def test_checkpoints_of_a_write_of_ours(version: int, tmp_path: Path) -> None:
    """hoodie.datasource.write.commitmeta.key.prefix: given keys with this beginning go into the commit."""
    table = create(tmp_path, table_version=version)
    table.insert(rows(0, 2), options={**_ROLLING, "_position": "1", "stream.offset": "4"})
    prefix = {**_ROLLING, "hoodie.datasource.write.commitmeta.key.prefix": "stream."}
    table.insert(rows(2, 4), options={**prefix, "_position": "2", "stream.offset": "5"})
    # As in Hudi, what a commit says itself counts more than what it would take over.
    table.delete(rows(0, 1), options={**prefix, "stream.offset": "6"})
    table.upsert(rows(0, 1), options={**prefix, "hoodie.datasource.write.commitmeta.key.prefix": ""})
    assert extras(tmp_path) == [
        {"_position": "1"},
        *({"stream.offset": offset} for offset in ("5", "6", "6")),
    ]
