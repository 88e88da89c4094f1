"""Turns layers of texts into typed options that remember the layer that set them."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from ..errors import ConfigError
from ..urls import without_secrets
from . import clustering_keys, lock_keys
from .fields import FILL
from .option import NEVER, Option, Phase
from .registry import KNOWN, OPTIONS

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
Layer: TypeAlias = tuple[str, Mapping[str, str]]
"""The source of the values, in words for the operator, and the values by key."""

TABLE_SOURCE = "table"
DEFAULT_SOURCE = "default"
_SIMILAR = 0.75
_OWN_PREFIX = "hudi.services."


@dataclass(frozen=True, slots=True)
class Setting:
    """One option in force: the text of its value, and the layer that set it."""

    key: str
    value: str
    source: str

    @property
    def is_tables(self) -> bool:
        """Whether the table itself set the option."""
        return self.source.split(",")[0] == TABLE_SOURCE


class Options:
    """The honoured options over some layers, highest first. Immutable; `options[keys.X]` has the type of X.

    A value of the table's layer that is wrong, or that a table may not set, is an error only when that option is read.
    With `lenient` it is a warning, and the default counts, unless the option says how the table is locked: a locked
    table must not pass for a table without a lock.
    """

    def __init__(self, layers: Sequence[Layer], *, lenient: bool = False) -> None:
        """Raises ConfigError, naming key and layer, for a value that is not of its option's type, and for a mode
        of several writers without a lock.
        """
        self._layers = tuple((source, dict(values)) for source, values in layers)
        self._settings = {option.key: _find(option, self._layers) for option in OPTIONS}
        self._imply_filter_mode()
        self._errors: dict[str, ConfigError] = {}
        self._values: dict[str, Any] = {}
        self.ignored = tuple(found for option in OPTIONS if (found := self._read(option, lenient)))
        """Sentences about values of the table's layer that were ignored."""
        self._require_lock()
        self.warnings = (*_unknown_keys(self._layers), *self._doubts())

    def _read(self, option: Option[Any], lenient: bool) -> str:
        """Read the value of an option; return a warning when the table's value is ignored, else ""."""
        setting = self._settings[option.key]
        try:
            self._values[option.key] = _value(option, setting)
        except ConfigError as error:
            if setting is None or not setting.is_tables:
                raise
            if not lenient or option in lock_keys.LOCKING:
                self._errors[option.key] = error
                return ""
            self._settings[option.key], self._values[option.key] = None, option.default
            return f"{error.message}: the default is used"
        return ""

    def __getitem__(self, option: Option[T]) -> T:
        """The value of an option. Raises ConfigError when the table set it, and may not set that value."""
        if option.key in self._errors:
            raise self._errors[option.key]
        return cast(T, self._values[option.key])

    def of(self, kind: Callable[P, S], *given: P.args, **named: P.kwargs) -> S:
        """A dataclass with the values of its fields of options (`options.fields`), and the others as they are given.

        Raises ConfigError as `[]` and as the fields.
        """
        filled = {
            one.name: one.metadata[FILL](self)
            for one in fields(cast(Any, kind))[len(given) :]
            if FILL in one.metadata and one.name not in named
        }
        return cast(Callable[..., S], kind)(*given, **named, **filled)

    def check(self, phase: Phase) -> None:
        """Raise ConfigError for the first option of `phase` that the table set to a value that it may not set."""
        for option in OPTIONS:
            if option.phase & phase:
                self[option]

    def is_set(self, option: Option[Any]) -> bool:
        """Whether some layer has the option, so that its value is not the default."""
        return self._settings[option.key] is not None

    def source(self, option: Option[Any]) -> str:
        setting = self._settings[option.key]
        return setting.source if setting else DEFAULT_SOURCE

    def given(self, key: str) -> tuple[str, str]:
        """The layer, other than the table's, that has this key, and its text, secrets hidden; "" twice without one."""
        for source, values in self._layers:
            if source != TABLE_SOURCE and key in values:
                return source, without_secrets(values[key].strip())
        return "", ""

    def given_keys(self, prefix: str) -> list[str]:
        """Every key with this prefix that some layer other than the table's has."""
        layers = (values for source, values in self._layers if source != TABLE_SOURCE)
        return sorted({key for values in layers for key in values if key.startswith(prefix)})

    def texts(self) -> dict[str, str]:
        """Every key that some layer has, known or not, with the text of the highest layer that has it."""
        return {key: text for _, values in reversed(self._layers) for key, text in values.items()}

    def over_table(self, properties: Mapping[str, str], *, lenient: bool = False) -> "Options":
        """The same options, with the properties of the table (`hoodie.properties`) below every other layer."""
        return Options([*self._layers, (TABLE_SOURCE, properties)], lenient=lenient)

    def below(self, layers: Sequence[Layer]) -> "Options":
        """The same options, with other layers over them, the highest first."""
        return Options([*layers, *self._layers])

    def with_default(self, option: Option[Any], text: str) -> "Options":
        """The same options, with `text` as the value of an option that no layer has."""
        return Options([*self._layers, (DEFAULT_SOURCE, {option.key: text})])

    def in_force(self, phase: Phase = Phase.ANY) -> list[Setting]:
        """Every option of `phase` with its value as it may be shown, defaults too, by key."""
        found = (
            self._settings[option.key] or Setting(option.key, as_text(option.default), DEFAULT_SOURCE)
            for option in OPTIONS
            if option.phase & phase
        )
        shown = (replace(one, value=without_secrets(one.value)) for one in found)
        return sorted(shown, key=lambda setting: setting.key)

    def of_run(self) -> list[Setting]:
        """Every option that neither the table nor a default sets, by key, but for values that hold a secret."""
        found = (one for one in self._settings.values() if one is not None and not one.is_tables)
        shown = (one for one in found if one.source != DEFAULT_SOURCE and without_secrets(one.value) == one.value)
        return sorted(shown, key=lambda one: one.key)

    def _imply_filter_mode(self) -> None:
        strategy = self._settings[clustering_keys.PLAN_STRATEGY_CLASS.key]
        mode = clustering_keys.DEPRECATED_PLAN_FILTERS.get(strategy.value) if strategy else None
        if strategy and mode:
            key = clustering_keys.PARTITION_FILTER_MODE.key
            self._settings[key] = Setting(key, mode, f"{strategy.source}, through {strategy.key}")

    def _is_refused(self, *options: Option[Any]) -> bool:
        return any(option.key in self._errors for option in options)

    def _require_lock(self) -> None:
        mode, lock = lock_keys.CONCURRENCY_MODE, lock_keys.LOCK_PROVIDER
        if self._is_refused(mode, lock):
            return
        if self[mode] != mode.default and not self[lock]:
            raise ConfigError(
                f"{mode.key}={self[mode]} (from {self.source(mode)}) needs a lock: {lock.key} is not set",
                hint=f"set {lock.key} as the other writers of the table do",
            )

    def _doubts(self) -> Iterable[str]:
        small, target = clustering_keys.SMALL_FILE_LIMIT, clustering_keys.TARGET_FILE_BYTES
        if self._is_refused(small, target):
            return
        if self[small] >= self[target]:
            yield (
                f"{small.key}={self[small]} is not below {target.key}={self[target]}: "
                "new files will be eligible again at once"
            )


