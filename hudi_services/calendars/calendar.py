"""The calendar of the dates and timestamps of a base file, by the entries of Spark's row writer in the footer.

    org.apache.spark.version           Spark wrote the file: Gregorian throughout since 3.0, INT96 since 3.1
    org.apache.spark.legacyDateTime    the hybrid calendar in any version (datetimeRebaseModeInWrite=LEGACY)
    org.apache.spark.legacyINT96       the same for INT96
    org.apache.spark.timeZone          of the session that wrote a legacy file

Without the version Spark refuses values before 1582 (timestamps: before 1900), unless its session says how to read
them; so a rewrite must keep these entries. Values after that are the same in both calendars: a leaf without older ones,
by the statistics of the footer, has no calendar, and fits into any file. Where files of two calendars are rewritten
together, their values become Gregorian when they are read (`calendar_rebase`). Source: DataSourceUtils.getRebaseSpec,
ParquetWriteSupport (Spark).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..computed_once import cached_property
from ..errors import UnsupportedTable
from ..parquet.chunk_stats import ColumnStats, column_stats
from ..parquet.file_schema import FileSchema, Leaf
from ..parquet.footer import Physical, RowGroup
from ..parquet.node_types import parquet_type
from ..schema.column_type import Kind
from .calendar_rebase import FIRST_DAY, FIRST_SECOND, TICKS, Rebase, is_rebased, zone_rule

_VERSION = "org.apache.spark.version"
_LEGACY = "org.apache.spark.legacyDateTime"
_LEGACY_INT96 = "org.apache.spark.legacyINT96"
_ZONE = "org.apache.spark.timeZone"
_GREGORIAN_SINCE = {_LEGACY: (3, 0), _LEGACY_INT96: (3, 1)}
_FIRST_GREGORIAN = "3.1.0"
"""Says that a file is Gregorian where no version of its sources does."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """How values of a leaf are counted."""

    is_hybrid: bool = False
    zone: str | None = None
    """Of timestamps in the hybrid calendar; "" where the file does not tell it."""


GREGORIAN = Calendar()


@dataclass(frozen=True)
class FileCalendar:
    """What the footer of the file `path` says of its calendar; `row_groups` None: no value is known to be recent.

    `is_converted`: the values are read as Gregorian ones, whatever the footer says.
    """

    path: str
    key_values: Mapping[str, str]
    schema: FileSchema
    row_groups: Sequence[RowGroup] | None = None
    is_converted: bool = False

    def __getstate__(self) -> dict[str, Any]:
        # What a calendar needs of the row groups is known before it is sent, and they are large.
        return {**self.__dict__, "of_leaves": self.of_leaves, "row_groups": None}

    @property
    def is_marked(self) -> bool:
        """Whether the hybrid calendar counts for some leaf, which may have recent values only."""
        return any(self._calendar(leaf).is_hybrid for leaf in _times(self.schema))

    @cached_property
    def of_leaves(self) -> Sequence[tuple[Leaf, Calendar]]:
        """The calendar of each leaf that may have values which the two calendars count differently."""
        times = _times(self.schema)
        if self.row_groups is not None:
            known = zip(self.schema.leaves, column_stats(self.schema, self.row_groups), strict=True)
            times = [leaf for leaf, stats in known if is_rebased(leaf.node) and not _is_recent(stats)]
        return [(leaf, self._calendar(leaf)) for leaf in times]

    @property
    def is_hybrid(self) -> bool:
        """Whether values may be counted in the hybrid calendar that the Gregorian one counts differently."""
        return self.is_marked and any(one.is_hybrid for _, one in self.of_leaves)

    def rebase(self) -> Rebase | None:
        """What makes the values Gregorian; None when they are. Raises UnsupportedTable for a zone without a rule."""
        if not self.is_hybrid:
            return None
        hybrid = [(leaf, one) for leaf, one in self.of_leaves if one.is_hybrid]
        rule = None
        for zone in {one.zone for _, one in hybrid if one.zone is not None}:
            rule = zone_rule(zone)
            if rule is None:
                told = f"in the time zone {zone!r}" if zone else "in a time zone that it does not tell"
                raise UnsupportedTable(
                    f"{self.path} counts timestamps before 1900 in the hybrid calendar, {told}: what they mean depends "
                    "on the reader",
                    hint="leave the partition out, or let Spark rewrite the rows of that file in a session with the "
                    "time zone that it was written in",
                )
        markers = {_marker_of(leaf) for leaf, _ in hybrid}
        return Rebase(_LEGACY in markers, _LEGACY_INT96 in markers, rule)

    def converted(self) -> "FileCalendar":
        """The calendar of the values when they are read as Gregorian ones, with entries that say so."""
        return replace(self, key_values=self._gregorian_entries(), row_groups=None, is_converted=True)

    def _gregorian_entries(self) -> dict[str, str]:
        version = _version(self.key_values)
        if version is None:
            return {}
        first = max(_GREGORIAN_SINCE.values())
        return {_VERSION: self.key_values[_VERSION] if version >= first else _FIRST_GREGORIAN}

    def _calendar(self, leaf: Leaf) -> Calendar:
        if self.is_converted or not _applies(_marker_of(leaf), self.key_values):
            return GREGORIAN
        is_date = parquet_type(leaf.node).kind is Kind.DATE
        return Calendar(True, None if is_date else self.key_values.get(_ZONE, ""))


def have_two_calendars(files: Sequence[FileCalendar], target: FileSchema) -> bool:
    """Whether one file with the schema `target` cannot hold the values of all `files` as they are."""
    if not any(one.is_marked for one in files):
        return False
    needed = _Needed.by(files, target)
    return len(needed.zones) > 1 or any(len(found) > 1 for found in needed.is_hybrid.values())


def calendar_metadata(files: Sequence[FileCalendar], target: FileSchema) -> dict[str, str]:
    """The footer entries for the file that replaces `files` (newest first, of one calendar) with the schema `target`.

    Files without such entries are Gregorian: Avro values always are.
    """
    told = [_entries(one.key_values) for one in files if _VERSION in one.key_values]
    if not told or not _times(target):
        return {}
    if not any(one.is_marked for one in files):
        return told[0]
    needed = _Needed.by(files, target)
    made = {_VERSION: _FIRST_GREGORIAN} | {marker: "" for marker, found in needed.is_hybrid.items() if True in found}
    if needed.zones:
        made[_ZONE] = next(iter(needed.zones))
    return next((one for one in told if needed.is_met(one)), made)


def _entries(key_values: Mapping[str, str]) -> dict[str, str]:
    return {key: key_values[key] for key in (_VERSION, _LEGACY, _LEGACY_INT96, _ZONE) if key in key_values}


@dataclass(frozen=True, slots=True)
class _Needed:
    """What the entries of a file must say: for each marker, whether it must apply (both: two calendars); the zones."""

    is_hybrid: Mapping[str, set[bool]]
    zones: set[str]

    @classmethod
    def by(cls, files: Sequence[FileCalendar], target: FileSchema) -> "_Needed":
        """What a file with the schema `target` needs to hold the values of `files`."""
        of_paths = {leaf.path: _marker_of(leaf) for leaf in _times(target)}
        of_columns = {leaf.path[0]: _marker_of(leaf) for leaf in _times(target)}
        found: dict[str, set[bool]] = {}
        zones: set[str] = set()
        for one in files:
            for leaf, calendar in one.of_leaves:
                # The leaf may be INT96 in the file and not in the target.
                marker = of_paths.get(leaf.path, of_columns.get(leaf.path[0]))
                if marker is None:
                    continue
                found.setdefault(marker, set()).add(calendar.is_hybrid)
                zones |= {calendar.zone} if calendar.zone is not None else set()
        return cls(found, zones)

    def is_met(self, entries: Mapping[str, str]) -> bool:
        met = all(found == {_applies(marker, entries)} for marker, found in self.is_hybrid.items())
        return met and self.zones <= {entries.get(_ZONE, "")}


def _times(schema: FileSchema) -> list[Leaf]:
    return [leaf for leaf in schema.leaves if is_rebased(leaf.node)]


def _marker_of(leaf: Leaf) -> str:
    return _LEGACY_INT96 if leaf.node.physical is Physical.INT96 else _LEGACY


def _applies(marker: str, key_values: Mapping[str, str]) -> bool:
    """Whether a legacy marker applies in a file: it is in the footer, or the version stands for it."""
    version = _version(key_values)
    return version is not None and (marker in key_values or version < _GREGORIAN_SINCE[marker])


def _version(key_values: Mapping[str, str]) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", key_values.get(_VERSION, ""))
    return None if found is None else (int(found[1]), int(found[2]))


def _is_recent(stats: ColumnStats) -> bool:
    """Whether the range of a leaf begins when both calendars count the same, or the leaf has no values."""
    if not stats.has_range or stats.min is None:
        return stats.has_range
    first = FIRST_DAY if stats.type.kind is Kind.DATE else FIRST_SECOND * TICKS[stats.type.unit]
    return bool(stats.min >= first)
