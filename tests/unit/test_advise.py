"""Advice from predicates: no row is skipped, predictions hold after the clustering, logs of real Spark are read."""

import gzip
import json
import math
import shlex
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.advising import event_log, sampled_groups
from hudi_services.advising.column_values import FileRange, coded
from hudi_services.advising.earlier_clusterings import earlier_clusterings
from hudi_services.advising.file_ranges import RangedSlice, SliceRanges, chances_by_ranges
from hudi_services.advising.filter_texts import expression_sql, pushed_sql
from hudi_services.advising.layout_search import Prediction, Read, simplest_of
from hudi_services.advising.predicates import AllOf, Predicate, Unknown, begins_with, equal
from hudi_services.advising.sampled_groups import RowLayout
from hudi_services.advising.scan_filters import expression_condition, pushed_condition
from hudi_services.advising.seen_rows import chances_of_files
from hudi_services.advising.sql_clauses import NamedColumns, clause_condition
from hudi_services.cli.app import run
from hudi_services.model import FileSlice
from hudi_services.schema.column_type import ColumnType, Kind

from .rides import FILTERS, create
from .tables import open_local

LOGS = Path(__file__).resolve().parents[1] / "fixtures" / "event_logs"
TARGET = "hoodie.clustering.plan.strategy.target.file.max.bytes"
START = datetime(2024, 1, 1, tzinfo=timezone.utc)
TEXTS = ["", "a", "ab", "abc", "abd", "b", "B", "z", "ü", "\uffff", "\U0010ffff"]


