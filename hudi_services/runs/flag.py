"""How the command line takes a value: declared with the field of a dataclass that has the value."""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from ..options import Option


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """The flag of a field, which has its type and its default."""

    names: tuple[str, ...]
    """The long one first; () for what stands by itself, without a name."""
    help: str
    required: bool = False
    metavar: str | None = None
    least: int | None = None
    most: int | None = None
    keys: tuple[Option[Any], ...] = ()
    """Options that get the value."""


def flag(*names: str, default: Any = None, required: bool = False, **described: Any) -> Any:
    """A field of a dataclass with a flag; `described` are the fields of `Flag`."""
    known = Flag(names=names, required=required, **described)
    return field(default=MISSING if required and default is None else default, metadata={Flag: known})


def flags_of(kind: type) -> dict[str, Flag]:
    """The flags by the names of the fields."""
    return {one.name: one.metadata[Flag] for one in fields(kind) if Flag in one.metadata}
