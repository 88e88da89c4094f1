"""Change data capture beside a model: what each commit says that it changed, in all modes, and after kills."""

import decimal
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import CheckFailed, ConfigError, UnsupportedTable
from hudi_services.jobs import writing
from hudi_services.log_files.log_blocks import HeaderKey
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.merging import updates
from hudi_services.options import resolve
from hudi_services.runs.request import WriteOperation, WriteRequest
from hudi_services.storage import Storage
from hudi_services.versions import VERSIONS
from hudi_services.writing import change_logs

from .change_reader import UNTOLD, Change, Row, avro_records, changes_of
from .faulty_storage import FaultyStorage, Killed
from .rides import FILTERS, create
from .shares import places, share
from .tables import merged_rows, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

CAPTURED = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_ON = {**FILTERS, CAPTURED: "true"}


def with_changes(path: Path, mode: str = "DATA_BEFORE_AFTER", **arguments: Any) -> hudi_services.Table:
    options = {**_ON, MODE: mode, **arguments.pop("options", {})}
    if arguments.get("table_version") == 6:
        options["hoodie.datasource.write.payload.class"] = _PAYLOAD
    return create(path, options=options, **arguments)


def rows(numbers: Any, text: str, ts: int = 1, days: int = 2) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([f"k{n:03d}" for n in numbers], pa.string()),
            "day": pa.array([f"d{n % days}" for n in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "text": pa.array([f"{text} {n}" if n % 7 else None for n in numbers], pa.string()),
            "mark": pa.array([f"{text}{n}" for n in numbers], pa.string()),
        }
    )


class History:
    """Writes to a table, and what they must have changed: each row that wins has another mark."""

    def __init__(self, table: hudi_services.Table, path: Path, seed: int) -> None:
        self.table, self.path = table, path
        self.random = np.random.default_rng(seed)
        self.rows: dict[str, Row] = {}
        self.number = 0

    def step(self) -> tuple[str, list[Change]]:
        """Write, and return the operation with the changes that it must have made."""
        before = dict(self.rows)
        self.number += 1
        kinds = ("upsert", "upsert", "delete", "insert", "late", "bulk_insert", "insert_overwrite", "delete_partitions")
        kind = (
            "insert"
            if self.number == 1
            else str(self.random.choice(kinds, p=(0.3, 0.1, 0.2, 0.15, 0.1, 0.05, 0.05, 0.05)))
        )
        known = sorted(int(key[1:]) for key in self.rows)
        # In log files, an older version of a row may come back after a delete: such keys are not inserted again.
        new = self.random.permutation(np.arange(12 * self.number, 12 * self.number + 12))
        old = self.random.choice(known, min(len(known), 8), replace=False) if known else np.zeros(0, int)
        text = f"t{self.number}"
        if kind == "upsert":
            ts = int(self.random.integers(1, 9))
            self._put(rows([*old, *new[:4]], text, ts), self.table.upsert)
        elif kind == "late":
            self._put(rows(old, text, 0), self.table.upsert) if old.size else None
        elif kind == "delete":
            gone = rows([*old, *new[:2]], text)
            self.table.delete(gone)
            for key in gone.column("id").to_pylist():
                self.rows.pop(key, None)
        elif kind in ("insert", "bulk_insert"):
            self._put(rows(new, text, 3), getattr(self.table, kind))
        elif kind == "insert_overwrite":
            given = rows([n for n in new if n % 2], text, 3)
            self.rows = {key: row for key, row in self.rows.items() if row["day"] != "d1" or not given.num_rows}
            if given.num_rows:
                self._put(given, self.table.insert_overwrite)
        elif any(row["day"] == "d0" for row in self.rows.values()):
            self.table.delete_partitions(["d0"])
            self.rows = {key: row for key, row in self.rows.items() if row["day"] != "d0"}
        return kind, difference(before, self.rows)

    def _put(self, new: pa.Table, write: Any) -> None:
        write(new)
        for row in new.to_pylist():
            old = self.rows.get(row["id"])
            if old is None or row["ts"] >= old["ts"]:
                self.rows[row["id"]] = row


def difference(before: Mapping[str, Row], after: Mapping[str, Row]) -> list[Change]:
    keys = sorted({*before, *after})
    ops = {key: "i" if key not in before else "d" if key not in after else "u" for key in keys}
    found = (Change(ops[key], key, before.get(key), after.get(key)) for key in keys)
    return [change for change in found if change.before != change.after]


