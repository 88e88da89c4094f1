"""Tables whose columns were renamed, dropped, widened and reordered by SQL: rewritten and written to by column ids.

The fixtures are of real Hudi, with the rows that are right by hand (`right_rows`). 1.2.0 gave two rows of one of them
values of a dropped column, on disk; float columns that became doubles are compared as floats.
"""

import json
import shutil
import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.commit import commit_draft
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConflictError, HudiServicesError, NothingToDo, UnsupportedTable
from hudi_services.jobs import clustering, compaction, writing
from hudi_services.model import CommitMetadata
from hudi_services.options import resolve
from hudi_services.runs.report import Report
from hudi_services.runs.request import ClusteringRequest, CompactionRequest, Mode, WriteOperation, WriteRequest
from hudi_services.schema.schema_history import SchemaHistory, SchemaVersion
from hudi_services.schema.table_schema import META_COLUMNS, TableSchema
from hudi_services.snapshot import Snapshot
from hudi_services.table.stored_history import HISTORY_FOLDER, HistoryFiles, stored_history
from hudi_services.timeline.active import new_instant
from hudi_services.timeline.instant import Action, State
from hudi_services.writing.writer_schema import WriterSchema

from .broken_runs import LOCKED
from .faulty_storage import FaultyStorage, Killed
from .shares import places, share
from .tables import RELEASES, digest, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_FIXTURES = Path(__file__).parents[1] / "fixtures/schema_history"
NAMES = ["plain-cow", "plain-mor", "hard-cow", "hard-mor"]
_CLUSTER = {"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"}
_COMPACT = {"hoodie.compact.inline.max.delta.commits": "1"}
Row = dict[str, Any]


def made(release: str, name: str, folder: Path) -> Path:
    with tarfile.open(_FIXTURES / f"{release}.tar.xz") as archive:
        members = [one for one in archive.getmembers() if one.name.startswith(f"{name}/")]
        archive.extractall(folder, members, filter="data")
    return folder / name / "table"


def right_rows(path: Path) -> list[Row]:
    told = json.loads((path.parent / "rows.json").read_text())
    rows = told["right_rows"]
    if (told["release"], path.parent.name) == ("1.2.0", "plain-cow"):
        for row in rows:
            row["b"] = {1: "100", 2: "200"}.get(row["id"], row["b"])
    return sorted(map(plain, rows), key=lambda row: int(row["id"]))


