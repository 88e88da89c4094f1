"""What becomes of the keys that are no options: commands refuse them, or warn.

The table's own properties are not meant: they say what the table is.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import ConfigError
from .not_honoured import INDEXES_BY, KEPT, NOT_MADE
from .option import IndexSwitch, NotHonoured, Option, Phase
from .registry import KNOWN, OPTIONS
from .resolve import Options

_NOT_HONOURED = KNOWN.all_of(NotHonoured)
_SWITCHES: tuple[IndexSwitch | Option[Any], ...] = (
    *KNOWN.all_of(IndexSwitch),
    *(one for one in OPTIONS if one.keeps),
)


def refuse(options: Options, phase: Phase) -> None:
    """Raise ConfigError for a key with which Hudi would do something else in a command that reads `phase`."""
    for one in _NOT_HONOURED:
        if one.refused & phase:
            source, value = options.given(one.key)
            if value and value.lower() not in one.harmless:
                raise ConfigError(f"{one.key}={value} (from {source}) is not supported: {one.what}", hint=one.hint)


def warnings(options: Options, phase: Phase, metadata_partitions: Iterable[str]) -> Iterator[str]:
    """Sentences on what keys ask for, and does not happen in a command that reads `phase`.

    `metadata_partitions` are those of the table: the indexes that it has follow every commit.
    """
    for one in _NOT_HONOURED:
        if one.warned & phase and not one.refused & phase:
            source, value = options.given(one.key)
            if value and value.lower() not in one.harmless:
                yield _ignored(one.key, "…" if one.is_secret else value, source, one.what)
    if phase & INDEXES_BY:
        yield from _of_indexes(options, tuple(metadata_partitions))


def _of_indexes(options: Options, there: tuple[str, ...]) -> Iterator[str]:
    for one in _SWITCHES:
        source, value = options.given(one.key)
        found = next((name for name in there if name.startswith(one.keeps)), "")
        if value.lower() == "true" and not found and isinstance(one, IndexSwitch) and one.makes:
            yield _ignored(one.key, value, source, NOT_MADE)
        if value.lower() == "false" and found:
            yield _ignored(one.key, value, source, KEPT.format("metadata table" if found == "files" else found))


def _ignored(key: str, value: str, source: str, what: str) -> str:
    return f"{key}={value} (from {source}) is ignored: {what}"
