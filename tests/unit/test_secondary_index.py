"""Secondary indexes: their keys against Hudi's rules character by character, and writes that keep them in step.

With real Hudi: tests/interop/test_secondary_index.py.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_services
from hudi_services.derived_indexes.secondary_index import SecondaryIndex, secondary_keys
from hudi_services.errors import UnsupportedTable
from hudi_services.metadata.records.model import SecondaryRecord
from hudi_services.storage import Storage

from .conftest import ByHudi
from .faulty_storage import FaultyStorage, Killed
from .metadata_tables import open_metadata
from .rides import FILTERS
from .shares import places, share
from .tables import merged_rows, open_local
from .test_upserts import write

INDEX = "secondary_index_on_name"
OPTIONS = {
    **FILTERS,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.clean.automatic": "false",
}
TEXTS = st.text("ab\\\\$\0ü", max_size=6)


def escaped(text: str | None) -> str:
    if text is None:
        return "\0"
    return "".join("\\" + c if c in "\\$\0" else c for c in text)


@given(st.lists(st.tuples(st.none() | TEXTS, TEXTS)))
def test_keys_and_where_they_lie(pairs: list[tuple[str | None, str]]) -> None:
    values, records = (pa.array([pair[at] for pair in pairs], pa.string()) for at in (0, 1))
    keys = secondary_keys(values, records)
    assert keys.to_pylist() == [f"{escaped(value)}${escaped(record)}" for value, record in pairs]
    by_value = SecondaryIndex("s", "c", by_value=True).hashed_part(keys)
    assert by_value.to_pylist() == [f"{escaped(value)}$" for value, _ in pairs]
    assert SecondaryIndex("s", "c", by_value=False).hashed_part(keys) is keys


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def path(request: pytest.FixtureRequest, release: str, by_hudi: ByHudi, tmp_path: Path) -> Path:
    """Trips with a secondary index of names, which is of version V1 in a table of 1.0.2, and a record index."""
    path = by_hudi(release, "keyed", tmp_path / "table")
    properties = path / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    # Another type is all that a table with base files alone needs to take log files. A new checksum is not needed: it
    # is of the name.
    properties.write_text(text.replace("hoodie.table.type=COPY_ON_WRITE", f"hoodie.table.type={request.param}"))
    return path


def data(path: Path) -> pa.Table:
    """The rows without their meta columns."""
    found = merged_rows(path)
    return found.select([name for name in found.column_names if not name.startswith("_hoodie")])


def seen(path: Path) -> dict[str, dict[str, Any]]:
    found = data(path)
    result = {row["id"]: row for row in found.to_pylist()}
    assert len(result) == found.num_rows, "no key is twice"
    return result


def indexed(path: Path) -> set[str]:
    """The keys that the index has."""
    reader = open_metadata(path).reader(INDEX)
    records = list(reader.scan("", lambda _: True))
    assert all(isinstance(one, SecondaryRecord) and not one.deleted for one in records)
    assert len({one.key for one in records}) == len(records)
    return {one.key for one in records}


def batches(table: pa.Table, seed: int) -> Iterator[tuple[str, pa.Table]]:
    """Rows of known and new keys, with names that are known, new, null or odd; some move to other partitions."""
    random = np.random.default_rng(seed)
    parts = table.column("part").unique().to_pylist()
    names = [None, "", "a$b", "\\", "same", "same", *table.column("name").to_pylist()[:5]]
    for number in range(8):
        chosen = table.take(pa.array(random.choice(table.num_rows, 25, replace=False)))
        columns = {name: chosen.column(name) for name in chosen.column_names}
        if number % 4 != 3:
            columns["part"] = pa.array(random.choice(parts, 25).tolist())
        columns["name"] = pa.array([names[at] for at in random.integers(0, len(names), 25)], pa.string())
        columns["ts"] = pa.array([10_000 * (number + 1) + n for n in range(25)], pa.int64())
        if number % 2:
            columns["id"] = pa.array(
                [f"new-{number}-{n}" if n < 8 else key.as_py() for n, key in enumerate(columns["id"])]
            )
        fields = [pa.field(name, table.schema.field(name).type) for name in columns]
        yield (
            ("upsert", "delete", "upsert", "insert_overwrite")[number % 4],
            pa.table(columns, schema=pa.schema(fields)),
        )


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.usefixtures("no_conf_of_this_machine")
@pytest.mark.parametrize("release", ["1.0.2", pytest.param("1.1.1", marks=pytest.mark.deep), "1.2.0"])
def test_batches_beside_a_model(path: Path, release: str) -> None:
    table, model = hudi_services.open(path, engine="local"), seen(path)
    old = data(path)

    def is_true(*where: object) -> None:
        assert seen(path) == model, where
        pairs = [(row["name"], key) for key, row in model.items()]
        expected = {f"{escaped(name)}${escaped(key)}" for name, key in pairs if name is not None or release != "1.0.2"}
        assert indexed(path) == expected, where
        assert table.validate(strict=True).ok, where

    is_true()
    for number, (operation, new) in enumerate(batches(old, 3)):
        if operation == "insert_overwrite":
            # Of one partition, whose keys no other one has.
            part = new.column("part")[0].as_py()
            new = new.filter(pc.equal(new.column("part"), part))
            model = {key: row for key, row in model.items() if row["part"] != part}
            new = new.filter(pc.invert(pc.is_in(new.column("id"), pa.array([*model], pa.string()))))
        assert getattr(table, operation)(new, options=OPTIONS).ok, (number, operation)
        for row in new.to_pylist():
            if operation == "delete":
                model.pop(row["id"], None)
            else:
                model[row["id"]] = row
        if number % 2:
            is_true(number, operation)
    part = old.column("part")[0].as_py()
    assert table.delete_partitions([part], options=OPTIONS).ok
    model = {key: row for key, row in model.items() if row["part"] != part}
    is_true("delete_partition")
    assert table.cluster(publish_late=False).ok
    is_true("cluster")


@pytest.mark.usefixtures("no_conf_of_this_machine")
@pytest.mark.parametrize("release", ["1.2.0"])
def test_other_columns_are_refused(path: Path, release: str) -> None:
    definitions = path / ".hoodie" / ".index_defs" / "index.json"
    text, rows = definitions.read_text(), data(path)
    table = hudi_services.open(path, engine="local")
    for column, why in {"amount": "is of the type double in the table", "a.b": "is no column of the table"}.items():
        definitions.write_text(text.replace('[ "name" ]', f'[ "{column}" ]'))
        assert definitions.read_text() != text
        with pytest.raises(UnsupportedTable, match=rf"{INDEX} cannot be kept in step: .*{column} {why}"):
            table.upsert(rows, options=OPTIONS)
    definitions.write_text(text)
    assert not open_local(path).timeline.pending()
    assert table.validate(strict=True).ok


@pytest.mark.thorough
@pytest.mark.usefixtures("no_conf_of_this_machine")
@pytest.mark.spread(2)
@pytest.mark.parametrize("release", ["1.2.0"])
def test_every_write_may_be_the_last(path: Path, release: str, tmp_path: Path) -> None:
    """The index is that of the rows, before the commit and after it, and after a rollback; the next write goes on."""
    made, rows = tmp_path / "made", data(path).slice(0, 30)
    shutil.copytree(path, made)
    new = next(new for operation, new in batches(rows, 5) if operation == "upsert")

    def upsert(storage: Storage | None = None) -> None:
        write(path, "upsert", new, storage, **OPTIONS)

    before, log = (seen(path), indexed(path)), FaultyStorage(str(path))
    upsert(log)
    after, commits = (seen(path), indexed(path)), len(open_local(path).timeline.completed_writes())
    assert before[1] != after[1]
    for survived in share(places(log.log), 0, 3):
        shutil.rmtree(path)
        shutil.copytree(made, path)
        # New files have new names, whose records may be in fewer file groups: the last places may not be reached.
        with suppress(Killed):
            upsert(FaultyStorage(str(path), survived))
        where = f"killed after {survived} writes: {log.log[survived - 1 : survived + 1]}"
        done = len(open_local(path).timeline.completed_writes()) == commits
        assert (seen(path), indexed(path)) == (after if done else before), where
        upsert()
        assert (seen(path), indexed(path)) == after, where
        assert hudi_services.open(path, engine="local").validate(strict=True).ok, where
    shutil.rmtree(path)
    shutil.copytree(made, path)
    upsert()
    newest = open_local(path).timeline.completed_writes()[-1].ts
    assert hudi_services.open(path, engine="local").rollback(newest, completed=True).ok
    assert (seen(path), indexed(path)) == before
