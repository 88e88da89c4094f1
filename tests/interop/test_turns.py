"""A long life in turns: of fifty commits on one table every other one is Hudi's, and the rows are those of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_services

from ..unit.tables import merged_rows
from ..unit.test_upserts import Model, Rows
from . import layout, ours
from .peer import EACH_DELTA_COMMIT, Peer
from .readers import Refused, hudi_rs_rows, same_values
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_WRITE = "hoodie.datasource.write."
_DAYS = ["d0", "d1", "d2", "d3"]
_COMMITS = 50
_OF_EACH = {
    "upsert": 9,
    "insert": 4,
    "bulk_insert": 3,
    "delete": 4,
    "insert_overwrite": 2,
    "insert_overwrite_table": 1,
    "delete_partition": 2,
}
"""The operations of one writer."""
_PROMOTED, _FIRST_COLUMN, _SECOND_COLUMN = 22, 15, 30
"""Steps that let the schema grow. Only Hudi changes the type of a column, and it has the even steps."""
_RETAINED = 8
_RECORD_INDEX = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.record.index.min.filegroup.count": "2"}
_GLOBAL = {
    "GLOBAL_BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "RECORD_INDEX": {"hoodie.record.index.update.partition.path": "true"},
}
_META = ["_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path"]


@dataclass(frozen=True)
class Step:
    """One write; `partitions` are those to delete."""

    operation: str
    rows: pa.Table
    partitions: list[str]
    options: Mapping[str, str]


class Life:
    """One table, what it must have, and what it had."""

    def __init__(self, peer: Peer, folder: Path, kind: str, *, moves: bool, seed: int) -> None:
        """`moves`: rows move between partitions, and ordering values count; else each partition has keys of its own."""
        self.peer = peer
        self.path = folder / "rides"
        self.moves = moves
        self.merge_on_read = kind == "MERGE_ON_READ"
        self.model = Model(of_newest=not moves, moves=moves or None)
        self.past: list[tuple[str, Rows]] = []
        """The instant of each step, and the rows after it."""
        self._folder = folder
        self._random = np.random.default_rng(seed)
        version = peer.table_version
        self._known = {
            "hoodie.table.name": "rides",
            f"{_WRITE}recordkey.field": "id",
            f"{_WRITE}partitionpath.field": "day",
            f"{_WRITE}table.type": kind,
        }
        if moves:
            self._known[f"{_WRITE}precombine.field"] = "ts"
        self.table = hudi_services.create(self.path, table_version=version.number, options=self._known, engine="local")
        self._decks = [self._shuffled(_OF_EACH), self._shuffled(_OF_EACH)]
        self._new = 0
        self._last = ""
        # A long for an int, where rows move: 0.15.0 cannot read its older files, 1.0.2 its log files.
        self._promotes = not moves or peer.version == "1.2.0" or (peer.version, kind) == ("1.0.2", "COPY_ON_WRITE")
        self._gone: list[tuple[str, str]] = []

    def _shuffled(self, counts: Mapping[str, int]) -> list[str]:
        deck = [name for name, count in counts.items() for _ in range(count)]
        return [deck[at] for at in self._random.permutation(len(deck))]

    def take(self, number: int) -> None:
        """One commit, by Hudi or by us."""
        step = self._draw(number)
        before = layout.writes(self.path)
        print(number, step.operation, step.options["hoodie.index.type"])
        if number % 2 == 0:
            self.peer.write(self.path, step.rows, self._options(step))
        else:
            self._write(step, by_command=bool(self._random.integers(2)))
        # Table services may have followed.
        instant = min({*layout.writes(self.path)} - {*before}).requested
        self._apply(step, instant)
        self._last = step.operation
        self.past.append((instant, dict(self.model.rows)))

    def _options(self, step: Step) -> dict[str, str]:
        known = {**WRITE_DEFAULTS, **SMALL_FILTERS, **self._known, **step.options}
        if step.partitions:
            known[f"{_WRITE}partitions.to.delete"] = ",".join(step.partitions)
        return known | {f"{_WRITE}operation": step.operation}

    def _write(self, step: Step, *, by_command: bool) -> None:
        options = self._options(step)
        if by_command:
            file = self._folder / "new.parquet"
            pq.write_table(step.rows, file)
            flags = [] if step.partitions else ["--input", str(file)]
            ours.run("write", self.path, "--operation", step.operation, *flags, options=options).ok()
        elif step.partitions:
            assert self.table.delete_partitions(step.partitions, options=options).ok
        else:
            assert getattr(self.table, step.operation)(step.rows, options=options).ok

    def _apply(self, step: Step, instant: str) -> None:
        new = [{**row, "_hoodie_commit_time": instant} for row in step.rows.to_pylist()]
        before = dict(self.model.rows)
        model = self.model
        if step.operation == "upsert":
            model.upsert(new, by_ordering=self.moves)
        elif step.operation == "delete":
            model.delete(new)
        else:
            replaced = {
                "insert_overwrite": {row["day"] for row in new},
                "insert_overwrite_table": {*_DAYS},
                "delete_partition": {*step.partitions},
            }.get(step.operation, set())
            model.rows = {place: row for place, row in model.rows.items() if place[0] not in replaced}
            if step.operation != "delete_partition":
                model.rows |= {(row["day"], row["id"]): row for row in new}
        self._gone += before.keys() - model.rows.keys()

    def _draw(self, number: int) -> Step:
        deck = self._decks[number % 2]
        grows = number in (_PROMOTED, _FIRST_COLUMN, _SECOND_COLUMN)
        wanted = "insert" if number == 0 else "upsert" if grows else deck[0]
        # In place of another one, where none is left.
        deck.remove(wanted if wanted in deck else deck[0])
        partitions: list[str] = []
        if wanted in ("insert", "bulk_insert"):
            places = self._fresh(int(self._random.integers(10, 40)))
        elif wanted == "upsert":
            places = self._upserted()
        elif wanted == "delete":
            places = [*self._some(15), *self._fresh(2)]
        elif wanted == "insert_overwrite":
            days = {*self._random.choice(_DAYS, 2).tolist()}
            places = [one for one in [*self._some(20), *self._fresh(20)] if one[0] in days]
        elif wanted == "insert_overwrite_table":
            places = [*self._some(20), *self._fresh(40)]
        else:
            days = sorted({day for day, _ in self.model.rows})
            partitions = self._random.choice(days, 1).tolist()
            places = self._fresh(1)
        index = str(self._random.choice(list(_GLOBAL) if self.moves else ["SIMPLE", "BLOOM"]))
        options = {
            "hoodie.index.type": index,
            "hoodie.parquet.small.file.limit": str(self._random.choice([0, 600000])),
            **_GLOBAL.get(index, {}),
            **(_RECORD_INDEX if self.moves else {}),
            **(self._inline() if self.merge_on_read else {}),
        }
        return Step(wanted, self._rows(places, number), partitions, options)

    def _inline(self) -> dict[str, str]:
        """Some writes are followed by a compaction, when it is due."""
        is_inline = bool(self._random.integers(4) == 0)
        return {"hoodie.compact.inline": str(is_inline).lower(), "hoodie.compact.inline.max.delta.commits": "3"}

    def _fresh(self, count: int) -> list[tuple[str, str]]:
        """Places of new keys."""
        self._new += count
        keys = [f"k{n:05d}" for n in range(self._new - count, self._new)]
        return list(zip(self._random.choice(_DAYS, count).tolist(), keys, strict=True))

    def _some(self, count: int) -> list[tuple[str, str]]:
        """Places of rows that are there."""
        known = sorted(self.model.rows)
        return [known[at] for at in self._random.permutation(len(known))[:count].tolist()]

    def _upserted(self) -> list[tuple[str, str]]:
        """Places of rows that are there, of rows that were there, and of new ones; of the former also other places."""
        old = self._some(20)
        back = [self._gone[at] for at in self._random.permutation(len(self._gone))[:4].tolist()]
        away = [(str(self._random.choice(_DAYS)), key) for _, key in old[:6]]
        # Where ordering values count, a key may be given twice: the later row is the one with the greater value.
        return list(dict.fromkeys([*(old if self.moves else old[6:]), *back, *self._fresh(8), *away]))

    def _rows(self, places: Sequence[tuple[str, str]], number: int) -> pa.Table:
        numbers = range(len(places))
        found = {
            "id": pa.array([key for _, key in places], pa.string()),
            "day": pa.array([day for day, _ in places], pa.string()),
            # 1.0.2 cannot compare the ordering values of deletes with others than int.
            "ts": pa.array([1000 * number + n for n in numbers], pa.int32()),
            "text": pa.array([None if n % 7 == 3 else f"step {number} {n}" for n in numbers], pa.string()),
            "amount": pa.array([n - 5 for n in numbers], pa.int32()),
        }
        if number >= _PROMOTED and self._promotes:
            found["amount"] = pa.array([(n - 5) << 32 for n in numbers], pa.int64())
        if number >= _FIRST_COLUMN:
            found["share"] = pa.array([None if n % 5 == 0 else n / 4 for n in numbers], pa.float64())
        if number >= _SECOND_COLUMN:
            tags = [None if n % 3 == 0 else [f"t{m}" for m in range(n % 3)] for n in numbers]
            found["tags"] = pa.array(tags, pa.list_(pa.string()))
        return pa.table(found)

    def serve(self, service: str, *, we: bool) -> None:
        """Run a table service, which may have nothing to do."""
        print(service, "ours" if we else "Hudi's")
        if we:
            command, mode = {
                "clean": ("clean", ()),
                "clustering": ("execute", ("--mode", "scheduleAndExecute")),
                "compaction": ("compact", ("--mode", "scheduleAndExecute")),
            }[service]
            retained = {"hoodie.clean.commits.retained": str(_RETAINED)}
            done = ours.run(command, self.path, *mode, options={**retained, **EACH_DELTA_COMMIT})
            assert done.code == 0, done
        elif service == "clean":
            self.peer.clean(self.path, retain=_RETAINED)
        elif service == "clustering":
            self.peer.cluster(self.path)
        else:
            self.peer.compact(self.path)

    def compare(self, step: object) -> None:
        """All readers see the rows of the model."""
        wanted = self.model.rows
        assert not _differences(wanted, self.peer.rows(self.path, METADATA_ON)), step
        assert not _differences(wanted, self.peer.rows(self.path, METADATA_OFF)), step
        assert not _differences(wanted, merged_rows(self.path)), step
        try:
            by_rust = hudi_rs_rows(self.path)
        except Refused as e:
            print("refused", str(e)[:200])
            return
        assert not _differences(wanted, by_rust), step

    def compare_past(self, step: object, begin: str) -> None:
        """What a step of late left, and what the last one, after the time `begin`, has changed."""
        instant, then = self.past[-1 - int(self._random.integers(1, min(_RETAINED - 1, len(self.past))))]
        assert not _differences(then, self.peer.as_of(self.path, instant)), (step, "as of", instant)
        if self.peer.version == "0.15.0" and self._last == "delete_partition":
            # It stores the schema with the meta columns, and its incremental queries fail until the next commit.
            return
        instant, now = self.past[-1]
        changed = {place: row for place, row in now.items() if row["_hoodie_commit_time"] == instant}
        found = self.peer.incremental(self.path, begin)
        # 1.0.2 also gives the rows of the commit that completed at the beginning.
        found = found.filter(pc.equal(found.column("_hoodie_commit_time"), instant))
        assert not _differences(changed, found), (step, "since", begin)

    def now(self) -> str:
        """The time from which on an incremental query gives what comes next."""
        return max((one.completed for one in layout.completed(self.path)), default="0")


def _differences(wanted: Rows, found: pa.Table) -> list[str]:
    """Also of commit times, record keys and partition paths; a column that was not there yet has nulls."""
    rows = [{**row, "_hoodie_record_key": key, "_hoodie_partition_path": path} for (path, key), row in wanted.items()]
    names = [*_META, "id", "day", "ts", "text", "amount", "share", "tags"]
    types = {"ts": pa.int64(), "amount": pa.int64(), "share": pa.float64(), "tags": pa.list_(pa.string())}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
    for name in names[-2:]:
        if name not in found.column_names:
            found = found.append_column(name, pa.nulls(found.num_rows, schema.field(name).type))
    return same_values(pa.Table.from_pylist(rows, schema), found.select(names))


@pytest.mark.deep
@pytest.mark.parametrize("moves", [True, False], ids=["rows move", "rows stay"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_fifty_commits_in_turns(peer: Peer, kind: str, moves: bool, tmp_path: Path) -> None:
    life = Life(peer, tmp_path, kind, moves=moves, seed=len(kind) + moves)
    services = ["clustering", "clean"]
    if life.merge_on_read:
        services = ["compaction", "clustering", "compaction", "clean"]
    for number in range(_COMMITS):
        begin = life.now()
        life.take(number)
        if number % 5 == 4:
            life.compare_past((kind, number), begin)
            turn = number // 5
            life.serve(services[turn % len(services)], we=turn // len(services) % 2 == 0)
            life.compare((kind, number))
    life.compare("the end")
    assert life.table.validate(strict=True).ok
