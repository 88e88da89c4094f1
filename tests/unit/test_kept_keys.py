"""One key in two partitions, beside a global record index: with one of its rows, the entries of the other one stay."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_services
from hudi_services.ingest import kept_keys
from hudi_services.metadata.record_index.lookup import look_up
from hudi_services.versions import VERSIONS

from .conftest import ByHudi
from .corruptions import metadata_of
from .rides import FILTERS, create
from .tables import open_local
from .test_secondary_index import INDEX, data, escaped, indexed
from .test_upserts import rows, seen

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

SHARDS = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "2"}
WAYS: dict[str, Callable[[hudi_services.Table, dict[str, str]], Any]] = {
    "delete": lambda t, o: t.delete(pa.concat_tables([rows(0, 4), rows(10, 14, more_days=1)]), options=o),
    # Every row of the keys but one, and rows beside it in its file group.
    "delete beside": lambda t, o: t.delete(pa.concat_tables([rows(0, 6), rows(15, 20, more_days=1)]), options=o),
    "marked": lambda t, o: t.upsert(
        rows(0, 4, ts=9).append_column("_hoodie_is_deleted", pa.array([True] * 4)), options=o
    ),
    "insert_overwrite": lambda t, o: t.insert_overwrite(rows(30, 36, days=1), options=o),
    "delete_partition": lambda t, o: t.delete_partitions(["d1"], options=o),
}


def indexed_places(path: Path, keys: list[str]) -> set[tuple[str, str]]:
    """Partition and key, as the record index has them."""
    found = look_up(metadata_of(open_local(path)), pa.array(keys))
    return {(found.locations[int(at)].partition, key) for at, key in zip(found.positions, keys, strict=True)}


@pytest.mark.thorough
@pytest.mark.spread(11)
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_row_that_stays(version: int, kind: str, way: str, index: str, tmp_path: Path) -> None:
    path, options = tmp_path / "rides", {**FILTERS, "hoodie.index.type": index, "hoodie.clean.automatic": "false"}
    table = create(path, table_version=version, table_type=kind)
    table.upsert(rows(0, 20), options=options)
    assert table.build_index(options=SHARDS).ok
    # Each key in two partitions; of some the entry names the first row, of others the second one.
    table.upsert(rows(0, 20, "copy", ts=1, more_days=1), options=options)
    table.upsert(rows(0, 20, "again", ts=2), options=options)
    assert table.validate(strict=True).ok
    before = seen(path)
    assert WAYS[way](table, options).ok
    left = seen(path)
    assert table.validate(strict=True).ok
    assert indexed_places(path, sorted({key for _, key in left})) <= left.keys()
    # By the record index the row that stayed is found, and not inserted once more.
    assert len(before) > len(left) or way == "insert_overwrite"


@pytest.mark.parametrize("name", ["_MOST_LOOKED_UP", "_MOST_SEARCHED", "_MOST_FILES"])
def test_too_many_to_look_for(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entries go with any of the rows then, as by Hudi; `validate` repairs them."""
    options = {**FILTERS, "hoodie.index.type": "SIMPLE", "hoodie.clean.automatic": "false"}
    table = create(tmp_path / "rides")
    table.upsert(rows(0, 20), options=options)
    assert table.build_index(options=SHARDS).ok
    table.upsert(rows(0, 20, "copy", ts=1, more_days=1), options=options)
    monkeypatch.setattr(kept_keys, name, 0)
    assert table.delete(rows(0, 20, more_days=1), options=options).ok
    with pytest.raises(hudi_services.errors.CheckFailed):
        table.validate()
    assert table.validate(repair=True).ok and table.validate(strict=True).ok


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("release", ["1.0.2", pytest.param("1.1.1", marks=pytest.mark.deep), "1.2.0"])
def test_secondary_indexes(release: str, by_hudi: ByHudi, tmp_path: Path) -> None:
    path = by_hudi(release, "keyed", tmp_path / "table")
    table = hudi_services.open(path, engine="local", options={**FILTERS, "hoodie.clean.automatic": "false"})
    by_partition = {"hoodie.index.type": "SIMPLE"}
    old = data(path)
    parts = old.column("part").unique().to_pylist()
    some = old.filter(pc.equal(old.column("part"), parts[0])).slice(0, 6)
    same = some.set_column(some.schema.get_field_index("part"), some.schema.field("part"), pa.array([parts[1]] * 6))
    names = same.column("name").to_pylist()
    other = [f"other {n}" if n % 2 else name for n, name in enumerate(names)]
    copies = same.set_column(same.schema.get_field_index("name"), same.schema.field("name"), pa.array(other))
    assert table.upsert(copies, options=by_partition).ok

    def is_true() -> None:
        found = data(path)
        pairs = {(row["name"], row["id"]) for row in found.to_pylist()}
        expected = {f"{escaped(name)}${escaped(key)}" for name, key in pairs if name is not None or release != "1.0.2"}
        assert indexed(path) == expected, INDEX
        assert table.validate(strict=True).ok

    is_true()
    assert table.delete(some.slice(0, 3).select(["id", "part"]), options=by_partition).ok
    is_true()
    assert table.delete(copies.slice(3, 3).select(["id", "part"]), options=by_partition).ok
    is_true()
    assert table.delete_partitions([f"part={parts[1]}" if (path / f"part={parts[1]}").exists() else parts[1]]).ok
    is_true()
