"""Column types that grow while real Hudi and we write one table in turns, and filters on the columns that grew."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_services

from ..unit.tables import merged_rows
from .peer import EACH_DELTA_COMMIT, Peer
from .readers import Refused, hudi_rs_rows, same_values
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_WRITE = "hoodie.datasource.write."
_STATS = "hoodie.metadata.index.column.stats.enable"
_STEPS = 9
_GROWS = {"whole": 1, "count": 2, "share": 3, "part": 4, "id": 5}
"""The step that lets a column grow: odd steps are ours, even ones are Hudi's. `id` is the record key."""
_TYPES = {
    "id": (pa.int32(), pa.int64()),
    "whole": (pa.int32(), pa.int64()),
    "count": (pa.int32(), pa.int64()),
    "share": (pa.float32(), pa.float64()),
    "part": (pa.int32(), pa.float64()),
}
Row = dict[str, Any]


class Turns:
    """One table, and the rows that it must have, by key: each key stays in its partition."""

    def __init__(self, peer: Peer, folder: Path, kind: str, *, partitioned: bool, stats: bool, seed: int) -> None:
        self.peer = peer
        self.path = folder / "rides"
        self.rows: dict[int, Row] = {}
        self._random = np.random.default_rng(seed)
        self._kind = kind
        version = peer.table_version
        generator = "SIMPLE" if partitioned else "NON_PARTITION"
        self._known = {
            "hoodie.table.name": "rides",
            f"{_WRITE}recordkey.field": "id",
            f"{_WRITE}precombine.field": "ts",
            f"{_WRITE}table.type": kind,
            f"{_WRITE}keygenerator.type": generator,
            _STATS: str(stats).lower(),
            "hoodie.compact.inline": "false",
            **({f"{_WRITE}partitionpath.field": "day"} if partitioned else {}),
        }
        if not partitioned:
            self._known[f"{_WRITE}keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            del self._known[f"{_WRITE}keygenerator.type"]
        self.table = hudi_services.create(self.path, table_version=version.number, options=self._known, engine="local")

    def take(self, number: int) -> None:
        """One write of old and new rows; at most one column grows, and others have their old or new types."""
        operation = "insert" if number in (0, 4, 5) else "upsert"
        limit = str(self._random.choice([0, 104857600]))
        options = {
            **WRITE_DEFAULTS,
            **SMALL_FILTERS,
            **self._known,
            f"{_WRITE}operation": operation,
            "hoodie.parquet.small.file.limit": limit,
        }
        rows = self._table(number, operation)
        if number % 2 == 0:
            self.peer.write(self.path, rows, options)
        else:
            assert getattr(self.table, operation)(rows, options=options).ok
        self.rows |= {row["id"]: row for row in rows.to_pylist()}

    def _table(self, number: int, operation: str) -> pa.Table:
        known = sorted(self.rows)
        new = [*range(len(known), len(known) + 12)]
        old = [] if operation == "insert" else [known[at] for at in self._random.permutation(len(known))[:9].tolist()]
        keys = [*old, *new[: 12 if operation == "insert" else 3]]
        columns: dict[str, pa.Array] = {
            "day": pa.array([f"d{key % 3}" for key in keys]),
            "ts": pa.array([number] * len(keys), pa.int32()),
        }
        for name, (narrow, wide) in _TYPES.items():
            grown = number == _GROWS[name] or (number > _GROWS[name] and bool(self._random.integers(2)))
            values = keys if name == "id" else self._values(name, len(keys), grown)
            columns[name] = pa.array(values, wide if grown else narrow)
        return pa.table(columns)

    def _values(self, name: str, count: int, grown: bool) -> Sequence[Any]:
        whole = self._random.integers(-40, 40, count) << (33 if grown else 0)
        # Quarters: a float and the double of its shortest text are the same.
        found = (whole / 4).tolist() if name == "share" or (name == "part" and grown) else whole.tolist()
        return [None if n % 6 == 2 else value for n, value in enumerate(found)]

    def serve(self, *, we: bool) -> None:
        """A compaction, or a clustering of a copy-on-write table."""
        if self._kind == "MERGE_ON_READ":
            options = {**EACH_DELTA_COMMIT, _STATS: self._known[_STATS]}
            if we:
                assert self.table.compact(options=EACH_DELTA_COMMIT).ok
            else:
                self.peer.compact(self.path, options=options)
        elif we:
            assert self.table.cluster().ok
        else:
            self.peer.cluster(self.path)

    def compare(self, step: object) -> None:
        """All readers see the rows, and a filter on a column that may have grown finds its rows."""
        for options in (METADATA_ON, METADATA_OFF):
            found = self.peer.rows(self.path, options)
            assert not self._differences(found), (step, options)
            for name in _TYPES:
                self._compare_filters(step, name, options)
        assert not self._differences(merged_rows(self.path)), step
        try:
            by_rust = hudi_rs_rows(self.path)
        except Refused as e:
            print("refused", str(e)[:200])
            return
        assert not self._differences(by_rust), (step, "hudi-rs")

    def _compare_filters(self, step: object, name: str, options: Mapping[str, str]) -> None:
        values = sorted({row[name] for row in self.rows.values() if row[name] is not None})
        wanted = values[int(self._random.integers(len(values)))]
        text = f"cast('{wanted!r}' as double)" if isinstance(wanted, float) else str(wanted)
        sign = str(self._random.choice(["=", "<=", ">="]))
        compare = {"=": lambda v: v == wanted, "<=": lambda v: v <= wanted, ">=": lambda v: v >= wanted}[sign]
        ids = sorted(key for key, row in self.rows.items() if row[name] is not None and compare(row[name]))
        skipping = {"hoodie.enable.data.skipping": "true"}
        found = self.peer.rows(self.path, {**options, **skipping}, where=f"{name} {sign} {text}")
        assert sorted(found.column("id").to_pylist()) == ids, (step, name, sign, text, options)

    def _differences(self, found: pa.Table) -> list[str]:
        wide = {name: types[1] for name, types in _TYPES.items()}
        types = {"day": pa.string(), "ts": pa.int32(), **wide}
        wanted = pa.Table.from_pylist(list(self.rows.values()), pa.schema(list(types.items())))
        found = found.set_column(found.column_names.index("part"), "part", found.column("part").cast(pa.float64()))
        return same_values(wanted, found.select(list(types)))


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_types_grow_in_turns(peer: Peer, kind: str, tmp_path: Path) -> None:
    # Filters of 1.0.2 fail by ranges of partitions of two types, which we refuse to write.
    stats = (peer.version, kind) != ("1.0.2", "MERGE_ON_READ")
    partitioned = (peer.version, kind) != ("1.0.2", "COPY_ON_WRITE")
    turns = Turns(peer, tmp_path, kind, partitioned=partitioned, stats=stats, seed=len(kind))
    for number in range(_STEPS):
        turns.take(number)
        if number % 2:
            # After a write of ours.
            turns.compare(number)
        if number in (3, 6):
            turns.serve(we=number == 3)
            turns.compare((number, "service"))
            assert turns.table.validate(strict=True).ok, number
    turns.serve(we=True)
    turns.compare("the end")
    assert turns.table.validate(strict=True).ok