def told(expected: list[Change], found: list[Change]) -> list[Change]:
    """What is expected, as far as the changes that were found tell it."""
    by_key = {change.key: change for change in found}
    return [
        change._replace(
            before=UNTOLD if by_key.get(change.key, change).before is UNTOLD else change.before,
            after=UNTOLD if by_key.get(change.key, change).after is UNTOLD else change.after,
        )
        for change in expected
    ]


def seen(path: Path) -> dict[str, Row]:
    now = open_local(path)
    if not any(now.slices.open(one).num_rows for one in now.view.live_slices()):
        return {}
    found = merged_rows(path)
    names = [name for name in found.column_names if not name.startswith("_hoodie_")]
    return {row["id"]: row for row in found.select(names).to_pylist()}


@pytest.mark.thorough
@pytest.mark.spread(7)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_histories(version: int, kind: str, mode: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    seed = 100 * version + 10 * len(kind) + len(mode)
    table = with_changes(path, mode, table_version=version, table_type=kind)
    history = History(table, path, seed)
    known: set[str] = set()
    for _ in range(10):
        done, expected = history.step()
        now = open_local(path)
        where = f"seed {seed}, step {history.number}: {done}"
        new = [one for one in now.timeline.completed_writes() if one.ts not in known]
        known.update(one.ts for one in new)
        found = [change for one in new for change in changes_of(now, one)]
        assert found == told(expected, found), where
        images = {UNTOLD in (change.before, change.after) for change in found}
        assert (
            mode == "DATA_BEFORE_AFTER" or kind == "MERGE_ON_READ" or done not in ("upsert", "delete") or True in images
        )
        assert seen(path) == history.rows, where
    assert table.validate(strict=True).ok


def write(path: Path, operation: str, new: pa.Table, storage: Storage | None = None, **more: str) -> None:
    """By default indexes, and with the locks of one process."""
    options = resolve([("test", {"hoodie.time.generator.max_expected_clock_skew_ms": "0", **FILTERS, **more})])
    wanted = WriteRequest(base_path=str(path), options=options, operation=WriteOperation(operation))
    assert writing.write(wanted, new.to_reader, storage).error is None


@pytest.mark.thorough
@pytest.mark.spread(6)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_may_be_the_last(version: int, kind: str, tmp_path: Path) -> None:
    """Of a write that merges, fills and begins files: what it leaves is repaired, and no change is lost or doubled."""
    path, made = tmp_path / "t", tmp_path / "made"
    table = with_changes(path, table_version=version, table_type=kind)
    table.insert(rows(range(6), "first"))
    if kind == "MERGE_ON_READ":
        table.upsert(rows(range(1, 2), "logged", ts=2))
    begun = len(open_local(path).timeline.completed_writes())
    shutil.copytree(path, made)
    new = rows([2, 3, 10, 12, 14], "new", ts=5).set_column(1, "day", [["d0", "d1", "d0", "d0", "d2"]])
    log = FaultyStorage(str(path))
    write(path, "upsert", new, log)
    assert any(line.startswith("write") and line.endswith(".cdc") for line in log.log)
    for survived in share(places(log.log), 0, 1):
        shutil.rmtree(path)
        shutil.copytree(made, path)
        with pytest.raises(Killed):
            write(path, "upsert", new, FaultyStorage(str(path), survived))
        where = f"killed after {survived} writes: {log.log[survived - 1 : survived + 1]}"
        done = len(open_local(path).timeline.completed_writes()) > begun
        write(path, "upsert", rows([0], "last", ts=9))
        now = open_local(path)
        writes = now.timeline.completed_writes()
        assert not now.timeline.pending(), where
        ops = [[(one.op, one.key) for one in changes_of(now, write)] for write in writes[begun:]]
        first = [("u", "k002"), ("u", "k003"), ("i", "k010"), ("i", "k012"), ("i", "k014")]
        assert ops == [*([first] if done else []), [("u", "k000")]], where
        kept = {
            Path(file).name
            for one in writes
            for stats in now.timeline.read_commit(one).stats.values()
            for stat in stats
            for file, _ in stat.files
        }
        assert {one.name for one in path.rglob(".*.cdc")} == {name for name in kept if name.endswith(".cdc")}, where
        assert hudi_services.open(path, engine="local").validate(strict=True).ok, where


def test_blocks_and_files_have_sizes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = with_changes(path)
    table.insert(rows(range(0, 400, 2), "first"))
    small = {"hoodie.logfile.data.block.max.size": "3000", "hoodie.logfile.max.size": "5000"}
    table.upsert(rows(range(0, 420, 2), "new", ts=2), options=small)
    now = open_local(path)
    (stats,) = now.timeline.read_commit(now.timeline.completed_writes()[-1]).stats.values()
    files = [Path(one) for one, _ in stats[0].cdc_files]
    token = files[0].name.rpartition("_")[2]
    assert token.endswith(".cdc") and {one.name.split(".log.")[1] for one in files} == {
        f"{number}_{token}" for number in range(1, len(files) + 1)
    }
    assert len(files) > 1
    assert len(changes_of(now, now.timeline.completed_writes()[-1])) == 210
    assert table.validate(strict=True).ok


def test_a_merge_that_does_not_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    table = with_changes(path)
    table.insert(rows(range(0, 400, 2), "first"))
    monkeypatch.setattr(updates, "_MOST_BYTES", 4000)
    table.upsert(rows(range(100, 600, 2), "new", ts=2))
    now = open_local(path)
    found = changes_of(now, now.timeline.completed_writes()[-1])
    first, new = (
        {row["id"]: row for row in made.to_pylist()}
        for made in (rows(range(0, 400, 2), "first"), rows(range(100, 600, 2), "new", ts=2))
    )
    assert found == difference(first, {**first, **new})


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_values_of_all_types(mode: str, tmp_path: Path) -> None:
    """Images have nested values, decimals and required columns; where there is no image, none is missed."""

    def given(keys: list[str], number: int) -> pa.Table:
        kind = pa.schema(
            [
                pa.field("id", pa.string(), nullable=False),
                pa.field("ts", pa.int64(), nullable=False),
                pa.field("price", pa.decimal128(12, 3)),
                pa.field("at", pa.timestamp("us", "UTC")),
                pa.field("day", pa.date32()),
                pa.field("raw", pa.binary()),
                pa.field("flag", pa.bool_()),
                pa.field("inner", pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.list_(pa.string()))])),
                pa.field("map", pa.map_(pa.string(), pa.float64())),
                pa.field("few", pa.list_(pa.struct([pa.field("x", pa.decimal128(5, 1))]))),
            ]
        )
        row = {
            "ts": number,
            "price": decimal.Decimal(number) / 8,
            "at": number * 10**15,
            "day": number,
            "raw": bytes([number]),
            "flag": bool(number % 2),
            "inner": {"a": number, "b": ["x", None][: number % 3]},
            "map": [("k", number / 2)],
            "few": [{"x": decimal.Decimal(number)}, {"x": None}],
        }
        nulls = {"inner": None, "map": None, "price": None, "few": []}
        many = [{**row, **(nulls if i % 2 else {}), "id": key} for i, key in enumerate(keys)]
        return pa.Table.from_pylist(many, kind)

    path = tmp_path / "t"
    table = with_changes(path, mode, partition_by=[])
    first, new = given(["a", "b", "c", "d"], 1), given(["b", "c", "e", "f"], 2)
    table.insert(first)
    table.upsert(new)
    table.delete(given(["a", "d"], 3))
    now = open_local(path)
    _, upsert, gone = now.timeline.completed_writes()
    assert [(one.op, one.key) for one in changes_of(now, upsert)] == [("u", "b"), ("u", "c"), ("i", "e"), ("i", "f")]
    for found, old in ((changes_of(now, upsert), first), (changes_of(now, gone), first)):
        for image, of in (("before", old), ("after", new)):
            told = [getattr(one, image) for one in found if getattr(one, image) not in (None, UNTOLD)]
            keys = [row["id"] for row in told]
            expected = [row for row in of.to_pylist(maps_as_pydicts="strict") if row["id"] in keys]
            assert [{**row, "ts": row["ts"]} for row in told] == expected
            assert mode == "OP_KEY_ONLY" or image == "after" or keys
    assert table.validate(strict=True).ok


