"""What each key that Hudi knows does here, in one place.

    honoured        it is an option (`keys.ALL`), or begins as the properties of key generators do
    not honoured    commands that it concerns refuse it, or warn (`not_honoured`)
    idle            it is of no consequence, for a reason (`idle_keys`)

Each key is one of these; `tests/unit/test_effects.py` compares them with the keys of four releases.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from ..errors import ConfigError
from . import keys
from .idle_keys import BY_REASON, PREFIXES
from .not_honoured import (
    DELETE_INDEXES,
    DELETE_STATISTICS,
    INDEXES_BY,
    KEPT,
    MAKE_INDEXES,
    NOT_HONOURED,
    NOT_MADE,
)
from .option import Phase

if TYPE_CHECKING:
    from .resolve import Options

HONOURED_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")
"""Properties of a table's key generator, which a new table keeps as they are given."""


@cache
def honoured() -> frozenset[str]:
    """The keys of all options, and their older names."""
    return frozenset(name for option in keys.ALL for name in option.names)


@cache
def known() -> frozenset[str]:
    """Every key that has an effect by its whole name."""
    idle = (key for text in BY_REASON.values() for key in text.split())
    return honoured().union(NOT_HONOURED, MAKE_INDEXES, DELETE_INDEXES, idle)


def is_known(key: str) -> bool:
    """Whether a key is one of Hudi's or ours: any other one may be misspelt."""
    return key in known() or key.startswith((*HONOURED_PREFIXES, *PREFIXES))


def refuse(options: "Options", phase: Phase) -> None:
    """Raise ConfigError for a key with which Hudi would do something else in a command that reads `phase`.

    The table's own properties are not meant: they say what the table is.
    """
    for key, one in NOT_HONOURED.items():
        if one.refused & phase:
            source, value = options.given(key)
            if value and value.lower() not in one.harmless:
                raise ConfigError(f"{key}={value} (from {source}) is not supported: {one.what}", hint=one.hint)


def warnings(options: "Options", phase: Phase, metadata_partitions: Iterable[str]) -> Iterator[str]:
    """Sentences on what keys ask for, and does not happen in a command that reads `phase`.

    `metadata_partitions` are those of the table: the indexes that it has follow every commit.
    """
    for key, one in NOT_HONOURED.items():
        if one.warned & phase and not one.refused & phase:
            source, value = options.given(key)
            if value and value.lower() not in one.harmless:
                yield _ignored(key, "…" if one.is_secret else value, source, one.what)
    if phase & INDEXES_BY:
        yield from _of_indexes(options, tuple(metadata_partitions))


def _of_indexes(options: "Options", there: tuple[str, ...]) -> Iterator[str]:
    for key, beginning in {**MAKE_INDEXES, **DELETE_INDEXES, **DELETE_STATISTICS}.items():
        source, value = options.given(key)
        found = next((name for name in there if name.startswith(beginning)), "")
        if value.lower() == "true" and not found and key in MAKE_INDEXES:
            yield _ignored(key, value, source, NOT_MADE)
        if value.lower() == "false" and found:
            yield _ignored(key, value, source, KEPT.format("metadata table" if found == "files" else found))


def _ignored(key: str, value: str, source: str, what: str) -> str:
    return f"{key}={value} (from {source}) is ignored: {what}"
