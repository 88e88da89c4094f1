"""The file that lists the tables of a fleet, one place in each line.

    # comment
    /data/trips                          a table
    s3://lake/*/orders   key=value ...   all tables at such places, with options of their own; quotes as in a shell
    s3://lake/raw/**                     all tables at any depth below the folder
    !s3://lake/raw/tmp/**                none of these
    include=other.props                  among the options: those of a properties file, beside the list or at a URL

`*` stands for any text without a slash. A table has the options of the first line that names it.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..computed_once import cached_property
from ..errors import ConfigError
from ..options import Layer, Option, file_keys, fleet_keys
from ..runs.config_files import beside, read_properties, text_at
from ..urls import check_url, without_secrets

ANY_DEPTH = "**"
_INCLUDE = "include"
_COMMENT = re.compile(r"(?:^|(?<=\s))#")
_OF_RUN: tuple[Option[Any], ...] = (
    file_keys.ENGINE,
    fleet_keys.AT_ONCE,
    fleet_keys.MOST_BYTES,
    fleet_keys.REQUESTS_PER_SECOND,
    fleet_keys.TABLE_TIME,
)
"""Options that would be ignored in a line."""


@dataclass(frozen=True)
class TablesLine:
    """One line: a place, which may be a pattern, and the layers of the options of its tables, the highest first."""

    source: str
    """The file and the number of the line."""
    place: str
    is_excluded: bool = False
    layers: tuple[tuple[str, Mapping[str, str]], ...] = field(default=())

    @property
    def is_pattern(self) -> bool:
        return "*" in self.place

    @property
    def divided(self) -> tuple[str, tuple[str, ...]]:
        """Of a pattern: the folder above the first name with a `*`, which ends with a slash unless it is "", and the
        names from that one on."""
        names = self.place.split("/")
        at = next(at for at, name in enumerate(names) if "*" in name)
        return "".join(f"{name}/" for name in names[:at]), tuple(names[at:])

    def names(self, place: str) -> bool:
        """Whether the line stands for this place."""
        return self._pattern.fullmatch(place) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        names = ((r"[^/]+(/[^/]+)*" if name == ANY_DEPTH else name_pattern(name)) for name in self.place.split("/"))
        return re.compile("/".join(names), re.DOTALL)


def name_pattern(name: str) -> str:
    """The regular expression of a name, in which `*` stands for any text."""
    return r"[^/]*".join(map(re.escape, name.split("*")))


def read_tables_file(location: str) -> list[TablesLine]:
    """The lines of the file at a path or URL.

    Raises ConfigError, which names the line, for one that cannot be read, and for a file without a place.
    """
    found = list(_Reading(location).lines())
    if not any(not one.is_excluded for one in found):
        raise ConfigError(
            f"{location} lists no table",
            hint="write the folder of a table, or a pattern such as s3://lake/*, in a line",
        )
    return found


@dataclass(slots=True)
class _Reading:
    """The file at `location`, and the properties files that its lines include: each is read once."""

    location: str
    _properties: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def lines(self) -> Iterator[TablesLine]:
        # Editors of Windows begin a file with a mark of its encoding.
        text = text_at(self.location, "the list of tables").removeprefix("\ufeff")
        for number, line in enumerate(text.split("\n"), 1):
            source = f"{self.location}:{number}"
            try:
                # A # begins a comment where a word would begin: folders may have one in their names.
                words = shlex.split(_COMMENT.split(line, maxsplit=1)[0])
            except ValueError as error:
                hint = "close the quotes; a # after a blank begins a comment, also between quotes"
                raise ConfigError(f"{source} cannot be read: {str(error).lower()}", hint=hint) from None
            if words:
                yield self._line(source, words[0], words[1:])

    def _line(self, source: str, first: str, options: list[str]) -> TablesLine:
        place = first.removeprefix("!").rstrip("/") or "/"
        check_url(place, f"the place in {source}")
        _check_stars(source, place)
        if first.startswith("!") and options:
            raise ConfigError(f"{source} leaves tables out, and gives them options", hint="leave the options out")
        values: dict[str, str] = {}
        included: list[tuple[str, Mapping[str, str]]] = []
        for option in options:
            key, equals, value = option.partition("=")
            if not equals or not key.strip():
                # Not shown: it may hold a secret.
                raise ConfigError(
                    f"{source} has a word after the place that is not of the form KEY=VALUE",
                    hint="write one place in a line, and quotes around a place with blanks",
                )
            if key.strip() == _INCLUDE:
                url = beside(self.location, value.strip())
                check_url(url, f"an include in {source}")
                if url not in self._properties:
                    self._properties[url] = read_properties(url)
                included.append((f"{without_secrets(url)} (in {source})", self._properties[url]))
            else:
                values[key.strip()] = value.strip()
        layers = ((source, values), *included)
        _check_keys(layers)
        return TablesLine(source, place, first.startswith("!"), layers)


def _check_keys(layers: Sequence[Layer]) -> None:
    for source, values in layers:
        for name in (name for option in _OF_RUN for name in option.names):
            if name in values:
                raise ConfigError(
                    f"{source} sets {name} for a table, and it counts for the whole run",
                    hint="give it as a flag, with --hoodie-conf or in a file for --props",
                )


def _check_stars(source: str, place: str) -> None:
    names = place.split("/")
    if any(ANY_DEPTH in name and name != ANY_DEPTH for name in names) or ANY_DEPTH in names[:-1]:
        raise ConfigError(
            f"{source}: ** may only be the last name of a pattern", hint="use * for one name, as s3://lake/*/orders"
        )
    if "://" in place and "*" in place.split("/")[2]:
        raise ConfigError(f"{source}: a bucket or a host cannot be a pattern", hint="name each in a line of its own")
