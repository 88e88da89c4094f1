"""Tables that tasks of this process hand to each other, as those of Spark do; divided ones are on the local disk."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from .stored_tables import StoredTables

Labelled: TypeAlias = Iterator[tuple[Any, pa.Table]]
_Step: TypeAlias = Callable[[Any, Labelled, str], Iterator[Any]]
_DISK = "the rows that tasks exchange cannot be kept"


class LocalPieces:
    """An `engine.Pieces`, whose partitions are computed one after the other."""

    def __init__(self, partitions: Sequence[Callable[[], Labelled]], held: Sequence["_Held"] = ()) -> None:
        """`held` are those that must be closed at the end."""
        self._partitions = partitions
        self._held = held

    @classmethod
    def of_labels(cls, labels: Sequence[Any]) -> "LocalPieces":
        """A partition for each label, with a table without rows."""

        def one(label: Any) -> Callable[[], Labelled]:
            return lambda: iter([(label, pa.table({}))])

        return cls([one(label) for label in labels])

    def then(self, step: _Step, task: Any) -> "LocalPieces":
        def of(number: int, rows: Callable[[], Labelled]) -> Callable[[], Labelled]:
            return lambda: step(task, rows(), f"{number}-0-{number}")

        return LocalPieces([of(number, rows) for number, rows in enumerate(self._partitions)], self._held)

    def joined(self, other: Any) -> "LocalPieces":
        return LocalPieces([*self._partitions, *other._partitions], [*self._held, *other._held])

    def divided(self, partitions: int, description: str) -> "LocalPieces":
        return self._held_ones(lambda: (one for rows in self._partitions for one in rows()), partitions)

    def keep(self) -> "LocalPieces":
        parts = self._partitions
        numbered = (((at, label), table) for at, rows in enumerate(parts) for label, table in rows())
        return self._held_ones(lambda: numbered, len(parts), keeps=True)

    def _held_ones(self, rows: Callable[[], Labelled], partitions: int, keeps: bool = False) -> "LocalPieces":
        held = _Held(rows, keeps)
        return LocalPieces([partial(held.of, number) for number in range(partitions)], [*self._held, held])

    def release(self) -> None:
        for one in self._held:
            one.close()

    def results(self, step: _Step, task: Any, description: str, progress: Callable[[int, int], None]) -> list[Any]:
        found: list[Any] = []
        try:
            for number, rows in enumerate(self._partitions):
                found += step(task, rows(), f"{number}-1-{number}")
                progress(number + 1, len(self._partitions))
        finally:
            for one in self._held:
                if not one.keeps:
                    one.close()
        return found


class _Held:
    """Tables whose labels begin with the number of their partition, which are computed once."""

    def __init__(self, rows: Callable[[], Labelled], keeps: bool) -> None:
        """`keeps`: until it is told to close, also after results."""
        self.keeps = keeps
        self._rows = rows
        self._stored = StoredTables(_DISK)
        self._labels: list[tuple[int, Any]] | None = None

    def of(self, partition: int) -> Labelled:
        """The tables of one partition, with the rest of their labels."""
        if self._labels is None:
            labels = []
            for label, table in self._rows():
                self._stored.append(table)
                labels.append(label)
            self._labels = labels
        for number, (at, label) in enumerate(self._labels):
            if at == partition:
                yield label, self._stored.read(number)

    def close(self) -> None:
        self._stored.close()
