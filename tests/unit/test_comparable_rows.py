"""Null ordering values on merge-on-read: what is committed can be read, and what is refused could not."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import UnsupportedTable

from .rides import FILTERS, create
from .tables import merged_rows, open_local

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")
_DEFAULT = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
Given = Sequence[tuple[str, "int | None", bool]]
"""Keys with their ordering values, and whether they are deleted."""


def table_of(given: Given, ordering: str) -> pa.Table:
    values = pa.array([value for _, value, _ in given], pa.int64())
    ones = pa.array([1] * len(given), pa.int64())
    nested = ordering.startswith("m.")
    return pa.table(
        {
            "id": [key for key, _, _ in given],
            "ts": ones if nested else values,
            "m": pa.StructArray.from_arrays([values if nested else ones, ones], ["ts", "u"]),
            "_hoodie_is_deleted": [deletes for _, _, deletes in given],
        }
    )


@pytest.mark.thorough
@pytest.mark.spread(6)
@pytest.mark.parametrize("index", [{"hoodie.index.type": "SIMPLE"}, _BUCKET], ids=["simple", "bucket"])
@pytest.mark.parametrize(
    ("version", "ordering", "more"),
    [(6, "ts", {}), (6, "ts", _DEFAULT), (8, "ts", {}), (9, "ts", {}), (9, "m.ts", {}), (9, "m.ts,m.u", {})],
    ids=["6", "6, by the ordering value", "8", "9", "9, nested", "9, two of one struct"],
)
def test_what_is_committed_can_be_read(
    version: int, ordering: str, more: dict[str, str], index: dict[str, str], tmp_path: Path
) -> None:
    """Random upserts, inserts and deletes of few keys, of which many have a null."""
    random = np.random.default_rng(version + len(ordering))
    options = {**FILTERS, **index, "hoodie.parquet.small.file.limit": "0"}
    refused = 0
    for life in range(3):
        path = tmp_path / str(life)
        table = create(
            path,
            partition_by=None,
            ordering=ordering,
            table_type="MERGE_ON_READ",
            table_version=version,
            options={**FILTERS, **more},
        )
        for _ in range(10):
            keys = sorted({*random.integers(0, 4, 2).tolist()})
            values = [None if random.random() < 0.4 else int(random.integers(1, 9)) for _ in keys]
            deletes = [bool(random.random() < 0.2) for _ in keys]
            new = table_of([(f"k{n}", *rest) for n, *rest in zip(keys, values, deletes, strict=True)], ordering)
            operation = "insert" if index is _BUCKET and random.random() < 0.3 else "upsert"
            try:
                getattr(table, operation)(new, options=options)
            except UnsupportedTable as error:
                assert "would have to be compared with a value" in error.message
                refused += 1
            assert not open_local(path).timeline.pending()
            # Raises where a null would have to be compared.
            merged_rows(path) if table.slices().num_rows else None
    assert refused


def test_what_is_refused_could_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nulls that are equal, and keys that are deleted, are no reason."""
    options = {**FILTERS, "hoodie.index.type": "SIMPLE"}
    table = create(tmp_path / "rides", partition_by=None, table_type="MERGE_ON_READ")
    table.insert(table_of([("a", None, False), ("b", 3, False)], "ts"), options=options)
    assert table.upsert(table_of([("a", None, False), ("b", 4, False)], "ts"), options=options).ok
    assert table.delete(pa.table({"id": ["a"]}), options=options).ok
    new = table_of([("a", 7, False)], "ts")
    with pytest.raises(UnsupportedTable, match="could not be read"):
        table.upsert(new, options=options)
    monkeypatch.setattr("hudi_services.writing.appended_logs.check_merge", lambda *given: None)
    assert hudi_services.open(tmp_path / "rides", engine="local").upsert(new, options=options).ok
    with pytest.raises(UnsupportedTable, match="would have to be compared"):
        merged_rows(tmp_path / "rides")
