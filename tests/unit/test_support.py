"""Support is a table: what is refused, for which command, with its sentence; and the page is made from it."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import UnsupportedTable
from hudi_services.model import FileSlice
from hudi_services.options import resolve
from hudi_services.runs.request import (
    AdviseRequest,
    ArchiveRequest,
    CleanRequest,
    ClusteringRequest,
    CompactionRequest,
    IndexDropRequest,
    IndexRequest,
    LookupRequest,
    Mode,
    OrphanFilesRequest,
    RecoverRequest,
    RescaleRequest,
    RollbackRequest,
    UndoRequest,
    ValidateRequest,
    WriteOperation,
    WriteRequest,
)
from hudi_services.snapshot import Snapshot
from hudi_services.table.support import (
    BARE_FILES,
    BUCKETS,
    FEATURES,
    LOG_FILES,
    Operation,
    are_buckets,
    check_group,
    check_support,
)
from scripts.make_support_table import PAGE, page

from .tables import digest, merged_rows, open_local, unpack

PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "other table types": {"hoodie.table.type": "READ_ON_MERGE"},
    "ORC and HFile base files": {"hoodie.table.base.file.format": "ORC"},
    "base files of several formats": {"hoodie.table.multiple.base.file.formats.enable": "TRUE"},
    "bootstrapped tables without their index": {
        "hoodie.bootstrap.base.path": "s3://there",
        "hoodie.bootstrap.index.enable": "false",
    },
    "other table formats": {"hoodie.table.format": "iceberg"},
    "unknown indexes, and expression indexes that are being built": {
        "hoodie.table.metadata.partitions": "files,new_index"
    },
    "copy-on-write tables": {"hoodie.table.type": "COPY_ON_WRITE"},
    "tables without a metadata table": {"hoodie.table.metadata.partitions": ""},
    "record indexes of tables without meta fields": {
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.metadata.partitions": "files,record_index",
    },
    "tables without meta fields": {
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.metadata.partitions": "files",
    },
    "change data capture in another form than Hudi reads, or without meta fields": {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "CDC_DATA_BEFORE",
    },
    "files without the partition columns, in tables without meta fields": {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.populate.meta.fields": "false",
    },
}
_ENDED = "schema history that has ended, or of tables without meta fields or bootstrapped by metadata alone"
_OFF = "bootstrapped tables without their index"
_HFILE = f".hoodie/.aux/.bootstrap/.partitions/{'0' * 8}-0000-0000-0000-{'0' * 12}-0_1-0-1_00000000000001.hfile"
FILES = {
    _OFF: _HFILE,
    _ENDED: ".hoodie/.schema/20260101000000000.schemacommit",
    "bucket index with consistent hashing": ".hoodie/.bucket_index/consistent_hashing_metadata/p/0.hashing_meta",
}


_BY_SLICES = {BUCKETS, BARE_FILES, *LOG_FILES}


def with_feature(name: str, folder: Path) -> Snapshot:
    path = unpack("1.2.0", folder)
    if name in FILES:
        file = path / FILES[name]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    table = open_local(path)
    config = dataclasses.replace(table.config, raw={**table.config.raw, **PROPERTIES.get(name, {})})
    return dataclasses.replace(table, config=config)


def test_every_feature_has_its_case() -> None:
    assert {one.name for one in FEATURES} == {*PROPERTIES, *FILES, *(one.name for one in _BY_SLICES)}


@pytest.mark.parametrize("feature", [one for one in FEATURES if one not in _BY_SLICES], ids=lambda one: one.name)
def test_a_feature_is_refused_by_its_operations_alone(feature: Any, tmp_path: Path) -> None:
    table = with_feature(feature.name, tmp_path)
    others = {one for other in FEATURES if other is not feature and other.find(table) for one in other.refused}
    for operation in Operation:
        if operation not in feature.refused:
            if operation not in others:
                check_support(operation, table)
            continue
        with pytest.raises(UnsupportedTable) as refused:
            check_support(operation, table)
        assert refused.value.message.startswith(f"{table.storage.root} has ") and feature.why in refused.value.message
        assert refused.value.hint == feature.hint


def test_a_table_without_such_features(tmp_path: Path) -> None:
    table = open_local(unpack("1.2.0", tmp_path))
    for operation in {*Operation} - {Operation.COMPACT}:
        check_support(operation, table)
    raw = {**table.config.raw, "hoodie.table.type": "MERGE_ON_READ"}
    check_support(Operation.COMPACT, dataclasses.replace(table, config=dataclasses.replace(table.config, raw=raw)))


@pytest.mark.parametrize("feature", LOG_FILES, ids=lambda one: one.name)
def test_log_files_that_are_not_merged_are_refused_for_their_own_reason(feature: Any, tmp_path: Path) -> None:
    """Slices without log files are rewritten all the same."""
    path = unpack("1.2.0", tmp_path, "vectors")
    properties = path / ".hoodie" / "hoodie.properties"
    lines = [
        line
        for line in properties.read_text().splitlines()
        if not line.startswith((feature.told_by, "hoodie.table.checksum"))
    ]
    properties.write_text("\n".join([*lines, f"{feature.told_by}={LOG_FILES[feature]}", ""]))
    options = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.table.services.enabled": "false"}
    table = hudi_services.open(path, engine="local", options=options)
    before = digest(path)
    rows = pa.table({"id": [1], "ts": [9], "p": ["a"]})
    null = {"hoodie.write.set.null.for.missing.columns": "true"}
    for run in (table.plan_clustering, table.plan_compaction, lambda: table.upsert(rows, options=null)):
        with pytest.raises(UnsupportedTable) as refused:
            run()
        assert feature.told_by in refused.value.message
    with pytest.raises(UnsupportedTable, match="the table vectors has ") as refused:
        table.plan_compaction()
    assert refused.value.message == f"the table vectors has {feature.told_by}={LOG_FILES[feature]}, {feature.why}"
    assert refused.value.hint == feature.hint
    assert digest(path) == before


def test_log_files_of_tables_without_the_partition_columns_are_merged(tmp_path: Path) -> None:
    """Hudi reads the columns from the path; here the files have them, and in tests/interop/test_hudi_types.py not."""
    path = unpack("1.2.0", tmp_path, "vectors")
    properties = path / ".hoodie" / "hoodie.properties"
    key = "hoodie.datasource.write.drop.partition.columns"
    lines = [line for line in properties.read_text().splitlines() if "checksum" not in line]
    properties.write_text("\n".join([*(line for line in lines if key not in line), f"{key}=true", ""]))
    table = hudi_services.open(path, engine="local")
    before = merged_rows(path)
    assert table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"}).instant
    assert merged_rows(path) == before
    assert table.validate().exit_code == 0


def test_file_groups_named_after_buckets(tmp_path: Path) -> None:
    table = open_local(unpack("1.2.0", tmp_path))
    buckets = [FileSlice("p", f"{n:08d}-0000-4000-8000-000000000000-0", "1", None) for n in range(3)]
    with pytest.raises(UnsupportedTable, match="named after buckets") as refused:
        check_group(buckets, table.storage)
    assert refused.value.hint == BUCKETS.hint
    check_group(buckets[:1], table.storage)
    other = FileSlice("p", "a0000000-0000-4000-8000-000000000000-0", "1", None)
    check_group([*buckets, other], table.storage)
    assert are_buckets(buckets) and not are_buckets([*buckets, other]) and not are_buckets([])


def test_requests_name_their_operations() -> None:
    common: dict[str, Any] = {"base_path": "/t", "options": resolve([])}
    requests = [
        *(ClusteringRequest(mode=mode, **common) for mode in Mode),
        CompactionRequest(mode=Mode.SCHEDULE, **common),
        CleanRequest(**common),
        ArchiveRequest(**common),
        ValidateRequest(**common),
        RecoverRequest(**common),
        IndexRequest(**common),
        IndexRequest(index="files", **common),
        RescaleRequest(**common),
        IndexDropRequest(index="record", **common),
        LookupRequest(keys=None, **common),
        AdviseRequest(**common),
        OrphanFilesRequest(**common),
        *(kind(instant="1", **common) for kind in (RollbackRequest, UndoRequest)),
        *(WriteRequest(operation=operation, **common) for operation in WriteOperation),
    ]
    assert {operation for one in requests for operation in one.operations} == set(Operation)


def test_the_page_is_made_from_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run: python -m scripts.make_support_table"