def plain(value: Any) -> Any:
    """Values as JSON has them, with floats of few digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, date):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        pairs = bool(value) and isinstance(value[0], tuple)
        return {key: plain(one) for key, one in value} if pairs else [plain(one) for one in value]
    return value


def seen(path: Path) -> list[Row]:
    """The rows by our reader."""
    table, found = open_local(path), list[Row]()
    assert table.schema is not None
    target = WriterSchema(table.schema, has_meta=True).target
    names = [name for name in target.columns if name not in META_COLUMNS]
    for one in table.view.live_slices():
        for _, rows in table.slices.open(one).tables(names, target):
            found += rows.to_pylist()
    return sorted(map(plain, found), key=lambda row: int(row["id"]))


def stored(path: Path) -> list[Row]:
    """The rows of the newest base files, as pyarrow reads them."""
    found: list[Row] = []
    for one in open_local(path).view.live_slices():
        assert one.base_file is not None and not one.log_files
        rows = pq.read_table(path / one.base_file.path, partitioning=None).to_pylist()
        found += [{name: value for name, value in row.items() if not name.startswith("_hoodie_")} for row in rows]
    return sorted(map(plain, found), key=lambda row: int(row["id"]))


def history_of(path: Path) -> SchemaHistory:
    table = open_local(path)
    found = table.history.value
    assert found is not None
    return found


def alter(table: Snapshot, before: str, after: str, *, state: State = State.COMPLETED, ts: str = "") -> str:
    """Rename a column as ALTER TABLE does, or begin to."""
    timeline, history = table.timeline, table.history.value
    schema = table.schema
    assert history is not None and schema is not None
    ts = ts or new_instant(timeline, table.clock)
    tree = history.now.tree
    for one in tree["fields"]:
        one["name"] = after if one["name"] == before else one["name"]
    new = SchemaVersion.of({**tree, "version_id": int(ts)}, "a test")
    fields = [{**one, "name": after} if one["name"] == before else one for one in schema.avro["fields"]]
    extra = replace(TableSchema.of({**schema.avro, "fields": fields}), version=new.text).in_commit
    action = Action.DELTA_COMMIT if table.config.is_merge_on_read else Action.COMMIT
    timeline.publish(ts, action, State.REQUESTED)
    begun = CommitMetadata("ALTER_SCHEMA", {}, {})
    encode = timeline.layout.encode_commit
    timeline.publish(ts, action, State.INFLIGHT, encode(begun, table.config.version.release))
    if state is State.COMPLETED:
        done = new_instant(timeline, table.clock, after=ts)
        name = f"{ts}_{done}" if timeline.layout.completion_times else ts
        table.storage.create(
            f"{HISTORY_FOLDER}/{name}.schemacommit", SchemaHistory((new, *history.versions)).text.encode()
        )
        content = encode(CommitMetadata("ALTER_SCHEMA", {}, extra), table.config.version.release)
        timeline.publish(ts, action, State.COMPLETED, content, done)
    return ts


def new_rows(path: Path, ids: list[int]) -> pa.Table:
    """Rows of the columns of now, with nulls but for the key, the ordering field and the partition."""
    table = open_local(path)
    assert table.schema is not None
    schema = writing_schema(table.schema)
    ordering = pa.array([99] * len(ids), pa.int64())
    known = {"id": pa.array(ids, pa.int32()), "ts": ordering, "p": pa.array(["x"] * len(ids))}
    return pa.table([known.get(field.name, pa.nulls(len(ids), field.type)) for field in schema], schema=schema)


def writing_schema(schema: TableSchema) -> pa.Schema:
    return WriterSchema(schema, has_meta=True).arrow


def continues(path: Path, before: SchemaHistory) -> None:
    """The newest commit names the version, and the history is whole, for readers of Hudi."""
    table = open_local(path)
    newest = table.timeline.completed_writes()[-1]
    extra = table.timeline.read_commit(newest).extra
    assert extra["latest_schema"] == before.now.text
    names = [one["name"] for one in json.loads(extra["schema"])["fields"]]
    assert names == [one.name for one in before.now.columns]
    files = HistoryFiles.list(table.storage, table.timeline)
    assert files.newest is not None and files.newest.name.startswith(newest.ts)
    assert stored_history(table.storage, table.config, table.timeline) == before
    counted = {one.ts for one in table.timeline.completed()}
    pending = {one.ts for one in table.timeline.pending()}
    assert {*files.by_instant} <= counted | pending


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("release", RELEASES)
def test_services_and_writes(release: str, name: str, tmp_path: Path) -> None:
    path = made(release, name, tmp_path)
    history, wanted = history_of(path), right_rows(path)
    assert seen(path) == wanted
    table = hudi_services.open(path, engine="local")
    if name.endswith("mor"):
        assert table.compact(options=_COMPACT).ok
        assert seen(path) == wanted
        continues(path, history)
    assert table.upsert(new_rows(path, [1, 70])).ok
    empty = {**dict.fromkeys(wanted[0]), "ts": 99, "p": "x"}
    wanted = [row for row in wanted if row["id"] != 1] + [{**empty, "id": one} for one in (1, 70)]
    wanted.sort(key=lambda row: int(row["id"]))
    assert seen(path) == wanted
    continues(path, history)
    assert table.cluster(options=_CLUSTER).ok
    assert seen(path) == stored(path) == wanted
    continues(path, history)
    assert table.delete(new_rows(path, [2, 70])).ok
    wanted = [row for row in wanted if row["id"] not in (2, 70)]
    assert seen(path) == wanted
    assert table.clean(options={"hoodie.clean.commits.retained": "1"}).ok
    assert seen(path) == wanted and history_of(path) == history


_FAST = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}


def act_on(path: Path, act: str, storage: FaultyStorage | None = None, **more: str) -> Report:
    """A write or a whole service; where a plan of it is pending, its execution."""
    options = resolve([("test", {**_FAST, **_CLUSTER, **_COMPACT, **more})])
    both, base = Mode.SCHEDULE_AND_EXECUTE, str(path)
    timeline = open_local(path).timeline
    is_planned = bool(timeline.pending({Action.COMPACTION}) or timeline.pending_clusterings())
    match act:
        case "upsert":
            wanted = WriteRequest(base_path=base, options=options, operation=WriteOperation.UPSERT)
            return writing.write(wanted, new_rows(path, [1, 70]).to_reader, storage)
        case "cluster":
            planned = ClusteringRequest(base_path=base, options=options, mode=both, publish_late=False)
            run = clustering.execute if is_planned else clustering.schedule_and_execute
            return run(planned, storage, LocalEngine())
    request = CompactionRequest(base_path=base, options=options, mode=both)
    carry_out = compaction.execute if is_planned else compaction.schedule_and_execute
    return carry_out(request, storage, LocalEngine())


@pytest.mark.thorough
@pytest.mark.parametrize("act", ["upsert", "cluster", "compact"])
@pytest.mark.parametrize("release", RELEASES)
def test_killed_at_any_write(release: str, act: str, tmp_path: Path) -> None:
    whole = made(release, "hard-mor" if act == "compact" else "hard-cow", tmp_path)
    history, before = history_of(whole), right_rows(whole)

    def copied(name: str) -> Path:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        return Path(shutil.copytree(whole, tmp_path / name))

    counted = FaultyStorage(str(copied("counted")))
    act_on(tmp_path / "counted", act, counted)
    after = seen(tmp_path / "counted")
    for survived in share(places(counted.log), 0, 1):
        path = copied("killed")
        with pytest.raises(Killed):
            act_on(path, act, FaultyStorage(str(path), survived))
        assert seen(path) in (before, after)
        table = hudi_services.open(path, engine="local")
        assert table.recover(apply=True).ok
        assert history_of(path) == history
        with suppress(NothingToDo):
            act_on(path, act)
        assert seen(path) == after, survived
        continues(path, history)


# ---------------------------------------------------------------------------------------------- ALTER TABLE meanwhile


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES[1:])
@pytest.mark.parametrize("act", ["upsert", "cluster", "compact"])
def test_altered_meanwhile(release: str, act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column is renamed after the rows were read: new files would be taken for files of the new version."""
    path = made(release, "hard-mor" if act == "compact" else "hard-cow", tmp_path)
    before, plain_look = seen(path), commit_draft.refuse_altered
    renamed: list[str] = []

    def meanwhile(current: Snapshot, ts: str, schema: TableSchema | None) -> None:
        if not renamed:
            # Requested before the run, completed while it works.
            renamed.append(alter(current, "a3", "a4", ts=f"{int(ts) - 1:017}"))
            current = open_local(path)
        plain_look(current, ts, schema)

    monkeypatch.setattr(commit_draft, "refuse_altered", meanwhile)
    with pytest.raises(ConflictError, match="ALTER TABLE has changed the columns"):
        act_on(path, act)
    monkeypatch.undo()
    assert hudi_services.open(path, engine="local").recover(apply=True).ok
    wanted = [{"a4" if name == "a3" else name: value for name, value in row.items()} for row in before]
    assert seen(path) == wanted
    pending = open_local(path).timeline.pending_clusterings()
    if pending:
        # Its instant is later than the new version, so its files have the new names now.
        act_on(path, act)
        assert stored(path) == wanted


