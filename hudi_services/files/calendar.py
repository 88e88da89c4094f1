"""The calendar of the dates and timestamps of a base file, by the entries of Spark's row writer in the footer.

    org.apache.spark.version           Spark wrote the file: Gregorian throughout since 3.0, INT96 since 3.1
    org.apache.spark.legacyDateTime    the hybrid calendar in any version (datetimeRebaseModeInWrite=LEGACY)
    org.apache.spark.legacyINT96       the same for INT96
    org.apache.spark.timeZone          of the session that wrote a legacy file

Without the version Spark refuses values before 1582 (timestamps: before 1900), unless its session says how to read
them; so a rewrite must keep these entries. Source: DataSourceUtils.getRebaseSpec, ParquetWriteSupport (Spark).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import UnsupportedTable
from .column_type import Kind, parquet_type
from .parquet_footer import Physical
from .parquet_schema import FileSchema

_VERSION = "org.apache.spark.version"
_LEGACY = "org.apache.spark.legacyDateTime"
_LEGACY_INT96 = "org.apache.spark.legacyINT96"
_ZONE = "org.apache.spark.timeZone"
_GREGORIAN_SINCE = {_LEGACY: (3, 0), _LEGACY_INT96: (3, 1)}


@dataclass(frozen=True, slots=True)
class FooterMetadata:
    """The key/value metadata of the file `path`."""

    path: str
    key_values: Mapping[str, str]


def calendar_metadata(files: Sequence[FooterMetadata], target: FileSchema) -> dict[str, str]:
    """The footer entries for the file that replaces `files` (newest first) with the schema `target`.

    Files without such entries are Gregorian: Avro values always are. Raises UnsupportedTable for files of both
    calendars.
    """
    markers = _markers(target)
    if not markers:
        return {}
    calendars = [_calendar(one.key_values, markers) for one in files]
    for one, calendar in zip(files, calendars, strict=True):
        if calendar != calendars[0]:
            raise UnsupportedTable(
                f"{one.path} and {files[0].path} count their dates in different calendars "
                f"({_LEGACY} in the footer of one)",
                hint="leave the partition out, or let Hudi rewrite those files first",
            )
    found = next((one.key_values for one in files if _VERSION in one.key_values), {})
    return {key: found[key] for key in (_VERSION, _LEGACY, _LEGACY_INT96, _ZONE) if key in found}


def same_calendar(files: Sequence[FooterMetadata], schema: FileSchema) -> bool:
    """Whether readers count the dates of all files, which have this schema, in one calendar."""
    markers = _markers(schema)
    return len({_calendar(one.key_values, markers) for one in files}) <= 1


def is_hybrid(key_values: Mapping[str, str], schema: FileSchema) -> bool:
    """Whether a file with this key/value metadata counts dates before 1582 in the Julian calendar."""
    return bool(_calendar(key_values, _markers(schema)))


def _markers(target: FileSchema) -> tuple[str, ...]:
    """The legacy markers that apply to columns of `target`."""
    kinds = {
        _LEGACY_INT96 if leaf.physical is Physical.INT96 else _LEGACY
        for leaf in target.leaves
        if parquet_type(leaf.node).kind in (Kind.DATE, Kind.TIMESTAMP)
    }
    return tuple(sorted(kinds))


def _calendar(key_values: Mapping[str, str], markers: Sequence[str]) -> tuple[str, ...]:
    """The markers that apply, with the zone; empty for the Gregorian calendar."""
    found = re.match(r"(\d+)\.(\d+)", key_values.get(_VERSION, ""))
    if found is None:
        return ()
    version = (int(found[1]), int(found[2]))
    legacy = tuple(key for key in markers if key in key_values or version < _GREGORIAN_SINCE[key])
    return (*legacy, key_values.get(_ZONE, "")) if legacy else ()
