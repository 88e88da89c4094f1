"""Tables without meta fields (virtual keys), which real Hudi and we write in turns beside a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services

from .peer import Peer
from .readers import hudi_rs_rows, same_values
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_WRITE = "hoodie.datasource.write."
_NAMES = ("id", "again", "number", "day", "ts", "text")
_HUDI, _WE = "Hudi", "we"
_GROWS = 5
"""The turn from which on the column `number`, a record key, is a long, where types of the table may grow."""
_TURNS = [
    (_HUDI, "insert"),
    (_WE, "upsert"),
    (_WE, "delete"),
    (_HUDI, "upsert"),
    (_HUDI, "delete"),
    (_WE, "insert"),
    (_HUDI, "upsert"),
    (_HUDI, "bulk_insert"),
    (_WE, "upsert"),
    (_HUDI, "delete"),
    (_WE, "delete"),
    (_WE, "upsert"),
    (_HUDI, "upsert"),
]
Row = dict[str, Any]


class Turns:
    """One table, and the rows that it must have, by key."""

    def __init__(self, peer: Peer, path: Path, index: str, fields: Sequence[str], generator: str) -> None:
        self.peer = peer
        self.path = path
        self.rows: dict[tuple[Any, ...], Row] = {}
        self._is_global = index == "GLOBAL_SIMPLE"
        self._has_paths = generator != "NonpartitionedKeyGenerator"
        self._fields = fields
        self._random = np.random.default_rng(len(index))
        self._index = {"hoodie.index.type": index, "hoodie.simple.index.update.partition.path": "true"}
        self._known = {
            "hoodie.table.name": "rides",
            "hoodie.populate.meta.fields": "false",
            f"{_WRITE}recordkey.field": ",".join(fields),
            f"{_WRITE}precombine.field": "ts",
            **({f"{_WRITE}partitionpath.field": "day"} if self._has_paths else {}),
            f"{_WRITE}keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.metadata.index.column.stats.enable": "true",
            # Queries of 1.0.2 fail by ranges of partitions of two types.
            "hoodie.metadata.index.partition.stats.enable": str(peer.version != "1.0.2").lower(),
        }
        self._count = 0

    def take(self, number: int, who: str, operation: str) -> None:
        rows = self._new(12, 10 * number) if operation != "delete" else []
        if operation == "upsert":
            rows = [*rows[:4], *self._old(number, who)]
        elif operation == "delete":
            rows = self._chosen(4)
        given = _table(rows, is_long=number >= _GROWS and not self._is_global)
        if who == _HUDI:
            sizes = {"hoodie.parquet.small.file.limit": str(self._random.choice([0, 104857600]))}
            options = {**WRITE_DEFAULTS, **SMALL_FILTERS, **self._known, **self._index, **sizes}
            self.peer.write(self.path, given, {**options, f"{_WRITE}operation": operation})
        elif operation == "insert":
            # Rows that are there are left out: they are looked up, too.
            there = [{**row, "text": "left out"} for row in self._chosen(3)]
            more = pa.concat_tables([given, pa.Table.from_pylist(there, given.schema)])
            table, drop = hudi_services.open(self.path, engine="local"), "hoodie.datasource.insert.dup.policy"
            assert table.insert(more, options={**self._index, drop: "drop"}).ok
        else:
            assert getattr(hudi_services.open(self.path, engine="local"), operation)(given, options=self._index).ok
        for row in rows:
            self._put(row, deletes=operation == "delete")

    def _key(self, row: Row) -> tuple[Any, ...]:
        key = tuple(row[name] for name in self._fields)
        return (row["day"], *key) if self._has_paths and not self._is_global else key

    def _put(self, row: Row, *, deletes: bool) -> None:
        key = self._key(row)
        old = self.rows.get(key)
        if deletes:
            self.rows.pop(key, None)
        # By the payload of version 6, a row of the table never wins.
        elif old is None or row["ts"] >= old["ts"] or self.peer.version == "0.15.0":
            self.rows[key] = row

    def _new(self, count: int, ts: int) -> list[Row]:
        first, self._count = self._count, self._count + count
        # Fields of a key that are null or empty have names of their own in it.
        return [
            {
                "id": f"k{n}",
                "again": (None, "", f"a{n}")[n % 3],
                "number": n - 7,
                "day": f"d{n % 3}",
                "ts": ts,
                "text": f"new {n}",
            }
            for n in range(first, self._count)
        ]

    def _chosen(self, count: int) -> list[Row]:
        there = list(self.rows.values())
        return [there[at] for at in self._random.permutation(len(there))[:count].tolist()]

    def _old(self, number: int, who: str) -> list[Row]:
        """Newer and late rows of keys that are there; some in another partition, where keys may move."""
        found = []
        for at, row in enumerate(self._chosen(9)):
            is_late = at % 3 == 0
            ts = row["ts"] - 5 if is_late else 10 * number + at
            may_move = (self._is_global and (who == _WE or self._hudi_moves(is_late=is_late))) or not self._has_paths
            day = f"d{self._random.integers(3)}" if at % 2 and may_move else row["day"]
            found.append({**row, "ts": ts, "day": day, "text": f"step {number}, was {row['text'][:20]}"})
        if self._has_paths and not self._is_global:
            # The key of another row, in a partition that had none: a new row.
            found.append({**self._chosen(1)[0], "day": f"e{number}", "ts": 0, "text": "elsewhere"})
        return found

    def _hudi_moves(self, *, is_late: bool) -> bool:
        """Also on its own tables 0.15.0 and 1.0.2 fail to move keys of several fields, and 1.0.2 late rows."""
        release = self.peer.version
        return release == "1.2.0" or (len(self._fields) == 1 and not (is_late and release == "1.0.2"))

    def compare(self, step: object) -> None:
        wanted = _table(list(self.rows.values()), is_long=True)
        for options in (METADATA_ON, METADATA_OFF):
            found = self.peer.rows(self.path, options).select(list(_NAMES))
            assert not same_values(wanted, found), (step, options)
        assert not same_values(wanted, hudi_rs_rows(self.path).select(list(_NAMES))), (step, "hudi-rs")
        assert hudi_services.open(self.path, engine="local").validate(strict=True).ok, step


def _table(rows: list[Row], *, is_long: bool) -> pa.Table:
    types = dict.fromkeys(_NAMES, pa.string()) | {"number": pa.int64() if is_long else pa.int32(), "ts": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema(list(types.items())))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("index", "fields", "generator"),
    [
        ("SIMPLE", ["number"], "SimpleKeyGenerator"),
        ("GLOBAL_SIMPLE", ["id"], "SimpleKeyGenerator"),
        ("GLOBAL_SIMPLE", ["id", "again"], "ComplexKeyGenerator"),
        ("SIMPLE", ["id", "again"], "NonpartitionedKeyGenerator"),
    ],
)
def test_written_in_turns(peer: Peer, index: str, fields: list[str], generator: str, tmp_path: Path) -> None:
    turns = Turns(peer, tmp_path / "rides", index, fields, generator)
    for number, (who, operation) in enumerate(_TURNS):
        turns.take(number, who, operation)
        turns.compare((number, who, operation))