@pytest.mark.parametrize("act", ["upsert", "cluster"])
def test_an_alter_is_under_way(act: str, tmp_path: Path) -> None:
    path = made("1.2.0", "hard-cow", tmp_path)
    before = seen(path)
    ts = alter(open_local(path), "a3", "a4", state=State.INFLIGHT)
    with pytest.raises(ConflictError, match=f"is under way .{ts}."):
        act_on(path, act, **LOCKED)
    assert seen(path) == before


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("act", ["cluster", "compact"])
def test_a_plan_from_before_an_alter(release: str, act: str, tmp_path: Path) -> None:
    """Its files bear the instant of the plan, so that readers look for the columns of then."""
    path = made(release, "hard-mor" if act == "compact" else "hard-cow", tmp_path)
    before, table = seen(path), hudi_services.open(path, engine="local")
    if act == "compact":
        assert table.plan_compaction(options=_COMPACT).ok
    else:
        assert table.plan_clustering(options=_CLUSTER).ok
    (plan,) = open_local(path).timeline.pending()
    alter(open_local(path), "a3", "a4")
    act_on(path, act)
    wanted = [{"a4" if name == "a3" else name: value for name, value in row.items()} for row in before]
    assert seen(path) == wanted
    now = open_local(path)
    assert now.schema is not None and "a4" in now.schema.names
    done = now.timeline.find(plan.ts)
    assert done is not None and done.is_completed
    extra = now.timeline.read_commit(done).extra
    version = SchemaVersion.parse(extra["latest_schema"], "a test")
    assert "a3" in {one.name for one in version.columns} and version.id < int(plan.ts)
    assert history_of(path).now.id > int(plan.ts)
    for one in now.view.live_slices():
        if one.base_instant == plan.ts and one.base_file is not None:
            assert "a3" in pq.read_schema(path / one.base_file.path).names
    assert hudi_services.open(path, engine="local").upsert(new_rows(path, [1, 70])).ok
    assert len(seen(path)) == len(before) + 1


