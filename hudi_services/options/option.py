"""The declaration of a key: which effect it has here. Each effect is a class of `Key`, which takes what it needs.

    Option        it is honoured: by which commands, with which values, and where a table may set it
    Kept          a new table keeps it as a property
    NotHonoured   commands that it concerns refuse it, or warn
    IndexSwitch   commands warn where it would make or delete an index
    Idle          it is of no consequence, for a reason

A key that ends with a dot stands for every key that begins with it and has no declaration of its own.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from .value_types import boolean, is_code, names, text

T = TypeVar("T")


class Phase(enum.Flag):
    """Which part of a service reads an option."""

    PLAN = enum.auto()
    """Scheduling a clustering."""
    WRITE = enum.auto()
    """Executing a clustering."""
    CLEAN = enum.auto()
    ARCHIVE = enum.auto()
    REPAIR = enum.auto()
    """Rollback, recovery, undo, orphan files and repairs of the metadata table."""
    INDEX = enum.auto()
    """Building an index."""
    LOOKUP = enum.auto()
    """Looking up keys in an index."""
    COMPACTION = enum.auto()
    """Scheduling a compaction."""
    CREATE = enum.auto()
    """Creating a table."""
    INGEST = enum.auto()
    """Writing rows."""
    FLEET = enum.auto()
    """Looking after many tables in one run."""
    CLUSTERING = PLAN | WRITE
    ANY = CLUSTERING | COMPACTION | CLEAN | ARCHIVE | REPAIR | INDEX | LOOKUP | INGEST


NOWHERE = Phase(0)


@dataclass(frozen=True, slots=True)
class InTable:
    """Which values of an option a table may set for itself, in `hoodie.properties`.

    The operator may not own the table's files, and has rights to more than the table. So a table names no code, no
    place outside itself, nothing that takes unlimited memory or time, and nothing of the operator's machine.
    """

    allows: Callable[[Any], bool]
    text: str
    """The values in words: yes, no, or which."""


NEVER = InTable(lambda value: False, "no")
ANY_VALUE = InTable(lambda value: True, "yes")
BUT_CODE = InTable(lambda value: not is_code(value), "yes, but no code")


def between(low: float, high: float) -> InTable:
    """Allow numbers from `low` to `high`, both included."""
    return InTable(lambda value: low <= value <= high, f"{low} to {high}" if low else f"up to {high}")


@dataclass(frozen=True, slots=True)
class Key:
    """A key that Hudi or this program knows. Raises ValueError where a declaration does not say what becomes of it."""

    effect: ClassVar[tuple[str, ...]] = ()
    """The fields that say it, of which one at least must be given."""
    key: str

    def __post_init__(self) -> None:
        if not any(getattr(self, name) for name in self.effect):
            raise ValueError(f"{self.key} is declared without an effect")

    @property
    def names(self) -> tuple[str, ...]:
        return (self.key,)


@dataclass(frozen=True, slots=True)
class Option(Key, Generic[T]):
    """A key that is honoured. `parse` raises ValueError; `default` holds when no layer has the key."""

    effect = ("phase",)
    parse: Callable[[str], T]
    default: T
    phase: Phase
    description: str
    aliases: tuple[str, ...] = ()
    """Older names of the key; within one layer the current name wins."""
    in_table: InTable = NEVER
    keeps: str = ""
    """The partition of a metadata table that stays when this is `false`, and that Hudi's writers would delete."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.key, *self.aliases)


@dataclass(frozen=True, slots=True)
class KeptProperty(Key):
    """A property that a new table keeps as it is given, and the commands that read it."""

    effect = ("phase",)
    phase: Phase


@dataclass(frozen=True, slots=True)
class NotHonoured(Key):
    """A key that asks for what is not done, and in which commands that is refused, or told by a warning."""

    effect = ("refused", "warned")
    what: str
    """What does not happen here, as the end of a sentence."""
    refused: Phase = NOWHERE
    warned: Phase = NOWHERE
    harmless: tuple[str, ...] = ()
    """The values that change nothing, in lower case; an empty value is always one."""
    hint: str = ""
    """The way out, where it is refused."""
    is_secret: bool = False
    """Whether the value must not be shown."""


@dataclass(frozen=True, slots=True)
class IndexSwitch(Key):
    """A key with which Hudi's writers delete a partition of the metadata table (`false`), or also make it (`true`)."""

    effect = ("keeps",)
    keeps: str
    """The beginning of the partition's name."""
    makes: bool = False


@dataclass(frozen=True, slots=True)
class Idle(Key):
    """A key that changes nothing; `reason` is a sentence."""

    effect = ("reason",)
    reason: str


_USUAL_TYPES: Mapping[type, Callable[[str], Any]] = {bool: boolean, str: text, tuple: names}


class Section:
    """Options that belong together, a table of docs/configuration.md; it says what most of them have in common."""

    def __init__(self, title: str, phase: Phase, in_table: InTable) -> None:
        self.title = title
        self.options: list[Option[Any]] = []
        self._phase = phase
        self._in_table = in_table

    def __call__(
        self,
        key: str,
        default: T,
        description: str,
        aliases: tuple[str, ...] = (),
        *,
        parse: Callable[[str], T] | None = None,
        phase: Phase | None = None,
        in_table: InTable | None = None,
        keeps: str = "",
    ) -> Option[T]:
        """Declare an option: `phase` and `in_table` where it differs from the others, `parse` where its type is not
        the usual one of values such as `default`."""
        usual = parse or _USUAL_TYPES[type(default)]
        in_table = in_table or self._in_table
        one = Option(key, usual, default, phase or self._phase, description, aliases, in_table, keeps)
        self.options.append(one)
        return one
