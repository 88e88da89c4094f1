"""What every engine promises: tests for a class of each engine, in this process, in processes and on Spark."""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.engine import Engine, Labelled, number_of
from hudi_services.errors import CorruptFile, HudiServicesError, StorageError
from hudi_services.request_counts import Asked, RequestsOfRun, count


@dataclass(frozen=True)
class Sized:
    """A task that tells its bytes."""

    number: int
    bytes: int


def squared(task: Sized, token: str) -> tuple[int, str]:
    count(Asked.GET, 2)
    return task.number**2, token


def failing(task: int, token: str) -> int:
    if task in (2, 5):
        raise CorruptFile(f"file {task} is damaged", hint="restore it")
    return task


def made(tables: dict[int, list[tuple[Any, pa.Table]]], rows: Labelled, token: str) -> Iterator[Any]:
    """The labelled tables of the label of the partition."""
    for label, nothing in rows:
        assert nothing.num_rows == 0
        yield from tables[label]


def marked(mark: str, rows: Labelled, token: str) -> Iterator[Any]:
    for label, table in rows:
        yield label, table.append_column(mark, pa.array([mark] * table.num_rows, pa.string()))


def listed(_: Any, rows: Labelled, token: str) -> Iterator[tuple[int, Any, list[Any]]]:
    for label, table in rows:
        yield number_of(token), label, sorted(map(tuple, (row.values() for row in table.to_pylist())))


def broken(at: Any, rows: Labelled, token: str) -> Iterator[Any]:
    for label, table in rows:
        if label == at:
            raise StorageError("the disk is full", hint="free some")
        yield label, table


class EngineContract:
    """The tests; a subclass has the fixture `engine`."""

    in_other_processes = True

    def test_results_in_the_order_of_tasks(self, engine: Engine) -> None:
        tasks = [Sized(number, size) for number, size in enumerate((300 << 20, 1 << 20, 50 << 20, 7 << 20, 90 << 20))]
        seen: list[tuple[int, int]] = []
        before = RequestsOfRun()
        results = engine.map(squared, tasks, "square", lambda *told: seen.append(told))
        assert [number for number, _ in results] == [0, 1, 4, 9, 16]
        tokens = [token for _, token in results]
        assert [*map(number_of, tokens)] == [0, 1, 2, 3, 4]
        total = 448 << 20
        assert seen[-1] == (total, total) and [done for done, _ in seen] == sorted(done for done, _ in seen)
        who = "tasks" if self.in_other_processes else "driver"
        assert before.so_far()[who] == {"get": 10}
        more = engine.map(squared, tasks, "square", lambda *told: None)
        assert not self.in_other_processes or not {token for _, token in more} & {*tokens}
        assert engine.map(squared, [], "square", lambda *told: None) == []

    def test_the_first_error_in_order_unchanged(self, engine: Engine) -> None:
        with pytest.raises(CorruptFile, match="file 2 is damaged") as told:
            engine.map(failing, [0, 1, 2, 3, 4, 5], "fail", lambda *told: None)
        assert told.value.hint == "restore it"
        assert engine.map(failing, [0, 1], "fail", lambda *told: None) == [0, 1]

    @pytest.mark.parametrize("seed", range(3))
    def test_tables_that_tasks_hand_on(self, engine: Engine, seed: int) -> None:
        """Beside a model: made, marked, kept, sent to other partitions twice, joined."""
        chance = random.Random(seed)
        sources, middle, last = (chance.randint(1, 5) for _ in range(3))

        def some(targets: int) -> dict[int, list[tuple[Any, pa.Table]]]:
            return {
                source: [
                    ((chance.randrange(targets), (chance.randrange(last), f"{source}-{number}")), _table(chance))
                    for number in range(chance.randint(0, 6))
                ]
                for source in range(sources)
            }

        tables, others = some(middle), some(middle)
        pieces = engine.labels(range(sources)).then(made, tables).then(marked, "first").keep()
        sent = pieces.joined(engine.labels(range(sources)).then(made, others).then(marked, "other"))
        sent = sent.divided(middle, "send").then(marked, "second").divided(last, "send again")
        expected: dict[int, list[tuple[str, list[Any]]]] = defaultdict(list)
        for mark, of in (("first", tables), ("other", others)):
            for _, (target, name), table in ((to, rest, table) for own in of.values() for (to, rest), table in own):
                rows = sorted((*row.values(), mark, "second") for row in table.to_pylist())
                expected[target].append((name, rows))
        seen: list[tuple[int, int]] = []
        found = sent.results(listed, None, "list", lambda *told: seen.append(told))
        assert [number for number, _, _ in found] == sorted(number for number, _, _ in found)
        by_target: dict[int, list[tuple[str, list[Any]]]] = defaultdict(list)
        for number, name, rows in found:
            by_target[number].append((name, rows))
        assert {to: sorted(own) for to, own in by_target.items()} == {to: sorted(own) for to, own in expected.items()}
        assert seen[-1][0] == seen[-1][1]

    def test_an_error_of_a_step(self, engine: Engine) -> None:
        tables = {0: [((0, "a"), _table(random.Random(1))), ((1, "b"), _table(random.Random(2)))]}
        for at in ((1, "b"), "b"):
            pieces = engine.labels([0]).then(made, tables)
            sent = pieces.then(broken, at).divided(2, "send").then(broken, at)
            with pytest.raises(HudiServicesError, match="the disk is full"):
                sent.results(listed, None, "list", lambda *told: None)

    def test_kept_tables_are_computed_once(self, engine: Engine) -> None:
        kept = engine.labels(["x", "y"]).then(at_random, None).keep()
        first, second = (kept.results(listed, None, "list", lambda *told: None) for _ in range(2))
        assert first == second and len(first) == 2
        kept.release()


def at_random(_: Any, rows: Labelled, token: str) -> Iterator[Any]:
    for label, _nothing in rows:
        yield label, pa.table({"at": [random.SystemRandom().random()]})


def _table(chance: random.Random) -> pa.Table:
    size = chance.choice([0, 1, 3, 1000])
    return pa.table({"at": pa.array([chance.randrange(1000) for _ in range(size)], pa.int64())})