def resolve(layers: Sequence[Layer]) -> Options:
    """The options over `layers`, highest precedence first. Raises ConfigError naming the key and its layer."""
    return Options(layers)


def as_text(value: Any) -> str:
    """A value as it would be written in a properties file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _find(option: Option[Any], layers: Iterable[Layer]) -> Setting | None:
    for source, values in layers:
        if source == TABLE_SOURCE and option.phase == Phase.CREATE:
            # Facts of a table that exists, not options.
            continue
        for name in option.names:
            if name in values:
                return Setting(option.key, values[name].strip(), source)
    return None


def _value(option: Option[Any], setting: Setting | None) -> Any:
    if setting is None:
        return option.default
    shown = f"{option.key}={without_secrets(setting.value)} (from {setting.source})"
    try:
        value = option.parse(setting.value)
    except ValueError as error:
        raise ConfigError(f"{shown} {error}", hint=f"{option.key}: {option.description}{_override(setting)}") from None
    if setting.is_tables and value != option.default and not option.in_table.allows(value):
        which = "" if option.in_table is NEVER else f" so ({option.in_table.text})"
        raise ConfigError(
            f"{shown} cannot be set by a table{which}: only flags, --hoodie-conf, --props and conf files may do that",
            hint=f"if it is right, give it with --hoodie-conf{_override(setting)}",
        )
    return value


def _override(setting: Setting) -> str:
    """A hint how to override the table's value; "" for a value of another layer."""
    return f"; --hoodie-conf {setting.key}=… counts more than the table's value" if setting.is_tables else ""


def _unknown_keys(layers: Iterable[Layer]) -> list[str]:
    # The table's own properties belong to Hudi, and other keys (spark.…) to other programs.
    return [
        _unknown(key, source)
        for source, values in layers
        for key in (values if source != TABLE_SOURCE else ())
        if _looks_like_hudi(key) and not KNOWN.is_known(key)
    ]


def _looks_like_hudi(key: str) -> bool:
    first = key.lstrip("_").split(".", 1)[0].lower()
    if key.startswith(_OWN_PREFIX):
        return True
    return first == "hoodie" or difflib.SequenceMatcher(None, first, "hoodie").ratio() > _SIMILAR


def _unknown(key: str, source: str) -> str:
    # `key value==` is a key with a blank to Hudi, and its second word may be a secret.
    first, *more = key.split(maxsplit=1)
    shown = without_secrets(first)
    if more:
        return f"{shown} … (from {source}) is not a key that is known: there is a blank before the first = of its line"
    return f"{shown} (from {source}) is not a key that is known, the nearest one is {_nearest(first)}"


@lru_cache
def _nearest(key: str) -> str:
    # It takes a tenth of a second, and runs over many tables read the same options for each.
    return difflib.get_close_matches(key, KNOWN.whole, n=1, cutoff=0.0)[0]
