"""Fields of settings that options fill: `Options.of(Settings)` makes a dataclass with such fields.

    limit: int = value_of(keys.LIMIT)                        the value of an option
    policy: Policy = value_of(keys.POLICY, Policy)           the value, converted
    zone: Zone = computed(zone_of, Zone.parse("UTC"))        what a function makes of all options, and the default
    sizes: Sizes = settings(Sizes)                           a dataclass with such fields

Without options, a field has the default of its option.
"""

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .option import Option

if TYPE_CHECKING:
    from .resolve import Options

T = TypeVar("T")
V = TypeVar("V")

FILL = "options"
"""The key of a field's metadata under which the function is that makes its value of `Options`."""


@overload
def value_of(option: Option[T]) -> T: ...
@overload
def value_of(option: Option[T], convert: Callable[[T], V]) -> V: ...
def value_of(option: Option[Any], convert: Callable[[Any], Any] = lambda value: value) -> Any:
    """A field with the value of an option."""
    return field(default=convert(option.default), metadata={FILL: lambda options: convert(options[option])})


def computed(fill: "Callable[[Options], T]", default: T) -> T:
    """A field with what `fill` makes of the options. It may raise ConfigError."""
    made: T = field(default_factory=lambda: default, metadata={FILL: fill})
    return made


def settings(kind: Callable[[], T]) -> T:
    """A field with a dataclass whose own fields options fill."""
    made: T = field(default_factory=kind, metadata={FILL: lambda options: options.of(kind)})
    return made