def test_what_is_lost_on_the_way_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    table = with_changes(path)
    table.insert(rows(range(6), "first"))
    whole = change_logs.ChangeLogs._add
    monkeypatch.setattr(
        change_logs.ChangeLogs,
        "add_inserts",
        lambda self, schema, new: whole(self, "i", new.column("_hoodie_record_key"), None, self._image(schema, new)),
    )
    with pytest.raises(CheckFailed, match="does not hold the changes that were to be written"):
        table.upsert(rows([2, 8], "new", ts=5))
    monkeypatch.undo()
    monkeypatch.setattr(change_logs.AvroBlock, "add", lambda self, rows: None)
    with pytest.raises(CheckFailed, match="does not hold the changes that were to be written"):
        table.upsert(rows([2], "new", ts=5))
    monkeypatch.undo()
    assert not [*path.rglob(".*.cdc")]
    assert seen(path)["k002"]["mark"] == "first2"
    assert table.validate(strict=True).ok


@pytest.mark.thorough
def test_services_know_the_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = with_changes(path, options={"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"})
    table.insert(rows(range(6), "first"))
    for number in range(4):
        table.upsert(rows(range(6), f"text{number}", ts=5))
    stored = {one.name for one in path.rglob(".*.cdc")}
    assert len(stored) == 8
    assert table.clean().ok
    assert len({one.name for one in path.rglob(".*.cdc")}) == 4
    assert table.validate(strict=True).ok
    last = open_local(path).timeline.completed_writes()[-1]
    assert table.rollback(last.ts, completed=True).ok
    assert not [one for one in path.rglob(".*.cdc") if last.ts in one.name]
    assert table.validate(strict=True).ok
    assert table.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": "100000000"}).ok
    assert table.upsert(rows(range(8), "again", ts=6)).ok
    now = open_local(path)
    ops = [one.op for one in changes_of(now, now.timeline.completed_writes()[-1])]
    assert ops == ["u"] * 6 + ["i"] * 2
    assert table.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}).ok
    assert table.validate(strict=True).ok


