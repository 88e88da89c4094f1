"""From the lines of the list to tables: patterns are looked up in storage, all at the same time."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from urllib.parse import unquote

from ..concurrency import SHORT_REQUESTS, at_once
from ..errors import ConfigError, HudiServicesError, SymbolicLink
from ..options import Layer, Options
from ..paths import TABLE_FOLDER, bare_name
from ..schemes import SCHEMES
from ..storage import Storage
from ..stores import open_storage
from ..table.meta_folder import MetaFolder
from ..urls import local_path, scheme_of
from .tables_file import ANY_DEPTH, TablesLine, name_pattern
from .warnings_told import told_once

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
    """The tables of a list in its order, and the lines without one, also those that leave none out."""

    tables: list[ListedTable] = field(default_factory=list)
    without_table: list[TablesLine] = field(default_factory=list)
    failed: list[tuple[TablesLine, HudiServicesError]] = field(default_factory=list)
    """What could not be looked up: a pattern, or a folder below its place as a line of its own."""
    warnings: list[str] = field(default_factory=list)
    """About the options of lines."""


@dataclass(frozen=True, slots=True)
class _Unlisted:
    """A folder that could not be listed, or a table about which its storage says nothing."""

    place: str
    error: HudiServicesError


_Found: TypeAlias = "str | _Unlisted"
"""The place of a table, or what was found instead."""


def find_tables(lines: Sequence[TablesLine], options_of: Callable[[Sequence[Layer]], Options]) -> ListedTables:
    """All tables that the lines name, each once. `options_of` gives options from the layers of a line.

    What is no pattern counts as a table, whatever is there. Raises ConfigError for options of a line that are wrong.
    """
    excluded = [(one, _plain(one)) for one in lines if one.is_excluded]
    wanted = [(one, options_of(one.layers)) for one in lines if not one.is_excluded]
    places = at_once(lambda pair: _places(pair[0]), wanted)
    found, seen, used = ListedTables(), set[str](), set[str]()
    found.warnings = _warnings(wanted, options_of(()).warnings)
    for (line, options), of_line in zip(wanted, places, strict=True):
        if not of_line:
            found.without_table.append(line)
        for one in of_line:
            place = one if isinstance(one, str) else one.place
            key = identity(place)
            left_out = {by.source for by, plain in excluded if by.names(place) or plain.names(key)}
            used |= left_out
            if key in seen or left_out:
                continue
            seen.add(key)
            if isinstance(one, str):
                found.tables.append(ListedTable(place, line.source, options))
            else:
                found.failed.append((replace(line, place=place), one.error))
    found.without_table += [one for one, _ in excluded if one.source not in used]
    return found


def _warnings(lines: Sequence[tuple[TablesLine, Options]], of_run: Collection[str]) -> list[str]:
    """The warnings about the options of lines, one for all lines that give the same reason."""
    told = ((line.source, one) for line, options in lines for one in options.warnings if one not in of_run)
    return told_once(told, "line")


def identity(place: str) -> str:
    """Equal for the same files: two lines may write one place in two ways, as s3a:// and s3://."""
    local = local_path(place)
    if local is not None:
        return os.path.realpath(local)
    kind = SCHEMES.get(scheme_of(place))
    return place if kind is None else f"{kind.opened_as}://{unquote(place.partition('://')[2])}"


def _plain(line: TablesLine) -> TablesLine:
    """The line with its place as `identity` writes it."""
    folder, names = line.divided if line.is_pattern else (line.place, ())
    return replace(line, place="/".join([identity(folder).rstrip("/"), *names]))


def _places(line: TablesLine) -> list[_Found]:
    """The places of the tables of a line, in order, then what could not be looked up."""
    if not line.is_pattern:
        return [line.place]
    folder, names = line.divided
    found = _tried(line.place, lambda: _matching(folder, names))
    places = sorted(one for one in found if isinstance(one, str))
    return [*places, *(one for one in found if isinstance(one, _Unlisted))]


def _tried(place: str, look: Callable[[], list[_Found]]) -> list[_Found]:
    """What a look finds at a place; that it failed is found there, too, and keeps nobody from other places."""
    try:
        return look()
    except HudiServicesError as error:
        return [_Unlisted(place, error)]


def _matching(folder: str, names: Sequence[str]) -> list[_Found]:
    """The tables whose names below `folder`, which ends with a slash, match one after the other.

    Raises what the listing of the folder itself raises.
    """
    first, *others = names
    storage = open_storage(folder or ".")
    if first == ANY_DEPTH:
        return _below(storage, folder, "", 0)
    inner = [first]
    if "*" in first:
        pattern = re.compile(name_pattern(first), re.DOTALL)
        inner = [name for name in map(bare_name, storage.list_dir("")[1]) if pattern.fullmatch(name)]
        inner = [_written(folder, name) for name in inner]
    places = [f"{folder}{name}" for name in inner]
    if others:
        return _joined(at_once(lambda place: _tried(place, lambda: _matching(f"{place}/", others)), places))
    # A table may be reached by a link here, as a place that is no pattern may.
    return _joined(at_once(lambda place: _tried(place, lambda: _at(place)), places, SHORT_REQUESTS))


def _at(place: str) -> list[_Found]:
    """The place, if a table is there."""
    return [place] if MetaFolder.list(open_storage(place)).files else []


def _below(storage: Storage, root: str, folder: str, depth: int) -> list[_Found]:
    """The tables at any depth below a folder of `root`; inside of a table there is none, and no link is followed.

    Raises what the listing of the folder itself raises.
    """
    try:
        inner = storage.list_dir(folder)[1]
    except SymbolicLink:
        return []
    if depth and TABLE_FOLDER in map(bare_name, inner) and storage.list_dir(f"{folder}/{TABLE_FOLDER}")[0]:
        return [f"{root}{_written(root, folder)}"]
    inner = [path for path in inner if not bare_name(path).startswith((".", "_"))]
    if inner and depth == _DEEPEST:
        raise ConfigError(
            f"{storage.full_path(folder)} is {_DEEPEST} folders below the place of a **, and has more of them",
            hint="begin the pattern at a folder further down",
        )

    def look(path: str) -> list[_Found]:
        return _tried(f"{root}{_written(root, path)}", lambda: _below(storage, root, path, depth + 1))

    return _joined(at_once(look, inner))


def _written(folder: str, path: str) -> str:
    """Names as a URL has them, where `folder` is one."""
    return path.translate(_IN_URL) if scheme_of(folder) else path


def _joined(lists: Iterable[list[_Found]]) -> list[_Found]:
    return [one for each in lists for one in each]
