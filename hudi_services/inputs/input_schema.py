"""The schema of files of rows: that of the first one, of which CSV has only names, and JSON not even all of these.

The types of CSV and JSON columns are those of the table. Columns that it does not have are looked at in all files of
the format of the first one, from the first row to the last, before any row is written.
"""

import os
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from ..concurrency import at_once
from ..errors import ConfigError, NothingToDo
from .csv_types import CsvType, joined_types
from .input_file import InputFile
from .input_types import InputTypes, agreed, shown
from .json_types import JsonTypes

_AT_ONCE = min(4, os.cpu_count() or 1)
"""Files that are looked at in parallel: each takes some hundred megabytes of memory, however large it is."""


def schema_of(files: Sequence[InputFile], types: InputTypes) -> pa.Schema:
    """The schema of the files. Raises ConfigError for a file that cannot be read, NothingToDo where all are empty."""
    first = next((one for one in files if one.has_columns()), None)
    if first is None:
        raise NothingToDo("there are no rows to write")
    if first.kind not in ("csv", "json"):
        return first.schema(types.uses)
    alike = [one for one in files if one.kind == first.kind]
    return _of_csv(first, alike, types) if first.kind == "csv" else _of_json(alike, types)


def _of_csv(first: InputFile, files: Sequence[InputFile], types: InputTypes) -> pa.Schema:
    found: dict[str, pa.DataType] = {}
    for name in first.csv_names():
        known = types.known.get(name)
        if known is not None and not pa.types.is_nested(known):
            found[name] = known
        elif name in types.texts:
            found[name] = pa.string()
        else:
            found[name] = pa.null()
    unknown = [name for name, kind in found.items() if pa.types.is_null(kind) and types.uses(name)]
    if unknown:
        found |= joined_types(at_once(partial(_csv_types, unknown), files, _AT_ONCE))
    return pa.schema([(name, kind) for name, kind in found.items() if types.uses(name)])


def _csv_types(names: Sequence[str], file: InputFile) -> dict[str, CsvType]:
    own = file.csv_names()
    found = {name: CsvType() for name in names if name in own}
    for batch in file.csv_texts(own, names) if found else ():
        found = {name: one.of_more(batch.column(name)) for name, one in found.items()}
    return found


def _of_json(files: Sequence[InputFile], types: InputTypes) -> pa.Schema:
    parts = at_once(_json_types, files, _AT_ONCE)
    found = JsonTypes()
    for file, part in zip(files, parts, strict=True):
        with file.reading():
            found.add(part)
    path = found.too_large(types.known)
    if path is not None:
        where = next(file.where for file, part in zip(files, parts, strict=True) if path in part.large)
        raise ConfigError(
            f"{where}: column {path} has whole numbers that are too large for a double, and the table does not have "
            "the column",
            hint="write the numbers of this column as strings, in quotes",
        )
    return pa.schema([(name, _agreed(name, files, parts, found, types)) for name in found.fields if types.uses(name)])


def _agreed(
    name: str, files: Sequence[InputFile], parts: Sequence[JsonTypes], json_types: JsonTypes, types: InputTypes
) -> pa.DataType:
    known = types.known.get(name)
    kind = agreed(json_types.fields[name], known)
    if kind is not None:
        return kind
    own = ((file, part.fields.get(name, known)) for file, part in zip(files, parts, strict=True))
    where, wrong = next((file.where, one) for file, one in own if one != known and agreed(one, known) is None)
    raise ConfigError(
        f"{where}: column {name} has the type {shown(wrong)}, and {shown(known)} in the table",
        hint="convert the column to the type of the table",
    )


def _json_types(file: InputFile) -> JsonTypes:
    with file.reading():
        return JsonTypes.of(file.json_tables())
