"""Other readers of the same table, and the comparison of what they read."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from decimal import Decimal
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

FILE_NAME = "_hoodie_file_name"
_FILE_GROUP_READER = "hoodie.read.file.group.reader.version"


Read = Callable[[Path], pa.Table]


class Refused(Exception):
    """This reader cannot read this table, whoever wrote it last."""


def hudi_rs_rows(path: Path, *, file_group_reader: int | None = None) -> pa.Table:
    """The snapshot that hudi-rs reads, with its own choice of a file group reader, or the one of this version."""
    from hudi import HudiTableBuilder

    options = {} if file_group_reader is None else {_FILE_GROUP_READER: str(file_group_reader)}
    try:
        table = HudiTableBuilder.from_base_uri(str(path)).with_hudi_options(options).build()
        return pa.Table.from_batches(pa.record_batch(b) for b in table.read())
    except BaseException as e:  # a Rust panic is no Exception
        if isinstance(e, KeyboardInterrupt):
            raise
        raise Refused(f"hudi-rs: {e}") from e


def daft_rows(path: Path) -> pa.Table:
    """The snapshot that Daft reads: versions up to 6, and every base file that is there, replaced or not."""
    import daft

    try:
        return daft.read_hudi(str(path)).to_arrow()
    except Exception as e:
        raise Refused(f"Daft: {e!r}") from e


def python_readers() -> dict[str, Read]:
    """The readers that are packages of Python, by name and release."""
    readers: dict[str, Read] = {
        f"hudi-rs {version('hudi')}, file group reader {n}": partial(hudi_rs_rows, file_group_reader=n) for n in (2, 1)
    }
    return {**readers, f"Daft {version('daft')}": daft_rows}


def same_rows(before: pa.Table, after: pa.Table, *, ignore: tuple[str, ...] = (FILE_NAME,)) -> list[str]:
    """How two reads differ, in any order of rows: nothing when they are equal.

    Types, column order and every value count: -0.0 is not 0.0, NaN equals NaN, null is not empty.
    """
    found = _schema_differences(before.schema, after.schema)
    if found:
        return found
    return same_values(before, after, ignore=ignore)


def same_values(before: pa.Table, after: pa.Table, *, ignore: tuple[str, ...] = (FILE_NAME,)) -> list[str]:
    """Like `same_rows` for two readers whose Arrow types differ (string or large string, zone names)."""
    columns = [c for c in before.column_names if c not in ignore]
    if set(columns) != {c for c in after.column_names if c not in ignore}:
        return [f"columns {columns} became {after.column_names}"]
    left, right = (Counter(_canonical_rows(t.select(columns))) for t in (before, after))
    lost, new = left - right, right - left
    found = [f"{before.num_rows} rows became {after.num_rows}"] if before.num_rows != after.num_rows else []
    found += [f"lost {count} x {row}" for row, count in list(lost.items())[:3]]
    return found + [f"new {count} x {row}" for row, count in list(new.items())[:3]]


def _schema_differences(before: pa.Schema, after: pa.Schema) -> list[str]:
    old, new = ([(f.name, f.type, f.nullable) for f in s] for s in (before, after))
    if old == new:
        return []
    changed = [f"{a} became {b}" for a, b in zip(old, new, strict=False) if a != b]
    return changed or [f"columns {before.names} became {after.names}"]


def _canonical_rows(table: pa.Table) -> list[str]:
    plain = [[_canonical(value) for value in column.to_pylist()] for column in table.columns]
    return [repr(row) for row in zip(*plain, strict=True)]


def _canonical(value: Any) -> Any:
    """A form whose repr is equal exactly when the values are."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, datetime):
        return f"local {value.isoformat()}"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, Decimal):
        return f"decimal {value}"
    if isinstance(value, Mapping):
        return {k: _canonical(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(v) for v in value]
    return value
