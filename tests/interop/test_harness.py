"""The checks themselves: they accept what real Hudi does, and find each seeded fault."""

import copy
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from . import layout
from .conftest import Tables
from .mdt_check import check_metadata
from .peer import Peer
from .pristine import ALL, Pristine, recipes_of
from .readers import same_rows
from .reading import METADATA_OFF, METADATA_ON

_ROWS = pa.table({"id": ["a", "b", "c"], "x": pa.array([0.0, math.nan, None]), "y": pa.array([1, 2, 3], pa.int32())})


def test_the_same_rows_in_another_order() -> None:
    assert same_rows(_ROWS, _ROWS.take([2, 0, 1])) == []


@pytest.mark.parametrize(
    ("fault", "rows"),
    {
        "lost": _ROWS.slice(1),
        "doubled": pa.concat_tables([_ROWS, _ROWS.slice(0, 1)]),
        "doubled for another": _ROWS.take([0, 1, 1]),
        "changed value": _ROWS.set_column(2, _ROWS.schema.field("y"), pa.array([1, 2, 4], pa.int32())),
        "changed type": _ROWS.set_column(2, "y", pa.array([1, 2, 3], pa.int64())),
        "negative zero": _ROWS.set_column(1, "x", pa.array([-0.0, math.nan, None])),
        "null": _ROWS.set_column(1, "x", pa.array([0.0, None, None])),
        "swapped columns": _ROWS.select(["id", "y", "x"]),
        "lost column": _ROWS.select(["id", "x"]),
    }.items(),
)
def test_a_difference_is_found(fault: str, rows: pa.Table) -> None:
    assert same_rows(_ROWS, rows), fault


@pytest.mark.releases(*ALL)
@pytest.mark.deep
def test_hudi_reads_what_it_read_then(peer: Peer, known: Pristine, table: Tables) -> None:
    """The tables of all recipes, from a fixture, in another folder and long after."""
    for name in recipes_of(peer.version):
        path, rows = table(name), known.rows(name)
        assert same_rows(rows, peer.rows(path, METADATA_ON), ignore=()) == [], name
        assert same_rows(rows, peer.rows(path, METADATA_OFF), ignore=()) == [], name
        assert layout.live_files(peer, path) == known.live_files(name, path), name


@pytest.mark.deep
def test_what_hudi_does_is_accepted(peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("plain"), known.rows("plain")
    assert same_rows(before, peer.rows(path)) == []
    assert check_metadata(peer, path) == []
    peer.cluster(path, order="name")
    assert same_rows(before, peer.rows(path)) == []
    assert check_metadata(peer, path) == []


def _lose_a_file(path: Path) -> None:
    _some_file(path).unlink()


def _add_a_file(path: Path) -> None:
    file = _some_file(path)
    shutil.copy(file, file.with_name("0" * 8 + file.name[8:]))


def _grow_a_file(path: Path) -> None:
    with _some_file(path).open("ab") as file:
        file.write(b"x")


def _some_file(path: Path) -> Path:
    return next(f for f in sorted(path.rglob("*.parquet")) if ".hoodie" not in f.relative_to(path).parts)


@pytest.mark.releases("1.2.0")
@pytest.mark.parametrize("fault", [_lose_a_file, _add_a_file, _grow_a_file])
def test_a_file_that_the_metadata_table_does_not_know_is_found(
    fault: Callable[[Path], None], peer: Peer, table: Tables
) -> None:
    path = table("plain")
    fault(path)
    assert len(check_metadata(peer, path)) == 1


def _wrong_minimum(found: dict[str, Any]) -> None:
    _text_stats(found["column_stats"])["minValue"] = {"org.apache.hudi.avro.model.StringWrapper": {"value": "k"}}


def _wrong_count(found: dict[str, Any]) -> None:
    _text_stats(found["column_stats"])["valueCount"]["long"] += 1


def _lost_record(found: dict[str, Any]) -> None:
    found["column_stats"].remove(_text_stats(found["column_stats"]))


def _stale_record(found: dict[str, Any]) -> None:
    found["column_stats"].append({**_text_stats(found["column_stats"]), "fileName": {"string": "gone.parquet"}})


def _wrong_group(found: dict[str, Any]) -> None:
    found["looked_up"].pop()


def _narrow_partition(found: dict[str, Any]) -> None:
    _text_stats(found["partition_stats"])["maxValue"] = {"org.apache.hudi.avro.model.StringWrapper": {"value": "a"}}


def _text_stats(records: list[dict[str, Any]]) -> dict[str, Any]:
    """One that is not looked up by its key too: each fault is told once, whatever the order of the records."""
    return next(r for r in records if r["columnName"] == {"string": "id"})


@pytest.mark.releases("1.2.0")
def test_a_wrong_record_is_found(peer: Peer, known: Pristine, monkeypatch: pytest.MonkeyPatch) -> None:
    path = known.table("plain")
    real, answers = peer.metadata, []

    def asked(*args: Any, **more: Any) -> dict[str, Any]:
        answers.append(real(*args, **more))
        return dict(answers[-1])

    monkeypatch.setattr(peer, "metadata", asked)
    assert check_metadata(peer, path) == []
    (answer,) = answers
    for fault in (_wrong_minimum, _wrong_count, _lost_record, _stale_record, _wrong_group, _narrow_partition):

        def seeded(*args: Any, fault: Callable[[dict[str, Any]], None] = fault, **more: Any) -> dict[str, Any]:
            found = copy.deepcopy(answer)
            fault(found)
            return found

        monkeypatch.setattr(peer, "metadata", seeded)
        assert len(check_metadata(peer, path)) == 1, fault.__name__
