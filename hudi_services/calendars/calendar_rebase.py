"""Makes values of the hybrid calendar (Julian before 1582-10-15) proleptic Gregorian ones, as Spark does when it reads.

A date keeps its label: the Julian 1582-10-04 becomes the Gregorian 1582-10-04, and a 29 February that is none in the
Gregorian calendar the 1 March. A timestamp keeps its label in a time zone: that of the session that wrote the file.
There java.util, which the hybrid calendar comes with, counts all times before 1900 by one offset, and java.time by the
local mean time of the place; so all timestamps before 1900 change. Times of day without a zone (TIMESTAMP_NTZ) and
nanoseconds are not rebased. Source: RebaseDateTime, ParquetVectorUpdaterFactory (Spark).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import CheckFailed
from ..parquet.conversion import INT96, JULIAN_EPOCH_DAY, mapped_leaves
from ..parquet.file_schema import FileSchema, Node
from ..parquet.footer import Physical
from ..parquet.node_types import parquet_type
from ..schema.column_type import Kind
from .calendar_labels import relabelled
from .calendar_zones import ZONES

Numbers = npt.NDArray[np.int64]

FIRST_DAY = -141_427
"""1582-10-15 in epoch days: from it on, both calendars count the same."""
FIRST_SECOND = -2_208_988_800
"""1900-01-01T00:00:00Z in epoch seconds: from it on, timestamps of all zones are the same in both calendars."""

_DAY_SECONDS = 86_400
_YEAR_ZERO = 719_470
"""Days from 1 March of the year 0 in the Julian calendar to the epoch."""
_FOUR_YEARS = 1_461
TICKS = {"millis": 10**3, "micros": 10**6}
"""In a second, by the units of timestamps that are rebased."""
_NANOS = 10**9


@dataclass(frozen=True, slots=True)
class ZoneRule:
    """What `calendar_zones` tells of one zone, in seconds; `changes`: pairs of a time and the correction from it on."""

    offset: int
    correction: int
    changes: tuple[tuple[int, int], ...] = ()


_UTC = ZoneRule(0, 0)


@lru_cache(maxsize=1)
def _rules() -> dict[str, ZoneRule]:
    found = {}
    for line in ZONES.strip().replace("\n ", " ").splitlines():
        numbers, _, names = line.partition(": ")
        offset, correction, *rest = map(int, numbers.split())
        rule = ZoneRule(offset, correction, tuple(zip(rest[::2], rest[1::2], strict=True)))
        found.update(dict.fromkeys(names.split(), rule))
    return found


def zone_rule(zone: str) -> ZoneRule | None:
    """How Spark rebases timestamps in `zone`, as a footer names it; None for a zone without a known rule."""
    known = _rules().get(zone)
    if known is not None:
        return known
    offset = re.fullmatch(r"GMT([+-])(\d{1,2})(?::?(\d\d))?", zone)
    if offset is not None:
        seconds = int(offset[2]) * 3600 + int(offset[3] or 0) * 60
        return ZoneRule(-seconds if offset[1] == "-" else seconds, 0)
    # java.util.TimeZone, by which Spark rebases, takes offsets of every other form for UTC.
    return _UTC if re.fullmatch(r"Z|(UTC?)?[+-]\d{1,2}(:?\d\d(:?\d\d)?)?", zone) else None


def is_rebased(leaf: Node) -> bool:
    """Whether the two calendars count values of a leaf differently: dates, and timestamps that are instants."""
    kind = parquet_type(leaf)
    return kind.kind is Kind.DATE or (kind.kind is Kind.TIMESTAMP and kind.utc and kind.unit in TICKS)


@dataclass(frozen=True, slots=True)
class Rebase:
    """Makes dates and timestamps (`date_times`), or INT96 (`int96`), Gregorian; timestamps by the rule of a zone."""

    date_times: bool
    int96: bool
    rule: ZoneRule | None
    """None where no timestamps need one."""

    def table(self, rows: pa.Table, schema: FileSchema, path: str) -> pa.Table:
        """`rows`, of columns of `schema` in its raw form, as a Gregorian file would have them.

        Raises CheckFailed, naming the file at `path`, when other code computes other values.
        """
        for at, name in enumerate(rows.column_names):
            column = schema.column(name)
            assert column is not None, "rows have only columns of the schema"
            if any(self._concerns(leaf) for leaf in column.flat()):
                old = rows.column(at)
                new = mapped_leaves(old, column, self._leaf(self._numbers))
                if not new.equals(mapped_leaves(old, column, self._leaf(self._labelled))):
                    raise CheckFailed(
                        f"{path}: the dates of column {name} have other labels after their conversion to the Gregorian "
                        "calendar",
                        hint="nothing was committed; please report this with the file",
                    )
                rows = rows.set_column(at, rows.schema.field(at), new)
        return rows

    def _concerns(self, leaf: Node) -> bool:
        if leaf.is_group or not is_rebased(leaf):
            return False
        return self.int96 if leaf.physical is Physical.INT96 else self.date_times

    def _leaf(self, shift: Callable[[Numbers, Kind], Numbers]) -> Callable[[pa.Array, Node], pa.Array]:
        """A function that adds `shift` (of epoch days or seconds, in the same unit) to the values of a leaf."""

        def convert(values: pa.Array, leaf: Node) -> pa.Array:
            return _shifted(values, leaf, shift) if self._concerns(leaf) else values

        return convert

    def _numbers(self, values: Numbers, kind: Kind) -> Numbers:
        if kind is Kind.DATE:
            return _days_between(values)
        assert self.rule is not None, "timestamps are rebased in a zone"
        return _seconds_between(values, self.rule)

    def _labelled(self, values: Numbers, kind: Kind) -> Numbers:
        if kind is Kind.DATE:
            return relabelled(values) - values
        assert self.rule is not None, "timestamps are rebased in a zone"
        rule = self.rule
        days, rest = np.divmod(values + rule.offset, _DAY_SECONDS)
        found = relabelled(days) * _DAY_SECONDS + rest - rule.offset + rule.correction
        before = rule.correction
        for time, correction in rule.changes:
            found = np.where(values < time, found, found - before + correction)
            before = correction
        return found - values


def _days_between(days: Numbers) -> Numbers:
    """What a date of the hybrid calendar lacks, in days: it depends on the century, which the Julian calendar begins
    with its 1 March here."""
    century = (4 * (days + _YEAR_ZERO) + 3) // (100 * _FOUR_YEARS)
    return np.where(days < FIRST_DAY, 2 - century + century // 4, 0)


def _seconds_between(seconds: Numbers, rule: ZoneRule) -> Numbers:
    days = (seconds + rule.offset) // _DAY_SECONDS
    times = np.array([time for time, _ in rule.changes], np.int64)
    corrections = np.array([rule.correction, *(correction for _, correction in rule.changes)], np.int64)
    return _days_between(days) * _DAY_SECONDS + corrections[np.searchsorted(times, seconds, side="right")]


def _shifted(values: pa.Array, leaf: Node, shift: Callable[[Numbers, Kind], Numbers]) -> pa.Array:
    """`values`, which start at offset 0, with what `shift` gives for those that the calendars count differently."""
    if leaf.physical is Physical.INT96:
        return _shifted_int96(values, shift)
    kind = parquet_type(leaf)
    is_date = kind.kind is Kind.DATE
    width = np.int32 if is_date else np.int64
    numbers: npt.NDArray[np.signedinteger] = np.frombuffer(values.buffers()[1] or b"", width, len(values))
    ticks = 1 if is_date else TICKS[kind.unit]
    old = np.flatnonzero(numbers < (FIRST_DAY if is_date else FIRST_SECOND * ticks))
    if not len(old):
        return values
    new, before = numbers.copy(), numbers[old].astype(np.int64)
    new[old] = before + ticks * shift(before // ticks, kind.kind)
    return _array(values, new)


def _shifted_int96(values: pa.Array, shift: Callable[[Numbers, Kind], Numbers]) -> pa.Array:
    data = np.frombuffer(values.buffers()[1] or b"", INT96, len(values))
    seconds = (data["day"].astype(np.int64) - JULIAN_EPOCH_DAY) * _DAY_SECONDS + data["nanos"] // _NANOS
    old = np.flatnonzero(seconds < FIRST_SECOND)
    if not len(old):
        return values
    new = data.copy()
    days, rest = np.divmod(seconds[old] + shift(seconds[old], Kind.TIMESTAMP), _DAY_SECONDS)
    new["day"][old] = days + JULIAN_EPOCH_DAY
    new["nanos"][old] = rest * _NANOS + data["nanos"][old] % _NANOS
    return _array(values, new)


def _array(like: pa.Array, data: "npt.NDArray[np.generic]") -> pa.Array:
    return pa.Array.from_buffers(like.type, len(like), [like.buffers()[0], pa.py_buffer(data)])
