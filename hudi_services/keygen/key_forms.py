"""The forms of record keys, and which of them the rows of a table have.

    key generator                one key field     several key fields
    SIMPLE, TIMESTAMP            v                 –
    NON_PARTITION, CUSTOM        v                 f:v,g:w
    COMPLEX                      f:v, or v         f:v,g:w

In `f:v,g:w` null is __null__ and "" is __empty__; nothing is escaped. Releases of Hudi differ in the key of one field
by COMPLEX, and its two write paths in the texts of timestamps. A value may look like any form (`f:v` is also the key
`v` of the value `f:v`), so that a key shows its form only beside the values that it was made of.
Source: KeyGenUtils, KeyGenerator.constructRecordKey, the key generators of Apache Hudi 0.15.0 to 1.2.0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UnsupportedTable
from .key_texts import Field, TimeTexts, Values, texts

_NULL, _EMPTY = "__null__", "__empty__"
_SHOWN = 100
"""Characters of a record key in a message."""


@dataclass(frozen=True, slots=True)
class KeyForm:
    """Makes record keys of some fields. `is_named`: as `f:v`, not `v`; `times` as in `texts`."""

    fields: tuple[Field, ...]
    is_named: bool
    times: TimeTexts | None

    def keys(self, rows: pa.Table) -> Values:
        """The record key of each row; null where it has none. Raises UnsupportedTable as `texts`."""
        columns = [texts(field.values(rows), field.name, self.times) for field in self.fields]
        missing = pc.equal(pc.fill_null(columns[0], ""), "")
        for column in columns[1:]:
            missing = pc.and_(missing, pc.equal(pc.fill_null(column, ""), ""))
        found = self._named(columns) if self.is_named else columns[0]
        return pc.if_else(missing, pa.scalar(None, pa.string()), found) if pc.any(missing).as_py() else found

    def _named(self, columns: Sequence[Values]) -> Values:
        parts: list[pa.Scalar | Values] = []
        for field, column in zip(self.fields, columns, strict=True):
            known = pc.fill_null(pc.if_else(pc.equal(column, ""), _EMPTY, column), _NULL)
            parts += [pa.scalar(f"{',' if parts else ''}{field.name}:"), known]
        return pc.binary_join_element_wise(*parts, "")


def shown_form(forms: Sequence[KeyForm], keys: pa.ChunkedArray, rows: pa.Table) -> KeyForm | None:
    """The form of these record keys of rows of a table, None when none of the rows decides.

    A row decides when exactly one of the forms makes its key. Raises UnsupportedTable when rows decide differently.
    """
    fits = np.array([_are_made(form, keys, rows) for form in forms], np.bool_)
    decides = fits & (fits.sum(axis=0) == 1)
    found = [number for number, rows_of in enumerate(decides) if rows_of.any()]
    if len(found) > 1:
        shown = " and ".join(show_key(keys[int(np.flatnonzero(decides[number])[0])].as_py()) for number in found[:2])
        names = ",".join(field.name for field in forms[0].fields)
        raise UnsupportedTable(
            f"the table has record keys of {names} in two forms, as {shown}, so that no form is right for new rows",
            hint="write the rows of one of the two forms again with Apache Hudi, and delete the old ones",
        )
    return forms[found[0]] if found else None


def show_key(key: str) -> str:
    """A record key in a message."""
    return repr(key if len(key) <= _SHOWN else f"{key[:_SHOWN]}…")


def _are_made(form: KeyForm, keys: pa.ChunkedArray, rows: pa.Table) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whether each key is the one that a form makes of its row."""
    try:
        equal = pc.fill_null(pc.equal(form.keys(rows), keys), False)
    except UnsupportedTable:
        # A time that we do not show as Java does: the other rows may decide.
        if rows.num_rows <= 1:
            return np.zeros(rows.num_rows, np.bool_)
        half = rows.num_rows // 2
        ends = ((0, half), (half, rows.num_rows - half))
        return np.concatenate([_are_made(form, keys.slice(at, count), rows.slice(at, count)) for at, count in ends])
    return np.asarray(equal.to_numpy(zero_copy_only=False) if isinstance(equal, pa.Array) else equal.to_numpy())
