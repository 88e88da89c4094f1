"""From the lines of the list to tables: patterns are looked up in storage, all at the same time."""

import os
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from ..concurrency import SHORT_REQUESTS, at_once
from ..errors import ConfigError, HudiServicesError, SymbolicLink
from ..options import Layer, Options
from ..paths import TABLE_FOLDER, bare_name
from ..storage import Storage
from ..stores import open_storage
from ..table.meta_folder import MetaFolder
from ..urls import local_path, scheme_of
from .tables_file import ANY_DEPTH, TablesLine, name_pattern

_DEEPEST = 20
"""Tables below the place of a `**` are looked for down to this depth."""
_IN_URL = str.maketrans({one: f"%{ord(one):02X}" for one in "%?#"})
"""What a name cannot have in a URL as it is."""


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table by its place, and its options over those of the run; `source` is the line that names it."""

    url: str
    source: str
    options: Options


@dataclass(slots=True)
class ListedTables:
    """The tables of a list in its order, the patterns without a table, and those that could not be looked up."""

    tables: list[ListedTable] = field(default_factory=list)
    without_table: list[TablesLine] = field(default_factory=list)
    failed: list[tuple[TablesLine, HudiServicesError]] = field(default_factory=list)


def find_tables(lines: Sequence[TablesLine], options_of: Callable[[Sequence[Layer]], Options]) -> ListedTables:
    """All tables that the lines name, each once. `options_of` gives options from the layers of a line.

    What is no pattern counts as a table, whatever is there. Raises ConfigError for options of a line that are wrong.
    """
    excluded = [one for one in lines if one.is_excluded]
    wanted = [(one, options_of(one.layers)) for one in lines if not one.is_excluded]
    places = at_once(lambda pair: _places(pair[0]), wanted)
    found, seen = ListedTables(), set[Hashable]()
    for (line, options), of_line in zip(wanted, places, strict=True):
        if isinstance(of_line, HudiServicesError):
            found.failed.append((line, of_line))
            continue
        if not of_line:
            found.without_table.append(line)
        for place in of_line:
            key = _identity(place)
            if key not in seen and not any(one.names(place) for one in excluded):
                seen.add(key)
                found.tables.append(ListedTable(place, line.source, options))
    return found


def _identity(place: str) -> Hashable:
    """Equal for the same files: two lines may write the place of one table in two ways."""
    try:
        local = local_path(place)
        return open_storage(place).identity if local is None else os.path.realpath(local)
    except HudiServicesError:
        return place


def _places(line: TablesLine) -> list[str] | HudiServicesError:
    """The places of the tables of a line, in order; the error of a pattern that cannot be looked up, as a value."""
    if not line.is_pattern:
        return [line.place]
    folder, names = line.divided
    try:
        return sorted(_matching(folder, names))
    except HudiServicesError as error:
        return error


def _matching(folder: str, names: Sequence[str]) -> list[str]:
    """The tables whose names below `folder`, which ends with a slash, match one after the other."""
    first, *others = names
    storage = open_storage(folder or ".")
    if first == ANY_DEPTH:
        return [f"{folder}{_written(folder, path)}" for path in _below(storage, "", 0)]
    inner = [first]
    if "*" in first:
        pattern = re.compile(name_pattern(first), re.DOTALL)
        inner = [name for name in map(bare_name, storage.list_dir("")[1]) if pattern.fullmatch(name)]
        inner = [_written(folder, name) for name in inner]
    places = [f"{folder}{name}" for name in inner]
    if others:
        return _joined(at_once(lambda place: _matching(f"{place}/", others), places))
    # A table may be reached by a link here, as a place that is no pattern may.
    there = at_once(lambda place: _is_table(open_storage(place)), places, SHORT_REQUESTS)
    return [place for place, is_table in zip(places, there, strict=True) if is_table]


def _below(storage: Storage, folder: str, depth: int) -> list[str]:
    """The tables at any depth below a folder; inside of a table there is none, and no link is followed."""
    try:
        inner = storage.list_dir(folder)[1]
    except SymbolicLink:
        return []
    if depth and TABLE_FOLDER in map(bare_name, inner):
        return [folder]
    inner = [path for path in inner if not bare_name(path).startswith((".", "_"))]
    if inner and depth == _DEEPEST:
        raise ConfigError(
            f"{storage.full_path(folder)} is {_DEEPEST} folders below the place of a **, and has more of them",
            hint="begin the pattern at a folder further down",
        )
    return _joined(at_once(lambda path: _below(storage, path, depth + 1), inner))


def _is_table(storage: Storage) -> bool:
    return bool(MetaFolder.list(storage).files)


def _written(folder: str, path: str) -> str:
    """Names as a URL has them, where `folder` is one."""
    return path.translate(_IN_URL) if scheme_of(folder) else path


def _joined(lists: Iterable[list[str]]) -> list[str]:
    return [one for each in lists for one in each]
