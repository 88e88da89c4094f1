"""Tables that tasks of worker processes hand to each other, in files of a folder on the local disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..engine import Labelled, Pieces, Step
from ..stored_tables import Place, StoredTables
from .worker_pool import Workers

_DISK = "the rows that tasks exchange cannot be kept"


@dataclass(frozen=True, slots=True)
class _Label:
    """A partition with a table without rows."""

    label: Any

    def tables(self) -> Labelled:
        yield self.label, pa.table({})


@dataclass(frozen=True, slots=True)
class _Stored:
    """A partition whose tables tasks have written: of each file those at these places, with their labels."""

    files: tuple[tuple[Path, tuple[tuple[Any, Place], ...]], ...]

    def tables(self) -> Labelled:
        for path, some in self.files:
            stored = StoredTables.written(_DISK, path, [place for _, place in some])
            try:
                for number, (label, _) in enumerate(some):
                    yield label, stored.read(number)
            finally:
                stored.close()


@dataclass(frozen=True, slots=True)
class _Partition:
    """What a partition is computed of: its tables, and the steps on them."""

    source: "_Label | _Stored | _Awaited"
    steps: tuple[tuple[Step, Any], ...] = ()

    def tables(self, token: str) -> Labelled:
        assert not isinstance(self.source, _Awaited), "its tables are there"
        found = self.source.tables()
        for step, task in self.steps:
            found = step(task, found, token)
        return found


@dataclass(slots=True, eq=False)
class _Exchange:
    """Partitions whose tables are written to files, once, and then read by other partitions."""

    partitions: Sequence[_Partition]
    keeps: bool
    """Whether tables stay in their partition; otherwise their labels begin with the number of another one."""
    description: str
    stored: dict[int, _Stored] = field(default_factory=dict)
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class _Awaited:
    """A partition of an exchange that is computed when it is asked for."""

    exchange: _Exchange
    number: int


class ProcessPieces:
    """An `engine.Pieces`."""

    def __init__(self, workers: Workers, partitions: Sequence[_Partition]) -> None:
        self._workers = workers
        self._partitions = partitions

    @classmethod
    def of_labels(cls, workers: Workers, labels: Sequence[Any]) -> "ProcessPieces":
        """A partition for each label, with a table without rows."""
        return cls(workers, [_Partition(_Label(one)) for one in labels])

    def then(self, step: Step, task: Any) -> "ProcessPieces":
        return self._of([_Partition(one.source, (*one.steps, (step, task))) for one in self._partitions])

    def joined(self, other: Pieces) -> "ProcessPieces":
        assert isinstance(other, ProcessPieces), "both are of one engine"
        return self._of([*self._partitions, *other._partitions])

    def divided(self, partitions: int, description: str) -> "ProcessPieces":
        exchange = _Exchange(self._partitions, False, description)
        return self._of([_Partition(_Awaited(exchange, number)) for number in range(partitions)])

    def keep(self) -> "ProcessPieces":
        exchange = _Exchange(self._partitions, True, "keep rows")
        return self._of([_Partition(_Awaited(exchange, number)) for number in range(len(self._partitions))])

    def release(self) -> None:
        self._delete(_exchanges(self._partitions))

    def results(self, step: Step, task: Any, description: str, progress: Callable[[int, int], None]) -> list[Any]:
        exchanges = [one for one in _exchanges(self._partitions) if not one.is_done]
        total = len(self._partitions) + sum(len(one.partitions) for one in exchanges)
        tell = counted(progress, total)
        try:
            for exchange in exchanges:
                self._carry_out(exchange, tell)
            made = self._run(partial(_results, step, task), self._partitions, description, tell)
        finally:
            self._delete([one for one in _exchanges(self._partitions) if not one.keeps])
        return [one for some in made for one in some]

    @staticmethod
    def _delete(exchanges: Sequence[_Exchange]) -> None:
        """Delete what the exchanges have written; it is written again when it is asked for."""
        for exchange in exchanges:
            exchange.is_done = False
            for path in {path for one in exchange.stored.values() for path, _ in one.files}:
                path.unlink(missing_ok=True)

    def _of(self, partitions: Sequence[_Partition]) -> "ProcessPieces":
        return ProcessPieces(self._workers, partitions)

    def _carry_out(self, exchange: _Exchange, tell: Callable[[int], None]) -> None:
        store = partial(_store, self._workers.folder)
        places: dict[int, list[tuple[Path, tuple[tuple[Any, Place], ...]]]] = {}
        made = self._run(store, exchange.partitions, exchange.description, tell)
        for own, (path, written) in enumerate(made):
            by_partition: dict[int, list[tuple[Any, Place]]] = {}
            for label, place in written:
                to, rest = (own, label) if exchange.keeps else label
                by_partition.setdefault(to, []).append((rest, place))
            for to, some in by_partition.items():
                places.setdefault(to, []).append((path, tuple(some)))
        exchange.stored = {number: _Stored(tuple(files)) for number, files in places.items()}
        exchange.is_done = True

    def _run(
        self,
        function: Callable[[_Partition, str], Any],
        partitions: Sequence[_Partition],
        description: str,
        tell: Callable[[int], None],
    ) -> list[Any]:
        return self._workers.run(function, [_ready(one) for one in partitions], description, lambda _: tell(1))


def counted(progress: Callable[[int, int], None], total: int) -> Callable[[int], None]:
    """To be called with the weight of each piece of `total` that is done."""
    done = 0

    def tell(weight: int) -> None:
        nonlocal done
        done += weight
        progress(done, total)

    return tell


def _exchanges(partitions: Sequence[_Partition]) -> list[_Exchange]:
    """The exchanges that the partitions wait for, each after those that it waits for itself."""
    found: list[_Exchange] = []
    for one in partitions:
        if isinstance(one.source, _Awaited) and one.source.exchange not in found:
            found += [older for older in _exchanges(one.source.exchange.partitions) if older not in found]
            found.append(one.source.exchange)
    return found


def _ready(partition: _Partition) -> _Partition:
    """The partition with the tables that it has waited for."""
    source = partition.source
    if isinstance(source, _Awaited):
        source = source.exchange.stored.get(source.number, _Stored(()))
    return _Partition(source, partition.steps)


def _store(folder: Path, partition: _Partition, token: str) -> tuple[Path, list[tuple[Any, Place]]]:
    """Write the tables of a partition to a file of its own; its path, the labels and the places."""
    path = folder / token
    stored, labels = StoredTables(_DISK, path), []
    try:
        for label, table in partition.tables(token):
            stored.append(table)
            labels.append(label)
    finally:
        stored.close()
    return path, list(zip(labels, stored.places, strict=True))


def _results(step: Step, task: Any, partition: _Partition, token: str) -> list[Any]:
    return list(step(task, partition.tables(token), token))