@pytest.mark.thorough
def test_records_are_those_of_hudi(tmp_path: Path) -> None:
    """Their schemas, byte by byte those of 1.0.2."""
    record = '{"type":"record","name":"t_record","fields":[{"name":"id","type":["null","string"],"default":null}]}'
    column = '{"name":"%s","type":["null",%s],"doc":"","default":null}'
    both = ",".join(
        column % pair
        for pair in (("op", '"string"'), ("ts_ms", '"string"'), ("before", record), ("after", '"t_record"'))
    )
    before = ",".join(column % pair for pair in (("op", '"string"'), ("record_key", '"string"'), ("before", record)))
    cdc = '{"type":"record","name":"CDC","namespace":"hoodie.t","fields":[%s]}'
    names = ('{"name":"op","type":["string","null"]}', '{"name":"record_key","type":["string","null"]}')
    expected = {
        "OP_KEY_ONLY": f'{{"type":"record","name":"Record","fields":[{",".join(names)}]}}',
        "DATA_BEFORE": cdc % before,
        "DATA_BEFORE_AFTER": cdc % both,
    }
    for mode in MODES:
        path = tmp_path / mode
        table = with_changes(path, mode, name="t", partition_by=[], ordering=[])
        table.insert(pa.table({"id": ["a", "b"]}))
        table.delete(pa.table({"id": ["b"]}))
        (file,) = path.rglob(".*.cdc")
        (block,) = read_log_blocks(file.read_bytes(), "")
        assert block.header[HeaderKey.SCHEMA] == expected[mode]
        assert len(avro_records(block.content, expected[mode])) == 1


def test_creation(tmp_path: Path) -> None:
    table = with_changes(tmp_path / "t", "data_before")
    assert (table.config[CAPTURED], table.config[MODE]) == ("true", "DATA_BEFORE")
    assert MODE not in create(tmp_path / "without").config
    with pytest.raises(ConfigError, match=f"{MODE}=op_key"):
        with_changes(tmp_path / "other", "op_key")
    with pytest.raises(ConfigError, match="change data capture needs meta fields"):
        with_changes(tmp_path / "other", options={"hoodie.populate.meta.fields": "false"})
    assert not (tmp_path / "other").exists()
    with pytest.raises(ConfigError, match=f"{CAPTURED}=true .* does not fit the table, which has false"):
        create(tmp_path / "without2").upsert(rows(range(2), "x"), options={CAPTURED: "true"})


def test_modes_that_hudi_cannot_write(tmp_path: Path) -> None:
    table = with_changes(tmp_path / "t")
    table.insert(rows(range(2), "x"))
    file = tmp_path / "t/.hoodie/hoodie.properties"
    file.write_text(file.read_text().replace("DATA_BEFORE_AFTER", "OP_KEY"))
    with pytest.raises(UnsupportedTable, match=f"has change data capture with {MODE}=OP_KEY, and Apache Hudi itself"):
        hudi_services.open(tmp_path / "t", engine="local").upsert(rows(range(2), "y"))