def rows_of_file(random: np.random.Generator, number: int, rows: int) -> pa.Table:
    """Few values near each other in each file, nulls, NaN, both zeros; some columns have no value at all."""
    base = int(random.integers(-20, 20))
    numbers = random.integers(base, base + 6, rows)
    floats = np.where(random.random(rows) < 0.2, math.nan, numbers / 2)
    nulls = 1.0 if random.random() < 0.1 else random.choice([0.0, 0.3])

    def nullable(values: object, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=random.random(rows) < nulls)

    return pa.table(
        {
            "id": [f"{number}-{n}" for n in range(rows)],
            "n": nullable(numbers, pa.int64()),
            "x": nullable(floats, pa.float64()),
            "s": nullable(
                np.array(TEXTS, object)[random.integers(0, len(TEXTS), rows) // 3 * 2 % len(TEXTS)], pa.string()
            ),
            "d": nullable([date(2024, 1, 25) + timedelta(days=int(n)) for n in numbers], pa.date32()),
            "t": nullable([START + timedelta(hours=int(n)) for n in numbers], pa.timestamp("us", "UTC")),
            "m": nullable([Decimal(int(n)) / 4 for n in numbers], pa.decimal128(9, 2)),
            "b": nullable(numbers % 5 == 0, pa.bool_()),
        }
    )


def literal(random: np.random.Generator, column: str) -> str:
    n = int(random.integers(-24, 28))
    if column == "s":
        return f"'{TEXTS[int(random.integers(0, len(TEXTS)))]}'"
    return {
        "n": str(n),
        "x": f"{n / 2}",
        "d": f"DATE '{date(2024, 1, 25) + timedelta(days=n)}'",
        "t": f"TIMESTAMP '{START + timedelta(hours=n):%Y-%m-%d %H:%M:%S}'",
        "m": f"{n / 4:.2f}",
        "b": str(n % 2 == 0).lower(),
    }[column]


def clause(random: np.random.Generator, depth: int = 0) -> str:
    kind = int(random.integers(0, 12 if depth < 3 else 9))
    column = "nxsdtmb"[int(random.integers(0, 7))]
    one, two = literal(random, column), literal(random, column)
    if kind == 9:
        return f"NOT ({clause(random, depth + 1)})"
    if kind > 9:
        return f"({clause(random, depth + 1)} {'AND' if kind == 10 else 'OR'} {clause(random, depth + 1)})"
    negation = "NOT " if random.random() < 0.3 else ""
    return [
        f"{column} {random.choice(['=', '<>', '<', '<=', '>', '>='])!s} {one}",
        f"{one} {random.choice(['=', '<>', '<', '<=', '>', '>='])!s} {column}",
        f"{column} {negation}BETWEEN {min(one, two)} AND {max(one, two)}",
        f"{column} {negation}IN ({one}, {two}, {literal(random, column)})",
        f"{column} IS {negation}NULL",
        f"s {negation}LIKE '{random.choice(['a', 'ab', 'z', '', 'ü'])!s}%'",
        f"s {negation}LIKE 'ab'",
        f"length(s) {random.choice(['=', '<'])!s} 2",
        "b" if negation else "NOT b",
    ][kind]


@pytest.mark.thorough
def test_no_file_with_a_row_is_skipped(tmp_path: Path) -> None:
    """Seeded clauses over files of real statistics, against DuckDB, which orders NaN, nulls and texts as Spark does."""
    import duckdb

    random = np.random.default_rng(20)
    table = create(tmp_path / "t", partition_by=None, ordering=None)
    files = [rows_of_file(random, number, 12) for number in range(12)]
    for one in files:
        table.bulk_insert(one)
    snapshot = open_local(tmp_path / "t")
    assert snapshot.schema is not None
    columns = NamedColumns(snapshot.schema.types)
    reader = SliceRanges(snapshot, {name: snapshot.schema.types[name] for name in "nxsdtmb"})
    ranged = reader.read(sorted(snapshot.view.live_slices(), key=lambda one: one.base_instant))
    assert len(ranged) == len(files) and not reader.from_footers

    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.register(
        "rows", pa.concat_tables(one.append_column("file", pa.array([n] * 12)) for n, one in enumerate(files))
    )
    skipped = 0
    for _ in range(500):
        text = clause(random)
        found = {n for (n,) in database.execute(f"SELECT DISTINCT file FROM rows WHERE {text}").fetchall()}
        chances = chances_by_ranges(Predicate(text, 1.0, clause_condition(text, columns)), ranged)
        assert set(chances.tolist()) <= {0.0, 1.0}
        skips = {n for n, chance in enumerate(chances) if not chance}
        assert not found & skips, (text, found & skips)
        skipped += len(skips)
    assert skipped > 1500


NOON = datetime(2024, 1, 5, 12, 0, 0, 123456)
CONVERTED: list[tuple[ColumnType, pa.Scalar, list[str]]] = [
    (ColumnType(Kind.INT), pa.scalar(5), ["c = '5.5'", "c BETWEEN '5.5' AND '5.5'", "c >= '5.1'", "c NOT IN ('05')"]),
    (
        ColumnType(Kind.INT),
        pa.scalar(5),
        ["c = '5'", "c = 5.0", "c IN ('5', NULL)", "c < '6'", "c < 5.5", "NOT c > '5'"],
    ),
    (ColumnType(Kind.LONG), pa.scalar(2**53), ["c = 9.007199254740993e15", "c IN (9.007199254740993e15, NULL)"]),
    (ColumnType(Kind.FLOAT), pa.scalar(0.1, pa.float32()), ["c = '0.1'", "c IN ('0.1')", "c > 0.1", "c <> 0.1"]),
    (ColumnType(Kind.FLOAT), pa.scalar(0.1, pa.float32()), ["c IN (0.1, '5')", "c NOT IN ('0.10')"]),
    (ColumnType(Kind.DOUBLE), pa.scalar(5.0), ["c NOT IN ('05')", "c = '5'", "c = 5"]),
    (
        ColumnType(Kind.DECIMAL, precision=38, scale=20),
        pa.scalar(Decimal("0.10000000000000000001"), pa.decimal128(38, 20)),
        ["c = '0.1'", "c = 1e-1", "c <= '0.1'", "c IN (1e-1, NULL)", "c > 0.1"],
    ),
    (
        ColumnType(Kind.DATE),
        pa.scalar(date(2024, 1, 5)),
        [
            "c < TIMESTAMP'2024-01-05 12:00:00'",
            "c <> TIMESTAMP_NTZ'2024-01-05 12:00:00'",
            "c = '2024-01-05 12:00:00'",
            "c NOT IN ('2024-01-05 12:00:00+02:00')",
            "NOT c = TIMESTAMP'2024-01-05 12:00:00'",
        ],
    ),
    (
        ColumnType(Kind.TIMESTAMP, unit="micros", utc=True),
        pa.scalar(NOON, pa.timestamp("us", "UTC")),
        [
            "c = '2024-01-05 12:00:00.123456789'",
            "c > CAST('2024-01-05 18:00:00' AS DATE)",
            "c > DATE'2024-01-05'",
            "c = TIMESTAMP'2024-01-05 14:00:00.123456+02:00'",
        ],
    ),
    (
        ColumnType(Kind.TIMESTAMP, unit="micros", utc=False),
        pa.scalar(NOON, pa.timestamp("us")),
        ["c = '2024-01-05 12:00:00.123456+02:00'", "c = TIMESTAMP_NTZ'2024-01-05 12:00:00.123456+02:00'"],
    ),
]
"""Clauses that are true of a row of this value, said Spark 3.5: it converts the literal or the column, or rounds."""


@pytest.mark.parametrize("at", range(len(CONVERTED)))
def test_literals_that_spark_converts_skip_no_row(at: int) -> None:
    kind, row, texts = CONVERTED[at]
    (value,) = coded(pa.chunked_array([pa.array([row.as_py()], row.type)])).values
    file = RangedSlice(FileSlice("", "f", "", None), {"c": FileRange(value, value, has_nulls=False)})
    for text in texts:
        condition = clause_condition(text, NamedColumns({"c": kind}))
        assert chances_by_ranges(Predicate(text, 1.0, condition), [file]).tolist() == [1.0], text


CLUSTERED = {TARGET: "20000", "hoodie.time.generator.max_expected_clock_skew_ms": "0", **FILTERS}
CLAUSES = [
    (2.0, "n BETWEEN 100 AND 180"),
    (1.0, "s = 'k0077'"),
    (1.0, "n < 500 AND s > 'k0200'"),
    (1.0, "upper(s) = 'X'"),
]


def shuffled(folder: Path, files: int = 6, rows: int = 500) -> hudi_services.Table:
    table = create(folder, partition_by=None, ordering=None)
    random = np.random.default_rng(7)
    for number in range(files):
        n = random.integers(0, 1000, rows)
        table.bulk_insert(
            pa.table(
                {
                    "id": [f"{number}-{at}" for at in range(rows)],
                    "n": n,
                    "s": [f"k{one:04d}" for one in random.integers(0, 300, rows)],
                    "pad": [f"{one:x}" for one in random.integers(0, 1 << 60, rows)],
                }
            )
        )
    return table


@pytest.mark.thorough
def test_what_is_advised_is_what_the_clustering_gives(tmp_path: Path) -> None:
    """All rows are in the sample of so small a table: prediction and result are equal. Then there is nothing to do."""
    table = shuffled(tmp_path / "t")
    advice = table.advise(CLAUSES, options=CLUSTERED)
    assert advice.ok and advice.reason is not None and advice.reason.startswith("cluster in "), advice.reason
    now, *layouts = advice.report["tables"]["layouts"]
    assert now["files_read"] == 6 * 5.0 and [one["is_advised"] for one in layouts].count(True) == 1
    assert {one["layout"] for one in layouts} == {"NONE", "LINEAR", "ZORDER", "HILBERT"}
    assert [one["unknown"] for one in advice.report["tables"]["predicates"]] == [0, 0, 0, 1]
    assert any("UPPER(s) = 'X'" in warning for warning in advice.warnings)
    assert advice.report["tables"]["earlier_clusterings"] == []
    chosen = next(one for one in layouts if one["is_advised"])
    named = {"LINEAR": "linear order", "ZORDER": "z-order", "HILBERT": "hilbert order"}[chosen["layout"]]
    assert f"cluster in {named} by {chosen['columns']}: " in advice.reason

    # As a shell reads it: commas are quoted, so that lines of a console break between the words of the command.
    given = dict(word.split("=", 1) for word in shlex.split(chosen["command"]) if word.startswith("hoodie."))
    clustered = hudi_services.open(tmp_path / "t", options={**CLUSTERED, **given}, engine="local")
    clustered.cluster()
    again = clustered.advise(CLAUSES, options=CLUSTERED)
    after = again.report["tables"]["layouts"][0]
    assert clustered.files().num_rows == chosen["new_files"]
    assert after["files_read"] == chosen["files_read"]
    assert after["read_bytes"] == pytest.approx(chosen["read_bytes"], rel=0.1)
    assert again.reason is not None and again.reason.startswith("do not cluster: "), again.reason
    (earlier,) = again.report["tables"]["earlier_clusterings"]
    assert (earlier["old_files"], earlier["files_before"]) == (6, 30.0)
    assert earlier["files_after"] == after["files_read"] and earlier["saved_percent"] > 10 and earlier["why"] is None

    # Where the old files are gone, nothing is made up.
    snapshot = open_local(tmp_path / "t")
    for file in tmp_path.glob("t/*.parquet"):
        if file.name not in {path.rpartition("/")[2] for path in clustered.files()["path"].to_pylist()}:
            file.unlink()
    snapshot = open_local(tmp_path / "t")
    assert snapshot.schema is not None
    kind = snapshot.schema.types["n"]
    condition = clause_condition("n < 5", NamedColumns({"n": kind}))
    reader = SliceRanges(snapshot, {"n": kind})
    (gone,) = earlier_clusterings(snapshot, [Predicate("n < 5", 1.0, condition)], reader)
    assert gone.before is None or gone.totals(np.ones(1)) is not None


def test_no_sort_is_advised_for_an_error_of_the_estimate(tmp_path: Path) -> None:
    """Each of many small files has a dictionary of its own, and the file that they become has one: that is no gain of
    an order."""
    table = create(tmp_path / "t", partition_by=None, ordering=None, options=FILTERS)
    texts = [f"{number:064x}" for number in np.random.default_rng(7).integers(0, 1 << 62, 300)]
    for number in range(10):
        ids = range(number * 600, number * 600 + 600)
        table.bulk_insert(pa.table({"id": [f"{one:05}" for one in ids], "n": [*ids], "s": texts * 2}))
    advice = table.advise(["n BETWEEN 700 AND 5000", "s > ''"], options=FILTERS)
    _, *layouts = advice.report["tables"]["layouts"]
    (chosen,) = [one for one in layouts if one["is_advised"]]
    by_n = next(one for one in layouts if (one["layout"], one["columns"]) == ("LINEAR", "n"))
    assert chosen["layout"] == "NONE" and chosen["read_bytes"] == pytest.approx(by_n["read_bytes"], rel=0.05)
    hudi_services.open(tmp_path / "t", options=FILTERS, engine="local").cluster()
    (size,) = hudi_services.open(tmp_path / "t").files()["size"].to_pylist()
    assert chosen["read_bytes"] == pytest.approx(2 * size, rel=0.05)


@pytest.mark.parametrize(
    ("read", "layout"),
    [((100, 97, 96), "NONE"), ((100, 90, 89), "LINEAR"), ((100, 97, 80), "ZORDER"), ((94, 97, 90), "NONE")],
)
def test_the_simplest_layout_wins_within_the_error(read: tuple[int, ...], layout: str) -> None:
    of_kind = zip(("NONE", "LINEAR", "ZORDER"), read, strict=True)
    outcomes = [
        Prediction(RowLayout(name), 1 << 30, 3, 100.0, Read(np.array([3.0]), np.array([float(size)])))
        for name, size in of_kind
    ]
    assert simplest_of(outcomes[::-1], np.ones(1)).layout.name == layout


def test_the_commands_can_be_copied_and_what_gets_worse_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files by n, which one predicate asks for: when they are one file, it reads all rows. Each command is its own."""
    monkeypatch.setenv("COLUMNS", "80")
    table = create(tmp_path / "t", partition_by=None, ordering=None, options=FILTERS)
    for number in range(8):
        ids = [*range(number * 200, number * 200 + 200)]
        table.bulk_insert(pa.table({"id": [f"{one:05}" for one in ids], "n": ids, "s": ["x" * 99] * 200}))
    (tmp_path / "own.sql").write_text("n < 30\n9\ts > ''\n")
    conf = [f"--hoodie-conf={key}={value}" for key, value in FILTERS.items()]
    assert run(["advise", "--base-path", str(tmp_path / "t"), "--predicates", str(tmp_path / "own.sql"), *conf]) == 0
    told = capsys.readouterr().out
    first, _, rest = told.partition("\nnext:")
    assert "Cluster without a sort: a run of the predicates then reads" in " ".join(first.split())
    assert "1 of 2 predicates then reads more than now." in " ".join(first.split())
    commands = rest.partition("\n\n")[0].replace("\\\n", " ").splitlines()
    assert [shlex.split(one)[:2] for one in commands] == [["hudi-services", "schedule"], ["hudi-services", "execute"]]
    assert "hoodie.layout.optimize.strategy=NONE" in shlex.split(commands[0])
    assert not any(one.rstrip().endswith((",", ".")) for one in commands)


def test_a_gain_below_the_cost_is_no_advice(tmp_path: Path) -> None:
    table = shuffled(tmp_path / "t", files=3)
    wide = table.advise(["n >= 0"], options=CLUSTERED)
    assert wide.reason is not None and wide.reason.startswith("do not cluster: a run of the predicates would ")
    few = table.advise(CLAUSES, executions=1, options=CLUSTERED)
    assert few.reason is not None and "and 1 is the most" in few.reason
    greedy = table.advise(CLAUSES, least_percent=99, options=CLUSTERED)
    assert greedy.reason is not None and "99 % is the least" in greedy.reason
    assert not any(one["is_advised"] for advice in (wide, few, greedy) for one in advice.report["tables"]["layouts"])


def test_a_sample_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled(tmp_path / "t")
    monkeypatch.setattr(sampled_groups, "LEAST_ROWS", 300)
    monkeypatch.setattr(sampled_groups, "MOST_FILES", 4)
    snapshot = open_local(tmp_path / "t")
    assert snapshot.schema is not None
    ranged = SliceRanges(snapshot, {"n": snapshot.schema.types["n"]}).read(snapshot.view.live_slices())
    (group,) = sampled_groups.Sampler(snapshot, ["n"]).draw([ranged])
    assert group.table.column_names == ["n"] and 200 < group.table.num_rows < 400
    assert group.rows == pytest.approx(3000, rel=0.05)
    order = group.order(sampled_groups.RowLayout("LINEAR", ("n",)))
    assert group.coded["n"].codes[order].tolist() == sorted(group.coded["n"].codes.tolist())


def test_rows_that_a_sample_misses_count() -> None:
    """Files of random rows: each has rare rows, and few are sampled. Files of sorted rows: no other file has them."""
    random = np.random.default_rng(3)
    files, rows, share = 20, 5000, 0.02
    rare = random.random(files * rows) < 0.002
    sampled = random.random(files * rows) < share
    seen = (rare & sampled).reshape(files, rows).sum(axis=1)
    real = int(rare.reshape(files, rows).any(axis=1).sum())
    predicted = chances_of_files(seen, files * rows, int(sampled.sum()), is_there=True).sum()
    assert real == files and (seen > 0).sum() < 15 and predicted > 0.8 * real
    together = np.array([0] * 18 + [1, 30])
    assert chances_of_files(together, files * rows, int(sampled.sum()), is_there=True).sum() == 2
    assert chances_of_files(together, files * rows, files * rows, is_there=True).sum() == 2
    assert not chances_of_files(together, 1000, 100, is_there=False).any()


def logged(name: str, path: Path | None = None) -> list[tuple[str, float, list[str]]]:
    kinds = {
        "id": ColumnType(Kind.STRING),
        "region": ColumnType(Kind.STRING),
        "city": ColumnType(Kind.STRING),
        "fare": ColumnType(Kind.DOUBLE),
        "price": ColumnType(Kind.DECIMAL, precision=8, scale=2),
        "riders": ColumnType(Kind.INT),
        "is_shared": ColumnType(Kind.BOOLEAN),
        "day": ColumnType(Kind.DATE),
        "ts": ColumnType(Kind.TIMESTAMP, unit="micros", utc=True),
        "note": ColumnType(Kind.STRING),
    }
    file = path or LOGS / name
    root = (LOGS / "table.txt").read_text().strip()
    found = event_log.logged_predicates(str(file), root, NamedColumns(kinds))
    return [(one.text, one.weight, one.unknown) for one in found]


EXPECTED = [
    ("fare > 20.5 AND fare <= 40.0", 2.0, 0),
    ("city = 'Paris, (Texas)'", 1.0, 0),
    ("(city IN ('Oslo', 'Rome') OR day < '2024-01-03')", 1.0, 0),
    ("ts >= '2024-01-02 10:00:00.0' AND ts < '2024-01-03 00:00:00.5'", 1.0, 0),
    ("region = 'north' AND riders >= 2 AND riders <= 3", 1.0, 0),
    ("city LIKE 'Os%' AND price <> 12.50", 1.0, 0),
    ("note IS NULL", 1.0, 0),
    ("riders <> 3 AND is_shared = true", 1.0, 0),
    # The filter that Spark does not push down: length(city) = 4.
    ("riders > 1", 1.0, 1),
    # The scan of a join, which tells that its key is not null.
    ("city = 'Paris, (Texas)'", 1.0, 0),
]
"""What scripts/make_fixture_event_logs.py has asked Spark for; the scan of another table is not among it."""


@pytest.mark.parametrize("name", ["queries.zstd", "queries.lz4"])
def test_logs_of_real_spark_are_read(name: str, tmp_path: Path) -> None:
    assert [(text, weight, len(unknown)) for text, weight, unknown in logged(name)] == EXPECTED
    plain = b"".join(event_log._lines(name, (LOGS / name).read_bytes()))
    (tmp_path / "app-1").write_bytes(plain)
    (tmp_path / "app-2.gz").write_bytes(gzip.compress(plain))
    assert logged(name) == logged(name, tmp_path / "app-1") == logged(name, tmp_path / "app-2.gz")
    # That of an application which still runs ends anywhere in a line, or in a block.
    for end in (1, 20, 5_000):
        (tmp_path / "app-3.inprogress").write_bytes(plain[:-end])
        (tmp_path / f"app-4{Path(name).suffix}.inprogress").write_bytes((LOGS / name).read_bytes()[:-end])
        assert logged(name)[:3] == logged(name, tmp_path / "app-3.inprogress")[:3]
        cut = logged(name, tmp_path / f"app-4{Path(name).suffix}.inprogress")
        assert {text for text, _, _ in cut} <= {text for text, _, _ in logged(name)}
    with pytest.raises(hudi_services.ConfigError, match="is no event log of Spark that can be read"):
        (tmp_path / "app-5").write_bytes(plain[: plain.rindex(b"SQLExecutionStart") + 100])
        logged(name, tmp_path / "app-5")
    # A rolled log, of which the first two files were compacted.
    rolled, lines = tmp_path / "eventlog_v2_app", plain.splitlines(keepends=True)
    rolled.mkdir()
    half = len(lines) // 2
    files = {"events_2_app.gz.compact": lines[:half], "events_3_app.gz": lines[half:], "events_1_app.gz": lines}
    for file, of_file in files.items():
        (rolled / file).write_bytes(gzip.compress(b"".join(of_file)))
    (rolled / "appstatus_app").write_bytes(b"")
    assert event_log.is_event_log(f"{rolled}/", b"") and logged(name) == logged(name, rolled)
    events = [json.loads(line)["Event"] for line in plain.splitlines()]
    assert any(event.endswith("SQLExecutionStart") for event in events)


def test_filters_are_told_as_sql() -> None:
    """The texts of Spark's plans as clauses, which mean the same; what is not understood stays as it is."""
    columns = NamedColumns({"a": ColumnType(Kind.LONG), "s": ColumnType(Kind.STRING)})
    told = {
        "Or(And(EqualTo(a,1),IsNull(s)),StringStartsWith(s,x))": "((a = 1 AND s IS NULL) OR s LIKE 'x%')",
        "Not(And(GreaterThan(a,1),Not(IsNull(s))))": "NOT (a > 1 AND s IS NOT NULL)",
        "Not(In(a, [1,2]))": "NOT a IN (1, 2)",
        "EqualTo(s,it's)": r"s = 'it\'s'",
        "StringStartsWith(s,5%)": "StringStartsWith(s,5%)",
        "In(s, [a, b,c])": "In(s, [a, b,c])",
        "EqualTo(zz,1)": "EqualTo(zz,1)",
        "And(a": "And(a",
    }
    assert {text: pushed_sql(text, columns) for text in told} == told
    for text, sql in told.items():
        if text != sql and not sql.startswith("s ="):
            assert pushed_condition(text, columns) == clause_condition(sql, columns), text
    told = {
        "(a#1L >= 5)": "a >= 5",
        "(s#2 = a b)": "s = 'a b'",
        "((a#1L = 1) OR (a#1L < 3))": "((a#1L = 1) OR (a#1L < 3))",
    }
    assert {text: expression_sql(text, columns) for text in told} == told


def test_conditions_of_a_log_skip_what_sql_skips() -> None:
    """A filter as Spark shows it is the same condition as the clause that it comes from."""
    columns = NamedColumns({"a": ColumnType(Kind.LONG), "s": ColumnType(Kind.STRING), "d": ColumnType(Kind.DATE)})
    same = {
        "GreaterThan(a,5)": "a > 5",
        "Not(LessThanOrEqual(a,5))": "NOT a <= 5",
        "In(a, [1,2])": "a IN (1, 2)",
        "Not(In(a, [1,2]))": "a NOT IN (1, 2)",
        "Or(And(EqualTo(a,1),IsNull(s)),StringStartsWith(s,x))": "(a = 1 AND s IS NULL) OR s LIKE 'x%'",
        "EqualTo(s,a (b), c)": "s = 'a (b), c'",
        "GreaterThanOrEqual(d,2024-01-02)": "d >= DATE'2024-01-02'",
    }
    for pushed, sql in same.items():
        assert pushed_condition(pushed, columns) == clause_condition(sql, columns), pushed
    same = {
        "(a#1L > 5)": "a > 5",
        "NOT (a#1L = 5)": "a <> 5",
        "isnotnull(s#2)": "s IS NOT NULL",
        "((a#1L = 1) OR (d#3 < 2024-01-02))": "a = 1 OR d < '2024-01-02'",
        "a#1L IN (1,2)": "a IN (1, 2)",
    }
    for shown, sql in same.items():
        assert expression_condition(shown, columns) == clause_condition(sql, columns), shown
    # Texts may have the commas and words of lists: those of a row are not taken for something else.
    file = RangedSlice(FileSlice("", "f", "", None), {"s": FileRange("a,b", "a,b", has_nulls=False)})
    for condition in (
        pushed_condition("In(s, [a,b,c])", columns),
        pushed_condition("Not(In(s, [c,a,b]))", columns),
        expression_condition("s#2 IN (a,b,c)", columns),
    ):
        assert chances_by_ranges(Predicate("", 1.0, condition), [file]).tolist() == [1.0]
    assert expression_condition("(s#2 = a AND b)", columns) == AllOf((Unknown("s#2 = a"), Unknown("b")))
    for text in ("StringEndsWith(s,x)", "In(s, [a, b,c])", "EqualTo(zz,1)", "GreaterThan(a,x)", "And(a", ""):
        predicate = Predicate(text, 1.0, pushed_condition(text, columns))
        assert predicate.unknown == [text]


REFUSALS = {
    "no file": (None, "cannot be read: No such file"),
    "no predicate": ("# nothing\n\n", "there is no predicate"),
    "no SQL": ("n > \n", "is no predicate"),
    "more than a predicate": ("n > 3 ORDER BY n\n", "is more than a predicate"),
    "unknown column": ("n > 3\nage = 4\n", "names the column age, which the table does not have"),
    "no weight": ("often\tn = 3\n", "line 1: 'often' before the tab is no number"),
    "weight below nothing": ("-2\tn = 3\n", "the weight -2 of the predicate"),
    "no UTF-8": (b"n = \xff\n", "it is no UTF-8 text"),
    "log of another table": ('{"Event":"SparkListenerLogStart"}\n', "has no scan of"),
    "log in snappy": (b"x", "compressed by snappy, which is not read"),
    "broken log in lz4": (b"LZ4Block\x20", "it ends within a block"),
    "broken log in zstd": (b"no zstd", "is no event log of Spark that can be read"),
    "log that is no JSON": ('{"Event":"SparkListenerSQLExecutionStart"\n', "is no event log of Spark that can be read"),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "t"
    create(path, partition_by=None, ordering=None).insert(pa.table({"id": ["a", "b"], "n": [1, 2]}))
    return path


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_read_is_told_in_a_sentence(
    name: str, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, said = REFUSALS[name]
    ending = {"snappy": ".snappy", "lz4": ".lz4", "zstd": ".zstd"}.get(name.rpartition(" ")[2], ".txt")
    file = tmp_path / f"given{ending}"
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    assert run(["advise", "--base-path", str(small), "--predicates", str(file)]) == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split()) and "Traceback" not in told


def test_without_the_extra_one_sentence_says_so(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(hudi_services.ConfigError, match="needs the Python module sqlglot") as error:
        hudi_services.open(small).advise(["n = 3"])
    assert "hudi-services[advise]" in error.value.hint


def test_no_layout_helps_a_table_whose_rows_are_in_buckets(tmp_path: Path) -> None:
    buckets = {**FILTERS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    table = create(tmp_path / "t", partition_by=None, ordering=None, options=buckets)
    table.insert(pa.table({"id": [f"k{n}" for n in range(40)], "n": list(range(40))}))
    advice = table.advise(["n < 3"])
    assert advice.reason is not None and "the key of a row decides its file" in advice.reason
    assert [one["layout"] for one in advice.report["tables"]["layouts"]] == ["as it is"]


def test_predicates_and_a_log_exclude_each_other(small: Path) -> None:
    with pytest.raises(hudi_services.ConfigError, match="exclude each other"):
        hudi_services.open(small).advise(["n = 3"], event_log="log.zstd")


def test_hudi_misses_rows_of_texts_that_begin_with_another(small: Path) -> None:
    """findings/hudi_like_hides_rows.sh shows it with real Hudi."""
    advice = hudi_services.open(small).advise(
        ["id LIKE 'ab%'", "id >= 'ab' AND id < 'ac'", "id like '%ab'", "id = 'a%'"]
    )
    (warning,) = [one for one in advice.warnings if "misses rows" in one]
    assert "of 1 predicate " in warning and "such as of id LIKE 'ab%'" in warning
    of_log = Predicate("StartsWith(id,ab)", 1, begins_with("id", "ab"))
    assert of_log.searches_prefix and not Predicate("id = 'like x%'", 1, equal("id", "x")).searches_prefix
