"""Tables that we create: their properties are those of a table of real Hudi, which then writes into them."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import hudi_services
from hudi_services.codecs.properties import parse_properties
from hudi_services.versions import VERSIONS as TABLE_VERSIONS

from .peer import Peer, PeerError
from .readers import Refused, hudi_rs_rows
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_WRITE = "hoodie.datasource.write."
_MODEL = "org.apache.hudi.common.model."
_KEYGEN = "org.apache.hudi.keygen."
_TIME = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
}
_BASE = {
    "hoodie.table.name": "rides",
    f"{_WRITE}recordkey.field": "id",
    f"{_WRITE}partitionpath.field": "part",
    f"{_WRITE}precombine.field": "ts",
}
CASES: Mapping[str, Mapping[str, str | None]] = {
    "plain": {},
    "merge on read": {f"{_WRITE}table.type": "MERGE_ON_READ"},
    "no ordering": {f"{_WRITE}precombine.field": None, f"{_WRITE}table.type": "MERGE_ON_READ"},
    "several fields": {f"{_WRITE}recordkey.field": "id,name", f"{_WRITE}partitionpath.field": "part,day"},
    "complex": {f"{_WRITE}keygenerator.class": f"{_KEYGEN}ComplexKeyGenerator"},
    "no partitions": {f"{_WRITE}partitionpath.field": None},
    "hive style": {
        f"{_WRITE}hive_style_partitioning": "true",
        f"{_WRITE}partitionpath.urlencode": "true",
        "hoodie.database.name": "lake",
    },
    "time": {
        f"{_WRITE}partitionpath.field": "ts",
        f"{_WRITE}keygenerator.class": f"{_KEYGEN}TimestampBasedKeyGenerator",
        **_TIME,
    },
    "custom": {
        f"{_WRITE}partitionpath.field": "part:SIMPLE,ts:TIMESTAMP",
        f"{_WRITE}keygenerator.class": f"{_KEYGEN}CustomKeyGenerator",
        **_TIME,
    },
    "no meta fields": {"hoodie.populate.meta.fields": "false", f"{_WRITE}operation": "bulk_insert"},
    "payload": {f"{_WRITE}payload.class": f"{_MODEL}DefaultHoodieRecordPayload"},
    "latest payload": {
        f"{_WRITE}payload.class": f"{_MODEL}OverwriteWithLatestAvroPayload",
        f"{_WRITE}table.type": "MERGE_ON_READ",
    },
    "merge mode": {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
    "metafile, UTC": {"hoodie.partition.metafile.use.base.format": "true", "hoodie.table.timeline.timezone": "UTC"},
}
_OF_THE_FIRST_WRITE = {
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.index.defs.path",
}
_WRITE_ROWS = """
frame = spark.createDataFrame(rows, "id string, name string, part string, day string, ts string")
frame = frame.withColumn("ts", frame.ts.cast("bigint")).coalesce(1)
frame.write.format("hudi").options(**options).mode("append").save(path)
"""
_ROWS = [
    ["1", "a", "p0", "d0", "1700000000000"],
    ["2", "b", "p1", "d0", "1700000000001"],
    ["3", "c", "p1", "d1", "1700000000002"],
]
_READ = """
result = [list(row) for row in spark.read.format("hudi").load(path).select("id", "name", "day").collect()]
"""


def properties(path: Path) -> dict[str, str]:
    return parse_properties((path / ".hoodie/hoodie.properties").read_bytes(), "hoodie.properties")


@pytest.mark.deep
def test_hudi_takes_our_tables_for_its_own(peer: Peer, tmp_path: Path) -> None:
    version = peer.table_version
    for case, more in CASES.items():
        if "merge.mode" in "".join(more) and version.number == min(TABLE_VERSIONS):
            continue
        options = {key: text for key, text in {**_BASE, **more}.items() if text is not None}
        theirs, ours = tmp_path / case / "theirs", tmp_path / case / "ours"
        hudi_services.create(ours, table_version=version.number, options=options, engine="local")
        made = properties(ours)
        writing = {**WRITE_DEFAULTS, **SMALL_FILTERS, f"{_WRITE}operation": "upsert", **options}
        peer.eval(_WRITE_ROWS, path=str(theirs), options=writing, rows=_ROWS[:2])
        wanted = {key: text for key, text in properties(theirs).items() if key not in _OF_THE_FIRST_WRITE}
        # 0.15.0 keeps some of these options; our writer needs them all.
        kept = {key: text for key, text in made.items() if not key.startswith("hoodie.keygen.")}
        assert kept == {key: text for key, text in wanted.items() if not key.startswith("hoodie.keygen.")}, case
        peer.eval(_WRITE_ROWS, path=str(ours), options=writing, rows=_ROWS[:2])
        # Some readers refuse some key generators, and then also in the table that Hudi made.
        seen = {path: [_read(peer, path), _read_by_hudi_rs(path)] for path in (theirs, ours)}
        assert seen[ours] == seen[theirs], case
        peer.eval(_WRITE_ROWS, path=str(ours), options=writing, rows=_ROWS[1:])
        assert properties(ours).items() >= made.items(), case
        if isinstance(seen[theirs][0], list):
            # Without meta fields, rows are only added.
            again = [] if more.get("hoodie.populate.meta.fields") is None else [_ROWS[1]]
            assert _read(peer, ours) == sorted([id, name, day] for id, name, _, day, _ in [*_ROWS, *again]), case
        assert hudi_services.open(ours, engine="local").validate().exit_code == 0, case


def _read(peer: Peer, path: Path) -> object:
    try:
        return sorted(peer.eval(_READ, path=str(path)))
    except PeerError as error:
        return re.search(r"java\.[\w.]+Exception", str(error))[0]  # type: ignore[index]


def _read_by_hudi_rs(path: Path) -> object:
    try:
        return hudi_rs_rows(path).num_rows
    except Refused as error:
        return str(error)