@pytest.mark.parametrize("release", RELEASES)
def test_columns_come_with_a_write(release: str, tmp_path: Path) -> None:
    """They get new ids, also where another column had their name before."""
    path = made(release, "hard-cow", tmp_path)
    before, history = seen(path), history_of(path)
    rows = new_rows(path, [1, 70]).append_column("b", pa.array([7, 8], pa.int64()))
    nested = pa.array([{"q": 1, "r": ["x"]}, None], pa.struct([("q", pa.int32()), ("r", pa.list_(pa.string()))]))
    rows = rows.append_column("extra", nested)
    assert hudi_services.open(path, engine="local").upsert(rows).ok
    found = {row["id"]: row for row in seen(path)}
    assert found[1]["b"] == 7 and found[1]["extra"] == {"q": 1, "r": ["x"]} and found[2]["b"] is None
    assert [found[row["id"]]["a3"] for row in before if row["id"] != 1] == [r["a3"] for r in before if r["id"] != 1]
    now = history_of(path)
    assert now.versions[1:] == history.versions and now.now.max_column_id == history.now.max_column_id + 5
    continues(path, now)
    assert hudi_services.open(path, engine="local").cluster(options=_CLUSTER).ok
    assert {row["id"]: row for row in stored(path)} == found


# ------------------------------------------------------------------------------------------------------------ refused


