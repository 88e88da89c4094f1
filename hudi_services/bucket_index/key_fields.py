"""The values of the hash fields in record keys, as Hudi reads them out of the keys.

A key is f:v,g:w with the names of its fields, or of one field its value alone; and of unusual keys other texts are read
than those that were put in:

    table version    a comma in a key with a colon          a key of one field with a colon
    8, 9             ends a value, if a colon follows it    itself, unless it has a comma, too
    6                ends every value, and begins one       without what is before the colon

Source: KeyGenUtils.extractRecordKeysByFields, BucketIdentifier.getHashKeys of Apache Hudi.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UnsupportedTable

_BEFORE_A_NAME = r"(?s)^([^,]*(?:,[^:,]*)*),[^:,]*:.*$"
"""A value up to the last comma before the first colon that follows a comma: there Hudi takes another field to begin."""
_COLON_AT_THE_END = r"(?s):[^,:]*:[^:]*$"
"""A value with a colon at the end of a key: there Hudi searches without end, unless it is that of a hash field."""
NULL, EMPTY = "__null__", "__empty__"
"""How a key shows a null, and an empty text."""

Mask = npt.NDArray[np.bool_]


def are_named(keys: pa.Array, *, splits: bool) -> Mask:
    """Which keys are read by fields, and not taken as they are. `splits`: as in table version 6."""
    is_named = pc.match_substring(keys, ":")
    if not splits:
        is_named = pc.and_(is_named, pc.match_substring(keys, ","))
    return np.asarray(is_named.to_numpy(zero_copy_only=False), np.bool_)


def values_of(keys: pa.Array, fields: Sequence[str], hashed: Collection[str]) -> tuple[list[pa.Array], Mask]:
    """The values of the `hashed` fields of keys with a comma and a colon, of versions 8 and 9, and which keys have any.

    Raises UnsupportedTable for keys in which Hudi does not find the fields.
    """
    found = _fields_of(keys, fields, hashed)
    values = []
    for number, name in enumerate(fields):
        if name in hashed:
            value = pc.fill_null(pc.struct_field(found, [number]), "")
            values.append(pc.replace_substring_regex(value, _BEFORE_A_NAME, r"\1"))
    return values, found.is_valid().to_numpy(zero_copy_only=False)


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of keys, each with the row of its key; `is_field`: whether it is the value of a hash field."""

    texts: pa.Array
    rows: npt.NDArray[np.int64]
    is_field: Mask


def parts_of(keys: pa.Array, hashed: Collection[str]) -> Parts:
    """The parts between commas of keys with a colon, of version 6: without names, and without those of other fields."""
    parts = pc.split_pattern(pc.replace_substring_regex(keys, ",+$", ""), ",")
    whole = texts = parts.flatten()
    rows = np.repeat(np.arange(len(keys)), np.diff(parts.offsets.to_numpy()))
    kept = pc.invert(pc.match_substring(whole, ":")).to_numpy(zero_copy_only=False)
    is_field = np.zeros(len(texts), np.bool_)
    for name in hashed:
        is_named = pc.starts_with(whole, f"{name}:")
        is_field |= is_named.to_numpy(zero_copy_only=False)
        texts = pc.if_else(is_named, pc.utf8_slice_codeunits(whole, len(name) + 1), texts)
    kept = kept | is_field
    return Parts(texts.filter(pa.array(kept)), rows[kept], is_field[kept])


def _fields_of(keys: pa.Array, fields: Sequence[str], hashed: Collection[str]) -> pa.StructArray:
    """The values of all fields; null for a key of one field that does not name it."""
    last = len(fields) - 1
    names = "|".join(map(re.escape, sorted(hashed)))
    ends_hashed = pc.match_substring_regex(keys, rf"(?s)(?:^|,)(?:{names})(?::[^,:]*)+:[^:]*$")
    is_odd = pc.and_(pc.match_substring_regex(keys, _COLON_AT_THE_END), pc.invert(ends_hashed))
    for number, name in enumerate(fields):
        if name in hashed:
            is_odd = pc.or_(is_odd, pc.not_equal(pc.count_substring(keys, f",{name}:"), 1 if number else 0))
    if pc.any(is_odd).as_py():
        raise _unreadable(keys.filter(is_odd)[0].as_py())
    lazy = [f"{re.escape(name)}:(?P<f{number}>.*?)" for number, name in enumerate(fields)]
    found = pc.extract_regex(keys, f"(?s)^{','.join(lazy)}$")
    if last and found.null_count:
        raise _unreadable(keys.filter(found.is_null())[0].as_py())
    return found


def _unreadable(key: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"Apache Hudi does not find the fields in the record key {key!r}, or searches it without end: it has no bucket",
        hint="leave out the colons or commas in the values of such keys, or use another index",
    )
