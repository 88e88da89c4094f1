"""Expression indexes: true after our commits, used by Hudi's readers, kept by its writers; and their functions."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.derived_indexes.expression_index.expressions import compile_expression
from hudi_services.derived_indexes.expression_index.time_functions import Zone

from ..unit.expression_samples import CALLS, EXPRESSIONS_HERE, samples
from . import ours
from .conftest import Tables
from .peer import Peer, table_properties
from .pristine import Pristine
from .readers import same_rows
from .reading import newer
from .recipes import EXPRESSIONS

# The keys that each finds, all in one file; of a partition that Hudi does not write to here.
_QUERIES = {
    "from_unixtime(ts, 'yyyy-MM-dd') >= '2023-11-20'": list(range(110, 120)),
    "lower(name) = 'name-é25'": [25],
    "lower(name) = 'name-é300'": [],
}
# Keys found and files read, with data skipping that must not fail.
_ASK = """
result = []
for where in queries:
    frame = spark.read.format("hudi").options(**options).load(path).where(where).select("id")
    keys = sorted(row.id for row in frame.collect())
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    result.append([keys, scan.metrics().apply("numFiles").value()])
"""
_SKIPPING = {
    "hoodie.metadata.enable": "true",
    "hoodie.enable.data.skipping": "true",
    "hoodie.fileIndex.dataSkippingFailureMode": "strict",
}
_REBUILD = """
from tests.interop.recipes import EXPRESSIONS, Writer
again = [f"create index {name} on to_index using {what}" for name, what in EXPRESSIONS.items()]
Writer(spark, version, path).indexes(*(f"drop index {name} on to_index" for name in EXPRESSIONS), *again)
"""
_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
_INDEXES = {"expr_index_by_day": ["ts"], "expr_index_by_date": ["at"], "expr_index_lowered": []}


def _queries_are_right(peer: Peer, path: Path) -> None:
    found = peer.eval(_ASK, path=str(path), queries=list(_QUERIES), options=_SKIPPING)
    for (where, ids), (keys, files) in zip(_QUERIES.items(), found, strict=True):
        assert keys == [f"k-{one:06d}" for one in ids], where
        assert files == (1 if ids else 0), f"{files} files read for {where}"


def _records(peer: Peer, path: Path) -> dict[str, dict[tuple[str, ...], Any]]:
    """What Hudi finds in each index, by file, or by data partition for its range."""
    found = peer.metadata(path, _INDEXES)
    ranges = {
        index: {(_text(one["fileName"]), _text(one["columnName"])): one for one in found[index]}
        for index, columns in _INDEXES.items()
        if columns
    }
    return {**ranges, "expr_index_lowered": {(name,): text for name, text in found["expr_index_lowered"].items()}}


def _text(union: dict[str, str]) -> str:
    return next(iter(union.values()))


def _are_what_hudi_builds(peer: Peer, path: Path) -> None:
    """Hudi drops the indexes and creates them anew; ours have records of older files besides."""
    before = _records(peer, path)
    listed = {file.name for file in path.rglob("*.parquet")}
    assert {key[0] for records in before.values() for key in records if key[0].endswith(".parquet")} <= listed
    peer.eval(_REBUILD, path=str(path), version=peer.version)
    for index, built in _records(peer, path).items():
        assert built
        for key, record in built.items():
            found = before[index][key]
            if key[0].endswith(".parquet"):
                assert found == record, index
            else:
                # The upserts of 1.0.2 count older slices, too.
                assert [found[side] for side in ("minValue", "maxValue")] == [record["minValue"], record["maxValue"]]


@pytest.mark.releases("1.0.2", "1.2.0")
@pytest.mark.deep
def test_indexes_stay_true(peer: Peer, known: Pristine, table: Tables) -> None:
    path, rows = table("expressions"), known.rows("expressions")
    if peer.version == "1.2.0":
        # Once is enough of Spark's tasks, which are slow to come up.
        instant = ours.schedule(path, sort=("name",))
        ours.execute_on_spark(path)
        _queries_are_right(peer, path)
        ours.run("undo", path, "--instant", instant).ok()
        _queries_are_right(peer, path)
    zone = {"spark.sql.session.timeZone": "UTC"}
    ours.cluster(path, options=zone)
    assert same_rows(rows, peer.rows(path)) == []
    # Ids 0 to 14 are in two of three partitions.
    peer.upsert(path, newer(rows.sort_by("id").slice(0, 15)), **_COMPACT)
    ours.run("clean", path, options={"hoodie.clean.commits.retained": "1"}).ok()
    _queries_are_right(peer, path)
    listed = table_properties(path)["hoodie.table.metadata.partitions"].split(",")
    assert {f"expr_index_{name}" for name in EXPRESSIONS} <= set(listed)
    _are_what_hudi_builds(peer, path)


@pytest.mark.releases("1.0.2", "1.2.0")
@pytest.mark.deep
def test_built_here(peer: Peer, known: Pristine, table: Tables) -> None:
    """As `index-drop` and `index-bootstrap` leave them, Hudi uses them, keeps them, and builds the same."""
    path, rows = table("expressions"), known.rows("expressions")
    zone = {"spark.sql.session.timeZone": "UTC"}
    for index, text in EXPRESSIONS_HERE.items():
        ours.run("index-drop", path, "--index", index).ok()
        ours.run("index-bootstrap", path, "--index", text, options=zone).ok()
    _queries_are_right(peer, path)
    peer.upsert(path, newer(rows.sort_by("id").slice(0, 15)), **_COMPACT)
    _queries_are_right(peer, path)
    _are_what_hudi_builds(peer, path)


@pytest.mark.releases("1.2.0")
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_functions_are_those_of_spark(zone: str, peer: Peer, tmp_path: Path) -> None:
    source, target = tmp_path / "in.parquet", tmp_path / "out"
    rows = samples(zone)
    pq.write_table(rows, source)
    expressions = [f"{call.sql} as c{i}" for i, call in enumerate(CALLS)]
    peer.eval(
        'spark.conf.set("spark.sql.session.timeZone", zone)\n'
        'spark.read.parquet(parquet).selectExpr(*expressions).coalesce(1).write.parquet(target)\n'
        'spark.conf.set("spark.sql.session.timeZone", "UTC")',
        zone=zone, parquet=str(source), target=str(target), expressions=expressions,
    )  # fmt: skip
    spark = pq.read_table(target)
    for i, call in enumerate(CALLS):
        expression = compile_expression(call.function, call.options, call.column_type, Zone.parse(zone))
        found = expression.apply(rows[call.column].combine_chunks().cast(expression.source))
        true = spark[f"c{i}"].combine_chunks()
        if pa.types.is_timestamp(true.type):
            true = true.cast(found.type)
        assert found.equals(true), call