def changes_since(path: Path, known: set[str]) -> list[Change]:
    """The changes of the writes that are not `known`, which it adds to them."""
    now = open_local(path)
    new = [one for one in now.timeline.completed_writes() if one.ts not in known]
    known.update(one.ts for one in new)
    return [change for one in new for change in changes_of(now, one)]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_that_come_later_and_types_that_grow(version: int, kind: str, tmp_path: Path) -> None:
    """Rows before a change have the schema of the write, with nulls and promoted values."""
    path, known = tmp_path / "t", set[str]()
    table = with_changes(path, table_version=version, table_type=kind, partition_by=[])
    table.insert(pa.table({"id": ["a", "b", "c"], "ts": [1, 1, 1], "n": pa.array([1, None, 3], pa.int32())}))
    changes_since(path, known)
    wider = {"id": ["b", "c", "d"], "ts": [2, 2, 2], "n": pa.array([2**40, 4, 5]), "more": ["x", None, "z"]}
    table.upsert(pa.table(wider))
    b, c, d = changes_since(path, known)
    assert b == ("u", "b", {"id": "b", "ts": 1, "n": None, "more": None}, {"id": "b", "ts": 2, "n": 2**40, "more": "x"})
    assert c == ("u", "c", {"id": "c", "ts": 1, "n": 3, "more": None}, {"id": "c", "ts": 2, "n": 4, "more": None})
    assert d == ("i", "d", None, {"id": "d", "ts": 2, "n": 5, "more": "z"})
    assert table.validate(strict=True).ok


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_marked_rows_and_rows_that_move(version: int, kind: str, tmp_path: Path) -> None:
    path, known = tmp_path / "t", set[str]()
    table = with_changes(path, table_version=version, table_type=kind)

    def marked(numbers: list[int], text: str, ts: int, gone: list[bool], days: int = 2) -> pa.Table:
        return rows(numbers, text, ts, days).append_column("_hoodie_is_deleted", pa.array(gone))

    table.insert(marked([0, 1, 2, 3], "first", 1, [False] * 4))
    changes_since(path, known)
    table.upsert(marked([0, 1, 8, 9], "new", 2, [True, False, True, False]))
    assert [one[:2] for one in changes_since(path, known)] == [("d", "k000"), ("u", "k001"), ("i", "k009")]
    table.insert(marked([10, 11, 12], "filled", 2, [True, False, False]))
    assert [one[:2] for one in changes_since(path, known)] == [("i", "k011"), ("i", "k012")]
    table.upsert(marked([2], "moved", 3, [False], days=5), options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    moved = [one for one in changes_since(path, known) if one.key == "k002"]
    # d0 is where it was, d2 where it is.
    assert sorted(one.op for one in moved) == ["d", "i"]
    assert seen(path)["k002"]["day"] == "d2"
    assert table.validate(strict=True).ok


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_buckets(version: int, tmp_path: Path) -> None:
    """Base files in the first write, log files afterwards, whose stats name their slices."""
    path, known = tmp_path / "t", set[str]()
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = with_changes(path, table_version=version, table_type="MERGE_ON_READ", options=buckets)
    model: dict[str, Row] = {}
    for number in range(1, 5):
        new = rows([0, number, 2 * number, 10 + number, 20 + number], f"t{number}", number).slice(number // 3)
        before = dict(model)
        table.upsert(new)
        model.update({row["id"]: row for row in new.to_pylist()})
        assert changes_since(path, known) == difference(before, model), number
        assert not [*path.rglob(".*.cdc")]
    assert seen(path) == model
    assert table.validate(strict=True).ok


def test_a_loser_that_fills_is_a_change(tmp_path: Path) -> None:
    """Of a payload by which a row that wins gets values of the other one for its nulls."""
    path, known = tmp_path / "t", set[str]()
    table = with_changes(path, table_version=6, partition_by=[])
    payload = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
    }

    def given(ids: list[str], ts: int, a: list[str | None], b: list[str | None]) -> pa.Table:
        return pa.table(
            {"id": ids, "ts": [ts] * len(ids), "a": pa.array(a, pa.string()), "b": pa.array(b, pa.string())}
        )

    table.insert(given(["x", "y", "z"], 5, ["1", None, "3"], [None, "2", "3"]))
    changes_since(path, known)
    table.upsert(given(["x", "y", "z"], 3, ["late", "late", "late"], ["late"] * 3), options=payload)
    found = changes_since(path, known)
    assert [(one.op, one.key, one.after and (one.after["a"], one.after["b"])) for one in found] == [
        ("u", "x", ("1", "late")),
        ("u", "y", ("late", "2")),
    ]
    table.upsert(given(["x"], 9, [None], ["new"]), options=payload)
    (change,) = changes_since(path, known)
    assert change.before == {"id": "x", "ts": 5, "a": "1", "b": "late"}
    assert change.after == {"id": "x", "ts": 9, "a": "1", "b": "new"}