def _rewrite(path: Path, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Write the newest commit again, with other extra metadata."""
    table = open_local(path)
    newest = table.timeline.completed_writes()[-1]
    commit = table.timeline.read_commit(newest)
    content = table.timeline.layout.encode_commit(
        replace(commit, extra=change(dict(commit.extra))), table.config.version.release
    )
    (path / table.timeline.path(newest.file_name)).write_bytes(content)


def _ended(path: Path) -> None:
    """A writer that does not know the history has committed."""
    _rewrite(path, lambda extra: {name: text for name, text in extra.items() if name != "latest_schema"})


def _no_files(path: Path) -> None:
    shutil.rmtree(path / HISTORY_FOLDER)


def _history_files(path: Path) -> list[Path]:
    return sorted((path / HISTORY_FOLDER).glob("*.schemacommit"))


def _changed_history(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        for file in _history_files(path):
            tree = json.loads(file.read_text())
            change(tree)
            file.write_text(json.dumps(tree, separators=(",", ":")))
        version = json.dumps(tree["schemas"][0], separators=(",", ":"))
        _rewrite(path, lambda extra: {**extra, "latest_schema": version})

    return apply


def _anew(tree: dict[str, Any]) -> None:
    """The ids of the newest version begin at 0 again, after a column was dropped."""
    fields = tree["schemas"][0]["fields"]
    for number, one in enumerate(fields):
        one["id"] = number if one["id"] < len(fields) else one["id"]
    names = [one["name"] for one in fields]
    fields[7]["name"], fields[8]["name"] = names[8], names[7]


def _smaller(tree: dict[str, Any]) -> None:
    """A field gets the id of one that was dropped, although larger ids are there."""
    tree["schemas"][0] = json.loads(json.dumps(tree["schemas"][0]).replace('"id": 25', '"id": 14'))


def _unread(tree: dict[str, Any]) -> None:
    for version in tree["schemas"]:
        version["fields"][6]["type"] = "local-timestamp-micros"


def _twice(tree: dict[str, Any]) -> None:
    for version in tree["schemas"]:
        version["fields"][6]["id"] = version["fields"][7]["id"]


def _older(path: Path) -> None:
    """The newest commit names a version that its history does not end with."""
    for file in _history_files(path):
        tree = json.loads(file.read_text())
        tree["schemas"] = tree["schemas"][1:]
        file.write_text(json.dumps(tree))


def _without_meta_fields(path: Path) -> None:
    properties = path / ".hoodie/hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "checksum" not in line and "populate" not in line]
    properties.write_text("\n".join([*kept, "hoodie.populate.meta.fields=false", ""]))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (_ended, "has a schema history that its newest write does not continue"),
        (_no_files, "no file of it in"),
        (_changed_history(_anew), "gives ids to columns that the version"),
        (_changed_history(_smaller), "gives ids to columns that the version"),
        (_changed_history(_unread), "the type local-timestamp-micros, which releases of Hudi write and do not read"),
        (_changed_history(_twice), "its ids are not unique"),
        (_older, "and .* ends with"),
        (_without_meta_fields, "has a schema history and no meta fields"),
    ],
)
def test_refused(broken: Callable[[Path], None], told: str, tmp_path: Path) -> None:
    path = made("1.2.0", "hard-cow", tmp_path)
    broken(path)
    before, table = digest(path), hudi_services.open(path, engine="local")
    rows = pa.table({"id": [1]})
    for act in (table.plan_clustering, table.cluster, lambda: table.upsert(rows), lambda: table.delete(rows)):
        with pytest.raises(HudiServicesError, match=told) as raised:
            act()
        assert raised.value.exit_code in (1, 2)
    assert digest(path) == before


@pytest.mark.parametrize("release", RELEASES)
def test_no_statistics_by_names(release: str, tmp_path: Path) -> None:
    """After a rename, readers would skip rows by those of another column."""
    path = made(release, "hard-cow", tmp_path)
    before, table = digest(path), hudi_services.open(path, engine="local")
    with pytest.raises(UnsupportedTable, match="statistics by the names of columns"):
        table.build_index("files,column_stats")
    assert digest(path) == before
    assert table.build_index("files").ok and table.validate().ok
    assert table.cluster(options=_CLUSTER).ok and table.validate(strict=True).ok
