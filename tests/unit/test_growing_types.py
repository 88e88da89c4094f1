"""Column types that grow by writes, beside a model: what readers see, statistics, services, rollbacks."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import ConfigError
from hudi_services.schema.column_type import Kind
from hudi_services.schema.table_schema import TableSchema
from hudi_services.versions import VERSIONS

from .rides import FILTERS, create
from .tables import both_views, merged_rows, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_NO_STATS = {"hoodie.metadata.index.column.stats.enable": "false"}
_TYPES = {
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
}
_GROWTHS = {
    "count": (Kind.INT, Kind.LONG),
    "amount": (Kind.INT, Kind.DOUBLE),
    "share": (Kind.FLOAT, Kind.DOUBLE),
    "key": (Kind.INT, Kind.LONG),
}
"""The columns whose types grow, from one to the other. `key` is a record key field."""
_DAYS = ["d0", "d1", "d2"]
_STEPS = 14
Rows = dict[tuple[str, str], dict[str, Any]]


def table_of(path: Path, version: int, kind: str, keys: Sequence[str]) -> hudi_services.Table:
    """A new table whose columns may grow: on version 8 without ranges of partitions."""
    options = {**FILTERS, **(_NO_STATS if version == 8 else {})}
    return create(path, record_key=keys, table_version=version, table_type=kind, options=options)


class Writer:
    """Makes rows in types of its own, and applies them to a model: `grown` are the columns that the table has grown."""

    def __init__(self, seed: int) -> None:
        self.rows: Rows = {}
        self.grown: set[str] = set()
        self._random = np.random.default_rng(seed)
        self._new = 0

    def steps(self) -> Iterator[tuple[str, pa.Table]]:
        """Operations with their rows. At each third one a column grows; other rows have the old or the new types."""
        waiting = [str(name) for name in self._random.permutation(list(_GROWTHS))]
        for number in range(_STEPS):
            if number % 3 == 2 and waiting:
                self.grown.add(waiting.pop())
                wide = set(self.grown)
            else:
                wide = {name for name in self.grown if self._random.integers(2)}
            # What grows must be in a write that has rows of its type.
            operation = "upsert" if number % 3 == 2 else str(self._random.choice(["upsert", "insert", "delete"]))
            operation = operation if number else "insert"
            places = self._places(operation)
            yield operation, self._table(places, number, wide)

    def _places(self, operation: str) -> list[tuple[str, str]]:
        known = sorted(self.rows)
        old = [known[at] for at in self._random.permutation(len(known))[:12].tolist()]
        if operation == "delete":
            return old[:5]
        self._new += 10
        new = [(str(self._random.choice(_DAYS)), f"k{n:04d}") for n in range(self._new - 10, self._new)]
        return new if operation == "insert" else old + new[:4]

    def _table(self, places: list[tuple[str, str]], number: int, wide: set[str]) -> pa.Table:
        def some(name: str) -> list[Any]:
            is_wide, kind = name in wide, _GROWTHS[name][name in wide]
            whole = self._random.integers(-50, 50, len(places))
            if kind is Kind.LONG:
                whole = whole << 40
            # Quarters: a float and the double of its shortest text are the same.
            values = whole / 4 * (1e200 if is_wide else 1) if kind in (Kind.FLOAT, Kind.DOUBLE) else whole
            return [None if n % 9 == number % 9 else value for n, value in enumerate(values.tolist())]

        types = {name: _TYPES[kinds[name in wide]] for name, kinds in _GROWTHS.items()}
        return pa.table(
            {
                "id": pa.array([key for _, key in places], pa.string()),
                "day": pa.array([day for day, _ in places], pa.string()),
                "ts": pa.array([number] * len(places), pa.int64()),
                **{name: pa.array(some(name), types[name]) for name in ("count", "amount", "share")},
                "key": pa.array([int(key[1:]) for _, key in places], types["key"]),
            }
        )

    def apply(self, operation: str, rows: pa.Table) -> None:
        for row in rows.to_pylist():
            place = row["day"], row["id"]
            if operation == "delete":
                self.rows.pop(place, None)
            else:
                self.rows[place] = row


def seen(path: Path, kind: str) -> Rows:
    """The rows that readers see."""
    found = merged_rows(path) if kind == "MERGE_ON_READ" else both_views(path)[0]
    names = ["id", "day", "ts", *_GROWTHS]
    result = {(row["day"], row["id"]): row for row in found.select(names).to_pylist()}
    assert len(result) == found.num_rows, "no key is twice in a partition"
    return result


def kinds_of(table: hudi_services.Table) -> dict[str, Kind]:
    """The types of the columns that grow, in the schema of the table."""
    schema = table.schema()
    assert schema is not None
    return {name: one.kind for name, one in TableSchema.of(schema).types.items() if name in _GROWTHS}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("kind", ["MERGE_ON_READ", pytest.param("COPY_ON_WRITE", marks=pytest.mark.deep)])
@pytest.mark.parametrize("version", VERSIONS)
def test_types_grow_beside_a_model(version: int, kind: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    table, model = table_of(path, version, kind, ["id", "key"]), Writer(seed)
    random = np.random.default_rng(100 + seed)
    for number, (operation, new) in enumerate(model.steps()):
        options = {"hoodie.parquet.small.file.limit": str(random.choice([0, 104857600]))}
        given = new.select(["day", "id", "key"]) if operation == "delete" else new
        assert getattr(table, operation)(given, options=options).ok
        model.apply(operation, new)
        assert kinds_of(table) == {name: kinds[name in model.grown] for name, kinds in _GROWTHS.items()}
        assert seen(path, kind) == model.rows, (number, operation)
        assert table.validate(strict=True).ok, (number, operation)
        if number % 5 == 4:
            assert (table.compact() if kind == "MERGE_ON_READ" else table.cluster()).exit_code in (0, 3)
            assert seen(path, kind) == model.rows, (number, "service")
            assert table.validate(strict=True).ok, (number, "service")
    assert model.grown == {*_GROWTHS}
    assert table.cluster().ok
    assert seen(path, kind) == model.rows
    assert table.validate(strict=True).ok


def rides(ids: str, **columns: pa.Array) -> pa.Table:
    """Rows with these ids, one character each, and these columns."""
    known = {
        "id": pa.array(list(ids)),
        "day": pa.array(["d0"] * len(ids)),
        "ts": pa.array([0] * len(ids), pa.int32()),
        "n": pa.array(range(len(ids)), pa.int32()),
    }
    return pa.table({**known, **columns})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("column", "wide", "message"),
    [
        ("number", pa.float64(), "record key field number has the type double"),
        ("day", pa.float64(), "partition field day has the type double"),
        (
            "ts",
            pa.int64(),
            "ts has the type long, and int in the table, and must keep it: log files have ordering values",
        ),
        ("n", pa.float32(), "n has the type float, and int in the table, and must keep it: large whole numbers would"),
        (
            "long",
            pa.float64(),
            "long has the type double, and long in the table, and must keep it: large whole numbers",
        ),
        ("s", pa.struct([("n", pa.int64())]), r"column s\.n has the type long, and int .*: Hudi fails to read nested"),
        ("l", pa.list_(pa.float64()), r"column l\.element has the type double, and int .*: Hudi fails to read nested"),
        ("n", pa.string(), "n has the type string, and int in the table"),
        ("date", pa.int64(), "date has the type long, and date in the table"),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_does_not_grow(version: int, column: str, wide: pa.DataType, message: str, tmp_path: Path) -> None:
    options = {**FILTERS, **_NO_STATS}
    names = ["id", "number"]
    table = create(
        tmp_path / "rides", table_version=version, record_key=names, table_type="MERGE_ON_READ", options=options
    )
    whole = {name: pa.array([1, 2], pa.int32()) for name in ("number", "day", "ts", "n")}
    more = {
        "long": pa.array([1, 2], pa.int64()),
        "date": whole["n"].cast(pa.date32()),
        "s": pa.array([{"n": 1}, None], pa.struct([("n", pa.int32())])),
        "l": pa.array([[1, None], None], pa.list_(pa.int32())),
    }
    old = rides("ab", **whole, **more)
    table.insert(old)
    numbers = old.column(column)
    numbers = numbers.cast(pa.int32() if column == "date" else numbers.type).cast(wide)
    with pytest.raises(ConfigError, match=message):
        table.upsert(old.set_column(old.column_names.index(column), column, numbers))
    assert table.upsert(old).ok


def test_ranges_of_partitions_must_keep_their_type_on_version_8(tmp_path: Path) -> None:
    """Queries of 1.0.2 would fail. There are none without partitions, and none of columns without statistics."""
    old, new = rides("ab"), rides("b", n=pa.array([1 << 40], pa.int64()))
    table = create(tmp_path / "rides", table_version=8)
    table.insert(old)
    with pytest.raises(ConfigError, match=r"must keep it: .*ranges in partitions \(partition_stats\).*Hudi 1.0.2 fail"):
        table.upsert(new)
    some = {**FILTERS, "hoodie.metadata.index.column.stats.column.list": "ts"}
    for name, more in (("plain", {"partition_by": None}), ("some", {"options": some})):
        other = create(tmp_path / name, table_version=8, **more)
        other.insert(old)
        assert other.upsert(new).ok and other.validate(strict=True).ok
        found, _ = both_views(tmp_path / name)
        assert found.column("n").to_pylist() == [0, 1 << 40]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_beside_global_indexes(version: int, kind: str, tmp_path: Path) -> None:
    """As far as writers of the release that owns the version go on with files of two types."""
    old, new = rides("ab"), rides("b", n=pa.array([1 << 40], pa.int64()))
    table = table_of(tmp_path / "rides", version, kind, ["id"])
    table.insert(old)
    by_global_index = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    if version == 6:
        with pytest.raises(ConfigError, match=r"must keep it: Hudi 0\.15\.0 fails to move rows by a global index"):
            table.upsert(new, options=by_global_index)
    else:
        assert table.upsert(new.set_column(3, "n", pa.array([1], pa.int32())), options=by_global_index).ok
    assert table.build_index(options={"hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}).ok
    if version == 6 or (version == 8 and kind == "MERGE_ON_READ"):
        with pytest.raises(ConfigError, match=r"must keep it: Hudi .* fails to .* two types"):
            table.upsert(new)
    else:
        assert table.upsert(new, options=by_global_index).ok and table.validate(strict=True).ok


@pytest.mark.parametrize("version", VERSIONS)
def test_partition_and_ordering_columns_grow_without_log_files(version: int, tmp_path: Path) -> None:
    """The paths are the same texts; rows are ordered by the values of both types."""
    path, days = tmp_path / "rides", pa.array([1, 2, 3], pa.int32())
    table = create(path, table_version=version, options={**FILTERS, **_NO_STATS})
    table.insert(rides("abc", day=days, ts=pa.array([5, 5, 5], pa.int32())))
    late, early = pa.array([1 << 40, 4, 1 << 40], pa.int64()), pa.array([7, 7, 8], pa.int32())
    table.upsert(rides("abd", day=days.cast(pa.int64()), ts=late, n=early))
    found, _ = both_views(path)
    # By the default payload of version 6 the row that is given wins.
    wanted = [7, 7 if version == 6 else 1, 2, 8]
    assert found.column("n").to_pylist() == wanted
    assert found.column("day").to_pylist() == [1, 2, 3, 3]
    assert found.column("_hoodie_partition_path").to_pylist() == ["1", "2", "3", "3"]
    assert table.delete(rides("c", day=pa.array([3], pa.int32())).select(["id", "day"])).ok
    assert both_views(path)[0].column("id").to_pylist() == ["a", "b", "d"]
    assert table.validate(strict=True).ok


@pytest.mark.parametrize("version", VERSIONS)
def test_nulls_count_as_zero_in_an_int_alone(version: int, tmp_path: Path) -> None:
    """Hudi's writers fail on the way, once the ordering field has grown. Not on version 6, where no row of a file is
    compared by the default payload."""
    path = tmp_path / "rides"
    table = create(path, table_version=version, options={**FILTERS, **_NO_STATS})
    old = rides("ab", ts=pa.array([5, 6], pa.int32()))
    none, grown = pa.array([None], pa.int64()), pa.array([1 << 40], pa.int64())
    table.insert(old)
    instants = open_local(path).timeline.instants
    if version == 6:
        assert table.upsert(rides("a", ts=none)).ok
        assert table.upsert(rides("ac", ts=pa.array([1 << 40, None], pa.int64()))).ok
        return
    with pytest.raises(
        ConfigError, match="the ordering field ts has 1 nulls, and would get the type of the rows, int64"
    ):
        table.upsert(rides("c", ts=none))
    assert open_local(path).timeline.instants == instants
    assert table.upsert(rides("c", ts=none.cast(pa.int32()))).ok
    instants = open_local(path).timeline.instants
    for write in (table.upsert, table.insert):
        with pytest.raises(
            ConfigError, match=r"ts has the type long, .*: rows of the table have nulls in it, which count"
        ):
            write(rides("d", ts=grown))
    assert open_local(path).timeline.instants == instants
    assert table.upsert(rides("c", ts=pa.array([0], pa.int32()))).ok
    assert table.upsert(rides("ac", ts=pa.array([1 << 40, -1], pa.int64()))).ok
    assert both_views(path)[0].column("ts").to_pylist() == [1 << 40, 6, 0]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rollback_takes_the_type_back(version: int, tmp_path: Path) -> None:
    """Floats of old files, and of rows that come later, are the doubles of their shortest texts, as in Hudi."""
    path = tmp_path / "rides"
    table = table_of(path, version, "COPY_ON_WRITE", ["id"])
    table.insert(rides("ab", n=pa.array([0.1, 0.7], pa.float32())))
    before = table.schema()
    done = table.upsert(rides("bc", n=pa.array([1e300, 0.3], pa.float64())))
    assert both_views(path)[0].column("n").to_pylist() == [0.1, 1e300, 0.3]
    assert table.validate(strict=True).ok
    later = table.upsert(rides("d", n=pa.array([0.4], pa.float32())))
    assert both_views(path)[0].column("n").to_pylist() == [0.1, 1e300, 0.3, 0.4]
    assert table.rollback(later.instant or "", completed=True).ok
    assert table.rollback(done.instant or "", completed=True).ok
    assert table.schema() == before
    assert both_views(path)[0].column("n").to_pylist() == [np.float32(0.1), np.float32(0.7)]
    assert table.validate(strict=True).ok
