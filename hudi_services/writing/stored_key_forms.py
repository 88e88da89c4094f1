"""The forms of the keys and partition paths that a table has, by rows that it has.

Releases and write paths of Hudi make different texts of some keys (see `key_forms`): a write must make those that are
there. A record key is compared with what each form makes of the same row, for a key alone may be of several forms.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from ..derived_indexes.expression_index.time_functions import Zone
from ..errors import UnsupportedTable
from ..keygen.key_forms import KeyForm, show_key, shown_form
from ..keygen.key_maker import KeyMaker
from ..keygen.partition_paths import DEFAULT_PARTITION
from ..merging.log_records import KEY
from ..model import FileSlice
from ..parquet.file_schema import FileSchema
from ..snapshot import Snapshot
from ..table_config import TableConfig
from .writer_schema import WriterSchema

_ROWS = 1024
"""So many rows of a file slice are looked at, about at most: most decide, but null values do not."""
_SLICES = 100
"""So many slices with rows are looked at before the write is refused."""
_AT_ONCE = 1 << 20
"""Bytes of a stored row group that are read at once: only its first rows are needed."""


def key_maker(table: Snapshot, config: TableConfig, schema: WriterSchema, zone: Zone) -> KeyMaker:
    """The keys for rows of `schema`. `config` are the properties of the table, with what a write says of its keys.

    `zone` is that of the table's writers. Raises what `KeyMaker.of` raises, UnsupportedTable when the rows of the table
    do not show the form of its keys, and CorruptFile and StorageError for a file that cannot be read.
    """
    arrow = schema.arrow
    forms = KeyMaker.forms(config, arrow, zone)
    # Without meta fields no record key is stored.
    form = forms[0] if len(forms) == 1 or not schema.has_meta else None
    path = _some_path(table) if KeyMaker.needs_path(config, arrow) else None
    if form is None:
        form = _form_of_rows(table, forms, schema.target)
    return KeyMaker.of(config, arrow, form, sample_path=path, zone=zone)


def _some_path(table: Snapshot) -> str | None:
    """The partition path of some row, if possible one whose partition value is not null; None without rows."""
    found = None
    for partition, view in table.view.each(table.view.partitions()):
        if found is not None and DEFAULT_PARTITION in partition:
            continue
        if any(_has_rows(table, one) for one in view.latest_slices(partition)):
            found = partition
            if DEFAULT_PARTITION not in partition:
                break
    return found


def _has_rows(table: Snapshot, file_slice: FileSlice) -> bool:
    for part in _parts(file_slice):
        reader = table.slices.open(part)
        count = reader.num_rows
        reader.release()
        if count:
            return True
    return False


def _form_of_rows(table: Snapshot, forms: Sequence[KeyForm], target: FileSchema) -> KeyForm | None:
    """The one of these forms that the record keys of the table have; None for a table without rows."""
    names = list(dict.fromkeys((KEY, *(field.column for field in forms[0].fields))))
    key, looked = "", 0
    for one in _slices(table):
        rows = _some_rows(table, one, names, target)
        if rows is None:
            continue
        keys = rows.column(KEY)
        found = shown_form(forms, keys, rows)
        if found is not None:
            return found
        key, looked = key or str(keys[0]), looked + 1
        if looked >= _SLICES:
            break
    if not looked:
        return None
    fields = ",".join(field.name for field in forms[0].fields)
    has_times = any(form.times is not None for form in forms)
    zone = ", or set spark.sql.session.timeZone to the time zone of the other writers" if has_times else ""
    raise UnsupportedTable(
        f"the record keys of the table, as {show_key(key)}, do not show in which form they have the values of {fields}",
        hint=f"write to this table with Apache Hudi{zone}",
    )


def _slices(table: Snapshot) -> Iterator[FileSlice]:
    for partition, view in table.view.each(table.view.partitions()):
        yield from view.latest_slices(partition)


def _some_rows(table: Snapshot, file_slice: FileSlice, names: Sequence[str], target: FileSchema) -> pa.Table | None:
    """Some rows of a slice, with these columns, in the raw form of `target`; None when it has none."""
    for part in _parts(file_slice):
        reader = table.slices.open(part)
        tables = (rows for _, rows in reader.tables(names, target, at_once=_AT_ONCE) if rows.num_rows)
        rows = next(tables, None)
        reader.release()
        if rows is not None:
            return rows.slice(0, _ROWS)
    return None


def _parts(file_slice: FileSlice) -> Iterator[FileSlice]:
    """The slice without its log files, which then need no merge, and then with them."""
    if file_slice.base_file is not None:
        yield replace(file_slice, log_files=())
    if file_slice.log_files:
        yield file_slice
